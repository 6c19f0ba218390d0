/** Percentiles of waits. Called by the proof. */

export interface Waits {
  count: number
  p50Ms: number
  p95Ms: number
  p99Ms: number
  maxMs: number
}

/** Nearest rank: each figure is one of the values, none is made up between two. */
export function percentiles(values: readonly number[]): Waits {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number): number => Math.round(sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0)
  return { count: sorted.length, p50Ms: at(0.5), p95Ms: at(0.95), p99Ms: at(0.99), maxMs: at(1) }
}
