/** What a queue may be limited to, as callers write it. Called by the controller. */
import type { Duration } from '../core/duration.js'
import { KEY_BYTES_MAX, KEY_LIMITS_MAX, type KeyLimit } from '../core/keys.js'
import { DEPTH_LIMIT_MAX, type DepthLimit, type QueueLimits, type RateLimit } from '../core/limits.js'
import { checkName } from '../core/name.js'
import {
  badRelation,
  type Check,
  duration,
  type Given,
  invalidOption,
  nested,
  type OptionTable,
  optionReader,
  orNull,
  required,
  text,
  whole,
} from '../core/options.js'

const COUNT_MAX = 1_000_000
/** Kinds of one queue with a limit of their own: each is looked at by each enqueue. */
const KINDS_MAX = 100

const RATE_OPTIONS = {
  /** So many starts, or jobs that come in … */
  limit: { check: whole({ min: 1, max: COUNT_MAX }) },
  /** … in so long; "1s" unless given. */
  per: { default: 1_000, check: duration({ minMs: 1, maxMs: 31 * 86_400_000 }) },
  /** So many at once after a pause; `limit` unless given. */
  burst: { check: whole({ min: 1, max: COUNT_MAX }) },
} satisfies OptionTable

const readRate = optionReader(RATE_OPTIONS)

const waiting = whole({ min: 1, max: DEPTH_LIMIT_MAX })

/** A limit for each name. */
const byKind: Check<Readonly<Record<string, number>>, Readonly<Record<string, number>>> = (value, field) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalidOption(field, value, 'an object of kinds and their limits, such as { "mail.bulk": 500 }')
  const limits = Object.entries(value).map(([kind, limit]): [string, number] => [
    checkName(kind, field),
    waiting(limit, `${field}.${kind}`),
  ])
  if (limits.length > KINDS_MAX)
    throw badRelation(field, `has ${limits.length} kinds; at most ${KINDS_MAX} are allowed`)
  return Object.fromEntries(limits)
}

const DEPTH_OPTIONS = {
  /** Jobs of the queue that may wait, from 1 to 10,000. */
  limit: { check: waiting },
  /** And of each tenant in it; null: no limit. */
  perTenant: { default: null as number | null, check: orNull(waiting) },
  /** And of single kinds in it: `{ 'mail.bulk': 500 }`. */
  kinds: { default: {} as Readonly<Record<string, number>>, check: byKind },
} satisfies OptionTable

const readDepth = optionReader(DEPTH_OPTIONS)

/** A number is the limit of the whole queue. */
const depth: Check<number | DepthOptions, DepthLimit> = (value, field) => {
  if (typeof value !== 'object') return { limit: waiting(value, field), perTenant: null, kinds: {} }
  const { limit, ...parts } = readDepth(value, `${field}.`)
  return { limit: required(limit, `${field}.limit`, 'how many jobs of the queue may wait'), ...parts }
}

const running = whole({ min: 1, max: COUNT_MAX })
const keyName = text(KEY_BYTES_MAX)

/** A limit for each key. */
const byKey: Check<Readonly<Record<string, number>>, Readonly<Record<string, number>>> = (value, field) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalidOption(field, value, 'an object of keys and their limits, such as { acme: 10 }')
  const limits = Object.entries(value).map(([key, limit]): [string, number] => [
    keyName(key, field),
    running(limit, `${field}.${key}`),
  ])
  if (limits.length > KEY_LIMITS_MAX)
    throw badRelation(field, `has ${limits.length} keys; at most ${KEY_LIMITS_MAX} are allowed`)
  return Object.fromEntries(limits)
}

const KEY_OPTIONS = {
  /** Jobs of each limit key that may run at once, from 1. */
  limit: { check: running },
  /** And of single keys: `{ acme: 10 }`. */
  keys: { default: {} as Readonly<Record<string, number>>, check: byKey },
} satisfies OptionTable

const readPerKey = optionReader(KEY_OPTIONS)

/** A number is the limit of each key. */
const perKey: Check<number | PerKeyOptions, KeyLimit> = (value, field) => {
  if (typeof value !== 'object') return { limit: running(value, field), keys: {} }
  const { limit, keys } = readPerKey(value, `${field}.`)
  return { limit: required(limit, `${field}.limit`, 'how many jobs of each key may run at once'), keys }
}

const LIMIT_OPTIONS = {
  /** Jobs in the hands of all workers at once, from 1; null: no limit. */
  concurrency: { check: orNull(whole({ min: 1, max: COUNT_MAX })) },
  /** How often jobs start: `{ limit, per, burst }`; null: no limit. */
  rate: { check: orNull(nested(readRate)) },
  /** Jobs that may wait, from 1 to 10,000, or `{ limit, perTenant, kinds }`; null: no limit. Beyond it enqueues are refused. */
  depth: { check: orNull(depth) },
  /** Jobs of each limit key that may run at once, or `{ limit, keys }`; null: no limit. */
  perKey: { check: orNull(perKey) },
  /** How many jobs come in from all producers: `{ limit, per, burst }`; null: no limit. Beyond it enqueues are refused. */
  intake: { check: orNull(nested(readRate)) },
} satisfies OptionTable

const readLimits = optionReader(LIMIT_OPTIONS)

/** `{ limit: 100, per: '1s', burst: 30 }`: a hundred starts (or jobs that come in) a second, thirty of them at once after a pause. */
export interface RateOptions extends Given<typeof RATE_OPTIONS> {
  /** So many starts, or jobs that come in … */
  limit: number
  /** … in so long; "1s" unless given. */
  per?: Duration
  /** So many that may come at once after a pause; `limit` unless given. */
  burst?: number
}

/** `{ limit: 1_000, perTenant: 100, kinds: { 'mail.bulk': 500 } }`: a thousand jobs may wait, a tenth of them of one tenant, half of one kind. */
export interface DepthOptions extends Given<typeof DEPTH_OPTIONS> {
  /** Jobs of the queue that may wait, from 1 to 10,000. */
  limit: number
  /** And of each tenant in it, those without a tenant being one together; null: no limit. */
  perTenant?: number | null
  /** And of single kinds in it, by name; those not named are limited by the queue alone. */
  kinds?: Readonly<Record<string, number>>
}

/** `{ limit: 3, keys: { acme: 10 } }`: three jobs of each limit key run at once, ten of that of acme. */
export interface PerKeyOptions extends Given<typeof KEY_OPTIONS> {
  /** Jobs of each limit key that may run at once, from 1. */
  limit: number
  /** And of single keys, by name; those not named have the limit of all. */
  keys?: Readonly<Record<string, number>>
}

/** Limits of a queue, over all its workers and producers. What is left out stays as it is, null takes a limit away. */
export interface LimitOptions extends Given<typeof LIMIT_OPTIONS> {
  /** Jobs in the hands of all workers at once, from 1; null: no limit. */
  concurrency?: number | null
  /** How often jobs start: `{ limit, per, burst }`; null: no limit. */
  rate?: RateOptions | null
  /** Jobs that may wait, from 1 to 10,000, or `{ limit, perTenant, kinds }`; null: no limit. Beyond it enqueues are refused. */
  depth?: number | DepthOptions | null
  /** Jobs of each limit key that may run at once, or `{ limit, keys }`; null: no limit. */
  perKey?: number | PerKeyOptions | null
  /** How many jobs come in from all producers: `{ limit, per, burst }`; null: no limit. Beyond it enqueues are refused. */
  intake?: RateOptions | null
}

/** The intake of a process, not of a queue: `{ limit, per, burst }`. */
export const rateLimit: Check<RateOptions, RateLimit> = (value, field) => rateOf(readRate(value, `${field}.`), field)

/** As the store takes them. Throws INVALID_OPTION naming the field. */
export function limitsOf(options: LimitOptions): Partial<QueueLimits> {
  const { concurrency, rate, depth: waits, intake, perKey: ofKeys } = readLimits(options)
  return {
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(rate === undefined ? {} : { rate: rate && rateOf(rate, 'rate') }),
    ...(waits === undefined ? {} : { depth: waits }),
    ...(ofKeys === undefined ? {} : { perKey: ofKeys }),
    ...(intake === undefined ? {} : { intake: intake && rateOf(intake, 'intake') }),
  }
}

function rateOf({ limit, per, burst }: ReturnType<typeof readRate>, field: string): RateLimit {
  const given = required(limit, `${field}.limit`, 'how many')
  return { limit: given, perMs: per, burst: burst ?? given }
}
