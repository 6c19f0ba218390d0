/** Which jobs are meant: the filters of bulk calls and of lists, read and made into what the store is asked. Pure; called by bulk.ts and inspector.ts. */
import type { DeadReason } from '../core/job.js'
import {
  badRelation,
  type Check,
  duration,
  flag,
  type Given,
  type Held,
  invalidOption,
  name,
  type OptionTable,
  oneOf,
  optionReader,
} from '../core/options.js'
import type { InStates, MatchRequest, OpenState } from '../storage/storage.js'

/** In text: dead letters that died of no error, or before errors had fingerprints. */
const NO_FINGERPRINT = 'none'

/** As `deadGroups` tells it, null too. */
export const fingerprint: Check<string | null, string | null> = (value, field) => {
  const print = typeof value === 'string' ? value.toLowerCase() : ''
  if (value === null || print === NO_FINGERPRINT) return null
  if (/^[0-9a-f]{12}$/.test(print)) return print
  throw invalidOption(field, value, 'a fingerprint as deadGroups() tells it (12 hex digits), or null or "none"')
}

export const deadReason = oneOf(['failed', 'poison', 'expired', 'rejected', 'lost'])

/** One state, or some. */
function states<const Words extends readonly string[]>(
  words: Words,
): Check<Words[number] | readonly Words[number][], readonly Words[number][]> {
  const one = oneOf(words)
  return (value, field) => {
    if (!Array.isArray(value)) return [one(value, field)]
    if (value.length === 0) throw invalidOption(field, value, 'at least one state')
    return [...new Set(value.map((item, index) => one(item, `${field}[${index}]`)))]
  }
}

const PLACE = {
  /** In this queue only. */
  queue: { check: name },
  /** Of this kind only. */
  kind: { check: name },
} satisfies OptionTable

const SAFETY = {
  /** Says that no queue, kind, reason or fingerprint need be named. Without it a filter that names none is refused. */
  all: { default: false, check: flag },
} satisfies OptionTable

const AGE_SINCE_ENQUEUE = {
  /** Enqueued longer ago than this, by the clock of the store. */
  olderThan: { check: duration() },
  /** Enqueued no longer ago than this. */
  newerThan: { check: duration() },
} satisfies OptionTable

export const DEAD_FILTER = {
  ...PLACE,
  /** Dead for this reason only: failed, poison, expired, rejected or lost. */
  reason: { check: deadReason },
  /** Died of this failure only, as `deadGroups` tells it; null or "none" for those without a fingerprint. */
  fingerprint: { check: fingerprint },
  /** Dead for longer than this, by the clock of the store. */
  olderThan: { check: duration() },
  /** Dead for no longer than this. */
  newerThan: { check: duration() },
  ...SAFETY,
} satisfies OptionTable

export const CANCEL_FILTER = {
  ...PLACE,
  /** One state or some of ready, delayed, retrying, blocked and running; all but running unless given. */
  state: {
    default: ['ready', 'delayed', 'retrying', 'blocked'],
    check: states(['ready', 'delayed', 'retrying', 'blocked', 'running']),
  },
  ...AGE_SINCE_ENQUEUE,
  ...SAFETY,
} satisfies OptionTable

export const RETRY_FILTER = {
  ...PLACE,
  /** One state or some of delayed and retrying; retrying unless given, as a delayed job was meant for later. */
  state: { default: ['retrying'], check: states(['delayed', 'retrying']) },
  ...AGE_SINCE_ENQUEUE,
  ...SAFETY,
} satisfies OptionTable

// Interfaces with a member of their own: see bulk-options.ts.

/** Which dead letters `redriveAll` and `discardAll` take: all that match everything that is said. */
export interface DeadFilter extends Given<typeof DEAD_FILTER> {
  /** In this queue only. */
  queue?: string
}
/** Which jobs `cancelAll` takes. */
export interface CancelFilter extends Given<typeof CANCEL_FILTER> {
  /** In this queue only. */
  queue?: string
}
/** Which jobs `retryAll` takes. */
export interface RetryFilter extends Given<typeof RETRY_FILTER> {
  /** In this queue only. */
  queue?: string
}

/** What matches, before the store's clock is known: requests for one state after another. */
export interface Wish {
  readonly requests: readonly Omit<MatchRequest, 'limit' | 'after' | 'since' | 'before'>[]
  readonly olderThanMs: number
  readonly newerThanMs: number | undefined
}

const readDead = optionReader(DEAD_FILTER)
const readCancel = optionReader(CANCEL_FILTER)
const readRetry = optionReader(RETRY_FILTER)

export function deadWish(filter: DeadFilter): Wish {
  const held = readDead(filter, 'filter.')
  const { reason, fingerprint } = held
  return wish(held, ['dead'], { reason, fingerprint })
}

export function cancelWish(filter: CancelFilter): Wish & InStates<OpenState> {
  const held = readCancel(filter, 'filter.')
  return { ...wish(held, inOrder(held.state), {}), states: held.state }
}

export function retryWish(filter: RetryFilter): Wish & InStates<'delayed' | 'retrying'> {
  const held = readRetry(filter, 'filter.')
  return { ...wish(held, inOrder(held.state), {}), states: held.state }
}

/** As jobs go from one to the next, so that one which moves on during the run is met again. */
const ORDER = ['delayed', 'retrying', 'blocked', 'ready', 'running'] as const

function inOrder(states: readonly (typeof ORDER)[number][]): MatchRequest['state'][] {
  return ORDER.filter((state) => states.includes(state))
}

type HeldFilter = Pick<Held<typeof CANCEL_FILTER>, 'queue' | 'kind' | 'olderThan' | 'newerThan' | 'all'>

function wish(
  { queue, kind, olderThan = 0, newerThan, all }: HeldFilter,
  states: readonly MatchRequest['state'][],
  ofDead: { reason?: DeadReason | undefined; fingerprint?: string | null | undefined },
): Wish {
  const narrow = Object.fromEntries(
    Object.entries({ queue, kind, ...ofDead }).filter(([, value]) => value !== undefined),
  ) as Partial<MatchRequest>
  if (!all && Object.keys(narrow).length === 0) throw tooWide(states)
  if (newerThan !== undefined && newerThan <= olderThan)
    throw badRelation('filter.newerThan', `nothing is newer than ${newerThan} ms and older than ${olderThan} ms`)
  return { requests: states.map((state) => ({ state, ...narrow })), olderThanMs: olderThan, newerThanMs: newerThan }
}

function tooWide(states: readonly string[]): Error {
  const narrows = states.includes('dead') ? 'a queue, kind, reason or fingerprint' : 'a queue or kind'
  return badRelation('filter', `it would match every job of every queue; name ${narrows}, or say { all: true }`)
}
