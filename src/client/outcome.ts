/** How the enqueue of one job went, and the error that tells it. Used by sender, line, producer and batches. */
import { formatDuration } from '../core/duration.js'
import { type ErrorCode, type ErrorFacts, QueueError } from '../core/errors.js'
import { grouped } from '../core/show.js'
import type { EnqueueOutcome, Full, NewJob } from '../storage/storage.js'

/**
 * What this process holds back itself, by what it knows. `late`: it would wait for longer than it may; `limited`: the process
 * has used its intake up.
 */
export type HeldBack =
  | { status: 'late'; expectedWaitMs: number; maxWaitMs: number }
  | { status: 'limited'; limit: number; retryAfterMs: number }

/** The store's answer for one job, or the failure of the call it was in. `unsent`: it never left this process. */
export type Sent = EnqueueOutcome | HeldBack | { status: 'unsent'; reason: string }

/** Sent, and no answer by the deadline. */
export const NO_ANSWER: Sent = Object.freeze({
  status: 'failed',
  cause: new Error('the store did not answer within the storeTimeout'),
})

/** What `enqueueMany` says of one item, in the order of the input. */
export type EnqueueResult =
  | { status: 'created'; id: string }
  /** Its idempotency key was there before: `id` is that of the first job. */
  | { status: 'duplicate'; id: string }
  /** Surely not stored. */
  | { status: 'refused'; error: QueueError }
  /** The connection broke after the write was sent: it may or may not be stored. */
  | { status: 'unknown'; id: string; error: QueueError }

export function resultOf(job: NewJob, sent: Sent): EnqueueResult {
  if (sent.status === 'created') return { status: 'created', id: job.id }
  if (sent.status === 'duplicate') return { status: 'duplicate', id: sent.id }
  const error = errorOf(job, sent)
  return error.code === 'OUTCOME_UNKNOWN' ? { status: 'unknown', id: job.id, error } : { status: 'refused', error }
}

/** Whether the write may have been done although no answer says so. Of a fault that is not the store's own nobody knows. */
export function isUnknown(sent: Sent): boolean {
  if (sent.status !== 'failed') return false
  return !(sent.cause instanceof QueueError) || sent.cause.code === 'OUTCOME_UNKNOWN'
}

/** Made where the caller awaits, so that its stack leads there. */
export function errorOf(job: NewJob, sent: Exclude<Sent, { status: 'created' | 'duplicate' }>): QueueError {
  switch (sent.status) {
    case 'mismatch':
      return failure(
        job,
        'IDEMPOTENCY_MISMATCH',
        `${keyOf(job)} was used before with another payload, by job ${sent.id}`,
        {
          field: 'idempotencyKey',
          jobId: sent.id,
        },
      )
    case 'busy':
      return failure(job, 'IDEMPOTENCY_BUSY', `${keyOf(job)} is being decided in an open transaction; try again`)
    case 'draining':
      return failure(
        job,
        'QUEUE_DRAINING',
        `queue "${job.queue}" is being drained and takes no jobs until it is resumed`,
      )
    case 'full':
      return fullFailure(job, sent)
    case 'early':
      return earlyFailure(job, sent)
    case 'late':
      return lateFailure(job, sent)
    case 'limited':
      return failure(
        job,
        'RATE_LIMITED',
        `this process enqueues faster than its intake allows; try again in ${formatDuration(sent.retryAfterMs)}`,
        { limit: sent.limit, retryAfterMs: sent.retryAfterMs },
      )
    case 'unsent':
      return failure(job, 'STORE_UNAVAILABLE', `the job was not sent: ${sent.reason}`)
    case 'refused':
      return sent.code === 'DUPLICATE_ID'
        ? failure(job, sent.code, `a job with the id ${job.id} exists`, { cause: sent.cause })
        : failure(job, sent.code, `the store refused the job: ${messageOf(sent.cause)}`, { cause: sent.cause })
    case 'failed':
      return storeFailure(job, sent)
  }
}

function fullFailure(job: NewJob, full: Sent & { status: 'full' }): QueueError {
  const { scope, depth, limit, retryAfterMs } = full
  const message = `${whatIsFull(job, scope)}: ${grouped(depth)} jobs wait, ${grouped(limit)} may; try again in ${formatDuration(retryAfterMs)}`
  return failure(job, 'QUEUE_FULL', message, { full: scope, depth, limit, retryAfterMs })
}

function whatIsFull({ kind, queue, spec: { tenant } }: NewJob, scope: Full['scope']): string {
  switch (scope) {
    case 'queue':
      return `queue "${queue}" is full`
    case 'kind':
      return `kind "${kind}" in queue "${queue}" is full`
    case 'tenant': {
      const whom = tenant === undefined ? 'jobs without a tenant' : `tenant ${JSON.stringify(tenant)}`
      return `queue "${queue}" is full for ${whom}`
    }
  }
}

function earlyFailure(job: NewJob, early: Sent & { status: 'early' }): QueueError {
  const { limit, perMs, retryAfterMs } = early
  const message = `queue "${job.queue}" takes no more than ${grouped(limit)} jobs in ${formatDuration(perMs)}; try again in ${formatDuration(retryAfterMs)}`
  return failure(job, 'RATE_LIMITED', message, { limit, retryAfterMs })
}

function lateFailure(job: NewJob, late: Sent & { status: 'late' }): QueueError {
  const { expectedWaitMs, maxWaitMs } = late
  const retryAfterMs = retryDelayMs(late)!
  const message = `a job would wait ${formatDuration(expectedWaitMs)} in queue "${job.queue}", and may ${formatDuration(maxWaitMs)}; try again in ${formatDuration(retryAfterMs)}`
  return failure(job, 'WAIT_TOO_LONG', message, { expectedWaitMs, retryAfterMs })
}

/** Of a refusal that a later try may not meet: when. The same job sent again meanwhile is refused again, and no job is doubled. */
export function retryDelayMs(sent: Sent): number | undefined {
  if (sent.status === 'full' || sent.status === 'early' || sent.status === 'limited') return sent.retryAfterMs
  // The queue has to drain by so much.
  return sent.status === 'late' ? Math.max(1, sent.expectedWaitMs - sent.maxWaitMs) : undefined
}

function storeFailure(job: NewJob, sent: Sent & { status: 'failed' }): QueueError {
  const { cause } = sent
  if (isUnknown(sent)) {
    const advice = 'enqueue it again with the same id: DUPLICATE_ID then says that it was stored'
    const message = `job ${job.id} may or may not be stored (${messageOf(cause)}); ${advice}`
    return failure(job, 'OUTCOME_UNKNOWN', message, { cause })
  }
  return failure(job, (cause as QueueError).code, messageOf(cause), { cause })
}

function failure(job: NewJob, code: ErrorCode, message: string, more: ErrorFacts = {}): QueueError {
  return new QueueError(code, message, { jobId: job.id, ...more })
}

function keyOf(job: NewJob): string {
  return `the idempotency key ${JSON.stringify(job.idempotency?.key)} of kind "${job.kind}"`
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
