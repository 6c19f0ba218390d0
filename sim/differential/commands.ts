/**
 * What a sequence is made of: operations of the port as plain data. They name things by number (the third job, the last
 * fence), so that a sequence that was made shorter still means something, and so that each store resolves them by its
 * own fences. Made by sequences.ts, played by play.ts.
 */
import { type JobSpec, SPEC_DEFAULTS } from '../../src/core/job.js'
import type { KeyLimit } from '../../src/core/keys.js'
import type { Share } from '../../src/core/tenants.js'
import type { DepthLimit, MatchState, QueueOrder, RateLimit } from '../../src/storage/storage.js'

export const QUEUES = ['alpha', 'beta', 'gamma'] as const
export const KINDS = ['send', 'count', 'tidy'] as const
export const LEVELS = [4, 0, 3, 5, 8, 12, 15] as const
export const KEYS = ['a', 'b', 'a b', 'ä"\\'] as const
/** Workers that a sequence knows at a time. */
export const WORKERS = 4

const MINUTE_MS = 60_000

/**
 * How far the clock goes on before an operation: at least so far, so that each has an instant of its own, as it has with
 * a real clock. The small steps of a sequence add up to less than a minute and the large ones are whole minutes: so no
 * two of its instants are whole minutes apart, and jobs of two levels never tie by ageing.
 */
export const TICK_MS = 50
export const STEPS_MS = [0, TICK_MS, 6 * TICK_MS, MINUTE_MS, 2 * MINUTE_MS, 11 * MINUTE_MS, 61 * MINUTE_MS] as const

/** Leases are of ten minutes, so that a few steps decide over life and death. */
export const LEASE_MS = 10 * MINUTE_MS
export const BEAT_MS = 3 * MINUTE_MS

/**
 * Delays: none, and such that end between the instants of operations. No two jobs of a sequence wait for one instant: a
 * store may promote either of them first.
 */
const DELAYS_MS = [0, 0, 2 * TICK_MS, 9 * TICK_MS, MINUTE_MS, 12 * MINUTE_MS] as const
export const DELAYS = DELAYS_MS.length
/** Operations of one call at most. */
export const CALL_MAX = 8
/** This one ends at an instant of an operation. Only for the highest level, which never ties with a lower one by ageing. */
export const EXACT_DELAY_MS = TICK_MS

/** The `nth` of a call, from 0. */
export function delayMsOf(delay: number, nth: number): number {
  return delay === 0 ? 0 : DELAYS_MS[delay]! + delay * CALL_MAX + nth
}

/** Its wait ends between the instants of operations, too. */
const BACKOFF = { type: 'fixed', baseMs: MINUTE_MS + 1, jitter: 0 } as const

const VARIED: readonly Partial<JobSpec>[] = [
  {},
  { delivery: 'at-most-once' },
  { keep: 'none' },
  { keep: 'failures', attempts: 1 },
  { expiresInMs: 35 },
  { expiresInMs: 2 * MINUTE_MS },
  { attempts: 2, ageLimitMs: 3 * MINUTE_MS, timeoutMs: 1_000 },
]
/** The queue in which jobs have tenants. */
export const SHARED_QUEUE = 2
export const SHARES: readonly Share[] = [
  {},
  { tenant: 'a' },
  { tenant: 'b', weight: 3 },
  { tenant: 'ä "', weight: 0.5 },
]
/** Keys of jobs in the queues after the first one. */
export const JOB_KEYS: readonly Partial<JobSpec>[] = [
  {},
  { orderKey: 'a' },
  { limitKey: 'a' },
  { orderKey: 'ö "' },
  { orderKey: 'a', afterDead: 'block' },
  { limitKey: 'x' },
]
export const KEY_LIMITS: readonly KeyLimit[] = [
  { limit: 1, keys: {} },
  { limit: 2, keys: { x: 1 } },
  { limit: 1, keys: { a: 3 } },
]
export const SPECS: readonly JobSpec[] = VARIED.map((more) => ({ ...SPEC_DEFAULTS, backoff: BACKOFF, ...more }))
/** Tokens come between the instants of operations: two stores that look microseconds apart see as many. */
const TOKEN_MS = MINUTE_MS + 30_017
export const RATES: readonly RateLimit[] = [
  { limit: 1, perMs: TOKEN_MS, burst: 1 },
  { limit: 1, perMs: TOKEN_MS, burst: 3 },
  { limit: 2, perMs: 2 * TOKEN_MS, burst: 2 },
]
/** Of what may wait: what the sequences have waiting comes to these often. */
export const DEPTHS: readonly DepthLimit[] = [
  { limit: 5, perTenant: null, kinds: {} },
  { limit: 8, perTenant: 3, kinds: {} },
  { limit: 12, perTenant: 4, kinds: { [KINDS[0]]: 3 } },
]
/** Of what comes in: enough for most of a sequence, so that little of the rest is missed. */
export const INTAKES: readonly RateLimit[] = [
  { limit: 1, perMs: TOKEN_MS, burst: 8 },
  { limit: 3, perMs: 3 * TOKEN_MS, burst: 12 },
]
export const RETENTIONS_MS = [MINUTE_MS, 15, 12 * MINUTE_MS, 24 * 60 * MINUTE_MS] as const

/** A payload that no store may take. */
export const BAD_PAYLOADS = ['{', '"', 'nul', '1 2'] as const

export interface JobSketch {
  kind: number
  queue: number
  level: number
  /** Into the delays. */
  delay: number
  /** The delay is told as an instant of the store's clock; before now for 'past'. */
  due: 'delay' | 'instant' | 'past'
  spec: number
  /** Of the shares; those of one queue only have any, so that the others go on without. */
  tenant: number
  /** Into the keys of jobs. */
  jobKey: number
  /** 0: none, else a key. */
  key: number
  /** Which text the caller hashed. */
  text: number
  retention: number
  /** 0: an id of the store's client; 1: a new one that the caller chose; above: that of an earlier job. */
  id: number
  /** 0: a good payload. */
  bad: number
}

/** What becomes of a job that somebody holds. */
export interface SettlementSketch {
  /** Which of those that are not settled or, for `any`, of all that were ever handed out; counted from the last. */
  slot: number
  of: 'open' | 'any'
  outcome: Ending
  delay: number
  started: number
  keep: boolean
}
export const ENDINGS = [
  'returned',
  'started',
  'threw',
  'rejected',
  'snoozed',
  'given back',
  'aborted',
  'cancelled',
  'expired',
  'crashed',
] as const
export type Ending = (typeof ENDINGS)[number]

export interface ClaimSketch {
  worker: number
  /** The next request, one that was asked before, or one that was given up between. */
  which: 'next' | 'again' | 'older' | 'skipping'
  queues: readonly { queue: number; share: number; turn: number }[]
  limit: number
  kinds: readonly number[]
  apart: readonly number[]
  suspects: boolean
  finished: readonly SettlementSketch[]
}

export interface BeatSketch {
  worker: number
  which: 'next' | 'again' | 'stale'
  /** Leases that it names no more, by number; 0 is none. */
  forgets: number
  /** The last claim was not answered yet. */
  behind: boolean
  /** A fence that it names although it may not be its own; 0 is none. */
  strange: number
  /** So many of the jobs it holds have started. */
  started: number
  lagMs: number
}

export interface FilterSketch {
  state: MatchState | 'completed' | 'cancelled'
  queue: number
  kind: number
  reason: number
  fingerprint: number
  since: number
  before: number
  limit: number
}

/** `step`: how far the clock goes on before it. */
export type Command = { step: number } & (
  | { op: 'enqueue'; jobs: readonly JobSketch[] }
  | ({ op: 'claim' } & ClaimSketch)
  | ({ op: 'beat' } & BeatSketch)
  | { op: 'settle'; settlements: readonly SettlementSketch[] }
  | { op: 'register'; worker: number }
  | { op: 'unregister'; worker: number }
  | { op: 'takeOver'; worker: number; limit: number }
  /** Time goes by in which these workers beat. */
  | { op: 'pass'; beats: number; workers: readonly number[] }
  /** All but these workers fall silent for a lease; the first of them takes over, and judges. New ones take the seats. */
  | { op: 'crash'; survivors: readonly number[]; limit: number; judges: boolean }
  /** Again and again a worker claims and dies of it. */
  | { op: 'poison'; heir: number; rounds: number; limit: number; started: number }
  | { op: 'promote'; limit: number }
  | { op: 'expire' }
  | { op: 'prune'; completed: number; dead: number; completedMax: number; deadMax: number; limit: number }
  /** Jobs with even numbers are dead letters. `only`: how the call bounds which of them it means; 0: it does not. */
  | { op: 'cancel' | 'retry' | 'discard'; jobs: readonly number[]; only: number }
  | { op: 'redrive'; jobs: readonly number[]; force: boolean; only: number }
  | { op: 'pause' | 'resume' | 'refuse'; queue: number }
  | { op: 'purge'; queue: number; limit: number }
  | { op: 'order'; queue: number; order: QueueOrder }
  /** 0: as it is; 1: none; else one of a few. */
  | { op: 'limit'; queue: number; concurrency: number; rate: number; depth: number; intake: number; perKey: number }
  | { op: 'get'; jobs: readonly number[] }
  | { op: 'list' | 'match'; filter: FilterSketch }
  | { op: 'groups'; queue: number; kind: number; limit: number }
  | { op: 'look'; queue: number }
)
