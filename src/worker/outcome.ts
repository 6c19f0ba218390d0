/** How an attempt went: what the handler returned or threw, and why its signal had fired, become one Outcome. Pure. */
import { describeFailure } from '../core/failure.js'
import { type BoundHandler, isVerdict, type StopReason, type Verdict } from '../core/handler.js'
import type { JobSpec } from '../core/job.js'
import { encodeJson, RESULT } from '../core/json.js'
import { RETRY_DELAY_MS_MAX } from '../core/retry.js'
import type { Outcome } from '../core/settlement.js'

/** What is known of an attempt when its handler ends. */
export interface Ran {
  handler: BoundHandler
  spec: JobSpec
  /** The number of the attempt, from 1. */
  attempt: number
  stop: StopReason | undefined
  ranMs: number
}

/** A return is done, whatever the signal said: the work was finished and the fence decides whether it counts. */
export function returned(ran: Ran, value: unknown): Outcome {
  if (isVerdict(value)) return said(ran, value)
  if (value === undefined) return { type: 'returned', ranMs: ran.ranMs }
  try {
    return { type: 'returned', result: encodeJson(value, RESULT), ranMs: ran.ranMs }
  } catch (error) {
    return failed(ran, error)
  }
}

/** A throw after the signal had fired is taken as heeding it: it costs no attempt. */
export function threw(ran: Ran, error: unknown): Outcome {
  if (ran.stop === 'CANCELLED') return { type: 'cancelled', ranMs: ran.ranMs }
  // An at-most-once job may have done its work: given back it would run twice.
  const mayReturn = ran.spec.delivery === 'at-least-once'
  if (ran.stop === 'SHUTDOWN' && mayReturn) return { type: 'given back', note: 'shutdown', ranMs: ran.ranMs }
  if (ran.stop === 'LEASE_LOST' && mayReturn)
    return { type: 'given back', note: 'the worker could not reach the store for a whole lease', ranMs: ran.ranMs }
  return failed(ran, error)
}

export function timedOut(ran: Ran): Outcome {
  if (ran.stop === 'CANCELLED') return { type: 'cancelled', ranMs: ran.ranMs }
  const message = `the attempt ran longer than its timeout of ${ran.spec.timeoutMs} ms`
  return { type: 'timed out', error: { name: 'TimeoutError', message }, ranMs: ran.ranMs }
}

function said(ran: Ran, { verdict }: Verdict): Outcome {
  switch (verdict.type) {
    case 'snooze':
      return { type: 'snoozed', delayMs: verdict.delayMs, ranMs: ran.ranMs }
    case 'retry after': {
      const error = describeFailure(verdict.reason)
      return {
        type: 'retry after',
        delayMs: verdict.delayMs,
        error: { ...error, name: 'RetryAfter' },
        ranMs: ran.ranMs,
      }
    }
    case 'dead': {
      const error = describeFailure(verdict.reason)
      return { type: 'rejected', error: { ...error, name: 'Rejected' }, ranMs: ran.ranMs }
    }
  }
}

function failed(ran: Ran, error: unknown): Outcome {
  const delayMs = ownDelayMs(ran, error)
  return {
    type: 'threw',
    error: describeFailure(error),
    ranMs: ran.ranMs,
    ...(delayMs === undefined ? {} : { delayMs }),
  }
}

/** A kind's own backoff that throws or answers nonsense falls back to the policy in the job. */
function ownDelayMs({ handler, attempt }: Ran, error: unknown): number | undefined {
  if (!handler.retryDelay) return undefined
  try {
    const delayMs = handler.retryDelay(attempt, error)
    return delayMs >= 0 ? Math.min(RETRY_DELAY_MS_MAX, delayMs) : undefined
  } catch {
    return undefined
  }
}

/** What stands in a job's history when the store refused the settlement of its attempt. */
export function refusedBy(ranMs: number): Outcome {
  const message = 'the store refused how this attempt ended: its result, progress or error could not be stored'
  return { type: 'threw', error: { name: 'SettlementRefused', message }, ranMs }
}
