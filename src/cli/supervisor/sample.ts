/** A fair sample of figures that come too fast to pass all of them on, and the percentile of it. Called by worker processes and signals.ts. */
import type { Env } from '../../core/env.js'

/** One report of one process: enough for a p95 of some seconds of all of them. */
const SAMPLE_MAX = 50

/** Each figure since the last `take` has the same chance to be in it. */
export class Sample {
  private kept: number[] = []
  private seen = 0

  constructor(private readonly env: Pick<Env, 'random'>) {}

  add(figure: number): void {
    this.seen += 1
    if (this.kept.length < SAMPLE_MAX) this.kept.push(figure)
    else {
      const at = Math.floor(this.env.random() * this.seen)
      if (at < SAMPLE_MAX) this.kept[at] = figure
    }
  }

  /** The sample; it begins anew. */
  take(): number[] {
    const taken = this.kept
    this.kept = []
    this.seen = 0
    return taken
  }
}

/** Nearest rank: one of the figures. Null of none. */
export function p95(figures: readonly number[]): number | null {
  const sorted = figures.toSorted((a, b) => a - b)
  return sorted[Math.ceil(sorted.length * 0.95) - 1] ?? null
}
