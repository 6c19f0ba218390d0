/**
 * When running attempts time out: one timer for all of them, as a timer for each would cost a no-op job more than the
 * job itself. Called by the executor.
 */
import type { Env, Timer } from '../core/env.js'

/** The timer never fires more often than this; a timeout is late by as much at most. */
const STEP_MS = 10

export class Deadlines {
  private timer: Timer | undefined
  private firesAt = Number.POSITIVE_INFINITY

  /** `overdue` ends what is due and answers when the next one will be (Infinity: none runs). */
  constructor(
    private readonly env: Env,
    private readonly overdue: (now: number) => number,
  ) {}

  /** Something has to end at `at` (by the local clock). Later than what is waited for already costs nothing. */
  watch(at: number, now: number): void {
    if (at >= this.firesAt) return
    this.arm(Math.max(at, now + STEP_MS), now)
  }

  stop(): void {
    this.timer?.cancel()
    this.timer = undefined
    this.firesAt = Number.POSITIVE_INFINITY
  }

  private arm(at: number, now: number): void {
    this.timer?.cancel()
    this.firesAt = at
    this.timer = this.env.timer(at - now, () => this.fire())
  }

  private fire(): void {
    this.timer = undefined
    this.firesAt = Number.POSITIVE_INFINITY
    const now = this.env.monotonic()
    const next = this.overdue(now)
    if (next < this.firesAt) this.arm(Math.max(next, now + STEP_MS), now)
  }
}
