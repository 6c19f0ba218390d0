/**
 * Who goes first: how one claim of one queue orders the levels (priorities 0 to 15) it could serve. Pure; called by
 * the memory store for all of it, by the PostgreSQL store for `reserveForPassedOver` and `tierQuotas` (its SQL mirrors
 * the rest).
 *
 * The candidates of a claim of `limit` jobs are, for each level, the first `limit` of its front list (re-entered jobs:
 * given back, taken over, retried by hand; in the order of their own rising position) and the first `limit` of its
 * back list (all others, in the order in which they became ready). A front entry keeps the due time it had before, so
 * it comes ahead of the backlog that grew meanwhile, and of nothing that was due before it. What is picked here says how
 * many each list gives; a list gives its first ones, and the batch is in main order.
 *
 * `turn` is the number of starts before this claim; the i-th job of the claim has turn `turn + i`.
 *
 * - ageing: the main order is by due time less one minute for each level, ties by the higher level, then front before
 *   back, then position. So a job waits only for higher ones due before (its due time + a minute for each level
 *   between). That bounds jobs, not time, under lasting overload; therefore each sixteenth start is reserved for the
 *   levels passed over: the claim takes `limit - reserve` in main order, then up to `reserve` from the levels of
 *   which it took none, by due time alone (ties by the higher level). What the reserve does not use goes on in main
 *   order, so that a claim is never smaller than it could be. The batch lists the reserved ones last.
 * - strict: by level, the higher first, then due time. Lower ones may starve; that is what was asked for.
 * - weighted: four tiers share the turns 8 : 4 : 2 : 1 by a fixed pattern of 15. The claim takes each tier's quota,
 *   critical first, inside a tier as strict does; what a tier cannot use is filled strictly from the top, and listed
 *   last.
 */
import { PRIORITY_LEVELS, TIERS } from './job.js'

/** How a claim orders the priorities of a queue. */
export type QueueOrder = 'ageing' | 'strict' | 'weighted'

/** A job waiting for so long counts as one level higher. */
export const AGEING_INTERVAL_MS = 60_000
/** One start in so many goes to the levels passed over. */
export const PASSED_OVER_INTERVAL = 16

/** What ordering needs to know of a job. */
export interface Candidate {
  priority: number
  /** Epoch milliseconds of the store's clock. */
  dueAt: number
  /** Orders what is due in one millisecond; for stores whose clock is no finer. */
  dueNth?: number
}

/** Quotas of a claim: critical, high, normal, low. */
export type TierQuotas = [critical: number, high: number, normal: number, low: number]

/**
 * Which tier a turn belongs to, as index into TierQuotas. Each second turn is critical, each second of the others
 * high, and so on: as even as it can be.
 */
export const TIER_PATTERN = [0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0] as const

/** Where a job stands in the main order of an ageing queue; the smaller goes first. */
export function ageingKey(candidate: Candidate): number {
  return candidate.dueAt - candidate.priority * AGEING_INTERVAL_MS
}

/** How many of the turns `turn` to `turn + limit - 1` are reserved for levels passed over: those with n % 16 = 15. */
export function reserveForPassedOver(turn: number, limit: number): number {
  return Math.floor((turn + limit) / PASSED_OVER_INTERVAL) - Math.floor(turn / PASSED_OVER_INTERVAL)
}

/** How many of the turns `turn` to `turn + limit - 1` belong to each tier. */
export function tierQuotas(turn: number, limit: number): TierQuotas {
  const length = TIER_PATTERN.length
  const rounds = Math.floor(limit / length)
  const quotas: TierQuotas = [8 * rounds, 4 * rounds, 2 * rounds, rounds]
  for (let i = rounds * length; i < limit; i++) quotas[TIER_PATTERN[(turn + i) % length]!] += 1
  return quotas
}

/** The tier of a level, as index into TierQuotas. */
export function tierOf(priority: number): 0 | 1 | 2 | 3 {
  if (priority >= TIERS.critical) return 0
  if (priority >= TIERS.high) return 1
  return priority >= TIERS.normal ? 2 : 3
}

/**
 * The jobs a claim takes, in the order of its batch: as many as there are, `limit` at most. Equal candidates keep the
 * order in which they are given, so give each level's front list before its back list.
 */
export function pick<T extends Candidate>(
  candidates: readonly T[],
  order: QueueOrder,
  turn: number,
  limit: number,
): T[] {
  switch (order) {
    case 'ageing':
      return pickAgeing(candidates, turn, limit)
    case 'strict':
      return candidates.toSorted(byLevel).slice(0, limit)
    case 'weighted':
      return pickWeighted(candidates, turn, limit)
  }
}

/**
 * All of them, in the order in which claims come to them from turn 0 on; of an ageing queue without what it reserves for
 * levels passed over, which may bring one forward. Equal ones keep the order in which they are given.
 */
export function inMainOrder<T extends Candidate>(candidates: readonly T[], order: QueueOrder): T[] {
  if (order === 'ageing') return candidates.toSorted(byAge)
  const byLevels = candidates.toSorted(byLevel)
  if (order === 'strict') return byLevels
  const tiers = [0, 1, 2, 3].map((tier) => byLevels.filter(({ priority }) => tierOf(priority) === tier).reverse())
  return byLevels.map((_, turn) => {
    const own = tiers[TIER_PATTERN[turn % TIER_PATTERN.length]!]!
    return (own.length > 0 ? own : tiers.find(({ length }) => length > 0)!).pop()!
  })
}

/**
 * How many each list gives to a claim; it gives its first ones, in its own order. `listOf` numbers the lists.
 */
export function quotasOfLists<T extends Candidate>(
  candidates: readonly T[],
  { order, turn, limit }: { order: QueueOrder; turn: number; limit: number },
  listOf: (candidate: T) => number,
): Map<number, number> {
  const quotas = new Map<number, number>()
  for (const candidate of pick(candidates, order, turn, limit))
    quotas.set(listOf(candidate), (quotas.get(listOf(candidate)) ?? 0) + 1)
  return quotas
}

function pickAgeing<T extends Candidate>(candidates: readonly T[], turn: number, limit: number): T[] {
  const ordered = candidates.toSorted(byAge)
  const reserve = reserveForPassedOver(turn, limit)
  const main = ordered.slice(0, limit - reserve)
  if (reserve === 0) return main
  const served = new Array<boolean>(PRIORITY_LEVELS).fill(false)
  for (const candidate of main) served[candidate.priority] = true
  const passedOver = candidates
    .filter((candidate) => !served[candidate.priority])
    .sort(byDue)
    .slice(0, reserve)
  const taken = new Set(passedOver)
  const topUp = ordered.slice(main.length).filter((candidate) => !taken.has(candidate))
  return [...main, ...topUp.slice(0, limit - main.length - passedOver.length), ...passedOver]
}

function pickWeighted<T extends Candidate>(candidates: readonly T[], turn: number, limit: number): T[] {
  const left = tierQuotas(turn, limit)
  const ordered = candidates.toSorted(byLevel)
  const [picked, rest]: [T[], T[]] = [[], []]
  // The order is by level, so the tiers come one after another and one pass fills all quotas.
  for (const candidate of ordered) {
    const tier = tierOf(candidate.priority)
    if (left[tier] > 0) picked.push(candidate)
    else rest.push(candidate)
    left[tier] -= 1
  }
  return [...picked, ...rest.slice(0, limit - picked.length)]
}

function byAge(a: Candidate, b: Candidate): number {
  return ageingKey(a) - ageingKey(b) || b.priority - a.priority
}

function byLevel(a: Candidate, b: Candidate): number {
  return b.priority - a.priority || a.dueAt - b.dueAt
}

function byDue(a: Candidate, b: Candidate): number {
  return a.dueAt - b.dueAt || (a.dueNth ?? 0) - (b.dueNth ?? 0) || b.priority - a.priority
}
