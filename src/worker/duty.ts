/** Something done again and again, never twice at once, until it is stopped. Made by upkeep.ts. */
import type { Env, Timer } from '../core/env.js'
import { jittered } from '../core/polling.js'
import type { StoreCalls } from './store-calls.js'

/** Between steps of a duty that has more to do. */
const MORE_MS = 20
const RETRY_MS = 2_000
/** After a failure: less often than usual, but no duty is left undone for longer than others need to find the store well. */
const FAILED_MS_MAX = 20_000

export class Duty {
  private timer: Timer | undefined
  private dueAt = Number.POSITIVE_INFINITY
  private running: Promise<void> | undefined
  private stopped = false
  private failed = false
  /** The store was found well while a step was under way, which may have begun before that. */
  private wellMeanwhile = false

  /** `step` answers whether there is more to do at once. A failure is told and tried again at the next time. */
  constructor(
    private readonly env: Env,
    private readonly calls: StoreCalls,
    private readonly operation: string,
    private readonly everyMs: number,
    private readonly step: () => Promise<boolean>,
  ) {}

  /** Not later than in so many milliseconds. */
  within(ms: number): void {
    const at = this.env.monotonic() + ms
    if (this.stopped || at >= this.dueAt) return
    this.dueAt = at
    this.timer?.cancel()
    this.timer = undefined
    if (!this.running) this.arm()
  }

  /** Soon, if it failed the last time; not all of a fleet at once. */
  retry(): void {
    if (this.running) this.wellMeanwhile = true
    else if (this.failed) this.within(RETRY_MS * this.env.random())
  }

  /** No step begins after it. Resolves when the one under way has ended. */
  async stop(): Promise<void> {
    this.stopped = true
    this.timer?.cancel()
    await this.running
  }

  private arm(): void {
    this.timer = this.env.timer(Math.max(0, this.dueAt - this.env.monotonic()), () => {
      this.dueAt = Number.POSITIVE_INFINITY
      this.running = this.turn()
    })
  }

  private async turn(): Promise<void> {
    this.wellMeanwhile = false
    let waitMs = jittered(this.everyMs, this.env.random())
    try {
      if (await this.step()) waitMs = MORE_MS
      this.failed = false
      this.calls.succeeded(this.operation)
    } catch (error) {
      // Half as often while the store fails: claims and beats find out when it is back.
      waitMs = this.wellMeanwhile ? RETRY_MS * this.env.random() : Math.min(waitMs * 2, FAILED_MS_MAX)
      this.failed = true
      this.calls.failed(this.operation, error, waitMs)
    }
    this.running = undefined
    if (this.stopped) return
    // Somebody may have asked for an earlier time meanwhile.
    this.dueAt = Math.min(this.dueAt, this.env.monotonic() + waitMs)
    this.arm()
  }
}
