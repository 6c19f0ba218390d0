/** Stores that are broken in how many jobs they let producers bring in. */
import { taken } from '../../src/core/limits.js'
import { FULL } from '../../src/storage/memory/queues.js'
import type { EnqueueOutcome } from '../../src/storage/storage.js'
import type { Broken, Mutant } from './mutant.js'

/** Tokens are taken for what was not stored, too. */
function wasting(store: Broken, isWasted: (outcome: EnqueueOutcome) => boolean): void {
  const enqueue = store.enqueue.bind(store)
  store.enqueue = async (jobs, options) => {
    const outcomes = await enqueue(jobs, options)
    for (const [at, job] of jobs.entries()) if (isWasted(outcomes[at]!)) take(store, job.queue)
    return outcomes
  }
}

function take({ inside }: Broken, queue: string): void {
  const row = inside.queues.ensure(queue)
  if (row.limits.intake !== null) row.arrivals = taken(row.arrivals, row.limits.intake, inside.now(), 1)
}

/** All jobs are refused of calls of which one is. */
function refusingCalls(store: Broken, isRefused: (outcomes: readonly EnqueueOutcome[]) => boolean): void {
  const enqueue = store.enqueue.bind(store)
  store.enqueue = async (jobs, options) => {
    const outcomes = await enqueue(jobs, options)
    const early = outcomes.find(({ status }) => status === 'early')
    return early !== undefined && isRefused(outcomes) ? jobs.map(() => early) : outcomes
  }
}

export const MUTANTS_OF_INTAKE: Mutant[] = [
  {
    name: 'each producer has the intake of a queue to itself',
    caught: ['intake: all producers share it'],
    spoil(store) {
      // Two producers whose calls take turns.
      const buckets = [FULL, FULL]
      const enqueue = store.enqueue.bind(store)
      store.enqueue = async (jobs, options) => {
        const row = store.inside.queues.ensure(jobs[0]!.queue)
        row.arrivals = buckets.shift()!
        const outcomes = await enqueue(jobs, options)
        buckets.push(row.arrivals)
        return outcomes
      }
    },
  },
  {
    name: 'a call for which there are not tokens enough is refused as a whole',
    caught: [
      'intake: a call is stored as far as there are tokens, from its first job on',
      'intake: a queue that takes no more holds no other one up',
    ],
    spoil(store) {
      refusingCalls(store, () => true)
    },
  },
  {
    name: 'who is grouped first finds a token first',
    caught: ['intake: plain jobs of several priorities in one call are taken by their order in it'],
    spoil(store) {
      const enqueue = store.enqueue.bind(store)
      store.enqueue = async (jobs, options) => {
        const order = jobs.map((_, at) => at).sort((a, b) => jobs[a]!.priority - jobs[b]!.priority)
        const answers = await enqueue(
          order.map((at) => jobs[at]!),
          options,
        )
        return jobs.map((_, at) => answers[order.indexOf(at)]!)
      }
    },
  },
  {
    name: 'no token ever comes',
    caught: ['intake: tokens come with time, up to the burst', 'intake: a refused job takes no key'],
    spoil(store) {
      const enqueue = store.enqueue.bind(store)
      store.enqueue = async (jobs, options) => {
        const outcomes = await enqueue(jobs, options)
        for (const { queue } of jobs) {
          const row = store.inside.queues.ensure(queue)
          if (outcomes.some(({ status }) => status === 'early')) row.arrivals = { takenUntil: Infinity }
        }
        return outcomes
      }
    },
  },
  {
    name: 'a pause gives more than the burst',
    caught: ['intake: tokens come with time, up to the burst'],
    spoil({ inside: { queues } }) {
      const ensure = queues.ensure.bind(queues)
      queues.ensure = (queue) => {
        const row = ensure(queue)
        const { intake } = row.limits
        if (intake !== null && row.arrivals !== FULL)
          row.limits = { ...row.limits, intake: { ...intake, burst: 1_000 } }
        return row
      }
    },
  },
  {
    name: 'a duplicate takes a token',
    caught: ['intake: only what is stored takes a token'],
    spoil(store) {
      wasting(store, ({ status }) => status === 'duplicate')
    },
  },
  {
    name: 'who finds no room takes a token',
    caught: ['intake: only what is stored takes a token'],
    spoil(store) {
      wasting(store, ({ status }) => status === 'full')
    },
  },
  {
    name: 'a job for which there is no token keeps its key',
    caught: ['intake: a refused job takes no key'],
    spoil(store) {
      const enqueue = store.enqueue.bind(store)
      store.enqueue = async (jobs, options) => {
        const outcomes = await enqueue(jobs, options)
        for (const [at, job] of jobs.entries())
          if (outcomes[at]!.status === 'early' && job.idempotency !== undefined)
            store.inside.keys.add(job, job.idempotency, store.inside.now())
        return outcomes
      }
    },
  },
  {
    name: 'what comes back takes a token',
    caught: ['intake: what comes back needs no token'],
    spoil(store) {
      const settle = store.settle.bind(store)
      store.settle = async (settlements) => {
        for (const one of settlements) {
          const queue = store.inside.leases.get(one.fence)?.slots[one.ordinal]?.job.queue
          if (queue !== undefined && one.to !== 'completed') take(store, queue)
        }
        return settle(settlements)
      }
    },
  },
  {
    name: 'any limit that is set fills the bucket',
    caught: ['intake: a changed limit holds from the next enqueue on, and begins full'],
    spoil(store) {
      const { control } = store
      const limit = control.limit.bind(control)
      control.limit = async (queue, limits) => {
        await limit(queue, limits)
        store.inside.queues.ensure(queue).arrivals = FULL
      }
    },
  },
]
