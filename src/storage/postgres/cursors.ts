/**
 * Where claims begin to read each lane. Positions only rise, so what lies before the cursor was taken; without it each
 * claim would walk over all entries that an old snapshot keeps from being cleaned up. A row that committed late lies
 * behind: so the cursor lags, and now and then a claim sweeps from the start. Called by claim.ts.
 */
import type { Env } from '../../core/env.js'
import { isBacklog } from './codec.js'

/** A commit later than this after its position was drawn is found by the next sweep only. */
const LAG_MS = 100
const SWEEP_MS_MIN = 1_000
/** A sweep that costs much under an old snapshot is done the more seldom: 2 % of the time at most. */
const SWEEP_DUTY = 50
/** However long it took: what is measured may have been a wait for a lock, and a late commit waits for the next one. */
const SWEEP_PAUSE_MS_MAX = 10_000

/** What was due before `sinceUs` has been promoted: a cursor over time, moved by promotion and read by claims. */
export interface Promoted {
  sinceUs: number
}

interface Sample {
  at: number
  pos: number
}

export class Cursors {
  /** Per lane, oldest first: the newest sample older than the lag is the cursor. */
  private readonly samples = new Map<number, Sample[]>()
  private sweptAt = Number.NEGATIVE_INFINITY
  private sweepCostMs = 0

  constructor(private readonly env: Env) {}

  /** Whether it is time to read from the start; asked before each claim. */
  sweepDue(): boolean {
    return this.env.monotonic() - this.sweptAt >= Math.max(SWEEP_MS_MIN, this.pauseMs())
  }

  /** Whether a sweep may follow a claim that found nothing: what woke it may have committed late. */
  sweepAllowed(): boolean {
    return this.env.monotonic() - this.sweptAt >= Math.max(LAG_MS, this.pauseMs())
  }

  private pauseMs(): number {
    return Math.min(SWEEP_PAUSE_MS_MAX, SWEEP_DUTY * this.sweepCostMs)
  }

  swept(costMs: number): void {
    this.sweptAt = this.env.monotonic()
    this.sweepCostMs = costMs
  }

  /** The lanes with a cursor, and their positions. */
  current(): { lanes: number[]; positions: number[] } {
    const lanes: number[] = []
    const positions: number[] = []
    const before = this.env.monotonic() - LAG_MS
    for (const [lane, samples] of this.samples) {
      while (samples.length > 1 && samples[1]!.at <= before) samples.shift()
      if (samples[0]!.at > before) continue
      lanes.push(lane)
      positions.push(samples[0]!.pos)
    }
    return { lanes, positions }
  }

  /** Everything of the lane up to `pos` was seen. */
  reached(lane: number, pos: number): void {
    const samples = this.samples.get(lane)
    const at = this.env.monotonic()
    if (samples === undefined) {
      this.samples.set(lane, [{ at, pos }])
      return
    }
    const last = samples.at(-1)!
    if (pos <= last.pos) return
    // One sample for each tenth of the lag is enough, and bounds the list.
    if (at - last.at < LAG_MS / 10 && samples.length > 1) last.pos = pos
    else samples.push({ at, pos })
  }

  /**
   * A sweep brought a full batch that ends here, so there may be more behind the cursor: from here on, once. Without it
   * a backlog behind the cursor (of a resumed queue, of a large late commit) was reached by sweeps alone.
   */
  returned(lane: number, pos: number): void {
    this.samples.set(lane, [{ at: this.env.monotonic() - LAG_MS, pos }])
  }

  /** The claim got less than it asked for: nothing that was committed is left before its instant, of what it can run. */
  exhausted(queueIds: readonly number[], nowUs: number): void {
    for (const lane of this.samples.keys())
      if (isBacklog(lane) && queueIds.includes(Math.floor(lane / 64))) this.reached(lane, nowUs)
  }
}
