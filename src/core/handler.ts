/** What a handler is given and what it may say. Used by defineJob (core/kind.ts) and the worker. */
import { type Duration, durationMs } from './duration.js'
import type { Json } from './job.js'

/** A job as its handler sees it, beside the payload. */
export interface HandlerContext {
  /** The job's id. */
  readonly id: string
  readonly kind: string
  readonly queue: string
  readonly priority: number
  /** Of this run, from 1. */
  readonly attempt: number
  /** The last attempt: a throw now means dead. */
  readonly lastAttempt: boolean
  /**
   * Rises with each claim of the job; write it beside your own effects and refuse smaller ones, and a worker that
   * lost its lease unnoticed cannot overwrite a later one's work. A safe integer.
   */
  readonly fence: number
  readonly idempotencyKey: string | undefined
  readonly enqueuedAt: Date
  /** Fires on time-out, cancel, a lost lease and at the end of the shutdown grace; `reason` is a `StopReason` error. */
  readonly signal: AbortSignal
  /** Writes a `job.log` event with the job's facts. */
  log(message: string, fields?: Record<string, unknown>): void
  /** Keeps the last value given (JSON, 4 KiB at most); written with the job's next settlement, told as an event at once. */
  progress(value: Json): void
}

/** Why a handler's signal fired: `signal.reason` is an Error with this as its `code`. */
export type StopReason = 'TIMEOUT' | 'CANCELLED' | 'LEASE_LOST' | 'SHUTDOWN'

const VERDICT = Symbol.for('leasehold.verdict')

/** A value that a handler returns to say something other than "done". Made by `retryAfter`, `snooze` and `dead`. */
export interface Verdict {
  readonly [VERDICT]: true
  readonly verdict:
    | { type: 'retry after'; delayMs: number; reason: string }
    | { type: 'snooze'; delayMs: number }
    | { type: 'dead'; reason: string }
}

/** This attempt failed; try again after `delay` rather than after the backoff. Uses an attempt. */
export function retryAfter(delay: Duration, reason = 'the handler asked for a retry'): Verdict {
  return verdict({ type: 'retry after', delayMs: durationMs(delay, 'retryAfter(delay)'), reason })
}

/** Not now: come back after `delay`. Uses no attempt. */
export function snooze(delay: Duration): Verdict {
  return verdict({ type: 'snooze', delayMs: durationMs(delay, 'snooze(delay)') })
}

/** Never again: the job is dead (rejected) now, whatever attempts remain. */
export function dead(reason: string): Verdict {
  return verdict({ type: 'dead', reason })
}

export function isVerdict(value: unknown): value is Verdict {
  return typeof value === 'object' && value !== null && (value as Partial<Verdict>)[VERDICT] === true
}

function verdict(said: Verdict['verdict']): Verdict {
  return Object.freeze({ [VERDICT]: true as const, verdict: said })
}

/** A handler bound to its kind, as `worker()` takes it. The run function has the payload already parsed and checked. */
export interface BoundHandler {
  readonly kind: string
  readonly queue: string
  /** The kind's own delivery and isolation needs, for the claim. */
  readonly delivery: 'at-least-once' | 'at-most-once'
  /** Own backoff of the kind, evaluated where the handler runs; undefined: the policy in the job. */
  readonly retryDelay: ((attempt: number, error: unknown) => number) | undefined
  /** Parses the stored payload by the schema. Throws INVALID_PAYLOAD. May be async, as Standard Schema may be. */
  readonly parse: (payload: Json) => unknown
  readonly run: (payload: unknown, context: HandlerContext) => unknown
}
