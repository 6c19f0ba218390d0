/**
 * How many jobs a worker should hold beyond its free slots. Pure arithmetic over measured run times: what will start
 * within the prefetch window is worth having at hand, what will not is better left to others. Called by the fetcher.
 */

/** Above this mean a job is slow: it gets a lease of its own, so that it does not hold its neighbours' lease open. */
export const SLOW_MS = 100

/** How far one sample moves a mean, and how far one claim moves the mix. */
const SAMPLE_WEIGHT = 0.1
const MIX_DECAY = 0.8

interface Pace {
  /** Of the handler's run time, smoothed; undefined until the first one ended. */
  meanMs: number | undefined
  /** Of the jobs claimed lately, how many were of this kind; decays with each claim. */
  weight: number
}

/** Measured run times of each kind, and the mix in which kinds come from the store. */
export class Paces {
  private readonly paces = new Map<string, Pace>()

  /** A handler of the kind ran for so long. */
  ran(kind: string, ms: number): void {
    const pace = this.of(kind)
    pace.meanMs = pace.meanMs === undefined ? ms : pace.meanMs + SAMPLE_WEIGHT * (ms - pace.meanMs)
  }

  /** A claim brought these kinds, one entry for each job. */
  claimed(kinds: Iterable<string>): void {
    for (const pace of this.paces.values()) pace.weight *= MIX_DECAY
    for (const kind of kinds) this.of(kind).weight += 1
  }

  /**
   * The mean run time of the next job to come. Weighted by what is claimed and not by what ends: a slow kind ends
   * seldom while it fills the slots. A kind never measured counts as half a window: twice the concurrency at first.
   */
  meanMs(windowMs: number): number {
    let sum = 0
    let weights = 0
    for (const pace of this.paces.values()) {
      sum += pace.weight * (pace.meanMs ?? windowMs / 2)
      weights += pace.weight
    }
    return weights > 0 ? sum / weights : windowMs / 2
  }

  /** Kinds known to be slow. */
  slow(): string[] {
    return [...this.paces].filter(([, pace]) => (pace.meanMs ?? 0) > SLOW_MS).map(([kind]) => kind)
  }

  private of(kind: string): Pace {
    const known = this.paces.get(kind)
    if (known) return known
    const pace: Pace = { meanMs: undefined, weight: 0 }
    this.paces.set(kind, pace)
    return pace
  }
}

/**
 * How many jobs will start within the window beyond those that fill the free slots now. `quickSlots` are those that
 * have not been busy with one job for a whole window; the others will not take a second job soon.
 */
export function prefetchBeyond(facts: { quickSlots: number; meanMs: number; windowMs: number; max: number }): number {
  if (facts.windowMs <= 0 || facts.meanMs > facts.windowMs) return 0
  // A mean of nothing would give infinity; the bound makes that harmless.
  return Math.min(facts.max, Math.floor((facts.quickSlots * facts.windowMs) / Math.max(facts.meanMs, 1e-3)))
}

/**
 * How many jobs to claim now; 0: wait. A slot that is free is filled at once; otherwise the buffer may fall to half
 * before it is filled again, so that a claim brings a batch and not a handful.
 */
export function claimLimit(facts: { free: number; buffered: number; beyond: number; max: number }): number {
  const starving = facts.free > facts.buffered
  if (!starving && facts.buffered * 2 > facts.beyond) return 0
  return Math.max(0, Math.min(facts.max, facts.free + facts.beyond - facts.buffered))
}
