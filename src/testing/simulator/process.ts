/**
 * A process of the simulated world: an Env of its own over the one virtual time. Its wall clock may jump, its event loop
 * may be blocked (then all that comes to it waits), it may be killed (then nothing of it ever runs again).
 */
import { type Env, sleepOn, type Timer } from '../../core/env.js'
import type { VirtualTime } from '../virtual-time.js'
import type { Draws } from './draws.js'
import type { Trace } from './trace.js'

export interface ProcessParts {
  readonly time: VirtualTime
  readonly draws: Draws
  readonly trace: Trace
  /** Called once, when it was killed or has ended. */
  readonly onGone: (process: Process) => void
}

export class Process implements Env {
  alive = true
  /** How far its wall clock is off. */
  skewMs = 0
  /** A second crash while its suspect runs alone would quarantine a job that is as good as any: no fault may cause that. */
  spared = false
  /** Why, when it was killed. */
  killedBy: string | undefined
  private blockedUntil = 0
  private ids = 0
  private readonly timers = new Set<Timer>()

  constructor(
    /** Its name in the trace; unique in the world. */
    readonly name: string,
    /** A number of its own, for its ids. */
    private readonly number: number,
    private readonly parts: ProcessParts,
  ) {}

  now(): number {
    return this.parts.time.now() + this.skewMs
  }

  monotonic(): number {
    return this.parts.time.monotonic()
  }

  random(): number {
    return this.parts.draws.fraction()
  }

  /** Of the form of a UUIDv7, by its own wrong clock, and its own for ever. */
  id(): string {
    const time = hex(Math.max(0, Math.floor(this.now())), 12)
    const count = hex(++this.ids, 6)
    const own = hex(this.number, 5)
    const chance = hex(Math.floor(this.random() * 2 ** 28), 7)
    return `${time.slice(0, 8)}-${time.slice(8)}-7${count.slice(0, 3)}-8${count.slice(3)}-${own}${chance}`
  }

  timer(ms: number, run: () => void): Timer {
    const timer = this.arm(ms, () => {
      this.timers.delete(timer)
      run()
    })
    const counted: Timer = {
      cancel: () => {
        timer.cancel()
        this.timers.delete(timer)
      },
    }
    this.timers.add(timer)
    return counted
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepOn((after, run) => this.timer(after, run), ms, signal)
  }

  /** As a handler's own code sleeps: nobody but that code ends it, so it is not counted as left over. */
  rest(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepOn((after, run) => this.arm(after, run), ms, signal)
  }

  soon(run: () => void): void {
    this.parts.time.soon(() => this.reach(run))
  }

  /** Something reaches the process from outside: an answer, a hint. */
  reach(run: () => void): void {
    if (!this.alive) return
    if (this.blocked) this.arm(0, run)
    else run()
  }

  get blocked(): boolean {
    return this.blockedUntil > this.monotonic()
  }

  /** Timers that wait. */
  get pending(): number {
    return this.timers.size
  }

  /** The event loop does nothing for so long; what comes meanwhile waits. */
  block(ms: number): void {
    if (!this.alive || this.spared) return
    this.parts.trace.add(this.name, `is blocked for ${ms.toFixed(0)} ms`)
    this.blockedUntil = Math.max(this.blockedUntil, this.monotonic() + ms)
  }

  /** False where it was spared, or is gone already. */
  kill(why: string): boolean {
    if (!this.alive || this.spared) return false
    this.die(why)
    return true
  }

  /** It ends as it should; whatever timers it has left are nobody's. */
  end(): void {
    if (this.alive) this.leave()
  }

  /** A job may kill whatever runs it, spared or not. */
  die(why: string): void {
    if (!this.alive) return
    this.killedBy = why
    this.leave()
  }

  private leave(): void {
    this.alive = false
    for (const timer of [...this.timers]) timer.cancel()
    this.parts.onGone(this)
  }

  /** Due while the event loop is blocked it runs when that is over; those of a dead process never do. */
  private arm(ms: number, run: () => void): Timer {
    let inner = this.parts.time.timer(ms, () => {
      const blockedMs = this.blockedUntil - this.monotonic()
      if (!this.alive) return
      if (blockedMs > 0) inner = this.arm(blockedMs, run)
      else run()
    })
    return { cancel: () => inner.cancel() }
  }
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0').slice(-digits)
}
