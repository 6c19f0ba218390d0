/**
 * Every error that Leasehold throws on purpose, in one table: its code, what it means and what to do about it.
 * Expected outcomes (a lost lease, a duplicate key) are values, never errors.
 */

export const ERROR_CODES = {
  UNKNOWN_OPTION: 'An option, flag or key that does not exist was given; the message names the nearest one.',
  INVALID_OPTION: 'An option has a value it may not have; the message names the field, the value and the bound.',
  INVALID_NAME: 'A kind, queue or worker name breaks the naming rule.',
  INVALID_PAYLOAD: 'The payload failed its schema or is not plain JSON; the message names the path.',
  PAYLOAD_TOO_LARGE: 'The payload is over the limit; the message names size and limit.',
  INVALID_RESULT: 'The result of a handler failed its schema, is not plain JSON or is over its limit.',
  INVALID_PROGRESS: 'The progress of a handler is not plain JSON or is over its limit.',
  IDEMPOTENCY_MISMATCH: 'The idempotency key was used before with another payload.',
  IDEMPOTENCY_BUSY: 'The idempotency key is being decided in an open transaction of somebody else; try again.',
  DUPLICATE_ID: 'A job with this id exists already.',
  QUEUE_DRAINING: 'The queue is being drained and takes no new jobs until it is resumed.',
  QUEUE_FULL:
    'So many jobs of the queue, or of one kind or tenant in it, wait already as it may have; the error has `full`, `depth`, `limit` and `retryAfterMs`.',
  WAIT_TOO_LONG:
    'A job that comes now would wait for longer than its `maxWait`; the error has `expectedWaitMs` and `retryAfterMs`.',
  ENQUEUE_STOPPED: 'The signal of an adaptive enqueue fired while it waited for room; the job was not sent.',
  RATE_LIMITED:
    'More jobs are enqueued than the `intake` of the queue, or of this process, allows; the error has `limit` and `retryAfterMs`.',
  STORE_UNAVAILABLE: 'The store could not be reached in time; nothing was stored.',
  OUTCOME_UNKNOWN: 'The connection broke after the write was sent; the job with this id may or may not be stored.',
  STORE_REJECTED: 'The store refused the statement; the cause holds its own error.',
  SCHEMA_MISSING: 'The schema of the queue is not there; run the migrations.',
  SCHEMA_OUTDATED: 'The schema is older than this version needs, or newer than it can use.',
  CAPABILITY_MISSING: 'The store lacks a facet that this kind, queue or call needs.',
  DRIVER_MISSING: 'An optional package that this store needs is not installed.',
  UNKNOWN_STORE: 'The URL names no store.',
  JOB_NOT_FOUND: 'No job with this id is known (its record may have been pruned, or its kind keeps none).',
  JOB_ENDED_BADLY: 'The job that was waited for ended as dead or cancelled.',
  WAIT_TIMEOUT: 'The job did not end within the time given.',
  WORKER_STOPPED: 'The worker was stopped or is running already and cannot be started like this.',
  QUEUE_CLOSED: 'The connection was closed by close().',
  WRONG_PARTITION: 'The transaction runs in another database than the partition that the job belongs to.',
  DUPLICATE_HANDLER: 'Two handlers were given for one kind.',
} as const

/** The codes of `QueueError`; their meanings are in `ERROR_CODES`. */
export type ErrorCode = keyof typeof ERROR_CODES

/** What an error tells beside its code and message. */
export interface ErrorFacts {
  cause?: unknown
  field?: string
  jobId?: string
  retryAfterMs?: number
  full?: 'queue' | 'kind' | 'tenant'
  depth?: number
  limit?: number
  expectedWaitMs?: number
}

/** The one error class of the library. Match on `code`, never on the message. */
export class QueueError extends Error {
  readonly code: ErrorCode
  /** The option or payload path at fault, where one is. */
  readonly field: string | undefined
  /** The job concerned, where one is known (always for OUTCOME_UNKNOWN). */
  readonly jobId: string | undefined
  /** Of a refusal that a later try may not meet: when to try again. */
  readonly retryAfterMs: number | undefined
  /** What is full: the whole queue, or the job's kind or tenant in it (QUEUE_FULL). */
  readonly full: 'queue' | 'kind' | 'tenant' | undefined
  /** How many jobs waited (QUEUE_FULL). */
  readonly depth: number | undefined
  /** What was reached (QUEUE_FULL, RATE_LIMITED). */
  readonly limit: number | undefined
  /** For how long a job that comes now would wait for its start (WAIT_TOO_LONG). */
  readonly expectedWaitMs: number | undefined

  constructor(code: ErrorCode, message: string, more: ErrorFacts = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause })
    this.name = 'QueueError'
    this.code = code
    this.field = more.field
    this.jobId = more.jobId
    this.retryAfterMs = more.retryAfterMs
    this.full = more.full
    this.depth = more.depth
    this.limit = more.limit
    this.expectedWaitMs = more.expectedWaitMs
  }
}

/** A broken invariant: a fault in Leasehold or in a store, never in the caller. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`invariant broken: ${message}`)
}
