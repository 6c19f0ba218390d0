/** What a job is: its policy, its history, its states. Pure data, shared by every layer. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/** Where a job is. A job is in exactly one place. */
export type Place = 'ready' | 'delayed' | 'blocked' | 'leased' | 'ended' | 'dead'

/** What a person sees. `ready`, `delayed`, `retrying` and `blocked` (by its key) together are "pending". */
export type JobState = 'ready' | 'delayed' | 'retrying' | 'blocked' | 'running' | 'completed' | 'cancelled' | 'dead'
export const JOB_STATES: readonly JobState[] = [
  'ready',
  'delayed',
  'retrying',
  'blocked',
  'running',
  'completed',
  'cancelled',
  'dead',
]

/** Why a job is dead: out of attempts, killed its workers, not started in time, refused by its handler, or may have run once. */
export type DeadReason = 'failed' | 'poison' | 'expired' | 'rejected' | 'lost'
export const DEAD_REASONS: readonly DeadReason[] = ['failed', 'poison', 'expired', 'rejected', 'lost']

/** Levels run from 0 to 15; a higher number goes first. */
export const PRIORITY_LEVELS = 16
export const TIERS = { critical: 12, high: 8, normal: 4, low: 0 } as const
/** Named levels: critical 12, high 8, normal 4 (the default), low 0. */
export type Tier = keyof typeof TIERS
/** A tier by name, or a level from 0 to 15; a higher one goes first. */
export type Priority = Tier | number

/** How long to wait before the next attempt. Attempt 1 is the first one; the delay after attempt n is for n. */
export type Backoff =
  | { type: 'exponential'; baseMs: number; factor: number; capMs: number; jitter: number }
  | { type: 'linear'; baseMs: number; capMs: number; jitter: number }
  | { type: 'fixed'; baseMs: number; jitter: number }

/** The policy that travels with a job, as the process that takes it over may not know its kind. */
export interface JobSpec {
  /** How often the handler may start and fail. */
  attempts: number
  backoff: Backoff
  /** The longest one attempt may run. */
  timeoutMs: number
  /** From the first start on, after which a crash is no longer followed by another attempt. */
  ageLimitMs: number
  delivery: 'at-least-once' | 'at-most-once'
  /** Which ends leave a record. Dead letters are always kept. */
  keep: 'all' | 'failures' | 'none'
  /** Not started this long after its enqueue: dead (expired). */
  expiresInMs?: number
  idempotencyKey?: string
  /** Whose share of its queue it takes. */
  tenant?: string
  /** How large that share is, beside others of weight 1. */
  weight?: number
  /** Jobs of its queue with the same one run one after another. */
  orderKey?: string
  /** What becomes of those behind it when it is dead: they go on unless given. Only beside an order key. */
  afterDead?: 'block'
  /** Of jobs of its queue with the same one as many run at once as the queue allows. Never beside an order key. */
  limitKey?: string
}

export const SPEC_DEFAULTS: JobSpec = Object.freeze({
  attempts: 6,
  backoff: Object.freeze({ type: 'exponential', baseMs: 2_000, factor: 2, capMs: 3_600_000, jitter: 0.25 }),
  timeoutMs: 300_000,
  ageLimitMs: 86_400_000,
  delivery: 'at-least-once',
  keep: 'all',
})

/** How one attempt (or another event of a job's life) went. `at` is epoch milliseconds by the store's clock. */
export interface HistoryEntry {
  at: number
  /** The attempt it belongs to, from 1. */
  attempt: number
  outcome:
    | 'failed'
    | 'timed out'
    | 'crashed'
    | 'given back'
    | 'snoozed'
    | 'retried'
    | 'rejected'
    | 'expired'
    | 'lost'
    | 'cancelled'
    | 'completed'
    | 'redriven'
  worker?: string
  /** How long the handler ran, where it was started. */
  ranMs?: number
  /** The wait before the next attempt, where there is one. */
  delayMs?: number
  error?: ErrorRecord
  /** Of the error: the same for errors that differ only in what varies from job to job. Dead letters are grouped by it. */
  fingerprint?: string
  /** For people: why, in a sentence. */
  note?: string
}

/** An error as it is kept: bounded, safe text, whatever was thrown. */
export interface ErrorRecord {
  name: string
  message: string
  /** The code of the error, or of the nearest cause that has one: `ECONNREFUSED`, `23505`. */
  code?: string
  stack?: string
}

/** What has happened to a job so far. Absent (null) while nothing has. */
export interface JobHistory {
  /** Attempts used up in this round. */
  attempts: number
  /** Crashes noted: it was held by a worker that died. */
  crashes: number
  /** Of those, while it ran alone. */
  crashesAlone: number
  snoozes: number
  /** How often it was brought back from the dead. */
  redrives: number
  firstStartedAt?: number
  progress?: Json
  /** The newest entries, oldest first; `HISTORY_ENTRIES_MAX` at most. */
  entries: HistoryEntry[]
}

export const HISTORY_ENTRIES_MAX = 20
/** From this many crash notes on a job is a suspect and runs alone. */
export const SUSPECT_CRASHES = 2
/** This many crashes while alone quarantine it. */
export const QUARANTINE_CRASHES_ALONE = 2

export const PAYLOAD_BYTES_MAX = 1_048_576
export const RESULT_BYTES_MAX = 65_536
export const ERROR_BYTES_MAX = 8_192
export const PROGRESS_BYTES_MAX = 4_096
export const NAME_BYTES_MAX = 128
export const IDEMPOTENCY_KEY_BYTES_MAX = 1_024

/** Whether a job has to run alone because workers died while they held it. */
export function isSuspect(history: JobHistory | null): boolean {
  return history !== null && history.crashes >= SUSPECT_CRASHES
}

export function emptyHistory(): JobHistory {
  return { attempts: 0, crashes: 0, crashesAlone: 0, snoozes: 0, redrives: 0, entries: [] }
}

/** The number of the attempt that runs now or next. */
export function attemptNumber(history: JobHistory | null): number {
  return (history?.attempts ?? 0) + 1
}
