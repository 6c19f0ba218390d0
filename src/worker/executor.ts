/**
 * Runs jobs in slots: parse, handler, time limit, outcome. Given jobs by the fetcher; what they come to goes to
 * endings.ts. A slot is free when its handler's code has really ended, whatever was decided about the job before.
 */
import type { Env } from '../core/env.js'
import type { BoundHandler, StopReason } from '../core/handler.js'
import { attemptNumber } from '../core/job.js'
import type { Paces } from '../core/prefetch.js'
import type { Outcome } from '../core/settlement.js'
import type { EventBus } from '../observe/events.js'
import { JobContext, stopHandler } from './context.js'
import { Deadlines } from './deadlines.js'
import type { Endings } from './endings.js'
import type { HeldJob, Holdings } from './holdings.js'
import { type Ran, returned, threw, timedOut } from './outcome.js'
import type { Answer } from './settle-all.js'
import type { Settler } from './settler.js'
import type { Stats } from './stats.js'
import { tellStarted } from './telling.js'

/**
 * A handler that goes on for so long after its attempt was ended counts as stuck. Not at once: when a service hangs,
 * all handlers time out together, and the good ones need a moment to clean up.
 */
export const STUCK_AFTER_MS = 5_000
/** Until a job comes again whose earlier attempt still runs here; any other worker may take it then. */
const AGAIN_MS = 2_000

export interface ExecutorParts {
  readonly env: Env
  readonly events: EventBus
  readonly handlers: ReadonlyMap<string, BoundHandler>
  readonly holdings: Holdings
  readonly settler: Settler
  readonly endings: Endings
  readonly paces: Paces
  readonly stats: Stats
  /** Whether the leases are surely this worker's at that moment of the local clock. */
  readonly surelyHeld: (now: number) => boolean
  /** A slot is free again. */
  readonly onFree: () => void
}

/** A handler whose attempt was ended before its code did. */
interface Leftover {
  since: number
  told: boolean
}

export class Executor {
  /** Slots taken. */
  busy = 0
  /** Handlers that did not end at once, in the order of their starts. */
  private readonly running = new Set<HeldJob>()
  private readonly leftovers = new Map<HeldJob, Leftover>()
  private readonly deadlines: Deadlines

  constructor(private readonly parts: ExecutorParts) {
    this.deadlines = new Deadlines(parts.env, (now) => this.endOverdue(now))
  }

  /** Slots whose code runs on although its attempt has ended. */
  get left(): number {
    return this.leftovers.size
  }

  /** Attempts that are not decided yet. */
  get undecided(): number {
    return this.busy - this.leftovers.size
  }

  /** Takes a slot and starts the job; `now` by the local clock. */
  run(held: HeldJob, now: number): void {
    this.busy += 1
    const { job, lease } = held
    if (this.leftovers.size > 0 && this.stillRuns(job.id)) this.postpone(held)
    else if (hasExpired(held, now)) this.endUnstarted(held, { type: 'expired' })
    else if (lease.alone || job.spec.delivery === 'at-most-once') this.reportStart(held)
    else this.begin(held, now)
  }

  /** Slots that have been busy with one job for longer than `ms`. */
  slowSlots(ms: number, now: number): number {
    let slow = 0
    for (const held of this.running) {
      if (held.startedAt < 0) continue
      if (now - held.startedAt <= ms) break
      slow += 1
    }
    return slow
  }

  /** Somebody wants it to end: its signal fires, and what it does then decides. */
  cancel(held: HeldJob): void {
    stopHandler(held, 'CANCELLED')
  }

  /** The lease is not ours any more. */
  lose(held: HeldJob): void {
    this.parts.endings.lose(held)
    this.leave(held)
    stopHandler(held, 'LEASE_LOST')
  }

  /** Fires the signals of all that run. Answers how many had not been stopped before. */
  stopAll(reason: StopReason): number {
    let stopped = 0
    for (const held of this.running) {
      if (held.state === 'ended' || held.stop !== undefined) continue
      stopHandler(held, reason)
      stopped += 1
    }
    return stopped
  }

  /** Ends every attempt that still runs, without cost; the code may go on. */
  abandonAll(note: string): void {
    const now = this.parts.env.monotonic()
    for (const held of this.running) {
      if (held.state === 'starting') this.parts.endings.end(held, { type: 'given back', note })
      else if (held.state === 'running') this.parts.endings.abandon(held, note, now - held.startedAt)
      else continue
      this.leave(held)
    }
  }

  /** Tells of handlers that do not end. Answers how many there are. */
  stuck(concurrency: number): number {
    const now = this.parts.env.monotonic()
    let stuck = 0
    for (const [held, left] of this.leftovers) {
      if (now - left.since < STUCK_AFTER_MS) continue
      stuck += 1
      if (left.told) continue
      left.told = true
      const { id, kind } = held.job
      this.parts.events.emit({
        type: 'worker.slot stuck',
        worker: held.lease.worker,
        jobId: id,
        kind,
        stuck,
        concurrency,
      })
    }
    return stuck
  }

  stop(): void {
    this.deadlines.stop()
  }

  private begin(held: HeldJob, now: number): void {
    const { parts } = this
    const { job } = held
    const handler = parts.handlers.get(job.kind)!
    held.state = 'running'
    held.startedAt = now
    parts.stats.started += 1
    if (parts.events.active) tellStarted(parts.events, held)
    let value: unknown
    let lasting: boolean
    try {
      value = start(handler, held, parts.events)
      lasting = isThenable(value)
    } catch (error) {
      this.ended(held, threw, error)
      return
    }
    if (lasting) this.wait(held, value as PromiseLike<unknown>, now)
    else this.ended(held, returned, value)
  }

  private wait(held: HeldJob, value: PromiseLike<unknown>, now: number): void {
    this.running.add(held)
    this.deadlines.watch(now + held.job.spec.timeoutMs, now)
    // Promise.resolve: a thenable of the user's own may call back twice, or throw.
    Promise.resolve(value).then(
      (result) => this.ended(held, returned, result),
      (error) => this.ended(held, threw, error),
    )
  }

  /** The handler's code has ended. Where the attempt was ended before, that changes nothing but the slot. */
  private ended(held: HeldJob, judge: (ran: Ran, value: unknown) => Outcome, value: unknown): void {
    const ranMs = this.parts.env.monotonic() - held.startedAt
    this.parts.paces.ran(held.job.kind, ranMs)
    if (held.state === 'running') this.parts.endings.end(held, judge(this.ran(held, ranMs), value))
    this.release(held)
  }

  /** Before the handler starts the store has to know that it does: then a crash is not followed by a second start. */
  private reportStart(held: HeldJob): void {
    held.state = 'starting'
    this.running.add(held)
    const settlement = { fence: held.lease.fence, ordinal: held.ordinal, to: 'started' } as const
    this.parts.settler.add({
      settlement,
      urgent: true,
      answered: (answer) => this.startReported(held, answer),
      instead: () => settlement,
    })
  }

  private startReported(held: HeldJob, answer: Answer): void {
    const now = this.parts.env.monotonic()
    this.running.delete(held)
    if (held.state === 'ended') this.release(held)
    else if (answer === 'lost' || answer === 'refused') {
      this.parts.endings.lose(held)
      this.parts.holdings.close(held.lease)
      this.release(held)
    } else if (held.stop === 'CANCELLED') this.endUnstarted(held, { type: 'cancelled' })
    else if (held.stop !== undefined || !this.parts.surelyHeld(now))
      this.endUnstarted(held, { type: 'given back', note: 'the worker was not sure of its lease' })
    else this.begin(held, now)
  }

  private endUnstarted(held: HeldJob, outcome: Outcome): void {
    this.parts.endings.end(held, outcome)
    this.release(held)
  }

  private endOverdue(now: number): number {
    let next = Number.POSITIVE_INFINITY
    for (const held of this.running) {
      if (held.state !== 'running') continue
      const deadline = held.startedAt + held.job.spec.timeoutMs
      if (deadline > now) {
        next = Math.min(next, deadline)
        continue
      }
      this.parts.endings.end(held, timedOut(this.ran(held, now - held.startedAt)))
      this.leave(held)
      stopHandler(held, 'TIMEOUT')
    }
    return next
  }

  private postpone(held: HeldJob): void {
    this.parts.endings.postpone(held, 'the code of an earlier attempt of it still runs here', AGAIN_MS)
    this.release(held)
  }

  /** Two attempts of one job side by side in one process would step on each other's memory. */
  private stillRuns(id: string): boolean {
    for (const held of this.leftovers.keys()) if (held.job.id === id) return true
    return false
  }

  /** Its attempt has ended, its code has not. */
  private leave(held: HeldJob): void {
    if (this.running.has(held)) this.leftovers.set(held, { since: this.parts.env.monotonic(), told: false })
  }

  private release(held: HeldJob): void {
    this.running.delete(held)
    this.leftovers.delete(held)
    this.busy -= 1
    this.parts.onFree()
  }

  private ran({ job, stop }: HeldJob, ranMs: number): Ran {
    const handler = this.parts.handlers.get(job.kind)!
    return { handler, spec: job.spec, attempt: attemptNumber(job.history), stop, ranMs }
  }
}

function start(handler: BoundHandler, held: HeldJob, events: EventBus): unknown {
  const context = new JobContext(held, events)
  const payload = handler.parse(held.job.payload)
  if (!isThenable(payload)) return handler.run(payload, context)
  // A parse that outlasts the attempt starts nothing any more.
  return payload.then((parsed) => (held.state === 'running' ? handler.run(parsed, context) : undefined))
}

/**
 * By the store's clock when it answered. The time left that the answer tells is of the first time that the claim was
 * made: asked again, as its answers were lost, it may have come much later.
 */
function hasExpired({ job, lease }: HeldJob, now: number): boolean {
  const { expiresInMs, spec, enqueuedAt } = job
  if (expiresInMs === null || spec.expiresInMs === undefined) return false
  const leftMs = Math.min(expiresInMs, enqueuedAt + spec.expiresInMs - lease.storeNowMs)
  return now - lease.claimedAt >= leftMs
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}
