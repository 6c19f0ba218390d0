/** Whether it is time to ask the store for jobs: at once while there are, else by hints and polls. Kept by the fetcher. */
import type { Env, Timer } from '../core/env.js'
import { FIRST_POLL_MS, FIRST_POLL_MS_WITH_HINTS, pollDelayMs } from '../core/polling.js'

/** Without hints from the store polling alone finds new work. */
export const POLL_MS_WITHOUT_HINTS = 1_000

/** Claims for tokens come no faster; what comes in meanwhile is taken together. */
const TOKEN_MS_MIN = 10
const TOKEN_JITTER = 0.1

export class Polls {
  /** Something may have come since the last claim was sent. */
  hinted = false
  /** The store tells when work comes: it did, and no poll has found since what no hint told of. */
  private hintsWork = false
  /** The last claim got less than it asked for. */
  private drained = false
  private empties = 0
  /** The claim that is due or under way comes from the poll alone. */
  private polled = false
  private timer: Timer | undefined

  constructor(
    private readonly env: Env,
    private readonly pollMs: number,
    private readonly onDue: () => void,
  ) {}

  /** Whether to wait for a hint or the poll before the next claim. */
  get rests(): boolean {
    return this.drained && !this.hinted
  }

  /** There may be work. From the store, the hint shows that its hints arrive. */
  hint(from: 'store' | 'here'): void {
    if (from === 'store') this.hintsWork = true
    this.polled = false
    if (this.hinted) return
    this.hinted = true
    this.empties = 0
    // Many hints of one turn make one claim.
    if (this.drained) this.env.soon(this.onDue)
  }

  /** Hints from the store come no longer; some may have been missed already. */
  deaf(): void {
    this.hintsWork = false
    this.hint('here')
  }

  /** A claim was sent. */
  sent(): void {
    this.hinted = false
  }

  /**
   * A claim was answered: `more` when there may be more. If it got nothing all the same, others are at it: a moment later.
   * `tokenMs`: until a rate lets the next job start.
   */
  answered(got: number, more: boolean, tokenMs: number | null = null): void {
    this.stop()
    if (got > 0 && this.polled) this.hintsWork = false
    this.polled = false
    this.drained = !(more && got > 0)
    if (!this.drained) return
    this.empties = got > 0 || more ? 1 : this.empties + 1
    const maxMs = this.hintsWork ? this.pollMs : Math.min(this.pollMs, POLL_MS_WITHOUT_HINTS)
    // Where hints come a poll would mostly stand in their way.
    const minMs = this.hintsWork && !more ? FIRST_POLL_MS_WITH_HINTS : FIRST_POLL_MS
    const pollMs = pollDelayMs(this.empties, minMs, maxMs, this.env.random())
    // Others wait for the same token: not all at one instant.
    const forTokenMs =
      tokenMs === null ? pollMs : Math.max(TOKEN_MS_MIN, tokenMs) * (1 + TOKEN_JITTER * this.env.random())
    const waitMs = Math.min(pollMs, forTokenMs)
    this.timer = this.env.timer(waitMs, () => {
      this.drained = false
      // After a short wait the poll may just have been quicker than the hint.
      this.polled = !this.hinted && waitMs > POLL_MS_WITHOUT_HINTS / 2
      this.onDue()
    })
  }

  /** What was learnt about the queues is forgotten: there is a new identity. */
  reset(): void {
    this.drained = false
  }

  stop(): void {
    this.timer?.cancel()
  }
}
