/**
 * How fast a queue drains, and how long a new job would wait. Pure; called by the rules of limits, and by the client for what
 * stores tell.
 */
import type { RateLimit } from './limits.js'

/** The newest completed jobs of a queue, `DRAINED_MAX` at most and not older than `DRAINED_MS`: how many, and since when. */
export interface Drained {
  count: number
  /** The age of the oldest of them; 0 where there are none. */
  sinceMs: number
}

/** Enough to be steady, few enough to follow a change of the pace, and to be read each time somebody is refused. */
export const DRAINED_MAX = 200
export const DRAINED_MS = 60_000
/** Two jobs that ended in one moment say nothing of the next second. */
const SPAN_MS_MIN = 1_000

/** Completed jobs each second; null when none was within the last minute. */
export function drainPerSecond({ count, sinceMs }: Drained): number | null {
  return count === 0 ? null : (count / Math.max(SPAN_MS_MIN, sinceMs)) * 1_000
}

/** What is known of a queue and its workers. */
export interface Load {
  /** Jobs that are ready now. */
  ready: number
  /** Workers that are alive and serve the queue. */
  workers: number
  /** Slots of those workers, also for their other queues. */
  slots: number
  /** Slots that are taken. */
  busy: number
  paused: boolean
  drained: Drained
  /** How long those completed jobs ran, on average; null where nobody knows. */
  ranMs: number | null
  /** The limits that hold its workers back. */
  concurrency: number | null
  rate: RateLimit | null
}

/** A run takes a moment also where it is told as none. */
const RAN_MS_MIN = 1

/**
 * How long a job that comes now would wait for its start. Null when nobody knows: no worker is alive, the queue is paused, or
 * none of its jobs was completed in the last minute.
 *
 * - While all slots are taken, what they complete is the pace. While some are free the queue drains no faster than it is
 *   filled, so the pace is what the slots could do, by how long the jobs ran.
 * - Where other queues share the slots this is too fast a pace: they are counted whole.
 */
export function expectedWaitMs(load: Load): number | null {
  const { ready, workers, paused, rate } = load
  if (workers === 0 || paused) return null
  if (ready === 0 || (rate === null && ready < places(load) - load.busy)) return 0
  const perSecond = pace(load)
  return perSecond === null ? null : Math.round((ready / perSecond) * 1_000)
}

function pace(load: Load): number | null {
  const { slots, busy, drained, ranMs, rate } = load
  const measured = drainPerSecond(drained)
  const possible = ranMs === null ? null : (places(load) / Math.max(RAN_MS_MIN, ranMs)) * 1_000
  const perSecond = busy >= slots ? (measured ?? possible) : Math.max(measured ?? 0, possible ?? 0)
  if (perSecond === null || perSecond === 0) return null
  return rate === null ? perSecond : Math.min(perSecond, (rate.limit / rate.perMs) * 1_000)
}

/** How many of its jobs may run at once. */
function places({ slots, concurrency }: Load): number {
  return Math.min(slots, concurrency ?? Infinity)
}
