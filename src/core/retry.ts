/** When the next attempt may start. One pure function for failures and crashes. Called by settlement.ts. */
import type { Backoff } from './job.js'

/** No delay is longer than this, whatever the policy says: about a year. */
export const RETRY_DELAY_MS_MAX = 366 * 86_400_000

/**
 * The wait after attempt `attempt` (from 1). `random` in [0, 1) spreads it over ± jitter, so that jobs that failed
 * together do not come back together. Finite, at least 0 and never over the cap by more than the jitter.
 */
export function retryDelayMs(backoff: Backoff, attempt: number, random: number): number {
  const spread = 1 + backoff.jitter * (2 * random - 1)
  const delay = plainDelayMs(backoff, Math.max(1, attempt)) * spread
  return Math.round(Math.min(RETRY_DELAY_MS_MAX, Math.max(0, delay)))
}

function plainDelayMs(backoff: Backoff, attempt: number): number {
  switch (backoff.type) {
    case 'fixed':
      return backoff.baseMs
    case 'linear':
      return Math.min(backoff.capMs, backoff.baseMs * attempt)
    case 'exponential':
      // factor ** attempt overflows to Infinity for large attempts; the minimum with the cap makes that harmless,
      // but 0 * Infinity would be NaN.
      return backoff.baseMs === 0 ? 0 : Math.min(backoff.capMs, backoff.baseMs * backoff.factor ** (attempt - 1))
  }
}
