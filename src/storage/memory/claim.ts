/** How a worker gets jobs. Called by MemoryStorage. */
import type { Json } from '../../core/job.js'
import { taken, tokensAt, untilToken } from '../../core/limits.js'
import { ageingKey, type QueueOrder, quotasOfLists } from '../../core/priority.js'
import type { Claim, ClaimedJob, ClaimRequest, Lease } from '../storage.js'
import { copyOfHistory, copyOfSpec } from './copy.js'
import { type JobRow, lanePosition, neverStarted } from './jobs.js'
import type { Head } from './lanes.js'
import { isWhole, type LeaseRow, type Slot } from './leases.js'
import { settle } from './settle.js'
import type { MemoryState } from './state.js'

/** One message to the worker stays small, and a take-over moves whole leases. */
const LEASE_JOBS_MAX = 100

export function claim(state: MemoryState, request: ClaimRequest): Claim {
  const settled = settle(state, request.finished ?? [])
  const now = state.now()
  const worker = state.workers.get(request.worker)
  for (const { queue } of request.queues) state.queues.ensure(queue)
  const paused = request.queues.map(({ queue }) => queue).filter((queue) => state.queues.get(queue).paused)
  const answer = { settled, paused, nowMs: now }
  // Who did not look says that there may be more.
  const unseen = { more: true, nextDueMs: null, limited: [], nextTokenMs: null }
  if (worker === undefined) return { ...answer, ...unseen, status: 'gone', leases: [] }
  if (request.request <= worker.known || worker.taken.has(request.request))
    return { ...answer, ...unseen, status: 'ok', leases: leasesOf(state, request) }
  const more = takeLeases(state, request, now)
  const leases = leasesOf(state, request)
  // One that found nothing may look again: nothing was written of it.
  if (leases.length > 0) worker.taken.add(request.request)
  // Whoever runs a suspect asks for nothing else meanwhile.
  const limited = leases.some(({ alone }) => alone) ? [] : limitedOf(state, request, now)
  return {
    ...answer,
    status: 'ok',
    leases,
    more,
    nextDueMs: nextDueMs(state, now, queuesOf(request)),
    limited,
    nextTokenMs: untilTokenMs(state, limited, now),
  }
}

/**
 * What this request has taken, now or when it was here before: asked again it gives the same batch. A lease of which
 * something was settled has reached its worker, so no repeat may hand it out once more.
 */
function leasesOf(state: MemoryState, { worker, request }: ClaimRequest): Lease[] {
  const leases = state.leases.of(worker).filter((lease) => lease.request === request && isWhole(lease))
  return leases.map(leaseAnswer)
}

function queuesOf({ queues }: ClaimRequest): string[] {
  return queues.map(({ queue }) => queue)
}

/** Of these queues, or of all. */
export function nextDueMs(state: MemoryState, now: number, queues?: readonly string[]): number | null {
  for (const { queue, dueAt } of state.jobs.delayed.items())
    if (queues === undefined || queues.includes(queue)) return Math.max(0, dueAt - now)
  return null
}

/** Queues that have jobs for the worker, and limits that let none of them go. */
function limitedOf(state: MemoryState, request: ClaimRequest, now: number): string[] {
  const { kinds } = request
  const held = (queue: string): boolean =>
    !state.queues.get(queue).paused &&
    room(state, queue, now) === 0 &&
    state.jobs.lanes.candidates(queue, kinds, 1).length > 0
  return queuesOf(request).filter(held)
}

/** Until a job that only the rate of its queue holds back may start. */
function untilTokenMs(state: MemoryState, limited: readonly string[], now: number): number | null {
  const waits = limited.flatMap((queue) => {
    const { limits, starts } = state.queues.get(queue)
    return limits.rate === null || permits(state, queue) === 0 ? [] : [untilToken(starts, limits.rate, now)]
  })
  return waits.length === 0 ? null : Math.min(...waits)
}

/** How many jobs the limits of a queue still let go. */
function room(state: MemoryState, queue: string, now: number): number {
  const { limits, starts } = state.queues.get(queue)
  return Math.min(permits(state, queue), limits.rate === null ? Infinity : tokensAt(starts, limits.rate, now))
}

function permits(state: MemoryState, queue: string): number {
  const { concurrency } = state.queues.get(queue).limits
  return concurrency === null ? Infinity : Math.max(0, concurrency - state.jobs.counts(queue).running)
}

export function leaseAnswer({ fence, alone, slots }: LeaseRow): Lease {
  return { fence, alone, jobs: slots.map(claimedJob) }
}

/** Answers whether there may be more. */
function takeLeases(state: MemoryState, request: ClaimRequest, now: number): boolean {
  const suspect = request.suspects && request.limit > 0 ? nextSuspect(state, request, now) : undefined
  if (suspect !== undefined) {
    lease(state, request, [suspect], true, now)
    return true
  }
  return takeJobs(state, request, now)
}

/** A suspect of a queue in which no other one runs. One whose key has no permit waits for it. */
function nextSuspect(state: MemoryState, { queues, kinds }: ClaimRequest, now: number): JobRow | undefined {
  for (const { queue } of queues) {
    if (state.queues.get(queue).paused || state.leases.runsAlone(queue) || room(state, queue, now) === 0) continue
    const suspect = state.jobs.lanes.suspect(queue, kinds)
    if (suspect === undefined) continue
    if (admitted(state, [suspect]).length > 0) return suspect
  }
  return undefined
}

/**
 * Each queue gives up to its share; then, in the same order, what others left. What is taken at a time shares leases.
 * Answers whether there may be more.
 */
function takeJobs(state: MemoryState, request: ClaimRequest, now: number): boolean {
  const { queues, kinds, limit, apart } = request
  const turns = new Map(queues.map(({ queue, turn }) => [queue, turn]))
  let taken = 0
  let blocked = 0
  const takeFrom = (queue: string, wanted: number): void => {
    const { paused, order } = state.queues.get(queue)
    const most = Math.min(wanted, room(state, queue, now))
    if (paused || most <= 0) return
    const turn = turns.get(queue)!
    const heads = firstOfLanes(state.jobs.lanes.candidates(queue, kinds, most), order, turn, most)
    const jobs = admitted(state, heads)
    blocked += heads.length - jobs.length
    for (const batch of batches(jobs, apart)) lease(state, request, batch, false, now)
    serve(state, jobs)
    turns.set(queue, turn + jobs.length)
    taken += jobs.length
  }
  let isCut = false
  for (const { queue, share } of queues) {
    isCut ||= share < limit - taken
    takeFrom(queue, Math.min(share, limit - taken))
  }
  if (isCut && taken < limit) {
    blocked = 0
    for (const { queue } of queues) takeFrom(queue, limit - taken)
  }
  return taken >= limit || blocked > 0
}

/** Those that get the permits of their keys; the others leave the lists that claims read. */
function admitted(state: MemoryState, jobs: readonly JobRow[]): JobRow[] {
  const goes = jobs.map((job) => state.jobs.permits.take(job, state.queues.get(job.queue).limits.perKey))
  for (const [at, job] of jobs.entries()) if (!goes[at]) state.jobs.toBlocked(job)
  return jobs.filter((_, at) => goes[at])
}

/**
 * The order of the queue decides how many each lane gives; a lane gives its first ones. They go in the order of the
 * queue, but for what it reserves: that only matters for who is taken.
 */
function firstOfLanes(candidates: readonly Head[], order: QueueOrder, turn: number, limit: number): JobRow[] {
  const quotas = quotasOfLists(candidates, { order, turn, limit }, laneOf)
  const inLanes = candidates.toSorted((a, b) => lanePosition(a.job) - lanePosition(b.job))
  const firsts = inLanes.filter((head) => {
    const left = quotas.get(laneOf(head)) ?? 0
    quotas.set(laneOf(head), left - 1)
    return left > 0
  })
  const keyOf = order === 'ageing' ? ageingKey : ({ dueAt }: Head) => dueAt
  const levelOf = order === 'ageing' ? () => 0 : ({ priority }: Head) => priority
  // Those of one fair list that count as due together are in its order already.
  firsts.sort((a, b) => levelOf(b) - levelOf(a) || keyOf(a) - keyOf(b) || a.dueNth - b.dueNth)
  return firsts.map(({ job }) => job)
}

function laneOf({ job: { priority, front, fairPlace } }: Head): number {
  return priority * 3 + (fairPlace !== null ? 2 : front ? 1 : 0)
}

/** What comes into a fair list from now on starts at what was taken last from it. */
function serve(state: MemoryState, jobs: readonly JobRow[]): void {
  const ofFairLists = jobs.filter(({ fairPlace }) => fairPlace !== null)
  const lasts = new Map(ofFairLists.sort((a, b) => a.fairPlace! - b.fairPlace!).map((job) => [job.priority, job]))
  for (const job of lasts.values()) state.jobs.lanes.fair.serve(job)
}

/** What shares a lease. The order of the batches is that of their first jobs. */
function batches(jobs: readonly JobRow[], apart: readonly string[]): JobRow[][] {
  const batches: JobRow[][] = []
  let shared: JobRow[] | undefined
  for (const job of jobs) {
    const own = apart.includes(job.kind)
    if (!own && shared !== undefined && shared.length < LEASE_JOBS_MAX) {
      shared.push(job)
      continue
    }
    const batch = [job]
    batches.push(batch)
    if (!own) shared = batch
  }
  return batches
}

function lease(state: MemoryState, request: ClaimRequest, jobs: JobRow[], alone: boolean, now: number): void {
  takeTokens(state, jobs[0]!.queue, jobs.length, now)
  const slots = jobs.map((job, ordinal): Slot => {
    state.jobs.toLeased(job, request.worker, now)
    return {
      job,
      ordinal,
      history: job.history,
      waitedMs: now - job.dueAt,
      expiresInMs: job.expiresAt !== null && neverStarted(job) ? job.expiresAt - now : null,
      open: true,
      started: false,
      crash: null,
    }
  })
  state.leases.add({ worker: request.worker, request: request.request, alone, claimedAt: now, slots })
}

function takeTokens(state: MemoryState, queue: string, count: number, now: number): void {
  const row = state.queues.ensure(queue)
  if (row.limits.rate !== null) row.starts = taken(row.starts, row.limits.rate, now, count)
}

function claimedJob({ job, history, waitedMs, expiresInMs }: Slot): ClaimedJob {
  return {
    id: job.id,
    kind: job.kind,
    queue: job.queue,
    priority: job.priority,
    payload: JSON.parse(job.payload) as Json,
    spec: copyOfSpec(job.spec),
    history: copyOfHistory(history),
    enqueuedAt: Math.round(job.enqueuedAt),
    waitedMs,
    expiresInMs,
  }
}
