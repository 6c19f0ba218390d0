/**
 * Beats as a thread of the process sends them: they go on while its main loop is blocked, and say for how long that has
 * not answered. The main loop's own beats pass through here, so that the numbers of both rise together. Made by links.
 */
import type { Timer } from '../../core/env.js'
import type { Beat, BeatAnswer } from '../../storage/storage.js'
import type { VirtualTime } from '../virtual-time.js'
import type { Process } from './process.js'

export interface BeatThreadParts {
  readonly process: Process
  readonly time: VirtualTime
  /** Over the line, with all its faults. */
  readonly send: (beat: Beat) => Promise<BeatAnswer>
}

export class BeatThread {
  /** What the main loop said last, and when: confirmed or not, as the thread hears it before the store does. */
  private last: { beat: Beat; takenAt: number } | undefined
  /** Beats of the thread's own under this identity. */
  private extra = 0
  private worker = ''
  private timer: Timer | undefined

  constructor(private readonly parts: BeatThreadParts) {}

  /** A beat of the main loop. */
  async beat(beat: Beat): Promise<BeatAnswer> {
    if (beat.worker !== this.worker) this.begin(beat.worker)
    const said = { beat, takenAt: this.parts.time.monotonic() }
    if (this.last !== undefined) this.last = said
    const answer = await this.parts.send({ ...beat, n: beat.n + this.extra })
    // Before the first one is confirmed there is nothing to go on with.
    if (answer.status === 'ok' && beat.worker === this.worker) {
      this.last ??= said
      this.arm(beat.info.beatMs)
    }
    return answer
  }

  /** The worker has said good bye. */
  stop(): void {
    this.timer?.cancel()
    this.last = undefined
  }

  private begin(worker: string): void {
    this.stop()
    this.worker = worker
    this.extra = 0
  }

  private arm(beatMs: number): void {
    this.timer?.cancel()
    this.timer = this.parts.time.timer(beatMs, () => this.look(beatMs))
  }

  /** Only while the main loop is silent: else it beats itself. */
  private look(beatMs: number): void {
    const { process, time } = this.parts
    if (!process.alive || this.last === undefined) return
    this.arm(beatMs)
    if (!process.blocked) return
    const { beat, takenAt } = this.last
    this.extra += 1
    const mainLagMs = time.monotonic() - takenAt
    // What comes of it the main loop learns by its own next one.
    this.parts.send({ ...beat, n: beat.n + this.extra, mainLagMs }).catch(() => {})
  }
}
