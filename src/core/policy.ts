/** Options of kinds and jobs that become the policy travelling with a job. Read by defineJob and by enqueue. */
import type { Duration } from './duration.js'
import { type Backoff, type JobSpec, PRIORITY_LEVELS, type Priority, SPEC_DEFAULTS, TIERS, type Tier } from './job.js'
import { KEY_BYTES_MAX } from './keys.js'
import {
  badRelation,
  between,
  type Check,
  duration,
  type Given,
  type Held,
  invalidOption,
  nested,
  type OptionTable,
  oneOf,
  optionReader,
  text,
  whole,
} from './options.js'
import { didYouMean } from './suggest.js'
import { TENANT_BYTES_MAX, WEIGHT_MAX, WEIGHT_MIN } from './tenants.js'

const DAY_MS = 86_400_000
export const ATTEMPTS_MAX = 100_000

export const priority: Check<Priority, number> = (value, field) => {
  if (typeof value === 'string' && Object.hasOwn(TIERS, value)) return TIERS[value as Tier]
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < PRIORITY_LEVELS) return value + 0
  const tiers = Object.keys(TIERS)
  const hint = typeof value === 'string' ? didYouMean(value, tiers) : ''
  throw invalidOption(field, value, `${tiers.join(', ')} or a whole number from 0 to ${PRIORITY_LEVELS - 1}${hint}`)
}

const LONGEST = { minMs: 1, maxMs: 366 * DAY_MS }
export const timeout = duration(LONGEST)
export const ageLimit = duration(LONGEST)
export const expiresIn = duration({ minMs: 1 })
export const maxWait = duration({ minMs: 1, maxMs: 366 * DAY_MS })
export const tenant = text(TENANT_BYTES_MAX)
export const weight = between(WEIGHT_MIN, WEIGHT_MAX)
export const key = text(KEY_BYTES_MAX)
export const afterDead = oneOf(['go on', 'block'])
export const idempotencyRetention = duration({ minMs: 1_000, maxMs: 3_660 * DAY_MS })

const BACKOFF_OPTIONS = {
  /** How the wait grows: exponential (unless given) is base × factor^(n-1), linear is base × n, fixed is base. */
  type: { default: 'exponential', check: oneOf(['exponential', 'linear', 'fixed']) },
  /** The wait after the first failed attempt; 2 seconds unless given. */
  base: { default: 2_000, check: duration({ maxMs: 366 * DAY_MS }) },
  /** By what an exponential wait is multiplied each time; 2 unless given. */
  factor: { check: between(1, 100) },
  /** No wait is longer, jitter aside; 1 hour unless given. */
  cap: { check: duration({ maxMs: 366 * DAY_MS }) },
  /** The part of the wait by which it varies, up and down; 0.25 unless given. */
  jitter: { default: 0.25, check: between(0, 1) },
} satisfies OptionTable

/** The wait before the next attempt: `{ base: '2s', factor: 2, cap: '1h' }`. */
export type BackoffOptions = Given<typeof BACKOFF_OPTIONS>
/** The wait after attempt `attempt` (from 1) that failed with `error`. */
export type BackoffFunction = (attempt: number, error: unknown) => Duration

const readBackoff = optionReader(BACKOFF_OPTIONS)

const backoffPolicy: Check<BackoffOptions, Backoff> = (value, field) => {
  if (typeof value === 'function')
    throw badRelation(field, 'a function cannot travel with a single job; give it to defineJob, or give numbers here')
  const { type, base, factor, cap, jitter } = readBackoff(value, `${field}.`)
  if (factor !== undefined && type !== 'exponential')
    throw badRelation(`${field}.factor`, `it has no effect with type "${type}"; leave it out`)
  if (type === 'fixed') {
    if (cap !== undefined) throw badRelation(`${field}.cap`, 'it has no effect with type "fixed"; leave it out')
    return { type, baseMs: base, jitter }
  }
  if (cap !== undefined && cap < base)
    throw badRelation(`${field}.cap`, `${cap} ms is below the base of ${base} ms; give at least that`)
  const capMs = cap ?? Math.max(base, DEFAULT_CAP_MS)
  return type === 'linear'
    ? { type, baseMs: base, capMs, jitter }
    : { type, baseMs: base, factor: factor ?? 2, capMs, jitter }
}

const DEFAULT_CAP_MS = 3_600_000

const attempts = whole({ min: 1, max: ATTEMPTS_MAX })
const ownBackoff: Check<BackoffOptions | BackoffFunction, Backoff | BackoffFunction> = (value, field) =>
  typeof value === 'function' ? (value as BackoffFunction) : backoffPolicy(value, field)

const KIND_RETRY_OPTIONS = {
  /** How often the handler may start and fail before the job is dead; 6 unless given. */
  attempts: { default: SPEC_DEFAULTS.attempts, check: attempts },
  /** The wait before the next attempt, or a function that is asked for it where the handler runs. */
  backoff: { default: SPEC_DEFAULTS.backoff, check: ownBackoff },
} satisfies OptionTable

/** Without defaults: what a job does not say, its kind does. */
const JOB_RETRY_OPTIONS = {
  /** How often the handler may start and fail, instead of what the kind says. */
  attempts: { check: attempts },
  /** The wait before the next attempt, instead of what the kind says. */
  backoff: { check: backoffPolicy },
} satisfies OptionTable

export const jobRetry = nested(optionReader(JOB_RETRY_OPTIONS))
export const kindRetry = nested(optionReader(KIND_RETRY_OPTIONS))
export type KindRetry = Held<typeof KIND_RETRY_OPTIONS>
export type JobRetry = Held<typeof JOB_RETRY_OPTIONS>

/** What a kind says of the fate of its jobs, as read from its options. */
export interface KindPolicy {
  retry: KindRetry | undefined
  timeout: number
  ageLimit: number
  expiresIn: number | undefined
  delivery: JobSpec['delivery']
  keep: JobSpec['keep']
}

/** The one spec of a kind: frozen, and shared by all its jobs, so that a store can encode it once. */
export function specOfKind(policy: KindPolicy): JobSpec {
  if (policy.delivery === 'at-most-once' && policy.retry !== undefined) throw retriesNever()
  const backoff = policy.retry?.backoff ?? SPEC_DEFAULTS.backoff
  return Object.freeze({
    attempts: policy.delivery === 'at-most-once' ? 1 : (policy.retry?.attempts ?? SPEC_DEFAULTS.attempts),
    // A function cannot travel: whoever takes a job over from a dead worker goes by the default.
    backoff: Object.freeze(typeof backoff === 'function' ? SPEC_DEFAULTS.backoff : backoff),
    timeoutMs: policy.timeout,
    ageLimitMs: policy.ageLimit,
    delivery: policy.delivery,
    keep: policy.keep,
    ...(policy.expiresIn === undefined ? {} : { expiresInMs: policy.expiresIn }),
  })
}

/** What one job says differently from its kind. */
export interface SpecChoice {
  retry: JobRetry | undefined
  timeout: number | undefined
  expiresIn: number | undefined
  tenant: string | undefined
  weight: number | undefined
  orderKey: string | undefined
  afterDead: 'go on' | 'block' | undefined
  limitKey: string | undefined
}

/** The spec of one job: the very object of its kind unless the job differs from it. */
export function specOfJob(spec: JobSpec, choice: SpecChoice, idempotencyKey: string | undefined): JobSpec {
  const { retry, timeout, expiresIn, tenant, weight, orderKey, afterDead, limitKey } = choice
  if (weight !== undefined && tenant === undefined)
    throw badRelation('weight', 'it is the share of a tenant; give a tenant, or leave it out')
  if (orderKey !== undefined && limitKey !== undefined)
    throw badRelation(
      'limitKey',
      'a job has one key: jobs of an order key run one at a time anyhow; leave one of them out',
    )
  if (afterDead !== undefined && orderKey === undefined)
    throw badRelation(
      'afterDead',
      'it is said of the jobs behind it in its order key; give an order key, or leave it out',
    )
  const said = [retry, timeout, expiresIn, tenant, orderKey, limitKey, idempotencyKey]
  if (said.every((one) => one === undefined)) return spec
  if (retry !== undefined && spec.delivery === 'at-most-once') throw retriesNever()
  return {
    ...spec,
    ...(retry?.attempts === undefined ? {} : { attempts: retry.attempts }),
    ...(retry?.backoff === undefined ? {} : { backoff: retry.backoff }),
    ...(timeout === undefined ? {} : { timeoutMs: timeout }),
    ...(expiresIn === undefined ? {} : { expiresInMs: expiresIn }),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(weight === undefined ? {} : { weight }),
    ...(orderKey === undefined ? {} : { orderKey }),
    ...(afterDead === 'block' ? { afterDead } : {}),
    ...(limitKey === undefined ? {} : { limitKey }),
  }
}

function retriesNever(): Error {
  return badRelation('retry', 'an at-most-once job is never retried; leave retry or the delivery out')
}
