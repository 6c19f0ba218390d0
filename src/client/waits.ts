/**
 * Waiting for the end of jobs. All waits of a connection share one poller, one timer and one listener, however many
 * they are. Called by job handles.
 */
import type { Timer } from '../core/env.js'
import { QueueError } from '../core/errors.js'
import type { QueueEvent } from '../observe/events.js'
import type { Connection } from '../storage/connection.js'
import type { JobView } from '../storage/storage.js'
import { need } from './need.js'
import { Signals } from './signals.js'

/** Ids in one look-up. */
const LOOKUP_MAX = 500
/** A job is looked up this soon at first, then ever more rarely: most waits are short, and long ones should cost little. */
const INTERVAL_MS_MIN = 20
const INTERVAL_MS_MAX = 1_000
const INTERVAL_GROWTH = 1.5

export interface Wait {
  /** By the monotonic clock. */
  deadline: number
  signal: AbortSignal | undefined
}

interface Waiter extends Wait {
  resolve(view: JobView): void
  reject(error: unknown): void
  /** Ends its hold on the signal. */
  release(): void
}

/** All that wait for one job. */
interface Watched {
  readonly id: string
  waiters: Waiter[]
  nextAt: number
  intervalMs: number
  /** An event told of its end since the last look-up began. */
  heard: boolean
}

export class Waits {
  private readonly watched = new Map<string, Watched>()
  private readonly signals = new Signals()
  private timer: Timer | undefined
  private timerAt = Number.POSITIVE_INFINITY
  private looking = false
  private stopListening: (() => void) | undefined
  /** Why the last look-up failed, for those who run out of time meanwhile. */
  private trouble: unknown

  constructor(private readonly connection: Connection) {}

  /** The job as it ended. Rejects with WAIT_TIMEOUT, JOB_NOT_FOUND, QUEUE_CLOSED or the signal's reason. */
  ended(id: string, wait: Wait): Promise<JobView> {
    need(this.connection.storage, 'inspect', 'waiting for a job')
    if (wait.signal?.aborted) return Promise.reject(wait.signal.reason)
    return new Promise((resolve, reject) => {
      const waiter: Waiter = { ...wait, resolve, reject, release: () => {} }
      if (wait.signal !== undefined) waiter.release = this.signals.on(wait.signal, () => this.leave(id, waiter))
      this.watch(id).waiters.push(waiter)
      this.arm(wait.deadline)
    })
  }

  close(): void {
    const error = new QueueError('QUEUE_CLOSED', 'the connection was closed while a job was waited for')
    for (const one of [...this.watched.values()]) this.end(one, (waiter) => waiter.reject(error))
  }

  private watch(id: string): Watched {
    this.stopListening ??= this.connection.events.on((event) => this.hear(event))
    let one = this.watched.get(id)
    if (one === undefined) {
      // Looked up at once: the job may have ended long ago.
      one = { id, waiters: [], nextAt: this.connection.env.monotonic(), intervalMs: INTERVAL_MS_MIN, heard: false }
      this.watched.set(id, one)
      this.arm(one.nextAt)
    }
    return one
  }

  /** A worker of this process tells of ends before any poll could. */
  private hear(event: QueueEvent): void {
    if (event.type !== 'job.completed' && event.type !== 'job.dead' && event.type !== 'job.cancelled') return
    const one = this.watched.get(event.jobId)
    if (one === undefined) return
    one.heard = true
    one.nextAt = this.connection.env.monotonic()
    if (!this.looking) this.arm(one.nextAt)
  }

  private leave(id: string, waiter: Waiter): void {
    const one = this.watched.get(id)
    if (one === undefined) return
    one.waiters = one.waiters.filter((other) => other !== waiter)
    waiter.release()
    waiter.reject(waiter.signal?.reason)
    if (one.waiters.length === 0) this.forget(one)
  }

  private end(one: Watched, tell: (waiter: Waiter) => void): void {
    this.forget(one)
    for (const waiter of one.waiters) {
      waiter.release()
      tell(waiter)
    }
  }

  private forget(one: Watched): void {
    this.watched.delete(one.id)
    if (this.watched.size > 0) return
    this.stopListening?.()
    this.stopListening = undefined
    this.timer?.cancel()
    this.timerAt = Number.POSITIVE_INFINITY
  }

  private arm(at: number): void {
    if (at >= this.timerAt) return
    const { env } = this.connection
    this.timer?.cancel()
    this.timerAt = at
    this.timer = env.timer(Math.max(0, at - env.monotonic()), () => this.tick())
  }

  private tick(): void {
    this.timerAt = Number.POSITIVE_INFINITY
    this.expire(this.connection.env.monotonic())
    if (!this.looking) void this.look()
    this.arm(this.nextAt())
  }

  /** One look-up after another: a slow store is not asked the more for being slow. */
  private async look(): Promise<void> {
    const now = this.connection.env.monotonic()
    const due = [...this.watched.values()].filter((one) => one.nextAt <= now)
    if (due.length === 0) return
    this.looking = true
    for (let start = 0; start < due.length; start += LOOKUP_MAX) await this.lookUp(due.slice(start, start + LOOKUP_MAX))
    this.looking = false
    this.arm(this.nextAt())
  }

  /** Deadlines count also while a look-up hangs. */
  private nextAt(): number {
    let next = Number.POSITIVE_INFINITY
    for (const one of this.watched.values()) {
      if (!this.looking) next = Math.min(next, one.nextAt)
      for (const waiter of one.waiters) next = Math.min(next, waiter.deadline)
    }
    return next
  }

  private expire(now: number): void {
    for (const one of [...this.watched.values()]) {
      const late = one.waiters.filter((waiter) => waiter.deadline <= now)
      if (late.length === 0) continue
      one.waiters = one.waiters.filter((waiter) => waiter.deadline > now)
      const error = new QueueError('WAIT_TIMEOUT', `job ${one.id} did not end within the time given`, {
        jobId: one.id,
        cause: this.trouble,
      })
      for (const waiter of late) {
        waiter.release()
        waiter.reject(error)
      }
      if (one.waiters.length === 0) this.forget(one)
    }
  }

  /** A look-up that fails is made again: the waits have their own bound. */
  private async lookUp(batch: Watched[]): Promise<void> {
    const { env, storage } = this.connection
    for (const one of batch) one.heard = false
    let views: (JobView | null | undefined)[] = []
    try {
      views = await need(storage, 'inspect', 'waiting for a job').get(batch.map((one) => one.id))
      this.trouble = undefined
    } catch (error) {
      this.trouble = error
    }
    batch.forEach((one, index) => {
      const view = views[index]
      // Left, and perhaps watched anew, while the look-up was under way.
      if (this.watched.get(one.id) !== one) return
      if (view !== undefined && this.decide(one, view)) return
      // Its end was told meanwhile; what the look-up saw is from before.
      if (one.heard) return
      one.nextAt = env.monotonic() + one.intervalMs
      one.intervalMs = Math.min(INTERVAL_MS_MAX, one.intervalMs * INTERVAL_GROWTH)
    })
  }

  private decide(one: Watched, view: JobView | null): boolean {
    if (view === null) {
      const reason = 'it was never committed, its record was pruned, or its kind keeps none'
      const error = new QueueError('JOB_NOT_FOUND', `job ${one.id} is not known: ${reason}`, { jobId: one.id })
      this.end(one, (waiter) => waiter.reject(error))
      return true
    }
    if (view.state !== 'completed' && view.state !== 'dead' && view.state !== 'cancelled') return false
    this.end(one, (waiter) => waiter.resolve(view))
    return true
  }
}
