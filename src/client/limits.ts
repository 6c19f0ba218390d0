/** What a queue may be limited to, as callers write it. Called by the controller. */
import type { Duration } from '../core/duration.js'
import type { QueueLimits, RateLimit } from '../core/limits.js'
import {
  duration,
  type Given,
  nested,
  type OptionTable,
  optionReader,
  orNull,
  required,
  whole,
} from '../core/options.js'

const COUNT_MAX = 1_000_000

const RATE_OPTIONS = {
  /** So many starts … */
  limit: { check: whole({ min: 1, max: COUNT_MAX }) },
  /** … in so long; "1s" unless given. */
  per: { default: 1_000, check: duration({ minMs: 1, maxMs: 31 * 86_400_000 }) },
  /** Starts that may come at once after a pause; `limit` unless given. */
  burst: { check: whole({ min: 1, max: COUNT_MAX }) },
} satisfies OptionTable

const readRate = optionReader(RATE_OPTIONS)

const LIMIT_OPTIONS = {
  /** Jobs in the hands of all workers at once, from 1; null: no limit. */
  concurrency: { check: orNull(whole({ min: 1, max: COUNT_MAX })) },
  /** How often jobs start: `{ limit, per, burst }`; null: no limit. */
  rate: { check: orNull(nested(readRate)) },
} satisfies OptionTable

const readLimits = optionReader(LIMIT_OPTIONS)

/** `{ limit: 100, per: '1s', burst: 30 }`: a hundred starts a second, thirty of them at once after a pause. */
export interface RateOptions extends Given<typeof RATE_OPTIONS> {
  /** So many starts … */
  limit: number
  /** … in so long; "1s" unless given. */
  per?: Duration
  /** Starts that may come at once after a pause; `limit` unless given. */
  burst?: number
}

/** Limits of a queue over all its workers. What is left out stays as it is, null takes a limit away. */
export interface LimitOptions extends Given<typeof LIMIT_OPTIONS> {
  /** Jobs in the hands of all workers at once, from 1; null: no limit. */
  concurrency?: number | null
  /** How often jobs start: `{ limit, per, burst }`; null: no limit. */
  rate?: RateOptions | null
}

/** As the store takes them. Throws INVALID_OPTION naming the field. */
export function limitsOf(options: LimitOptions): Partial<QueueLimits> {
  const { concurrency, rate } = readLimits(options)
  return {
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(rate === undefined ? {} : { rate: rate && rateOf(rate) }),
  }
}

function rateOf({ limit, per, burst }: ReturnType<typeof readRate>): RateLimit {
  const given = required(limit, 'rate.limit', 'how many starts')
  return { limit: given, perMs: per, burst: burst ?? given }
}
