/** Stores that are broken where queues have limits. */
import type { QueueLimits } from '../../src/storage/storage.js'
import type { Broken, Mutant } from './mutant.js'

/** Claims see these limits for those that the queue has. */
function seeing(store: Broken, limitsFor: (limits: QueueLimits, queue: string) => QueueLimits): void {
  const { queues } = store.inside
  const get = queues.get.bind(queues)
  queues.get = (queue) => ({ ...get(queue), limits: limitsFor(get(queue).limits, queue) })
}

export const MUTANTS_OF_LIMITS: Mutant[] = [
  {
    name: 'a limit of concurrency is never looked at',
    caught: [
      'limits: concurrency counts the jobs in leases of all workers',
      'limits: whatever ends a lease of a job frees its permit',
      'limits: a changed limit holds from the next claim on',
      'limits: a full queue has nothing more to give, until a permit is free',
      'limits: what is held back by both waits for both',
    ],
    spoil: (store) => seeing(store, (limits) => ({ ...limits, concurrency: null })),
  },
  {
    name: 'a dead worker holds no permits',
    caught: ['limits: what a dead worker held counts until its heir has settled it'],
    spoil(store) {
      const { jobs, workers, leases } = store.inside
      const counts = jobs.counts.bind(jobs)
      const now = () => store.inside.now()
      jobs.counts = (queue) => {
        const silent = workers.all().filter(({ lastBeatAt }) => now() - lastBeatAt > 30_000)
        const held = silent.flatMap(({ id }) => leases.of(id)).flatMap(({ slots }) => slots)
        return { ...counts(queue), running: counts(queue).running - held.length }
      }
    },
  },
  {
    name: 'each permit is taken once and never given back',
    caught: ['limits: whatever ends a lease of a job frees its permit'],
    spoil(store) {
      const { jobs } = store.inside
      const toLeased = jobs.toLeased.bind(jobs)
      const counts = jobs.counts.bind(jobs)
      let ever = 0
      jobs.toLeased = (job, worker, now) => {
        ever += 1
        toLeased(job, worker, now)
      }
      jobs.counts = (queue) => ({ ...counts(queue), running: ever })
    },
  },
  {
    name: 'a limit is one of all queues together',
    caught: ['limits: they are of one queue, and hold no other one up'],
    spoil: (store) => {
      const { queues } = store.inside
      const get = queues.get.bind(queues)
      queues.get = (queue) => ({ ...get(queue), limits: get('q').limits, starts: get('q').starts })
    },
  },
  {
    name: 'what a limit holds back is said to be there to take',
    caught: ['limits: a full queue has nothing more to give, until a permit is free'],
    spoil(store) {
      const claim = store.claim.bind(store)
      store.claim = async (request) => {
        const answer = await claim(request)
        return { ...answer, more: answer.leases.length > 0 || answer.more }
      }
    },
  },
  {
    name: 'a suspect needs no permit',
    caught: ['limits: a suspect needs a permit like any other'],
    spoil(store) {
      const claim = store.claim.bind(store)
      store.claim = async (request) => {
        const row = store.inside.queues.ensure('q')
        const { limits } = row
        if (request.suspects) row.limits = { ...limits, concurrency: null }
        const answer = await claim(request)
        row.limits = limits
        return answer
      }
    },
  },
  {
    name: 'a rate is never looked at',
    caught: [
      'limits: a rate lets its burst go, and then a job for each token',
      'limits: a changed rate begins with a full bucket, and none lets all go',
      'limits: what is held back by both waits for both',
    ],
    spoil: (store) => seeing(store, (limits) => ({ ...limits, rate: null })),
  },
  {
    name: 'a bucket has no brim',
    caught: ['limits: a rate lets its burst go, and then a job for each token'],
    spoil: (store) => seeing(store, (limits) => ({ ...limits, rate: limits.rate && { ...limits.rate, burst: 100 } })),
  },
  {
    name: 'a changed rate keeps what was taken',
    caught: ['limits: a changed rate begins with a full bucket, and none lets all go'],
    spoil(store) {
      const limit = store.control.limit.bind(store.control)
      store.control.limit = async (queue, limits) => {
        const { starts } = store.inside.queues.get(queue)
        await limit(queue, limits)
        store.inside.queues.ensure(queue).starts = starts
      }
    },
  },
  {
    name: 'a rate that is set again is full again',
    caught: ['limits: a changed rate begins with a full bucket, and none lets all go'],
    spoil(store) {
      const limit = store.control.limit.bind(store.control)
      store.control.limit = async (queue, limits) => {
        await limit(queue, limits)
        store.inside.queues.ensure(queue).starts = { takenUntil: Number.NEGATIVE_INFINITY }
      }
    },
  },
  {
    name: 'a limit that is set takes the others away',
    caught: ['limits: they are told with the queue, and those not given stay'],
    spoil(store) {
      const limit = store.control.limit.bind(store.control)
      store.control.limit = (queue, limits) => limit(queue, { concurrency: null, rate: null, ...limits })
    },
  },
]
