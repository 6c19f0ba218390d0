/**
 * The bounded buffer of settlements. They ride on the next claim, or go by calls of their own when none comes soon; a
 * store that is away delays them and loses none. Fed by endings.ts and the executor, emptied by the fetcher too.
 */
import type { Env, Timer } from '../core/env.js'
import type { SettleAnswer, Settlement, Storage } from '../storage/storage.js'
import { type Answer, type Settling, settleAll } from './settle-all.js'
import type { StoreCalls } from './store-calls.js'

/** One round trip; more would only delay the first ones of the next. */
export const SETTLE_BATCH_MAX = 500
/** So many go at once, beside the claim under way: two connections of the store work then, where riding kept one busy. */
const SEND_AT = 200
/** Beyond this many unconfirmed outcomes no job starts: a store that cannot keep up slows the worker, not its memory. */
export const UNCONFIRMED_MAX = 5_000
/** Beside the claim, which takes some along. A second call made more of them and did not raise the rate. */
const IN_FLIGHT_MAX = 1
/** Jobs that stores put into one lease at most: with so many of one, nothing of it is outstanding. */
const LEASE_JOBS_MAX = 100
/** Fresh outcomes share the batch with these. */
const REFUSED_BATCH_MAX = 100
/** How long the first outcome waits for others when no claim is under way. */
const LINGER_MS = 5
/** The start of an at-most-once job is waited for by its slot. */
const LINGER_URGENT_MS = 2
/** While a claim is under way the next one will take outcomes along: a longer wait saves a round trip. */
const LINGER_RIDE_MS = 25

export interface Outgoing extends Settling {
  readonly urgent: boolean
  /** The store's answer, and what was settled instead if it refused the settlement. Called once. */
  answered(answer: Answer, instead?: Settlement): void
}

export interface SettlerParts {
  readonly env: Env
  readonly storage: Storage
  readonly calls: StoreCalls
  /** Outcomes were confirmed after the buffer had been full. */
  readonly onRoom: () => void
  /** The store can never be asked again. */
  readonly onFatal: (error: unknown) => void
}

export class Settler {
  /** Whether a claim is in flight. Set by the fetcher. */
  riding = false
  private waiting: Outgoing[] = []
  /** Refused while nothing else was stored. They go first in later batches, whose others tell whose fault it is. */
  private readonly refused: Outgoing[] = []
  private unconfirmed = 0
  private inFlight = 0
  private firstAt = 0
  private timer: Timer | undefined
  private timerUrgent = false
  private flushing = false
  private readonly emptied: (() => void)[] = []

  constructor(private readonly parts: SettlerParts) {}

  get full(): boolean {
    return this.unconfirmed >= UNCONFIRMED_MAX
  }

  /** Outcomes not confirmed by the store: waiting or under way. */
  get size(): number {
    return this.unconfirmed
  }

  add(outgoing: Outgoing): void {
    this.unconfirmed += 1
    if (this.waiting.push(outgoing) === 1) this.firstAt = this.parts.env.monotonic()
    if (this.flushing) this.send()
    else if (this.waiting.length >= SEND_AT) this.sendLeases()
    else if (!this.timer || (outgoing.urgent && !this.timerUrgent)) this.arm(outgoing.urgent)
  }

  /** For a claim to take along: the oldest ones, at most a batch. The caller answers or puts back. */
  take(): Outgoing[] {
    // Those that come after a refused one tell whether the store is well: they go with it.
    return this.refused.length > 0 ? [] : this.ofWholeLeases()
  }

  /**
   * The oldest ones without those of the last lease, some of whose jobs may still run: two calls that settle one lease
   * wait for each other's commit, and write its row twice.
   */
  private ofWholeLeases(): Outgoing[] {
    if (this.waiting.length < SEND_AT / 2) return this.oldest()
    const { fence } = this.waiting.at(-1)!.settlement
    let end = this.waiting.length
    while (end > 0 && this.waiting[end - 1]!.settlement.fence === fence) end -= 1
    const isWhole = end === 0 || this.waiting.length - end >= LEASE_JOBS_MAX
    return isWhole ? this.oldest() : this.waiting.splice(0, Math.min(end, SETTLE_BATCH_MAX))
  }

  private oldest(): Outgoing[] {
    if (this.waiting.length <= SETTLE_BATCH_MAX) {
      const all = this.waiting
      this.waiting = []
      return all
    }
    return this.waiting.splice(0, SETTLE_BATCH_MAX)
  }

  /** A claim delivered what it took along. */
  answer(batch: readonly Outgoing[], answers: readonly SettleAnswer[]): void {
    for (let i = 0; i < batch.length; i++) batch[i]!.answered(answers[i]!)
    this.confirmed(batch.length)
  }

  private confirmed(count: number): void {
    const wasFull = this.full
    this.unconfirmed -= count
    if (wasFull && !this.full) this.parts.onRoom()
    if (this.unconfirmed === 0) for (const resolve of this.emptied.splice(0)) resolve()
  }

  /** What a claim took along and did not deliver. */
  putBack(batch: readonly Outgoing[]): void {
    if (batch.length === 0) return
    this.waiting = [...batch, ...this.waiting]
    this.send()
  }

  /** From now on every outcome goes at once. Resolves when all are confirmed; waits for ever while the store is away. */
  flush(): Promise<void> {
    this.flushing = true
    this.send()
    if (this.unconfirmed === 0) return Promise.resolve()
    return new Promise((resolve) => this.emptied.push(resolve))
  }

  /** Drops the timer; what is still unconfirmed is left to the end of its lease. */
  stop(): void {
    this.timer?.cancel()
    this.timer = undefined
  }

  private arm(urgent: boolean): void {
    this.timer?.cancel()
    this.timerUrgent = urgent
    this.timer = this.parts.env.timer(urgent ? LINGER_URGENT_MS : LINGER_MS, () => this.due())
  }

  private due(): void {
    this.timer = undefined
    if (this.waiting.length === 0) return
    const mayRide = this.riding && !this.timerUrgent && this.parts.env.monotonic() - this.firstAt < LINGER_RIDE_MS
    if (mayRide) this.arm(false)
    else this.send()
  }

  private send(): void {
    while (this.waiting.length > 0 && this.inFlight < IN_FLIGHT_MAX) this.sendBatch(this.oldest())
  }

  private sendLeases(): void {
    if (this.inFlight < IN_FLIGHT_MAX) this.sendBatch(this.ofWholeLeases())
  }

  private sendBatch(batch: Outgoing[]): void {
    this.inFlight += 1
    void this.deliver([...this.refused.splice(0, REFUSED_BATCH_MAX), ...batch])
  }

  private async deliver(batch: Outgoing[]): Promise<void> {
    let mayRepeat = false
    try {
      const { settled, refusal } = await settleAll(this.parts.storage, this.parts.calls, 'settle', batch)
      const left: Outgoing[] = []
      for (const [i, outgoing] of batch.entries()) {
        const one = settled[i]
        if (one) outgoing.answered(one.answer, one.instead)
        else left.push(outgoing)
      }
      this.confirmed(batch.length - left.length)
      if (left.length === 0) {
        // The store is well again: those that it refused before are not left to wait for others to come.
        mayRepeat = this.refused.length > 0
        return
      }
      this.refused.push(...left)
      await this.parts.calls.pause('settle', refusal)
      mayRepeat = this.refused.length > 0
    } catch (error) {
      // Nobody waits for these any more, and their leases end by themselves.
      if (!this.parts.calls.over) this.parts.onFatal(error)
    } finally {
      this.inFlight -= 1
      // What came while the call was under way has waited its turn.
      if (mayRepeat) this.sendBatch(this.oldest())
      if (this.waiting.length >= SEND_AT && !this.flushing) this.sendLeases()
      else if (this.waiting.length > 0 && (this.flushing || !this.timer)) this.send()
    }
  }
}
