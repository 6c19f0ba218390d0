/**
 * What whoever wrote a history knows of its jobs beforehand: how each one is to end, and by which policy it runs. Made
 * by the plan of chaos, by the simulator and by verify; read by the rules, which know no plan. A job of a recorded log has
 * no expectation, or one without `ends`: then the rules that need one do not judge it.
 */
import type { DeadReason } from '../../core/job.js'

/** How a job may end: completed, cancelled, or dead for a reason. */
export type End = 'completed' | 'cancelled' | DeadReason

/** Of one job of the plan, by its number. Durations in milliseconds. What is absent is not known, and not judged. */
export interface Expectation {
  /** A word for reports. */
  sort: string
  /** Every end that is right; absent: any. A job that may kill its workers names `poison` here, all others are innocent. */
  ends?: readonly End[]
  queue?: string
  /** 0 to 15. */
  priority?: number
  /** Whose share of the queue it takes, and by which weight. Where one job of a queue has a tenant, all of its level share. */
  tenant?: string
  weight?: number
  /** How often its handler may start and fail. */
  attempts?: number
  /** Not due before this, from its enqueue. Present with 0 for a job that is due at once. */
  delayMs?: number
  /** Not started so long after its enqueue it is dead (expired). */
  expiresInMs?: number
  /** Its idempotency key, told apart from those of other kinds: jobs of one key share this text. */
  key?: string
  /** How long its key is kept at least, from when it is due; absent: longer than the history. */
  keyKeptMs?: number
  delivery?: 'at-least-once' | 'at-most-once'
  /** Which ends leave a record. Absent: all. */
  keep?: 'all' | 'failures' | 'none'
}
