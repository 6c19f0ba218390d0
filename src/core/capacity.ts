/** How fast a queue drains. Pure; called by the rules of limits and by the client. */

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
