/** What `connect` returns: everything an application does with its jobs, but running them. Each method leads to the part that does it. */
// `await using` names Symbol.asyncDispose, which the default libs of most targets lack: without this line, which stays in
// the published types, they would not compile there.
/// <reference lib="esnext.disposable" preserve="true" />
import { knownJobId } from '../core/choices.js'
import { QueueError } from '../core/errors.js'
import type { Explanation } from '../core/explanation.js'
import { isKind, type JobItem, type Kind, type PayloadAnd } from '../core/kind.js'
import type { RateLimit } from '../core/limits.js'
import { invalidOption } from '../core/options.js'
import type { Connection } from '../storage/connection.js'
import type {
  CancelAnswer,
  DeadGroups,
  DiscardAnswer,
  JobPage,
  JobView,
  QueueCounts,
  QueueOrder,
  QueueView,
  RedriveAnswer,
  RetryAnswer,
  WorkerView,
} from '../storage/storage.js'
import { Bulk } from './bulk.js'
import type { BulkOptions, BulkResult, RedriveAllOptions } from './bulk-options.js'
import type { EnqueueManyOptions, EnqueueOptions } from './calls.js'
import { Capacities, type Capacity } from './capacities.js'
import { Controller, type DrainOptions, type PerId, type PurgeOptions, type RedriveOptions } from './controller.js'
import type { CancelFilter, DeadFilter, RetryFilter } from './filters.js'
import { type DeadGroupOptions, Inspector, type ListOptions } from './inspector.js'
import { Job, type JobAccess } from './job.js'
import type { LimitOptions } from './limits.js'
import type { EnqueueResult } from './outcome.js'
import { Producer } from './producer.js'
import type { AnyIterable } from './source.js'
import { Waits } from './waits.js'

export const STORE_TIMEOUT_MS = 30_000

export interface QueueSettings {
  /** How long an enqueue waits for the store. */
  storeTimeoutMs?: number
  /** What this process may enqueue, over all queues; all unless given. */
  intake?: RateLimit | undefined
  /** Called by `close()` after the store was closed: ends what was started for this queue. */
  onClose?: () => Promise<void>
}

/**
 * A connection to a store, and all its queues. Made by `connect`; safe to share, meant to be one per process.
 *
 *     const queue = await connect('postgres://localhost/app')
 *     const job = await queue.enqueue(sendEmail, { to: 'ada@example.com' })
 *     const { messageId } = await job.result({ timeout: '1m' })
 *     await queue.close()
 *
 * After `close()` every method rejects with QUEUE_CLOSED.
 */
export class Queue {
  private readonly parts: JobAccess & { producer: Producer; controller: Controller; bulk: Bulk; capacities: Capacities }
  private closing: Promise<void> | undefined

  constructor(
    /** What workers take: store, clock, events. */
    readonly connection: Connection,
    private readonly settings: QueueSettings = {},
  ) {
    const inspector = new Inspector(connection)
    const access: JobAccess = { connection, inspector, waits: new Waits(connection) }
    const capacities = new Capacities(connection)
    const { storeTimeoutMs = STORE_TIMEOUT_MS, intake } = settings
    this.parts = {
      ...access,
      capacities,
      producer: new Producer({ ...access, capacities }, { storeTimeoutMs, intake }),
      controller: new Controller(connection, inspector),
      bulk: new Bulk(connection),
    }
  }

  /**
   * Stores one job. It resolves after the commit (with `tx`, after the statement), and then only:
   *
   *     await queue.enqueue(sendEmail, { to }, { delay: '15m', idempotencyKey: `welcome:${userId}` })
   *
   * Calls of one moment share a statement. Rejects with INVALID_PAYLOAD, PAYLOAD_TOO_LARGE, UNKNOWN_OPTION or
   * INVALID_OPTION before anything is sent; IDEMPOTENCY_MISMATCH, IDEMPOTENCY_BUSY, DUPLICATE_ID, QUEUE_DRAINING,
   * QUEUE_FULL, WAIT_TOO_LONG, RATE_LIMITED or STORE_UNAVAILABLE when it is surely not stored; OUTCOME_UNKNOWN, with the `jobId`, when the connection broke after
   * the write was sent. With an idempotency key the latter is asked again first, as that is safe.
   */
  async enqueue<In, Result>(
    kind: Kind<In, Result>,
    ...[payload, options]: PayloadAnd<NoInfer<In>, EnqueueOptions>
  ): Promise<Job<Result>> {
    return this.open.producer.enqueue(kind, payload, options)
  }

  /**
   * Stores many jobs, of any kinds, in few round trips, and tells of each item in input order what became of it:
   *
   *     const results = await queue.enqueueMany(users.map((user) => sendEmail.with({ to: user.email })), { spread: '10m' })
   *
   * A bad item is refused and never sinks the others. About 1,000 jobs are committed together, two batches at a time;
   * with `tx`, all of them with your transaction. The first batch that the store does not take ends the call: what
   * comes after it is refused unsent. Rejects only for bad options, or with what the iterable throws: then what it
   * gave before is stored (use `enqueueStream` to learn the results).
   */
  async enqueueMany(items: AnyIterable<JobItem>, options?: EnqueueManyOptions): Promise<EnqueueResult[]> {
    return this.open.producer.enqueueMany(items, options)
  }

  /**
   * As `enqueueMany` for sources of any length, in bounded memory: it reads no faster than results are taken, and what
   * a slow source gave is sent within milliseconds. Each batch is tried, also after one that failed.
   *
   *     for await (const result of queue.enqueueStream(readOrders())) if (result.status !== 'created') report(result)
   */
  enqueueStream(
    items: AnyIterable<JobItem>,
    options?: EnqueueManyOptions,
  ): AsyncGenerator<EnqueueResult, void, undefined> {
    return this.open.producer.enqueueStream(items, options)
  }

  /** A handle for a job whose id is known; asks nothing of the store. `await queue.job(sendEmail, id).result()` */
  job<In, Result>(kind: Kind<In, Result>, id: string): Job<Result> {
    if (!isKind(kind)) throw invalidOption('kind', kind, 'what defineJob() made')
    return new Job(this.open, knownJobId(id, 'id'), kind.name, kind.queue, false)
  }

  /** All there is to know of a job; null when none is known with this id. */
  async get(id: string): Promise<JobView | null> {
    return this.open.inspector.get(id)
  }

  /**
   * Why a job does not run, or where it is; null when none is known with this id. What holds it comes by the rules that
   * claims go by, the decisive clause first:
   *
   *     const why = await queue.explain(id)
   *     console.log(why?.verdict, why?.clauses[0].sentence)
   *
   * It is one look: a moment later it may be otherwise. `clauses[0].code` is for programs, the sentence for people.
   */
  async explain(id: string): Promise<Explanation | null> {
    return this.open.inspector.explain(id)
  }

  /** A page of jobs in one state: `await queue.list({ state: 'dead', queue: 'mail', limit: 50 })`. */
  async list(options: ListOptions): Promise<JobPage> {
    return this.open.inspector.list(options)
  }

  /** Every job in one state, read page by page: `for await (const job of queue.jobs({ state: 'dead' })) …`. */
  jobs(options: ListOptions): AsyncGenerator<JobView, void, undefined> {
    return this.open.inspector.all(options)
  }

  /**
   * What dead letters died of: those of one kind in one queue that differ only in what varies from job to job (ids,
   * numbers, times) are one group, the newest first:
   *
   *     const { groups } = await queue.deadGroups({ queue: 'mail' })
   *     for (const { count, sample } of groups) console.log(count.count, sample.error?.message)
   *     await queue.redriveAll({ queue: 'mail', fingerprint: groups[0].fingerprint })
   */
  async deadGroups(options?: DeadGroupOptions): Promise<DeadGroups> {
    return this.open.inspector.deadGroups(options)
  }

  /** How many jobs of a queue are in each state. */
  async counts(queue: string): Promise<QueueCounts> {
    return this.open.inspector.counts(queue)
  }

  /**
   * What a queue has to do and how fast: workers, slots, what waits, how many jobs are completed each second, and how long a
   * job that comes now would wait for its start (null when nobody knows).
   *
   *     const { expectedWaitMs } = await queue.capacity('mail')
   *     if (expectedWaitMs !== null && expectedWaitMs > 30_000) return later()
   *
   * An enqueue does this itself by its option `maxWait`.
   */
  async capacity(queue: string): Promise<Capacity> {
    return this.open.capacities.capacity(queue)
  }

  /** The queues that the store knows. */
  async queues(): Promise<QueueView[]> {
    return this.open.inspector.queues()
  }

  /** The workers that are alive, on any machine. */
  async workers(): Promise<WorkerView[]> {
    return this.open.inspector.workers()
  }

  /**
   * Cancels one job or many. Per id: `cancelled` (it waited and has ended), `signalled` (it runs; its handler's signal
   * fires within a beat), `ended` (too late) or `unknown`.
   */
  async cancel<const Ids extends string | readonly string[]>(ids: Ids): Promise<PerId<Ids, CancelAnswer>> {
    return this.open.controller.cancel(ids)
  }

  /** Makes delayed and retrying jobs ready now, at no cost of an attempt. Per id what became of it. */
  async retry<const Ids extends string | readonly string[]>(ids: Ids): Promise<PerId<Ids, RetryAnswer>> {
    return this.open.controller.retry(ids)
  }

  /**
   * Brings dead letters back with fresh attempts: same id, key, payload and history. An at-most-once job that may have
   * run answers `needs force` unless `force` is given.
   */
  async redrive<const Ids extends string | readonly string[]>(
    ids: Ids,
    options?: RedriveOptions,
  ): Promise<PerId<Ids, RedriveAnswer>> {
    return this.open.controller.redrive(ids, options)
  }

  /**
   * Deletes dead letters for good; their idempotency keys are free. Per id `discarded`, `not dead` or `unknown`.
   */
  async discard<const Ids extends string | readonly string[]>(ids: Ids): Promise<PerId<Ids, DiscardAnswer>> {
    return this.open.controller.discard(ids)
  }

  /**
   * Brings all dead letters back that match, the oldest first, in batches and at a rate:
   *
   *     await queue.redriveAll({ queue: 'mail', fingerprint: 'a1b2c3d4e5f6' }, { dryRun: true })
   *     await queue.redriveAll({ queue: 'mail', olderThan: '1h' }, { rate: 50, onProgress: (so) => console.log(so.done) })
   *
   * It may be cut off at any moment: the same call made again goes on with the rest. What dies again meanwhile is not
   * taken again by the same call. Those that need force are counted and left. Rejects with INVALID_OPTION (field
   * `filter`) when the filter names nothing and does not say `all: true`, and with STORE_UNAVAILABLE when the store was
   * away for a minute.
   */
  async redriveAll(filter: DeadFilter, options?: RedriveAllOptions): Promise<BulkResult<RedriveAnswer>> {
    return this.open.bulk.redriveAll(filter, options)
  }

  /** Deletes all dead letters that match. As `redriveAll` it may be cut off, and goes on when it is called again. */
  async discardAll(filter: DeadFilter, options?: BulkOptions): Promise<BulkResult<DiscardAnswer>> {
    return this.open.bulk.discardAll(filter, options)
  }

  /**
   * Cancels all jobs that match: those that wait, and running ones where the filter names that state. A job that leaves
   * these states before its turn is left alone. What moves from one to another during the run may be missed; call it
   * again until nothing matches.
   */
  async cancelAll(filter: CancelFilter, options?: BulkOptions): Promise<BulkResult<CancelAnswer>> {
    return this.open.bulk.cancelAll(filter, options)
  }

  /** Makes all retrying jobs that match ready now; delayed ones where the filter names that state. */
  async retryAll(filter: RetryFilter, options?: BulkOptions): Promise<BulkResult<RetryAnswer>> {
    return this.open.bulk.retryAll(filter, options)
  }

  /**
   * After it resolved no claim of the queue begins; workers give back what they have claimed ahead as soon as they
   * hear of it, by their next claim or beat. Running jobs go on. Enqueue is not affected.
   */
  async pause(queue: string): Promise<void> {
    return this.open.controller.pause(queue)
  }

  /** Ends a pause and a drain. */
  async resume(queue: string): Promise<void> {
    return this.open.controller.resume(queue)
  }

  /**
   * Refuses new jobs (QUEUE_DRAINING) and resolves when nothing of the queue waits or runs any more. It refuses until
   * `resume`, also when this rejects with WAIT_TIMEOUT or the signal's reason.
   */
  async drain(queue: string, options?: DrainOptions): Promise<void> {
    return this.open.controller.drain(queue, options)
  }

  /**
   * Deletes all jobs of a queue that wait, and resolves to how many those were. Running ones go on. A signal ends it
   * between two steps: `{ signal, onProgress }`.
   */
  async purge(queue: string, options?: PurgeOptions): Promise<number> {
    return this.open.controller.purge(queue, options)
  }

  /** How workers choose between the priorities of a queue: `ageing` (the default), `strict` or `weighted`. */
  async order(queue: string, order: QueueOrder): Promise<void> {
    return this.open.controller.order(queue, order)
  }

  /**
   * Limits a queue over all its workers and producers: how many of its jobs are in workers' hands at once, how often they start,
   * how many may wait and how many come in. What is not given stays as it is, null takes a limit away. Holds from the next
   * claim or enqueue on; `queues()` tells the limits.
   *
   *     await queue.limit('mail', { concurrency: 20, rate: { limit: 100, per: '1s', burst: 30 } })
   *     await queue.limit('mail', { depth: { limit: 1_000, perTenant: 100 }, intake: { limit: 100, per: '1s', burst: 200 } })
   *     await queue.limit('mail', { rate: null })
   */
  async limit(queue: string, limits: LimitOptions): Promise<void> {
    return this.open.controller.limit(queue, limits)
  }

  /**
   * Waits for enqueues that are under way, ends waits for results, closes the store. May be called again. Batches of
   * `enqueueMany` and `enqueueStream` that were sent are waited for; what their sources give later is refused
   * (QUEUE_CLOSED), and their results say so.
   */
  close(): Promise<void> {
    this.closing ??= this.shut()
    return this.closing
  }

  /** `await using queue = await connect(url)` closes it at the end of the block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  private get open(): typeof this.parts {
    if (this.closing === undefined) return this.parts
    throw new QueueError('QUEUE_CLOSED', 'the queue was closed by close()')
  }

  private async shut(): Promise<void> {
    await this.parts.producer.close()
    this.parts.waits.close()
    try {
      await this.connection.storage.close()
    } finally {
      await this.settings.onClose?.()
    }
  }
}
