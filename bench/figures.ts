/** What a scenario hands in, and the arithmetic of it: percentiles, medians, ratios, rounding. Pure. */
import type { Size } from './options.js'

/** One line of a scenario. Keys end in their unit: `Ms`, `Us`, `Bytes`, `Mb`, `PerSecond`. */
export interface Figures {
  scenario: string
  jobs?: number
  jobsPerSecond?: number
  p50Ms?: number
  p95Ms?: number
  p99Ms?: number
  /** Where the figures are held to a bound. */
  holds?: boolean
  [more: string]: unknown
}

/** Whether a bound is broken; small sizes measure nothing, and so break none. */
export function breaks({ holds }: Figures, size: Size): boolean {
  return holds === false && size === 'full'
}

/** Nearest rank: the smallest sample that at least this share of them does not exceed. */
export function percentile(sorted: ArrayLike<number>, share: number): number {
  if (sorted.length === 0) return Number.NaN
  const rank = Math.ceil(sorted.length * share)
  return sorted[Math.min(sorted.length, Math.max(1, rank)) - 1]!
}

export function latencies(samplesMs: ArrayLike<number>): { p50Ms: number; p95Ms: number; p99Ms: number } {
  const sorted = Float64Array.from(samplesMs).sort()
  const at = (share: number): number => hundredths(percentile(sorted, share))
  return { p50Ms: at(0.5), p95Ms: at(0.95), p99Ms: at(0.99) }
}

/** Between the two in the middle where their number is even. */
export function median(values: readonly number[]): number {
  if (values.length === 0) return Number.NaN
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** To three digits: what a noisy machine measures has no more. */
export function ratio(value: number, to: number): number {
  return significant(value / to, 3)
}

export function hundredths(value: number): number {
  return Math.round(value * 100) / 100
}

export function significant(value: number, digits: number): number {
  return Number.isFinite(value) ? Number(value.toPrecision(digits)) : value
}

export function perSecond(count: number, ms: number): number {
  return Math.round((count * 1_000) / ms)
}
