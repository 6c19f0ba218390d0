/** Counts and tells how jobs ended, once the store has confirmed it. Called by endings.ts and upkeep.ts. */
import { attemptNumber, type DeadReason } from '../core/job.js'
import type { Crash, Outcome } from '../core/settlement.js'
import type { EventBus, JobFacts } from '../observe/events.js'
import type { ClaimedJob, SettleAnswer, Settlement } from '../storage/storage.js'
import type { HeldJob } from './holdings.js'
import type { Stats } from './stats.js'

export interface Telling {
  readonly events: EventBus
  readonly stats: Stats
}

export function factsOf({ job, lease }: HeldJob): JobFacts {
  return { jobId: job.id, kind: job.kind, queue: job.queue, worker: lease.worker, attempt: attemptNumber(job.history) }
}

/** From when the job was due until its handler started. */
function waitedMs({ job, lease, startedAt }: HeldJob): number {
  return job.waitedMs + Math.max(0, startedAt - lease.claimedAt)
}

// The events of every job are written out: with a spread in each they took longer than the job.

export function tellClaimed(events: EventBus, { job, lease }: HeldJob): void {
  events.emit({
    type: 'job.claimed',
    jobId: job.id,
    kind: job.kind,
    queue: job.queue,
    worker: lease.worker,
    attempt: attemptNumber(job.history),
    fence: lease.fence,
    waitedMs: job.waitedMs,
  })
}

export function tellStarted(events: EventBus, held: HeldJob): void {
  const { job, lease } = held
  events.emit({
    type: 'job.started',
    jobId: job.id,
    kind: job.kind,
    queue: job.queue,
    worker: lease.worker,
    attempt: attemptNumber(job.history),
    fence: lease.fence,
    waitedMs: waitedMs(held),
  })
}

function tellCompleted(events: EventBus, held: HeldJob, durationMs: number): void {
  const { job, lease } = held
  events.emit({
    type: 'job.completed',
    jobId: job.id,
    kind: job.kind,
    queue: job.queue,
    worker: lease.worker,
    attempt: attemptNumber(job.history),
    durationMs,
    waitedMs: waitedMs(held),
  })
}

/** Its lease ended first: what came or comes of it changes nothing. */
export function tellLost({ events, stats }: Telling, held: HeldJob, during: 'run' | 'settle'): void {
  stats.lost += 1
  if (events.active) events.emit({ type: 'job.lost', ...factsOf(held), fence: held.lease.fence, during })
}

/** How a job left this worker: the store moved it as `settlement` says, which came from `outcome`. */
export interface End {
  settlement: Settlement
  outcome: Outcome
  answer: SettleAnswer
}

export function tellEnd({ events, stats }: Telling, held: HeldJob, end: End): void {
  const { settlement, outcome, answer } = end
  const cancelled = answer === 'cancelled' || settlement.to === 'cancelled'
  count(stats, outcome, settlement, cancelled)
  if (!events.active) return
  const durationMs = 'ranMs' in outcome ? (outcome.ranMs ?? 0) : 0
  if (cancelled) events.emit({ type: 'job.cancelled', ...factsOf(held), durationMs })
  else if (outcome.type === 'returned') tellCompleted(events, held, durationMs)
  else {
    tellUnfinished(events, held, settlement, outcome, durationMs)
    if (settlement.to === 'dead') tellDead(events, held, settlement.reason, outcome)
  }
}

function tellUnfinished(
  events: EventBus,
  held: HeldJob,
  settlement: Settlement,
  outcome: Outcome,
  durationMs: number,
): void {
  const facts = factsOf(held)
  const retry = settlement.to === 'delayed' ? { retryInMs: settlement.delayMs } : {}
  switch (outcome.type) {
    case 'timed out':
      events.emit({ type: 'job.timed out', ...facts, durationMs, timeoutMs: held.job.spec.timeoutMs, ...retry })
      return
    case 'threw':
    case 'retry after':
    case 'rejected':
      events.emit({ type: 'job.failed', ...facts, durationMs, error: outcome.error, ...retry })
      return
    case 'snoozed':
      events.emit({ type: 'job.snoozed', ...facts, durationMs, delayMs: outcome.delayMs })
      return
    case 'given back':
      if (settlement.to !== 'dead') events.emit({ type: 'job.given back', ...facts, note: outcome.note })
      return
    case 'expired':
      events.emit({ type: 'job.expired', ...facts })
      return
    case 'returned':
    case 'cancelled':
  }
}

/** The one event that every dead letter gives, whatever killed the job. */
function tellDead(events: EventBus, held: HeldJob, reason: DeadReason, outcome: Outcome): void {
  const error = 'error' in outcome ? { error: outcome.error } : {}
  events.emit({ type: 'job.dead', ...factsOf(held), reason, ...error })
}

function count(stats: Stats, outcome: Outcome, settlement: Settlement, cancelled: boolean): void {
  if (cancelled) stats.cancelled += 1
  else if (outcome.type === 'returned') stats.completed += 1
  else if (outcome.type === 'snoozed') stats.snoozed += 1
  else if (outcome.type === 'given back') stats.givenBack += settlement.to === 'dead' ? 0 : 1
  else if (outcome.type !== 'expired') stats.failed += 1
  if (settlement.to === 'dead' && !cancelled) stats.dead += 1
}

/** A job of a dead worker was taken over and moved as `settlement` says. */
export function tellCrash(
  events: EventBus,
  worker: string,
  { job, crash }: { job: ClaimedJob; crash: Crash },
  settlement: Settlement,
  answer: SettleAnswer,
): void {
  const facts = { jobId: job.id, kind: job.kind, queue: job.queue, worker, attempt: attemptNumber(job.history) }
  const { started, alone } = crash
  events.emit({ type: 'job.crashed', ...facts, deadWorker: crash.worker, started, alone })
  if (answer === 'cancelled' || settlement.to === 'cancelled') events.emit({ type: 'job.cancelled', ...facts })
  else if (settlement.to === 'dead') {
    if (settlement.reason === 'poison') events.emit({ type: 'job.quarantined', ...facts })
    events.emit({ type: 'job.dead', ...facts, reason: settlement.reason })
  }
}
