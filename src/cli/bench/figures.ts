/** What a scenario hands in, and the arithmetic of it. Pure. Called by the scenarios. */

/** One line. Keys end in their unit. */
export interface Figures {
  scenario: string
  /** What tells it from another line of the scenario. */
  form?: string
  jobs: number
  jobsPerSecond?: number
  p50Ms?: number
  p95Ms?: number
  p99Ms?: number
}

/** Nearest rank: each figure is one of the samples, none is made up between two. */
export function latencies(samplesMs: readonly number[]): Pick<Figures, 'p50Ms' | 'p95Ms' | 'p99Ms'> {
  if (samplesMs.length === 0) return {}
  const sorted = samplesMs.toSorted((a, b) => a - b)
  const at = (share: number): number => hundredths(sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)]!)
  return { p50Ms: at(0.5), p95Ms: at(0.95), p99Ms: at(0.99) }
}

export function perSecond(count: number, ms: number): number {
  return Math.round((count * 1_000) / Math.max(1, ms))
}

function hundredths(value: number): number {
  return Math.round(value * 100) / 100
}
