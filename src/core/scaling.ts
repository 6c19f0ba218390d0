/**
 * How many worker processes there shall be. Pure: what a queue looks like, how many there are, and what was decided
 * before, to a number and why. Called by the supervisor (`leasehold work --max`) and by `leasehold scale`.
 */
import { formatDuration } from './duration.js'
import { grouped } from './show.js'

export type ScaleSignal = 'depth' | 'wait'

/** What the queues look like at one moment. */
export interface ScaleLook {
  /** Jobs that are due and wait for a worker. */
  ready: number
  /** For how long the one that is due longest has been due; 0 when none is. */
  oldestWaitMs: number
  /** Of jobs that started lately, from when they were due; null where none did, or nobody has measured it. */
  p95WaitMs: number | null
  /** Slots that are busy. */
  busy: number
}

export interface ScalePolicy {
  min: number
  max: number
  by: ScaleSignal
  /** Due jobs that may wait for each slot (depth), or milliseconds that jobs may wait (wait). */
  target: number
  /** Of each process. */
  slots: number
  /** The signal has to be low for so long before a process is told to end. */
  coolDownMs: number
}

/** Processes that there shall be by the last decision, and how many of them take jobs. */
export interface Present {
  wanted: number
  up: number
}

/** What one decision hands to the next: since when fewer would do, and the most that were asked for since. */
export interface ScaleState {
  low: { sinceMs: number; highest: number } | null
}

export interface ScaleDecision {
  wanted: number
  /** In a sentence, for logs. */
  why: string
  state: ScaleState
}

export const SCALE_BEGIN: ScaleState = { low: null }

/** Processes started by one decision: as many as are up. More would have started before the first have shown effect. */
const GROWTH_MAX = 2
/** Fewer processes have to be able to bear what runs now with a fifth of their slots to spare, else they grow again. */
const BUSY_SHARE_MAX = 0.8
/** Of the target: below it a wait is short. Between the two nothing changes. */
const SHORT_WAIT_SHARE = 0.5

/**
 * How many processes the signal asks for, within min and max: by itself, without what was before. What runs never asks
 * for more, it only holds what is there.
 */
export function askedFor(look: ScaleLook, policy: ScalePolicy, present: number): { count: number; why: string } {
  const { count, why } = policy.by === 'depth' ? byDepth(look, policy) : byWait(look, policy, present)
  const held = Math.min(present, Math.ceil(look.busy / (policy.slots * BUSY_SHARE_MAX)))
  const bounded = Math.min(policy.max, Math.max(policy.min, count, held))
  return {
    count: bounded,
    why: held > count ? `${grouped(look.busy)} ${look.busy === 1 ? 'slot is' : 'slots are'} busy` : why,
  }
}

/**
 * Up at once, at most to twice of what is up; down by one process, when fewer have been enough for the whole cool-down,
 * and to no fewer than were asked for at any time of it. `nowMs` is a clock that never goes back.
 */
export function decideScale(
  look: ScaleLook,
  policy: ScalePolicy,
  { present, state, nowMs }: { present: Present; state: ScaleState; nowMs: number },
): ScaleDecision {
  const { min, max, coolDownMs } = policy
  const wanted = Math.min(max, Math.max(min, present.wanted))
  const asked = askedFor(look, policy, wanted)
  if (asked.count >= wanted) {
    const reach = Math.max(wanted, present.up * GROWTH_MAX)
    return { wanted: Math.min(asked.count, reach), why: asked.why, state: SCALE_BEGIN }
  }
  const { sinceMs, highest } = state.low ?? { sinceMs: nowMs, highest: asked.count }
  const low = { sinceMs, highest: Math.max(highest, asked.count) }
  if (nowMs - sinceMs < coolDownMs) return { wanted, why: asked.why, state: { low } }
  // What was asked for at some time of the low is there: only a low that begins now can lead below it.
  if (low.highest >= wanted) return { wanted, why: asked.why, state: { low: { sinceMs: nowMs, highest: asked.count } } }
  const why = `fewer have been enough for ${formatDuration(nowMs - sinceMs)} (${asked.why})`
  return { wanted: wanted - 1, why, state: { low } }
}

function byDepth({ ready }: ScaleLook, { target, slots }: ScalePolicy): { count: number; why: string } {
  const due = `${grouped(ready)} due ${ready === 1 ? 'job' : 'jobs'}`
  return { count: Math.ceil(ready / (target * slots)), why: `${due}, where ${target} a slot may wait` }
}

function byWait(look: ScaleLook, { target, slots }: ScalePolicy, present: number): { count: number; why: string } {
  const waitMs = Math.max(look.oldestWaitMs, look.p95WaitMs ?? 0)
  const why = `jobs wait for ${formatDuration(waitMs)}, where ${formatDuration(target)} is the target`
  if (waitMs <= target * SHORT_WAIT_SHARE) return { count: 0, why }
  if (waitMs <= target) return { count: present, why }
  // Slots beyond what waits would stay empty: the p95 tells of what was, and it may be over.
  const useful = present + Math.ceil(look.ready / slots)
  const grown = Math.ceil(Math.max(1, present) * Math.min(GROWTH_MAX, waitMs / target))
  return { count: Math.min(useful, grown), why }
}
