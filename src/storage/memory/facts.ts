/** What decides whether a job runs now: `inspect.facts`. The rules that judge it are in core/explain.ts. */
import {
  HOLDERS_SEEN_MAX,
  type HolderSeen,
  type JobFacts,
  type JobSeen,
  type KeySeen,
  LIST_ENTRIES_MAX,
  type ListSeen,
  type QueueSeen,
  WORKERS_SEEN_MAX,
} from '../../core/job-facts.js'
import { keyOf, permitsOf } from '../../core/keys.js'
import { tokensAt, untilToken } from '../../core/limits.js'
import type { JobView } from '../storage.js'
import type { JobRow } from './jobs.js'
import { openSlots } from './leases.js'
import type { MemoryState } from './state.js'
import { isDead, type WorkerRow } from './workers.js'

/** `view`: the job as people see it. */
export function factsOf(state: MemoryState, job: JobRow, view: JobView): JobFacts {
  const now = state.now()
  const alive = state.workers.all().filter((row) => !isDead(row, now))
  const serving = alive.filter(({ info }) => info.queues.includes(job.queue))
  const running = state.leases.suspectOf(job.queue)
  return {
    nowMs: now,
    job: seen(job, view),
    queue: queueSeen(state, job.queue, now),
    workers: serving.slice(0, WORKERS_SEEN_MAX).map((row) => workerSeen(state, row)),
    workersElsewhere: alive.length - serving.length,
    ...keySeen(state, job),
    lease: job.place === 'leased' ? leaseSeen(state, job, now) : null,
    suspectRunning: running === undefined ? null : { id: running.job.id, worker: running.worker },
    lists: job.place === 'ready' ? listsSeen(state, job) : [],
  }
}

function seen(job: JobRow, { payload: _, result: _result, ranMs: _ran, worker: _worker, ...view }: JobView): JobSeen {
  return { ...view, suspect: job.suspect }
}

function queueSeen(state: MemoryState, queue: string, now: number): QueueSeen {
  const { paused, draining, order, limits, starts } = state.queues.get(queue)
  const { concurrency, rate } = limits
  return {
    paused,
    draining,
    order,
    ...(concurrency === null
      ? {}
      : {
          concurrency: {
            limit: concurrency,
            held: state.jobs.counts(queue).running,
            holders: holdersSeen(state, queue),
          },
        }),
    ...(rate === null
      ? {}
      : { rate: { tokens: tokensAt(starts, rate, now), nextAt: now + untilToken(starts, rate, now) } }),
  }
}

function keySeen({ jobs: { permits }, queues }: MemoryState, job: JobRow): { key?: KeySeen } {
  const key = keyOf(job.spec)
  if (key === undefined) return {}
  const holders = permits.holders(job)
  const limit = permitsOf(key, queues.get(job.queue).limits.perKey)
  return {
    key: {
      ...key,
      limit: limit === Number.POSITIVE_INFINITY ? null : limit,
      held: holders.length,
      holders: holders.slice(0, HOLDERS_SEEN_MAX),
      holds: holders.includes(job.id),
      ahead: permits.ahead(job)?.id ?? null,
    },
  }
}

/** The first that were claimed. */
function holdersSeen(state: MemoryState, queue: string): HolderSeen[] {
  const holders: HolderSeen[] = []
  for (const job of state.jobs.inState('running').items()) {
    if (holders.length >= HOLDERS_SEEN_MAX) break
    if (job.queue === queue) holders.push({ id: job.id, worker: job.worker! })
  }
  return holders
}

function workerSeen(state: MemoryState, { id, info }: WorkerRow): JobFacts['workers'][number] {
  return {
    id,
    name: info.name,
    ...(info.kinds === undefined ? {} : { kinds: [...info.kinds] }),
    concurrency: info.concurrency,
    jobs: state.leases.of(id).reduce((jobs, lease) => jobs + openSlots(lease).length, 0),
  }
}

function leaseSeen(state: MemoryState, job: JobRow, now: number): JobFacts['lease'] {
  const { lease } = state.leases.holding(job)!
  const row = state.workers.get(lease.worker)
  return {
    worker: lease.worker,
    claimedAt: Math.round(lease.claimedAt),
    adopted: lease.request === null,
    holder:
      row === undefined
        ? null
        : {
            name: row.info.name,
            lastBeatAgoMs: now - row.lastBeatAt,
            mainLagMs: row.mainLagMs,
            leaseMs: row.info.leaseMs,
            beatMs: row.info.beatMs,
          },
  }
}

function listsSeen(state: MemoryState, own: JobRow): ListSeen[] {
  const { lanes } = state.jobs
  // One more tells whether there are more.
  if (own.suspect) return [listSeen('suspects', 0, lanes.suspects(own.queue, LIST_ENTRIES_MAX + 1), own)]
  const heads = lanes.heads(own.queue, LIST_ENTRIES_MAX + 1).filter(({ jobs }) => jobs.length > 0)
  return heads.map(({ priority, list, jobs }) => listSeen(list, priority, jobs, own))
}

function listSeen(range: ListSeen['range'], priority: number, jobs: readonly JobRow[], job: JobRow): ListSeen {
  const entries = jobs.slice(0, LIST_ENTRIES_MAX).map(({ kind, dueAt, dueNth }) => ({ kind, dueAt, dueNth }))
  const own = jobs.indexOf(job)
  return {
    range,
    priority,
    entries,
    ...(own >= 0 && own < LIST_ENTRIES_MAX ? { own } : {}),
    cut: jobs.length > LIST_ENTRIES_MAX,
  }
}
