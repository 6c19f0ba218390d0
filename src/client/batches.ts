/**
 * Many jobs at once: items become batches, a few batches are under way, and there is one result for each item in the
 * order of the input. Nothing is read ahead of what is being sent. Called by the producer.
 */
import { QueueError } from '../core/errors.js'
import { isKind, type JobItem } from '../core/kind.js'
import { invalidOption } from '../core/options.js'
import type { Connection } from '../storage/connection.js'
import type { NewJob } from '../storage/storage.js'
import type { Pacer } from './adaptive.js'
import { announce } from './announce.js'
import { type HeldEnqueue, type HeldMany, merged } from './calls.js'
import type { Gate } from './gate.js'
import { type EnqueueResult, type HeldBack, resultOf, type Sent } from './outcome.js'
import { prepare } from './prepare.js'
import type { Sender } from './sender.js'
import { type AnyIterable, END, LATER, Source } from './source.js'

const BATCH_JOBS_MAX = 1_000
const BATCH_UNITS_MAX = 4_194_304
/** Under way at once. More would only reorder: the jobs of two batches start in the order of their commits. */
const FLIGHTS_MAX = 2
/** What a slow source has given is sent after this. */
const LINGER_MS = 5
/** Steps of the golden section fill a spread evenly, however many they turn out to be. */
const GOLDEN = 0.618033988749895

interface Batch {
  readonly jobs: NewJob[]
  /** Of adaptive calls, which ask when they send: how long the jobs may wait. */
  readonly maxWaits: Map<NewJob, number | undefined>
  /** One for each item; undefined where the job in `jobs` is sent, in that order. */
  readonly results: (EnqueueResult | undefined)[]
  units: number
}

/** How jobs go to the store. */
interface Ways {
  readonly sender: Sender
  readonly gate: Gate
  readonly pacer: Pacer
}

export interface BatchesOptions {
  call: HeldMany
  timeoutMs: number
  /** Whether what comes after a batch that the store did not take is refused unsent. A stream tries each anew. */
  giveUp: boolean
}

export class Batches {
  private readonly source: Source<JobItem>
  private readonly flightsMax: number
  private readonly spreadFrom: number
  /** What items get that say nothing of their own. */
  private readonly shared: HeldEnqueue
  private count = 0
  private ended = false
  private gathering: Promise<Batch> | undefined
  private givenUp: QueueError | undefined

  constructor(
    private readonly connection: Connection,
    private readonly ways: Ways,
    items: AnyIterable<JobItem>,
    private readonly options: BatchesOptions,
  ) {
    this.source = new Source(connection.env, items)
    // A client that is inside a transaction does one thing at a time, and whoever is slowed has to know what became of the last.
    const alone = options.call.tx !== undefined || options.call.adaptive !== undefined
    this.flightsMax = alone ? 1 : FLIGHTS_MAX
    this.spreadFrom = connection.env.random()
    this.shared = merged(options.call, undefined)
  }

  /** Results, batch by batch. What the source threw is thrown after the results of all that it gave before. */
  async *results(): AsyncGenerator<EnqueueResult[], void, undefined> {
    const flights: Promise<EnqueueResult[]>[] = []
    try {
      for (;;) {
        const batch = await this.nextOf(flights)
        if (batch !== undefined && batch.results.length > 0) flights.push(this.fly(batch))
        else if (flights.length > 0) yield await flights.shift()!
        else if (this.over) break
      }
    } finally {
      await this.source.stop()
    }
    if (this.source.fault) throw this.source.fault.error
  }

  /** The source has ended and its last batch was taken; until then that one may still be waiting to be sent. */
  private get over(): boolean {
    return this.ended && this.gathering === undefined
  }

  /** The next batch, or undefined when a flight is to be awaited first: none may start, or it has landed. */
  private async nextOf(flights: Promise<EnqueueResult[]>[]): Promise<Batch | undefined> {
    if (this.over || flights.length >= this.flightsMax) return undefined
    this.gathering ??= this.gather()
    const landed = flights[0]?.then(() => undefined)
    const batch = await (landed === undefined ? this.gathering : Promise.race([this.gathering, landed]))
    if (batch !== undefined) this.gathering = undefined
    return batch
  }

  /** What the source gives until a batch is full, or for as long as it gives without a pause. */
  private async gather(): Promise<Batch> {
    const batch: Batch = { jobs: [], maxWaits: new Map(), results: [], units: 0 }
    let patience: { over: Promise<typeof LATER>; forget: () => void } | undefined
    while (batch.results.length < BATCH_JOBS_MAX && batch.units < BATCH_UNITS_MAX) {
      const now = this.source.nextNow()
      const item = now ? now.item : await this.source.next(patience?.over)
      if (item === LATER) break
      if (item === END) {
        this.ended = true
        break
      }
      const adding = this.add(batch, item)
      if (adding !== undefined) await adding
      if (now === undefined) patience ??= this.source.patience(LINGER_MS)
    }
    patience?.forget()
    return batch
  }

  /** Adds the item as a job or as a refusal. A promise only where its schema is asynchronous, or its wait has to be asked for. */
  private add(batch: Batch, item: JobItem): Promise<void> | undefined {
    const { env } = this.connection
    const place = batch.results.push(undefined) - 1
    const refuse = (fault: unknown): void => {
      batch.results[place] = { status: 'refused', error: asQueueError(fault) }
    }
    const settle = (job: NewJob, heldBack: HeldBack | undefined): void => {
      if (heldBack !== undefined) {
        announce(this.connection, [job], [heldBack])
        batch.results[place] = resultOf(job, heldBack)
        return
      }
      batch.jobs.push(job)
      batch.units += job.payload.length
    }
    const draw = { id: env.id(), fraction: (this.spreadFrom + this.count++ * GOLDEN) % 1 }
    try {
      if (!isKind(item?.kind)) throw invalidOption('item', item, 'what kind.with(payload) makes')
      const choices = item.options === undefined ? this.shared : merged(this.options.call, item.options)
      const { maxWait = item.kind.maxWaitMs } = choices
      const take = (job: NewJob): Promise<void> | undefined => {
        if (this.options.call.adaptive !== undefined) batch.maxWaits.set(job, maxWait)
        const heldBack = batch.maxWaits.has(job) ? undefined : this.ways.gate.heldBack(job, maxWait)
        if (heldBack instanceof Promise) return heldBack.then((known) => settle(job, known))
        settle(job, heldBack)
        return undefined
      }
      const job = prepare(item.kind, item.payload, choices, draw)
      return job instanceof Promise ? job.then(take).catch(refuse) : take(job)?.catch(refuse)
    } catch (fault) {
      refuse(fault)
    }
    return undefined
  }

  private async fly(batch: Batch): Promise<EnqueueResult[]> {
    let sent: EnqueueResult[] = []
    if (this.givenUp) sent = batch.jobs.map((job) => this.notTried(job))
    else if (batch.jobs.length > 0) {
      const answers = await this.sent(batch)
      sent = batch.jobs.map((job, index) => resultOf(job, answers[index]!))
      // Of several stores one that fails says nothing of the others.
      const whole = this.connection.storage.partitions === undefined
      if (this.options.giveUp && whole && answers[0]!.status === 'failed') this.givenUp = errorIn(sent[0]!)
    }
    let next = 0
    return batch.results.map((refused) => refused ?? sent[next++]!)
  }

  private sent({ jobs, maxWaits }: Batch): Promise<Sent[]> {
    const { call, timeoutMs } = this.options
    const send = (some: readonly NewJob[]): Promise<Sent[]> =>
      this.ways.sender.sendWithin(some, { tx: call.tx, deadline: this.connection.env.monotonic() + timeoutMs })
    const { adaptive, signal } = call
    if (adaptive === undefined) return send(jobs)
    return this.ways.pacer.send(jobs, { adaptive, signal }, async (some) => {
      const heldBack: (HeldBack | undefined)[] = []
      for (const job of some) heldBack.push(await this.ways.gate.heldBack(job, maxWaits.get(job)))
      const going = some.filter((_, index) => heldBack[index] === undefined)
      const answers = going.length === 0 ? [] : await send(going)
      let next = 0
      return heldBack.map((held) => held ?? answers[next++]!)
    })
  }

  private notTried(job: NewJob): EnqueueResult {
    const cause = this.givenUp!
    const code = cause.code === 'OUTCOME_UNKNOWN' ? 'STORE_UNAVAILABLE' : cause.code
    const message = `the job was not sent, as an earlier batch of this call failed: ${cause.message}`
    return { status: 'refused', error: new QueueError(code, message, { cause, jobId: job.id }) }
  }
}

function errorIn(result: EnqueueResult): QueueError | undefined {
  return 'error' in result ? result.error : undefined
}

/** A fault of the caller's own code, such as a getter that throws, is the fault of that item alone. */
function asQueueError(fault: unknown): QueueError {
  if (fault instanceof QueueError) return fault
  return new QueueError('INVALID_PAYLOAD', 'preparing the item threw', { cause: fault })
}
