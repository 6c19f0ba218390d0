/**
 * The fate of an attempt: what a handler said, threw or suffered becomes one settlement. Handler failures, time-outs
 * and crashes all come through here, in the worker that ran the job and in the one that took it over.
 */
import { fingerprintOf } from './fingerprint.js'
import {
  type DeadReason,
  type ErrorRecord,
  emptyHistory,
  HISTORY_ENTRIES_MAX,
  type HistoryEntry,
  isSuspect,
  type JobHistory,
  type JobSpec,
  QUARANTINE_CRASHES_ALONE,
  SUSPECT_CRASHES,
} from './job.js'
import { retryDelayMs } from './retry.js'

/** How an attempt went, as the executor saw it. `ranMs` is from the start of the handler. */
export type Outcome =
  | { type: 'returned'; result?: string; ranMs: number }
  | { type: 'threw'; error: ErrorRecord; ranMs: number; delayMs?: number }
  | { type: 'timed out'; error: ErrorRecord; ranMs: number }
  | { type: 'retry after'; delayMs: number; error: ErrorRecord; ranMs: number }
  | { type: 'snoozed'; delayMs: number; ranMs: number }
  | { type: 'rejected'; error: ErrorRecord; ranMs: number }
  | { type: 'cancelled'; ranMs?: number }
  | { type: 'given back'; note: string; ranMs?: number }
  | { type: 'expired' }

/** What the store knows of a job that a dead worker held. */
export interface Crash {
  /** The worker that died. */
  worker: string
  /** Whether the start of the handler had been reported. Only then the crash costs an attempt. */
  started: boolean
  /** Whether it ran alone: then it is known who killed the worker. */
  alone: boolean
  /** Whether somebody had asked to cancel it. */
  cancelled: boolean
}

/** Where the job goes. Fence and place in the lease are added by the caller (see Settlement in storage.ts). */
export type Fate =
  | { to: 'completed'; result?: string; history: JobHistory | null }
  | { to: 'delayed'; delayMs: number; suspect: boolean; history: JobHistory }
  | { to: 'ready'; suspect: boolean; history: JobHistory | null }
  | { to: 'dead'; reason: DeadReason; history: JobHistory }
  | { to: 'cancelled'; history: JobHistory }

/** The facts an attempt is judged by. `nowMs` and `startedAtMs` are instants of the store's clock. */
export interface Attempt {
  spec: JobSpec
  history: JobHistory | null
  worker: string
  nowMs: number
  random: number
}

/** The fate of an attempt that this process ran (or did not come to run). */
export function fateOfOutcome(attempt: Attempt, outcome: Outcome): Fate {
  switch (outcome.type) {
    case 'returned':
      return completed(attempt, outcome)
    case 'threw':
    case 'timed out':
    case 'retry after':
      return failed(attempt, outcome)
    case 'snoozed':
      return snoozed(attempt, outcome)
    case 'rejected': {
      const history = used(attempt, { outcome: 'rejected', ranMs: outcome.ranMs, error: outcome.error })
      return { to: 'dead', reason: 'rejected', history }
    }
    case 'cancelled':
      return { to: 'cancelled', history: noted(attempt, { outcome: 'cancelled', ...ran(outcome.ranMs) }) }
    case 'given back':
      return givenBack(attempt, outcome)
    case 'expired':
      return { to: 'dead', reason: 'expired', history: noted(attempt, { outcome: 'expired' }) }
  }
}

/**
 * The fate of a job whose worker died. A crash is noted on every job it held; it uses an attempt up only where the
 * start was reported. From the second note on the job is a suspect; only crashes while alone quarantine it, so that
 * the neighbours of a poison job never are.
 */
export function fateOfCrash(attempt: Attempt, crash: Crash): Fate {
  const history = crashNoted(attempt, crash)
  if (crash.cancelled) return { to: 'cancelled', history }
  if (crash.started && attempt.spec.delivery === 'at-most-once') return { to: 'dead', reason: 'lost', history }
  if (history.crashesAlone >= QUARANTINE_CRASHES_ALONE) return { to: 'dead', reason: 'poison', history }
  if (tooOld(history, attempt)) return { to: 'dead', reason: 'poison', history }
  if (history.attempts >= attempt.spec.attempts) return { to: 'dead', reason: 'failed', history }
  // The first crash may be the work of a neighbour or of a deploy: again at once. From then on with the backoff.
  if (history.crashes < SUSPECT_CRASHES) return { to: 'ready', suspect: false, history }
  const delayMs = retryDelayMs(attempt.spec.backoff, history.crashes - 1, attempt.random)
  return { to: 'delayed', delayMs, suspect: true, history: withDelay(history, delayMs) }
}

function completed(attempt: Attempt, outcome: Outcome & { type: 'returned' }): Fate {
  const result = outcome.result === undefined ? {} : { result: outcome.result }
  // Nothing happened before: the record's own columns say it all, and a no-op job pays for no document.
  if (attempt.history === null) return { to: 'completed', history: null, ...result }
  return { to: 'completed', history: used(attempt, { outcome: 'completed', ranMs: outcome.ranMs }), ...result }
}

function failed(attempt: Attempt, outcome: Outcome & { type: 'threw' | 'timed out' | 'retry after' }): Fate {
  const word = outcome.type === 'timed out' ? 'timed out' : 'failed'
  const history = used(attempt, { outcome: word, ranMs: outcome.ranMs, error: outcome.error })
  if (attempt.spec.delivery === 'at-most-once') return { to: 'dead', reason: 'failed', history }
  if (history.attempts >= attempt.spec.attempts) return { to: 'dead', reason: 'failed', history }
  const asked = 'delayMs' in outcome ? outcome.delayMs : undefined
  const delayMs = asked ?? retryDelayMs(attempt.spec.backoff, history.attempts, attempt.random)
  return { to: 'delayed', delayMs, suspect: isSuspect(history), history: withDelay(history, delayMs) }
}

function snoozed(attempt: Attempt, outcome: Outcome & { type: 'snoozed' }): Fate {
  const history = noted(attempt, { outcome: 'snoozed', ranMs: outcome.ranMs })
  history.snoozes += 1
  return {
    to: 'delayed',
    delayMs: outcome.delayMs,
    suspect: isSuspect(history),
    history: withDelay(history, outcome.delayMs),
  }
}

function givenBack(attempt: Attempt, outcome: Outcome & { type: 'given back' }): Fate {
  // A prefetched job that never started has no story to tell; one that ran and was aborted has.
  const history =
    outcome.ranMs === undefined
      ? attempt.history
      : noted(attempt, { outcome: 'given back', ranMs: outcome.ranMs, note: outcome.note })
  return { to: 'ready', suspect: isSuspect(history), history }
}

function crashNoted(attempt: Attempt, crash: Crash): JobHistory {
  const entry: Omit<HistoryEntry, 'at' | 'attempt'> = {
    outcome: crash.started && attempt.spec.delivery === 'at-most-once' ? 'lost' : 'crashed',
    worker: crash.worker,
    note: crashNote(crash),
  }
  const history = crash.started ? used(attempt, entry) : noted(attempt, entry)
  history.crashes += 1
  if (crash.alone && crash.started) history.crashesAlone += 1
  return history
}

function crashNote(crash: Crash): string {
  if (!crash.started) return 'the worker that held it died; its start was not reported, no attempt was used'
  return crash.alone
    ? 'the worker died while this job ran alone in it'
    : 'the worker died while this job was running in it'
}

/** An age limit catches what counts cannot: a job whose workers die in ways that never add up. */
function tooOld(history: JobHistory, attempt: Attempt): boolean {
  return history.firstStartedAt !== undefined && attempt.nowMs - history.firstStartedAt >= attempt.spec.ageLimitMs
}

type Entry = Omit<HistoryEntry, 'at' | 'attempt' | 'worker'> & { worker?: string }

/** The history with one entry more; the attempt is not used up. Never changes the one it was given. */
function noted(attempt: Attempt, entry: Entry): JobHistory {
  const before = attempt.history ?? emptyHistory()
  const ranMs = entry.ranMs ?? 0
  const startedAt = entry.ranMs === undefined ? undefined : attempt.nowMs - ranMs
  const firstStartedAt = before.firstStartedAt ?? startedAt
  return {
    ...before,
    ...(firstStartedAt === undefined ? {} : { firstStartedAt: Math.round(firstStartedAt) }),
    entries: appended(before.entries, {
      at: Math.round(attempt.nowMs),
      attempt: before.attempts + 1,
      worker: attempt.worker,
      ...entry,
      ...(entry.error === undefined ? {} : { fingerprint: fingerprintOf(entry.error) }),
    }),
  }
}

/** As `noted`, and the attempt is used up. */
function used(attempt: Attempt, entry: Entry): JobHistory {
  const history = noted(attempt, entry)
  history.attempts += 1
  // A crash tells no running time; its first start is then known to be before now.
  history.firstStartedAt ??= Math.round(attempt.nowMs)
  return history
}

export function appended(entries: HistoryEntry[], entry: HistoryEntry): HistoryEntry[] {
  return [...entries.slice(-(HISTORY_ENTRIES_MAX - 1)), entry]
}

function withDelay(history: JobHistory, delayMs: number): JobHistory {
  const last = history.entries.at(-1)!
  return { ...history, entries: [...history.entries.slice(0, -1), { ...last, delayMs }] }
}

function ran(ranMs: number | undefined): { ranMs?: number } {
  return ranMs === undefined ? {} : { ranMs }
}
