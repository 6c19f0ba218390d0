/** Enqueues: one job, many, or a stream of them. Called by the queue. */
import { isKind, type JobItem, type Kind } from '../core/kind.js'
import type { RateLimit } from '../core/limits.js'
import { invalidOption } from '../core/options.js'
import type { NewJob, Partition } from '../storage/storage.js'
import { type Adaptive, checkAdaptive, Pacer, STOPPED } from './adaptive.js'
import { announce } from './announce.js'
import { Batches } from './batches.js'
import {
  type EnqueueManyOptions,
  type EnqueueOptions,
  type HeldEnqueue,
  NOTHING_SAID,
  readEnqueue,
  readMany,
} from './calls.js'
import type { Capacities } from './capacities.js'
import { Gate } from './gate.js'
import { Job, type JobAccess } from './job.js'
import { Line } from './line.js'
import { type EnqueueResult, errorOf, retryDelayMs, type Sent } from './outcome.js'
import { isOpen, persist } from './persist.js'
import { prepare } from './prepare.js'
import { Sender } from './sender.js'
import type { AnyIterable } from './source.js'

/** With more in flight the calls would be smaller, and the pool of the store would have none left for workers. */
const PLAIN_LINE = { callsMax: 4, jobsMax: 1_000 }
/** A job with an idempotency key goes alone: whoever holds its key up holds nobody else up. */
const KEYED_LINE = { callsMax: 4, jobsMax: 1 }

interface Lines {
  readonly plain: Line
  readonly keyed: Line
}

export interface ProducerParts extends JobAccess {
  readonly capacities: Capacities
}

export interface ProducerSettings {
  storeTimeoutMs: number
  /** What this process may enqueue, over all queues. */
  intake: RateLimit | undefined
}

export class Producer {
  private readonly sender: Sender
  private readonly gate: Gate
  private readonly pacer: Pacer
  /** Of each store, as no job shall wait in line for a store that is not its own. */
  private readonly lines = new Map<Partition | undefined, Lines>()
  /** Keyed enqueues that may be tried again. */
  private readonly persisting = new Set<Promise<Sent[]>>()
  /** Calls of `enqueueMany` that have not ended. */
  private manyCalls = 0

  constructor(
    private readonly access: ProducerParts,
    private readonly settings: ProducerSettings,
  ) {
    const { connection, capacities } = access
    this.gate = new Gate(connection, capacities, settings.intake)
    this.sender = new Sender(connection)
    this.pacer = new Pacer(connection, capacities, this.sender)
    for (const home of connection.storage.partitions?.all ?? [undefined])
      this.lines.set(home, {
        plain: new Line(connection.env, this.sender, PLAIN_LINE),
        keyed: new Line(connection.env, this.sender, KEYED_LINE),
      })
  }

  async enqueue<In, Result>(
    kind: Kind<In, Result>,
    payload: In | undefined,
    options: EnqueueOptions | undefined,
  ): Promise<Job<Result>> {
    if (!isKind(kind)) throw invalidOption('kind', kind, 'what defineJob() made')
    const { env } = this.access.connection
    const held = options === undefined ? NOTHING_SAID : readEnqueue(options)
    checkAdaptive(held)
    const deadline = this.deadline(held)
    const prepared = prepare(kind, payload, held, {
      id: env.id(),
      fraction: held.spread === undefined ? 0 : env.random(),
    })
    const job = prepared instanceof Promise ? await prepared : prepared
    const maxWaitMs = held.maxWait ?? kind.maxWaitMs
    if (held.adaptive !== undefined)
      return this.handle(job, await this.sentAdaptive(job, held, held.adaptive, maxWaitMs))
    const heldBack = this.gate.heldBack(job, maxWaitMs)
    const refusal = heldBack instanceof Promise ? await heldBack : heldBack
    if (refusal !== undefined) announce(this.access.connection, [job], [refusal])
    return this.handle(job, refusal ?? (await this.sent(job, held, deadline)))
  }

  /** All results; the first batch that the store does not take ends the call for the rest. */
  async enqueueMany(items: AnyIterable<JobItem>, options: EnqueueManyOptions | undefined): Promise<EnqueueResult[]> {
    const all: EnqueueResult[] = []
    this.manyCalls += 1
    try {
      for await (const results of this.batches(items, options, true)) for (const result of results) all.push(result)
      return all
    } finally {
      this.manyCalls -= 1
    }
  }

  /** Options are read at once, items as results are taken. */
  enqueueStream(
    items: AnyIterable<JobItem>,
    options: EnqueueManyOptions | undefined,
  ): AsyncGenerator<EnqueueResult, void, undefined> {
    return flat(this.batches(items, options, false))
  }

  /** Resolves when every enqueue that was sent was told its outcome. Batches that come later are refused. */
  async close(): Promise<void> {
    this.pacer.close()
    // A call made just before has read its first items and not sent them yet: it does so within this turn.
    if (this.manyCalls > 0) await new Promise<void>((resolve) => this.access.connection.env.soon(resolve))
    const idle = [...this.lines.values()].map(({ plain }) => plain.idle())
    await Promise.all([this.sender.close(), ...idle, ...this.persisting])
  }

  private batches(
    items: AnyIterable<JobItem>,
    options: EnqueueManyOptions | undefined,
    giveUp: boolean,
  ): AsyncGenerator<EnqueueResult[], void, undefined> {
    const call = readMany(options)
    const timeoutMs = call.storeTimeout ?? this.settings.storeTimeoutMs
    checkAdaptive(call)
    const { sender, gate, pacer } = this
    return new Batches(this.access.connection, { sender, gate, pacer }, items, { call, timeoutMs, giveUp }).results()
  }

  private deadline({ storeTimeout }: Pick<HeldEnqueue, 'storeTimeout'>): number {
    return this.access.connection.env.monotonic() + (storeTimeout ?? this.settings.storeTimeoutMs)
  }

  /** The store has its time anew with each send: the waits between are not its own. */
  private async sentAdaptive(
    job: NewJob,
    held: HeldEnqueue,
    how: Adaptive,
    maxWaitMs: number | undefined,
  ): Promise<Sent> {
    const { signal } = held
    const attempt = async (): Promise<Sent[]> => [
      (await this.gate.heldBack(job, maxWaitMs)) ?? (await this.sent(job, held, this.deadline(held))),
    ]
    const [sent] = await this.pacer.send([job], { adaptive: how, signal }, attempt)
    if (signal?.aborted && (retryDelayMs(sent!) !== undefined || sent === STOPPED)) throw signal.reason
    return sent!
  }

  private async sent(job: NewJob, { tx }: Pick<HeldEnqueue, 'tx'>, deadline: number): Promise<Sent> {
    if (tx === undefined)
      return job.idempotency === undefined ? this.linesOf(job).plain.add(job, deadline) : this.sentKeyed(job, deadline)
    const [sent] = await this.sender.sendWithin([job], { tx, deadline })
    return sent!
  }

  /** Each try waits in line anew, so that those whose key is busy take no place from the others. */
  private async sentKeyed(job: NewJob, deadline: number): Promise<Sent> {
    const { connection } = this.access
    const attempt = async (): Promise<Sent[]> => [await this.linesOf(job).keyed.add(job, deadline)]
    const persisting = persist(connection.env, [job], { attempt, deadline, tx: undefined })
    this.persisting.add(persisting)
    const [sent] = await persisting
    this.persisting.delete(persisting)
    if (isOpen(job, sent!)) announce(connection, [job], [sent!])
    return sent!
  }

  private linesOf(job: NewJob): Lines {
    return this.lines.get(this.access.connection.storage.partitions?.homeOf(job))!
  }

  private handle<Result>(job: NewJob, sent: Sent): Job<Result> {
    if (sent.status === 'created') return new Job(this.access, job.id, job.kind, job.queue, false)
    if (sent.status === 'duplicate') return new Job(this.access, sent.id, job.kind, job.queue, true)
    throw errorOf(job, sent)
  }
}

async function* flat<T>(batches: AsyncIterable<T[]>): AsyncGenerator<T, void, undefined> {
  for await (const batch of batches) yield* batch
}
