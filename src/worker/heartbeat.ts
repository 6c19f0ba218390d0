/**
 * Whether the leases are still ours: beats name them, answers take them away, silence makes them doubtful. The only
 * judge of time here is the last snapshot that the store confirmed. Wired by session.ts.
 */
import type { Env } from '../core/env.js'
import type { BeatAnswer, Storage, WorkerInfo } from '../storage/storage.js'
import { RETRY_PART, type Resume, type Snapshot, type Told } from './beat-loop.js'
import { type Beats, type BeatsParts, inlineBeats } from './beats.js'
import type { Holdings } from './holdings.js'
import type { StoreCalls } from './store-calls.js'
import { ThreadBeats } from './thread-beats.js'

/** Who this worker is to the store. It changes when the store has written the worker off. */
export interface Identity {
  worker: string
  /** The last claim request whose answer was read or given up. */
  known: number
}

export interface HeartbeatParts {
  readonly env: Env
  readonly storage: Storage
  readonly calls: StoreCalls
  readonly holdings: Holdings
  readonly identity: Identity
  readonly info: WorkerInfo
  /** Slots taken now. */
  readonly busy: () => number
  /** Beats of the present identity that were answered `ok`. */
  readonly onAnswer: (answer: BeatAnswer) => void
  /** The store has written the present identity off. */
  readonly onGone: () => void
}

/** A thread that replaces a dead one leaves room for the beats that the dead one sent and nobody heard of. */
const RESUME_GAP = 1_000

export class Heartbeat {
  /** By the local clock: when the newest snapshot that the store confirmed was taken. */
  confirmedAt = Number.NEGATIVE_INFINITY
  private confirmed: Resume | undefined
  private readonly beats: Beats

  constructor(private readonly parts: HeartbeatParts) {
    const beatsParts: BeatsParts = {
      env: parts.env,
      storage: parts.storage,
      beatMs: parts.info.beatMs,
      snapshot: () => this.snapshot(),
      tell: (told) => this.told(told),
      resume: () => this.confirmed && { ...this.confirmed, n: this.confirmed.n + RESUME_GAP },
    }
    const { beatSource } = parts.storage
    this.beats = beatSource ? new ThreadBeats(beatsParts, beatSource) : inlineBeats(beatsParts)
  }

  /** Whether the store knows this worker under its present identity. */
  get registered(): boolean {
    return this.confirmed?.worker === this.parts.identity.worker
  }

  get sinceConfirmedMs(): number {
    return this.parts.env.monotonic() - this.confirmedAt
  }

  /**
   * Nobody can have taken the leases over: less than a lease has passed since a moment at which this main loop was
   * surely alive to the store. Asked before each start, so a loop that was blocked or frozen starts nothing stale.
   */
  surelyHeld(now: number): boolean {
    return now - this.confirmedAt < this.parts.info.leaseMs
  }

  start(): void {
    this.beats.start()
  }

  /** Beats out of turn: there is a new identity. */
  now(): void {
    this.confirmedAt = Number.NEGATIVE_INFINITY
    this.beats.now()
  }

  stop(): Promise<void> {
    return this.beats.stop()
  }

  private snapshot(): Snapshot {
    const { env, identity, holdings, info, busy } = this.parts
    const takenAt = env.monotonic()
    return { ...identity, ...holdings.named(takenAt), info: { ...info, busy: busy() }, takenAt }
  }

  private told(told: Told): void {
    if (told.type === 'failed') {
      this.parts.calls.failed('beat', told.error, this.parts.info.beatMs * RETRY_PART)
      return
    }
    this.parts.calls.succeeded('beat')
    if (told.worker !== this.parts.identity.worker || told.answer.status === 'stale') return
    if (told.answer.status === 'gone') {
      this.parts.onGone()
      return
    }
    this.confirmedAt = Math.max(this.confirmedAt, told.takenAt)
    this.confirmed = { worker: told.worker, n: Math.max(told.n, this.registered ? this.confirmed!.n : 0) }
    this.parts.onAnswer(told.answer)
  }
}
