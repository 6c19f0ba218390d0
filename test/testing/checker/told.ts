/** A history to be told event by event, and changed before it is checked. Used by the tests of the checker. */

import { check, type Verdict } from '../../../src/testing/checker/check.js'
import type { Expectation } from '../../../src/testing/checker/expectation.js'
import type {
  History,
  HistoryEvent,
  JobOperation,
  QueueOperation,
  Settled,
  StoreRecord,
  Witnessed,
} from '../../../src/testing/checker/history.js'

export const LEASE_MS = 10_000

export interface RunTold {
  id: string
  fence: number
  attempt: number
  end: 'effect' | 'failed' | 'aborted' | 'snoozed'
  endAt: number
  settled: Settled
  againInMs: number
  /** Its worker writes down that it claims. */
  claim: 'told'
}

export class Told {
  readonly events: Witnessed[] = []
  readonly records: StoreRecord[] = []
  private asks = 0
  private requests = 0

  constructor(private readonly plan: ReadonlyMap<number, Expectation>) {}

  add(process: string, ...events: HistoryEvent[]): this {
    for (const event of events) this.events.push({ process, event })
    return this
  }

  /** Each second. */
  beats(worker: string, from: number, until: number): this {
    for (let at = from; at < until; at += 1_000)
      this.add(worker, { at, what: 'worker', worker, is: 'beaten', confirmedAt: at })
    return this
  }

  enqueued(n: number, at: number, more: { id?: string; process?: string; transaction?: string } = {}): this {
    const { id = `id-${n}`, process = 'producer', transaction } = more
    const within = transaction === undefined ? {} : { transaction }
    return this.add(
      process,
      { at, what: 'sending', n },
      { at: at + 1, what: 'told', n, outcome: 'created', id, ...within },
    )
  }

  refused(n: number, at: number, code = 'STORE_UNAVAILABLE'): this {
    return this.add('producer', { at, what: 'sending', n }, { at: at + 1, what: 'told', n, outcome: 'refused', code })
  }

  /** A run; without an end it was cut. Unless it is said otherwise, fences rise with time. */
  ran(n: number, process: string, at: number, more: Partial<RunTold> = {}): this {
    const { id = `id-${n}`, fence = at, attempt = 1, end, endAt = at + 1, settled, againInMs, claim } = more
    if (claim !== undefined) this.claimed(process, at, [{ id, fence, attempt }])
    this.add(process, { at, what: 'started', n, id, attempt, fence })
    if (end === 'effect') this.add(process, { at: endAt, what: 'effect', n, id, fence })
    else if (end !== undefined) this.add(process, { at: endAt, what: 'finished', n, id, fence, as: end })
    const again = againInMs === undefined ? {} : { againInMs }
    if (settled !== undefined)
      this.add(process, { at: endAt + 1, what: 'settled', id, worker: process, as: settled, ...again })
    return this
  }

  completed(n: number, process: string, at: number, more: Partial<RunTold> = {}): this {
    this.ran(n, process, at, { ...more, end: 'effect', settled: 'completed' })
    return this.has(n, { ...(more.id === undefined ? {} : { id: more.id }), state: 'completed' })
  }

  /** A call that takes a moment before `at`, and what it brings. */
  claimed(worker: string, at: number, jobs: readonly JobTold[], more: CallTold = {}): this {
    const { askedAt = at - 0.5, answeredAt = at - 0.1, request = ++this.requests } = more
    this.add(worker, { at: askedAt, what: 'claiming', worker, request })
    this.add(worker, { at: answeredAt, what: 'claim answered', worker, request, status: 'ok' })
    for (const job of jobs) {
      const facts = { queue: 'one', kind: 'kind', priority: 4, attempt: 1, fence: at, ...job }
      this.add(worker, { at: answeredAt, what: 'claimed', worker, request, ...facts })
    }
    return this
  }

  /** Without an answer nobody knows whether it was done. */
  asked(id: string, at: number, operation: JobOperation['operation'], answer?: JobOperation['answer']): this {
    const ask = `ask-${++this.asks}`
    this.add('operator', { at, what: 'asked', ask, operation, id })
    if (answer === undefined) return this
    return this.add('operator', { at: at + 1, what: 'answered', ask, id, operation, answer } as HistoryEvent)
  }

  askedOfQueue(queue: string, at: number, operation: QueueOperation, deleted?: number): this {
    const ask = `ask-${++this.asks}`
    const count = deleted === undefined ? {} : { deleted }
    return this.add(
      'operator',
      { at, what: 'asked of queue', ask, operation, queue },
      { at: at + 1, what: 'answered of queue', ask, operation, queue, ...count },
    )
  }

  has(n: number, more: Partial<StoreRecord>): this {
    this.records.push({ id: `id-${n}`, n, state: 'completed', attempts: 0, crashes: 0, crashesAlone: 0, ...more })
    return this
  }

  /** It is not in the store after all. */
  hasNot(n: number): this {
    this.records.splice(this.records.indexOf(this.record(n)), 1)
    return this
  }

  record(n: number): StoreRecord {
    return this.records.find((record) => record.n === n)!
  }

  event<What extends HistoryEvent['what']>(what: What, n: number): HistoryEvent & { what: What } {
    const named = ({ event }: Witnessed): boolean =>
      event.what === what && (('n' in event && event.n === n) || ('id' in event && event.id === `id-${n}`))
    return this.events.find(named)!.event as HistoryEvent & { what: What }
  }

  /** Takes out the first of them. */
  without(what: HistoryEvent['what'], n: number): this {
    const gone = this.event(what, n)
    return this.withoutAll((event) => event === gone)
  }

  withoutAll(gone: (event: HistoryEvent) => boolean): this {
    this.events.splice(0, this.events.length, ...this.events.filter(({ event }) => !gone(event)))
    return this
  }

  checked(more: Partial<History> = {}): Verdict {
    return check({
      expect: (n) => this.plan.get(n),
      events: this.events,
      records: this.records,
      leaseMs: LEASE_MS,
      ...more,
    })
  }
}

export interface JobTold {
  id: string
  fence?: number
  attempt?: number
  queue?: string
  kind?: string
  priority?: number
  waitedMs?: number
  claimedAt?: number
}

export interface CallTold {
  askedAt?: number
  answeredAt?: number
  request?: number
}
