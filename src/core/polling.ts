/** How long to wait before asking the store again, after it had nothing or could not answer. Called by the worker. */

/** The first wait after a claim that found too little: without hints, and where hints come anyway. */
export const FIRST_POLL_MS = 5
export const FIRST_POLL_MS_WITH_HINTS = 40
const RETRY_MS_MIN = 100
/** Fewer than a hundred tries a minute while the store is away, and back within seconds when it returns. */
const RETRY_MS_MAX = 5_000

/** After `empties` claims in a row that found less than they asked for (from 1): `minMs`, then twice that … up to `maxMs`, ± 20 %. */
export function pollDelayMs(empties: number, minMs: number, maxMs: number, random: number): number {
  // 2 ** 30 is far beyond any bound and still finite.
  const plain = Math.min(maxMs, minMs * 2 ** Math.min(30, Math.max(0, empties - 1)))
  return plain * (0.8 + 0.4 * random)
}

/** After `failures` calls in a row that failed (from 1): 100, 200, 400 ms … up to 5 s, less up to half of it. */
export function storeRetryMs(failures: number, random: number): number {
  const plain = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.min(30, Math.max(0, failures - 1)))
  return plain * (1 - 0.5 * random)
}

/** An interval spread by ± 20 %, so that workers started together do not keep step. */
export function jittered(ms: number, random: number): number {
  return ms * (0.8 + 0.4 * random)
}

/** A worker with a free slot asks each poll; when nothing was answered for so long its claims do not get through. */
const ANSWER_MS_MAX = 3_000

/** For how long a claim loop that has room may be without an answer and still be well. */
export function silenceMsMax(pollMs: number): number {
  return pollDelayMs(1, pollMs, pollMs, 1) + ANSWER_MS_MAX
}
