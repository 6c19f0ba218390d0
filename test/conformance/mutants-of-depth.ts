/** Stores that are broken in whom they refuse for what waits, and in what they tell producers. */
import type { Full } from '../../src/core/limits.js'
import type { CapacityFacts, EnqueueOutcome, NewJob, Settlement } from '../../src/storage/storage.js'
import type { Broken, Mutant } from './mutant.js'

type Waiting = Broken['inside']['jobs']['waiting']
type WaitingOf = Broken['inside']['jobs']['waitingOf']

/** What waits is counted in another way. */
function counting(store: Broken, count: (waiting: Waiting, queue: string, kind?: string) => number): void {
  const { jobs } = store.inside
  const waiting = jobs.waiting.bind(jobs)
  jobs.waiting = (queue, kind) => count(waiting, queue, kind)
}

/** What waits of a tenant is counted in another way. */
function countingTenants(
  { inside: { jobs } }: Broken,
  count: (waitingOf: WaitingOf, queue: string, tenant: string | undefined) => number,
): void {
  const waitingOf = jobs.waitingOf.bind(jobs)
  jobs.waitingOf = (queue, tenant) => count(waitingOf, queue, tenant)
}

/** All of the queue are told what the first one hears that is full. */
function refusing(store: Broken, isRefused: (jobs: readonly NewJob[]) => boolean): void {
  const enqueue = store.enqueue.bind(store)
  const full: EnqueueOutcome = { status: 'full', scope: 'queue', depth: 9, limit: 9, retryAfterMs: 1_000 }
  store.enqueue = async (jobs, options) => (isRefused(jobs) ? jobs.map(() => full) : enqueue(jobs, options))
}

function room({ inside }: Broken, queue: string): number {
  const { depth } = inside.queues.get(queue).limits
  return depth === null ? Infinity : depth.limit - inside.jobs.waiting(queue)
}

/** What is told of the capacity of a queue is another thing. */
function telling({ inspect }: Broken, change: (facts: CapacityFacts, queue: string) => CapacityFacts): void {
  const capacity = inspect.capacity.bind(inspect)
  inspect.capacity = async (queue) => change(await capacity(queue), queue)
}

export const MUTANTS_OF_DEPTH: Mutant[] = [
  {
    name: 'one too many may wait',
    caught: [
      'depth: a call is stored up to the limit, from its first job on',
      'depth: plain jobs of several priorities in one call fit by their order in it',
      'depth: a changed limit holds from the next enqueue on',
    ],
    spoil(store) {
      counting(store, (waiting, queue, kind) => waiting(queue, kind) - 1)
    },
  },
  {
    name: 'delayed jobs do not count as waiting',
    caught: ['depth: what waits counts, what runs or has ended does not'],
    spoil(store) {
      counting(store, (waiting, queue, kind) => waiting(queue, kind) - store.inside.jobs.counts(queue).delayed)
    },
  },
  {
    name: 'running jobs count as waiting',
    caught: ['depth: what waits counts, what runs or has ended does not'],
    spoil(store) {
      counting(store, (waiting, queue, kind) => waiting(queue, kind) + store.inside.jobs.counts(queue).running)
    },
  },
  {
    name: 'a call that does not fit is refused as a whole',
    caught: [
      'depth: a call is stored up to the limit, from its first job on',
      'depth: what waits counts, what runs or has ended does not',
    ],
    spoil(store) {
      refusing(store, (jobs) => jobs.some(({ queue }) => room(store, queue) < jobs.length))
    },
  },
  {
    name: 'a full queue refuses the jobs of others in its call',
    caught: ['depth: a full queue holds no other one up'],
    spoil(store) {
      refusing(store, (jobs) => jobs.some(({ queue }) => room(store, queue) <= 0))
    },
  },
  {
    name: 'a full queue refuses who asks again by a key',
    caught: ['depth: a key that is known is answered, and a refused job takes none'],
    spoil(store) {
      refusing(store, (jobs) => jobs.every(({ queue }) => room(store, queue) <= 0))
    },
  },
  {
    name: 'a job that is refused keeps its key',
    caught: ['depth: a key that is known is answered, and a refused job takes none'],
    spoil(store) {
      const enqueue = store.enqueue.bind(store)
      store.enqueue = async (jobs, options) => {
        const outcomes = await enqueue(jobs, options)
        for (const [at, job] of jobs.entries())
          if (outcomes[at]!.status === 'full' && job.idempotency !== undefined)
            store.inside.keys.add(job, job.idempotency, store.inside.now())
        return outcomes
      }
    },
  },
  {
    name: 'the limit of a kind counts the whole queue',
    caught: ['depth: a kind may have a limit of its own, inside that of its queue'],
    spoil(store) {
      counting(store, (waiting, queue) => waiting(queue))
    },
  },
  {
    name: 'the limit of a tenant counts the whole queue',
    caught: ['depth: no tenant has more waiting than its part'],
    spoil({ inside }) {
      inside.jobs.waitingOf = (queue) => inside.jobs.waiting(queue)
    },
  },
  {
    name: 'the limit of a tenant does not count what is delayed',
    caught: [
      'depth: no tenant has more waiting than its part',
      'depth: a tenant counts what waits of it, wherever that came from',
    ],
    spoil(store) {
      countingTenants(store, (waitingOf, queue, tenant) => {
        const { jobs } = store.inside
        const later = [...jobs.delayed.items()].filter((job) => job.queue === queue && job.spec.tenant === tenant)
        return waitingOf(queue, tenant) - later.length
      })
    },
  },
  {
    name: 'jobs without a tenant have no limit of one',
    caught: ['depth: jobs without a tenant are one tenant'],
    spoil(store) {
      countingTenants(store, (waitingOf, queue, tenant) => (tenant === undefined ? 0 : waitingOf(queue, tenant)))
    },
  },
  {
    name: 'what runs of a tenant counts as waiting',
    caught: ['depth: a tenant counts what waits of it, wherever that came from'],
    spoil(store) {
      countingTenants(store, (waitingOf, queue, tenant) => {
        const running = [...store.inside.jobs.inState('running').items()]
        return waitingOf(queue, tenant) + running.filter(({ spec }) => spec.tenant === tenant).length
      })
    },
  },
  {
    name: 'a retry does not come back to a full queue',
    caught: ['depth: what comes back is never refused'],
    spoil(store) {
      const settle = store.settle.bind(store)
      const kept = (one: Settlement): Settlement => {
        if (one.to !== 'delayed' && one.to !== 'ready') return one
        const { history, fence, ordinal } = one
        const queue = store.inside.leases.get(fence)?.slots[ordinal]?.job.queue
        const isFull = queue !== undefined && room(store, queue) <= 0
        return isFull && history !== null ? { fence, ordinal, to: 'dead', reason: 'failed', history } : one
      }
      store.settle = async (settlements) => settle(settlements.map(kept))
    },
  },
  {
    name: 'another limit takes that of what waits away',
    caught: ['depth: a changed limit holds from the next enqueue on'],
    spoil(store) {
      const { control } = store
      const limit = control.limit.bind(control)
      control.limit = (queue, limits) => limit(queue, { depth: null, ...limits })
    },
  },
  {
    name: 'whoever is refused is always told to come back in a second',
    caught: ['depth: whoever is refused hears when to try again, by the pace of the queue'],
    spoil(store) {
      const enqueue = store.enqueue.bind(store)
      const later = (full: Full): Full => ({ ...full, retryAfterMs: 1_000 })
      store.enqueue = async (jobs, options) =>
        (await enqueue(jobs, options)).map((outcome) =>
          outcome.status === 'full' ? { status: 'full', ...later(outcome) } : outcome,
        )
    },
  },
  {
    name: 'workers that have died count as slots',
    caught: ['capacity: slots are those of the workers that are alive and serve the queue'],
    spoil(store) {
      telling(store, (facts, queue) => {
        const rows = store.inside.workers.all().filter(({ info }) => info.queues.includes(queue))
        return { ...facts, workers: rows.length, slots: rows.reduce((sum, { info }) => sum + info.concurrency, 0) }
      })
    },
  },
  {
    name: 'what a worker tells of its slots is not heard',
    caught: ['capacity: slots are those of the workers that are alive and serve the queue'],
    spoil(store) {
      const beat = store.beat.bind(store)
      store.beat = ({ info: { busy: _, ...info }, ...rest }) => beat({ ...rest, info })
    },
  },
  {
    name: 'asking for the capacity of a queue makes it',
    caught: ['capacity: of a queue that nobody has seen it is nothing, and none is made'],
    spoil(store) {
      telling(store, (facts, queue) => {
        store.inside.queues.ensure(queue)
        return facts
      })
    },
  },
  {
    name: 'what is ready is all that waits',
    caught: ['capacity: what waits is counted, ready jobs for themselves'],
    spoil(store) {
      telling(store, (facts) => ({ ...facts, ready: facts.depth }))
    },
  },
  {
    name: 'the pace is that of all records',
    caught: ['capacity: the pace is that of the newest jobs that were completed within a minute'],
    spoil(store) {
      telling(store, (facts) => {
        const jobs = [...store.inside.jobs.inState('completed').items()]
        const sinceMs = store.inside.now() - (jobs.at(-1)?.endedAt ?? store.inside.now())
        return { ...facts, drained: { count: jobs.length, sinceMs } }
      })
    },
  },
]
