/**
 * The line of single enqueues: those of one turn of the event loop, and those that come while the store is busy, share
 * a call. Each promise settles only after the commit of its own job. Called by the producer.
 */
import type { Env, Timer } from '../core/env.js'
import type { NewJob } from '../storage/storage.js'
import { NO_ANSWER, type Sent } from './outcome.js'
import type { Sender } from './sender.js'

export interface LineBounds {
  /** Calls in flight; while they are, further jobs gather. */
  callsMax: number
  /** Jobs in a call. */
  jobsMax: number
}

/** Payload bytes (UTF-16 units) in a call: a longer one holds up the others more than it saves. */
const CALL_UNITS_MAX = 4_194_304
/** What may wait in this process for callers that do not wait themselves: beyond it enqueues are refused at once. */
const WAITING_JOBS_MAX = 250_000
const WAITING_UNITS_MAX = 134_217_728

interface Entry {
  readonly job: NewJob
  /** By the monotonic clock. */
  readonly deadline: number
  /** Undefined once it was told an outcome. */
  resolve: ((sent: Sent) => void) | undefined
}

export class Line {
  private waiting: Entry[] = []
  private waitingUnits = 0
  private readonly flights = new Set<Entry[]>()
  private scheduled = false
  private sweepAt = Number.POSITIVE_INFINITY
  private sweeper: Timer | undefined
  private idleWaits: (() => void)[] = []

  constructor(
    private readonly env: Env,
    private readonly sender: Sender,
    private readonly bounds: LineBounds,
  ) {}

  /** Resolves with what became of the job, at the deadline at the latest. Never rejects. */
  add(job: NewJob, deadline: number): Promise<Sent> {
    const full = this.waiting.length >= WAITING_JOBS_MAX || this.waitingUnits + job.payload.length > WAITING_UNITS_MAX
    if (full) return Promise.resolve(LINE_FULL)
    return new Promise((resolve) => {
      this.waiting.push({ job, deadline, resolve })
      this.waitingUnits += job.payload.length
      if (deadline < this.sweepAt) this.armSweep(deadline)
      this.schedule()
    })
  }

  /** Resolves when every job was told its outcome. */
  idle(): Promise<void> {
    if (this.isIdle()) return Promise.resolve()
    return new Promise((resolve) => this.idleWaits.push(resolve))
  }

  private isIdle(): boolean {
    return this.waiting.length === 0 && [...this.flights].every((entries) => entries.every(isTold))
  }

  private schedule(): void {
    if (this.scheduled || this.flights.size >= this.bounds.callsMax) return
    this.scheduled = true
    this.env.soon(() => {
      this.scheduled = false
      while (this.waiting.length > 0 && this.flights.size < this.bounds.callsMax) void this.fly(this.take())
    })
  }

  /** As many of those who wait, first come first, as one call takes. */
  private take(): Entry[] {
    let units = 0
    let end = 0
    while (end < this.waiting.length && end < this.bounds.jobsMax) {
      units += this.waiting[end]!.job.payload.length
      if (units > CALL_UNITS_MAX && end > 0) break
      end++
    }
    const entries = this.waiting.slice(0, end)
    this.waiting = end === this.waiting.length ? [] : this.waiting.slice(end)
    for (const { job } of entries) this.waitingUnits -= job.payload.length
    return entries
  }

  private async fly(entries: Entry[]): Promise<void> {
    this.flights.add(entries)
    const sent = await this.sender.send(entries.map((entry) => entry.job))
    this.flights.delete(entries)
    for (let index = 0; index < entries.length; index++) settle(entries[index]!, sent[index]!)
    if (this.waiting.length > 0) this.schedule()
    else this.rest()
  }

  // Deadlines: one timer for all, set to the earliest. Nobody is told "not sent" and then sent.

  private armSweep(at: number): void {
    this.sweeper?.cancel()
    this.sweepAt = at
    this.sweeper = this.env.timer(Math.max(0, at - this.env.monotonic()), () => this.sweep())
  }

  private sweep(): void {
    this.sweepAt = Number.POSITIVE_INFINITY
    const now = this.env.monotonic()
    const late = (entry: Entry): boolean => entry.deadline <= now
    for (const entry of this.waiting.filter(late)) {
      this.waitingUnits -= entry.job.payload.length
      settle(entry, NEVER_SENT)
    }
    this.waiting = this.waiting.filter((entry) => !isTold(entry))
    const flying = [...this.flights].flat()
    for (const entry of flying.filter(late)) settle(entry, NO_ANSWER)
    const open = [...this.waiting, ...flying.filter((entry) => !isTold(entry))]
    const next = open.reduce((earliest, { deadline }) => Math.min(earliest, deadline), Number.POSITIVE_INFINITY)
    if (next < Number.POSITIVE_INFINITY) this.armSweep(next)
    else this.rest()
  }

  /** Nothing waits: without its timer the line holds no process open. */
  private rest(): void {
    if (!this.isIdle()) return
    this.sweeper?.cancel()
    this.sweepAt = Number.POSITIVE_INFINITY
    const waits = this.idleWaits
    this.idleWaits = []
    for (const resolve of waits) resolve()
  }
}

function isTold(entry: Entry): boolean {
  return entry.resolve === undefined
}

function settle(entry: Entry, sent: Sent): void {
  entry.resolve?.(sent)
  entry.resolve = undefined
}

const LINE_FULL: Sent = Object.freeze({
  status: 'unsent',
  reason: 'too many enqueues wait for the store already; await them, or use enqueueMany, which goes by batches',
})
const NEVER_SENT: Sent = Object.freeze({
  status: 'unsent',
  reason: 'the store did not take it within the storeTimeout',
})
