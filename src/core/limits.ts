/**
 * What a queue is limited to, and the rules of it. Pure; called by the memory store for all of it (the SQL of the PostgreSQL
 * store mirrors it), and by the client for its options.
 *
 * - Concurrency counts jobs in leases, of all workers, also prefetched and adopted ones: who claims counts and takes in one
 *   step, so the limit is never passed, and nothing has to be given back for it to be free again.
 * - A rate is a token bucket, kept as one instant (the time at which it would be full again less its burst): each claimed
 *   job takes a token. One that is given back and claimed anew takes another.
 * - Depth counts jobs that wait. Only an enqueue is refused by it: what comes back (retries, what is given back or taken over,
 *   redrives) has been let in before. Nobody is locked out while another one counts, so it is passed by what is under way at
 *   once, open transactions included, and by no more.
 * - An intake is a bucket of the same form for what producers bring in: each stored job takes a token, and one for which
 *   there is none is refused. What is taken stays taken, whatever becomes of the job: so it is never passed.
 */
import { type Drained, drainPerSecond } from './capacity.js'
import type { KeyLimit } from './keys.js'

/** A token bucket: `limit` tokens come in each `perMs` milliseconds, and `burst` of them are kept at most. */
export interface RateLimit {
  limit: number
  perMs: number
  burst: number
}

/** How many jobs of a queue may wait: ready, delayed, retrying and blocked ones together. */
export interface DepthLimit {
  /** Of the whole queue; from 1 to `DEPTH_LIMIT_MAX`. */
  limit: number
  /** Of each tenant in it, those without a tenant being one together; null: no limit. */
  perTenant: number | null
  /** Of single kinds in it, by name; none of them waits for room that the whole queue does not have. */
  kinds: Readonly<Record<string, number>>
}

/** Each enqueue of a limited queue counts what waits: with more it would cost too much. */
export const DEPTH_LIMIT_MAX = 10_000

/** Null: no limit. */
export interface QueueLimits {
  /** Jobs that may be in leases at once, over all workers. */
  concurrency: number | null
  /** How often jobs of the queue may start, over all workers. */
  rate: RateLimit | null
  /** How many jobs may wait; beyond it enqueues are refused. */
  depth: DepthLimit | null
  /** How many jobs may come in, from all producers. */
  intake: RateLimit | null
  /** How many jobs of one limit key may be in leases at once. */
  perKey: KeyLimit | null
}

export const NO_LIMITS: QueueLimits = Object.freeze({
  concurrency: null,
  rate: null,
  depth: null,
  intake: null,
  perKey: null,
})

/** What an enqueue met for which there was no token. */
export interface Early {
  /** So many jobs … */
  limit: number
  /** … in so long may come in. */
  perMs: number
  /** When the next token comes. */
  retryAfterMs: number
}

/** What an enqueue met that did not fit. */
export interface Full {
  /** Whose limit was reached: that of the whole queue, or of the job's kind or tenant in it. */
  scope: 'queue' | 'kind' | 'tenant'
  /** How many wait, as far as was counted; `limit` at least. */
  depth: number
  limit: number
  /** When to try again, by the pace of the queue. */
  retryAfterMs: number
}

/** Where nothing is known of the pace. */
const RETRY_AFTER_MS = 1_000
const RETRY_AFTER_MS_MIN = 50
const RETRY_AFTER_MS_MAX = 60_000
/** Whoever comes back at the first free place finds it taken: so much of the limit should be free by then. */
const ROOM_PART = 0.1

/** How long it takes until a tenth of the limit is free, at the pace of the last minute. */
export function retryAfterMs({ depth, limit }: Pick<Full, 'depth' | 'limit'>, drained: Drained): number {
  const perSecond = drainPerSecond(drained)
  if (perSecond === null) return RETRY_AFTER_MS
  const ms = ((depth - limit + Math.ceil(limit * ROOM_PART)) / perSecond) * 1_000
  return Math.round(Math.min(RETRY_AFTER_MS_MAX, Math.max(RETRY_AFTER_MS_MIN, ms)))
}

/** Setting the same rate again is no change: its bucket stays as full as it is. */
export function isSameRate(one: RateLimit | null, other: RateLimit | null): boolean {
  return one?.limit === other?.limit && one?.perMs === other?.perMs && one?.burst === other?.burst
}

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
