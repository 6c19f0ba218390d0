/**
 * All the memory store knows, its clock, and the moves that several operations share. Every operation of this
 * folder is a synchronous function over this state, and therefore atomic.
 */
import type { Env } from '../../core/env.js'
import { attemptNumber, emptyHistory, type HistoryEntry, type JobHistory } from '../../core/job.js'
import { keepsPermit } from '../../core/keys.js'
import { appended } from '../../core/settlement.js'
import { Hints } from './hints.js'
import { type JobRow, JobTable } from './jobs.js'
import { KeyTable } from './keys.js'
import { type LeaseRow, LeaseTable } from './leases.js'
import { QueueTable } from './queues.js'
import { WorkerTable } from './workers.js'

export class MemoryState {
  readonly jobs = new JobTable()
  readonly leases = new LeaseTable()
  readonly workers = new WorkerTable()
  readonly keys = new KeyTable()
  readonly queues = new QueueTable()
  readonly hints: Hints
  private readonly startedAt: number

  constructor(private readonly env: Env) {
    this.hints = new Hints(env)
    this.startedAt = env.now() - env.monotonic()
  }

  /** The store's clock. It starts as the wall clock and then only goes forward, whatever happens to that one. */
  now(): number {
    return this.startedAt + this.env.monotonic()
  }
}

/**
 * Ready again, ahead of the backlog, without an attempt used; cancelled instead where somebody asked for that. An
 * at-most-once job that started may have had its effect: it is lost, and never given back.
 */
export function giveBack(state: MemoryState, leases: readonly LeaseRow[], now: number): void {
  const back: JobRow[] = []
  const freed: JobRow[] = []
  for (const { job, started } of leases.flatMap((lease) => state.leases.revoke(lease, now))) {
    const to = job.cancelling ? 'cancelled' : started && job.spec.delivery === 'at-most-once' ? 'dead' : 'ready'
    if (to === 'cancelled') endCancelled(state, job, now)
    else if (to === 'dead') endLost(state, job, now)
    else back.push(job)
    if (!keepsPermit(job.spec, to)) freed.push(job)
  }
  toFronts(state, back)
  release(state, freed)
}

/** The permits that these held are free; who was blocked by them may go. */
export function release(state: MemoryState, jobs: readonly JobRow[]): void {
  toFronts(
    state,
    state.jobs.permits.release(jobs, (queue) => state.queues.get(queue).limits.perKey),
  )
}

/** What comes back in one call comes in the order in which it was due. */
export function toFronts(state: MemoryState, jobs: readonly JobRow[]): void {
  for (const job of jobs.toSorted((a, b) => a.dueAt - b.dueAt || a.dueNth - b.dueNth)) {
    state.jobs.toFront(job)
    state.hints.tell(job.queue)
  }
}

function endLost(state: MemoryState, job: JobRow, now: number): void {
  job.history = withEntry(job, { outcome: 'lost', note: 'its worker forgot it after its start' }, now)
  state.jobs.toDead(job, 'lost', now)
}

/** Cancelled by somebody, as an entry of its history tells. */
export function endCancelled(state: MemoryState, job: JobRow, now: number): void {
  job.history = withEntry(job, { outcome: 'cancelled' }, now)
  keepCancelled(state, job, now)
}

/** The record of a cancelled job stays unless its kind keeps none. */
export function keepCancelled(state: MemoryState, job: JobRow, now: number): void {
  if (job.spec.keep === 'none') state.jobs.remove(job)
  else state.jobs.toEnded(job, 'cancelled', now)
}

/** The job's history with one entry more. */
export function withEntry(job: JobRow, entry: Omit<HistoryEntry, 'at' | 'attempt'>, now: number): JobHistory {
  const history = job.history ?? emptyHistory()
  const attempt = attemptNumber(history)
  return { ...history, entries: appended(history.entries, { at: Math.round(now), attempt, ...entry }) }
}
