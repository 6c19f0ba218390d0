/** What there is to see: the `inspect` facet. */
import { JOB_STATES, type Json } from '../../core/job.js'
import type { JobFacts } from '../../core/job-facts.js'
import type { Count, Inspect, JobPage, JobView, ListRequest, QueueCounts, WorkerView } from '../storage.js'
import { copyOfHistory, copyOfSpec } from './copy.js'
import { factsOf } from './facts.js'
import type { JobRow } from './jobs.js'
import { openSlots } from './leases.js'
import { cursorKey, deadGroups, match, matches } from './match.js'
import { capacity } from './pace.js'
import type { MemoryState } from './state.js'
import { mainSeenAt } from './workers.js'

export function inspectOf(state: MemoryState): Inspect {
  return {
    get: async (ids) => ids.map((id) => jobView(state, state.jobs.get(id))),
    list: async (request) => list(state, request),
    match: async (request) => match(state, request),
    deadGroups: async (request) => deadGroups(state, request),
    queues: async () => state.queues.all(),
    counts: async (queue) => counts(state, queue),
    facts: async (id) => facts(state, state.jobs.get(id)),
    workers: async () => workers(state),
    capacity: async (queue) => capacity(state, queue),
  }
}

/** The page after a job is found by that job's own place in the order, so that what moves meanwhile shifts nothing. */
function list(state: MemoryState, request: ListRequest): JobPage {
  const { state: wanted, endedAfter, endedBefore, limit, after, ...more } = request
  const wish = { ...more, since: endedAfter, before: endedBefore }
  const rows: JobRow[] = []
  const inOrder = state.jobs.inState(wanted)
  for (const job of inOrder.items(after === undefined ? undefined : cursorKey(after))) {
    if (rows.length > limit) break
    if (matches(job, wish)) rows.push(job)
  }
  const page = rows.slice(0, limit)
  const cursors = page.map((job) => JSON.stringify(inOrder.keyOf(job)))
  return {
    jobs: page.map((job) => jobView(state, job)!),
    cursors,
    next: rows.length > limit ? (cursors.at(-1) ?? null) : null,
  }
}

function jobView(state: MemoryState, job: JobRow | undefined): JobView | null {
  if (job === undefined) return null
  const ended = job.place === 'ended' || job.place === 'dead'
  const startedAt = job.place === 'leased' ? toldStart(state, job) : job.startedAt
  return {
    id: job.id,
    kind: job.kind,
    queue: job.queue,
    priority: job.priority,
    state: job.state,
    payload: JSON.parse(job.payload) as Json,
    spec: copyOfSpec(job.spec),
    history: copyOfHistory(job.history),
    enqueuedAt: Math.round(job.enqueuedAt),
    dueAt: ended ? null : Math.round(job.dueAt),
    startedAt: startedAt === null ? null : Math.round(startedAt),
    endedAt: job.endedAt === null ? null : Math.round(job.endedAt),
    ranMs: job.ranMs === null ? null : Math.round(job.ranMs),
    worker: job.worker,
    ...(job.result === null ? {} : { result: JSON.parse(job.result) as Json }),
    ...(job.reason === null ? {} : { reason: job.reason }),
    ...(job.cancelling ? { cancelling: true } : {}),
  }
}

function facts(state: MemoryState, job: JobRow | undefined): JobFacts | null {
  const view = jobView(state, job)
  return job === undefined || view === null ? null : factsOf(state, job, view)
}

/** Told by beats as how long it has run: not before its claim, whatever a beat took on its way. */
function toldStart(state: MemoryState, job: JobRow): number | null {
  const { lease, ordinal } = state.leases.holding(job)!
  const worker = state.workers.get(lease.worker)
  const told = worker?.started.find((start) => start[0] === lease.fence && start[1] === ordinal)
  if (worker === undefined || told?.[2] === undefined) return null
  return Math.max(lease.claimedAt, mainSeenAt(worker) - told[2])
}

function counts(state: MemoryState, queue: string): QueueCounts {
  const counted = state.jobs.counts(queue)
  const exact = JOB_STATES.map((name): [string, Count] => [name, { count: counted[name], exact: true }])
  return Object.fromEntries(exact) as QueueCounts
}

function workers(state: MemoryState): WorkerView[] {
  const now = state.now()
  return state.workers.all().map((row) => {
    const leases = state.leases.of(row.id)
    return {
      ...structuredClone(row.info),
      id: row.id,
      startedAt: Math.round(row.registeredAt),
      lastBeatAgoMs: now - row.lastBeatAt,
      mainLagMs: row.mainLagMs,
      leases: leases.length,
      jobs: leases.reduce((jobs, lease) => jobs + openSlots(lease).length, 0),
    }
  })
}
