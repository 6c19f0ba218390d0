/**
 * Sends beats in time: one each interval, sooner after a failure. Runs in the heartbeat's own thread, or on the main
 * loop where the store cannot be reached from a thread. Called by heartbeat-thread.ts and inline-beats.ts.
 */
import type { Env, Timer } from '../core/env.js'
import type { Beat, BeatAnswer } from '../storage/storage.js'

/** What the main loop knew at one moment. `takenAt` is its own clock, and only it reads that. */
export type Snapshot = Omit<Beat, 'n' | 'mainLagMs'> & { takenAt: number }

/** What became of a beat. */
export type Told =
  | { type: 'answered'; worker: string; n: number; takenAt: number; answer: BeatAnswer }
  | { type: 'failed'; error: unknown }

/** Where a loop goes on that replaces one that died: numbers that the dead one may have sent have to be behind it. */
export interface Resume {
  worker: string
  n: number
}

export interface BeatLoopParts {
  readonly env: Env
  readonly beatMs: number
  /** The newest snapshot that can be had in bounded time, and for how long the main loop has been silent. */
  readonly snapshot: () => Promise<{ snapshot: Snapshot; mainLagMs: number } | null>
  readonly send: (beat: Beat) => Promise<BeatAnswer>
  readonly tell: (told: Told) => void
  readonly resume?: Resume
}

/** Of the interval, after a failure: it has to be tried again before the next beat would be due. */
export const RETRY_PART = 2 / 3
const STALE_STEP = 1_000

export class BeatLoop {
  /** Until the next beat. */
  private pause: Timer | undefined
  /** Until the beat under way is given up. */
  private patience: Timer | undefined
  private stopped = false
  private turning = false
  private again = false
  private worker: string
  private n: number
  private registered: boolean

  constructor(private readonly parts: BeatLoopParts) {
    this.worker = parts.resume?.worker ?? ''
    this.n = parts.resume?.n ?? 0
    this.registered = parts.resume !== undefined
  }

  /** Beats at once, and from then on at each interval. While it is running: a beat out of turn. */
  now(): void {
    if (this.stopped) return
    this.again = this.turning
    if (this.turning) return
    this.pause?.cancel()
    void this.turn()
  }

  /** No beat begins after it; what becomes of one that is under way is not told. */
  stop(): void {
    this.stopped = true
    this.pause?.cancel()
    this.patience?.cancel()
  }

  private async turn(): Promise<void> {
    this.turning = true
    const startedAt = this.parts.env.monotonic()
    const answered = await this.beat().catch((error: unknown) => this.failed(error))
    this.turning = false
    if (this.stopped) return
    const intervalMs = answered ? this.parts.beatMs : this.parts.beatMs * RETRY_PART
    const waitMs = this.again ? 0 : startedAt + intervalMs - this.parts.env.monotonic()
    this.again = false
    this.pause = this.parts.env.timer(Math.max(0, waitMs), () => void this.turn())
  }

  private async beat(): Promise<boolean> {
    const known = await this.parts.snapshot()
    if (known === null || this.stopped) return false
    const { takenAt, ...snapshot } = known.snapshot
    const beat: Beat = { ...snapshot, n: this.number(snapshot.worker), mainLagMs: known.mainLagMs }
    const answer = this.parts.send(beat).then(
      (answer) => this.answered(beat, takenAt, answer),
      (error) => this.failed(error),
    )
    return new Promise((resolve) => {
      // Beyond one interval nobody waits for it; should it be answered later all the same, that is told too.
      const late = (): void => resolve(this.failed(new Error('the store did not answer a beat in time')))
      const patience = this.parts.env.timer(this.parts.beatMs, late)
      this.patience = patience
      void answer.then((answered) => {
        patience.cancel()
        resolve(answered)
      })
    })
  }

  /** Rises with each beat of a worker. Until its first one is answered it stays the first: that one registers it. */
  private number(worker: string): number {
    if (worker !== this.worker) {
      this.worker = worker
      this.registered = false
    }
    this.n = this.registered ? this.n + 1 : 1
    return this.n
  }

  private answered(beat: Beat, takenAt: number, answer: BeatAnswer): boolean {
    if (this.stopped) return true
    if (beat.worker === this.worker) this.registered = true
    // The store has seen larger numbers than this loop knows of: a loop before it sent them.
    if (answer.status === 'stale' && beat.n === this.n) this.n += STALE_STEP
    this.parts.tell({ type: 'answered', worker: beat.worker, n: beat.n, takenAt, answer })
    return true
  }

  private failed(error: unknown): boolean {
    if (!this.stopped) this.parts.tell({ type: 'failed', error })
    return false
  }
}
