/**
 * What a queue is limited to, and the rules of it. Pure; called by the memory store for all of it (the SQL of the PostgreSQL
 * store mirrors it), and by the client for its options.
 *
 * - Concurrency counts jobs in leases, of all workers, also prefetched and adopted ones: who claims counts and takes in one
 *   step, so the limit is never passed, and nothing has to be given back for it to be free again.
 * - A rate is a token bucket, kept as one instant (the time at which it would be full again less its burst): each claimed
 *   job takes a token. One that is given back and claimed anew takes another.
 */

/** A token bucket: `limit` tokens come in each `perMs` milliseconds, and `burst` of them are kept at most. */
export interface RateLimit {
  limit: number
  perMs: number
  burst: number
}

/** Null: no limit. */
export interface QueueLimits {
  /** Jobs that may be in leases at once, over all workers. */
  concurrency: number | null
  /** How often jobs of the queue may start, over all workers. */
  rate: RateLimit | null
}

export const NO_LIMITS: QueueLimits = Object.freeze({ concurrency: null, rate: null })

/** A bucket's only state: the instant from which on the next token counts. Far in the past: it is full. */
export interface Bucket {
  takenUntil: number
}

/** How many tokens there are at `now`: whole ones, `burst` at most. */
export function tokensAt({ takenUntil }: Bucket, rate: RateLimit, now: number): number {
  return Math.max(0, Math.min(rate.burst, Math.floor(((now - takenUntil) * rate.limit) / rate.perMs)))
}

/** The bucket after `count` tokens were taken at `now`. */
export function taken({ takenUntil }: Bucket, rate: RateLimit, now: number, count: number): Bucket {
  const full = now - (rate.burst * rate.perMs) / rate.limit
  return { takenUntil: Math.max(takenUntil, full) + (count * rate.perMs) / rate.limit }
}

/** Milliseconds until there is a token; 0 where there is one. */
export function untilToken({ takenUntil }: Bucket, rate: RateLimit, now: number): number {
  return Math.max(0, takenUntil + rate.perMs / rate.limit - now)
}
