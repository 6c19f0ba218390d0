/** Looks around a few times a second: was the loop blocked, are the leases still ours, does anything hang? Run by session.ts. */
import type { Env, Timer } from '../core/env.js'

const TICK_MS = 250
/** A loop that is blocked for longer delays everything in the process; the user should hear of it. */
export const BLOCKED_MS = 1_000

export class Watch {
  private timer: Timer | undefined
  private stopped = false

  /** `look` is called with the local time, and for how long the loop was blocked before it (0: it was not). */
  constructor(
    private readonly env: Env,
    private readonly look: (now: number, blockedMs: number) => void,
  ) {}

  start(): void {
    if (this.stopped) return
    const armedAt = this.env.monotonic()
    this.timer = this.env.timer(TICK_MS, () => {
      const now = this.env.monotonic()
      const lateMs = now - armedAt - TICK_MS
      this.look(now, lateMs > BLOCKED_MS ? lateMs : 0)
      this.start()
    })
  }

  stop(): void {
    this.stopped = true
    this.timer?.cancel()
  }
}
