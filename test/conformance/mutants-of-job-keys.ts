/** Stores that are broken where jobs have order keys and limit keys. */
import { keyOf } from '../../src/core/keys.js'
import type { JobRow } from '../../src/storage/memory/jobs.js'
import type { Broken, Mutant } from './mutant.js'

/** What leaves its lease in such a way is never told to the permits. */
function forgets({ inside }: Broken, isForgotten: (job: JobRow) => boolean): void {
  const { permits } = inside.jobs
  const release = permits.release.bind(permits)
  permits.release = (jobs, limitOf) =>
    release(
      jobs.filter((job) => !isForgotten(job)),
      limitOf,
    )
}

/** Permits are given by another rule where this says so. */
function gives({ inside }: Broken, isGiven: (job: JobRow) => boolean): void {
  const { permits } = inside.jobs
  const take = permits.take.bind(permits)
  permits.take = (job, limit) => isGiven(job) || take(job, limit)
}

const isOrdered = (job: JobRow): boolean => keyOf(job.spec)?.ordered === true

export const MUTANTS_OF_JOB_KEYS: Mutant[] = [
  {
    name: 'order keys are not looked at',
    caught: [
      'job keys: of an order key one job runs at a time, in order',
      'job keys: a job of an order key keeps its turn while it waits for its next attempt',
      'job keys: a crash changes no order',
      'job keys: order is kept whatever the priority',
    ],
    spoil: (store) => gives(store, isOrdered),
  },
  {
    name: 'whoever comes first takes the turn of an order key, whoever waits before it',
    caught: ['job keys: order is kept whatever the priority'],
    spoil: ({ inside }) => {
      const { permits } = inside.jobs
      const take = permits.take.bind(permits)
      permits.take = (job, limit) => {
        const { orderKey, ...spec } = job.spec
        return orderKey === undefined
          ? take(job, limit)
          : take({ ...job, spec: { ...spec, limitKey: orderKey } }, { limit: 1, keys: {} })
      }
    },
  },
  {
    name: 'an order key is free whenever its job does not run',
    caught: [
      'job keys: a job of an order key keeps its turn while it waits for its next attempt',
      'job keys: a dead job may block those behind it until it is redriven or discarded',
    ],
    spoil: ({ inside }) => {
      const { jobs } = inside
      const [toDelayed, toDead] = [jobs.toDelayed.bind(jobs), jobs.toDead.bind(jobs)]
      const free = (job: JobRow): void => {
        for (const next of jobs.permits.release([job], () => null)) jobs.toFront(next)
      }
      jobs.toDelayed = (job, dueAt) => {
        toDelayed(job, dueAt)
        free(job)
      }
      jobs.toDead = (job, reason, now) => {
        toDead(job, reason, now)
        free(job)
      }
    },
  },
  {
    name: 'what is given back goes behind the others of its order key',
    caught: ['job keys: what is given back of an order key keeps its turn'],
    spoil: ({ inside }) => {
      const { jobs } = inside
      const toFront = jobs.toFront.bind(jobs)
      jobs.toFront = (job, dueAt, nth) => {
        const isBack = job.place === 'leased' && isOrdered(job)
        if (!isBack) return toFront(job, dueAt, nth)
        const next = jobs.permits.release([job], () => null)
        toFront(job, job.dueAt + 3_600_000, nth)
        for (const other of next) toFront(other)
      }
    },
  },
  {
    name: 'the permit of a dead job is never free',
    caught: ['job keys: behind a dead job an order key goes on, unless it says otherwise'],
    spoil: (store) => forgets(store, (job) => job.place === 'dead'),
  },
  {
    name: 'a discarded letter blocks its order key for ever',
    caught: ['job keys: a dead job may block those behind it until it is redriven or discarded'],
    spoil: (store) => forgets(store, (job) => job.spec.afterDead === 'block'),
  },
  {
    name: 'all limit keys have the limit of the queue',
    caught: ['job keys: of a limit key as many run at once as the queue allows'],
    spoil: ({ inside }) => {
      const { permits } = inside.jobs
      const take = permits.take.bind(permits)
      permits.take = (job, limit) => take(job, limit && { ...limit, keys: {} })
    },
  },
  {
    name: 'limit keys are not looked at',
    caught: [
      'job keys: of a limit key as many run at once as the queue allows',
      'job keys: whatever ends a lease of a job frees its permit of a limit key',
      'job keys: what a dead worker held of a limit key counts until it is settled',
      'job keys: a changed limit of keys holds from the next claim on',
      'job keys: a full key keeps nobody else waiting',
    ],
    spoil: (store) => gives(store, (job) => !isOrdered(job)),
  },
  {
    name: 'a failed attempt leaks its permit',
    caught: ['job keys: whatever ends a lease of a job frees its permit of a limit key'],
    spoil: (store) => forgets(store, (job) => job.state === 'retrying'),
  },
  {
    name: 'an adopted lease frees the permits of its jobs',
    caught: [
      'job keys: what a dead worker held of a limit key counts until it is settled',
      'job keys: a crash changes no order',
    ],
    spoil: ({ inside }) => {
      const { jobs } = inside
      const toHeir = jobs.toHeir.bind(jobs)
      jobs.toHeir = (job, worker) => {
        toHeir(job, worker)
        for (const next of jobs.permits.release([job], () => null)) jobs.toFront(next)
      }
    },
  },
  {
    name: 'what a lower limit has blocked hears nothing of a higher one',
    caught: ['job keys: a changed limit of keys holds from the next claim on'],
    spoil: ({ inside }) => {
      inside.jobs.permits.free = () => []
    },
  },
  {
    name: 'who leaves the line lets nobody go',
    caught: ['job keys: who leaves the line of a key lets the next one go'],
    spoil: (store) =>
      forgets(store, (job) => job.place !== 'ready' && job.place !== 'leased' && job.startedAt === null),
  },
]
