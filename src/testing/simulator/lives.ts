/** The lives of processes: a worker runs until it is stopped or stops itself, a producer until its part of the plan is sent. Called by the simulation. */

import type { EnqueueResult } from '../../client/outcome.js'
import { Queue } from '../../client/queue.js'
import { QueueError } from '../../core/errors.js'
import type { JobItem } from '../../core/kind.js'
import { EventBus } from '../../observe/events.js'
import { type Connection, LocalHints } from '../../storage/connection.js'
import { type Worker, worker } from '../../worker/index.js'
import type { Configuration, Sort } from './configuration.js'
import type { Link } from './link.js'
import type { PlannedJob } from './plan.js'
import type { Process } from './process.js'
import { witnessed } from './witness.js'
import type { Witnessing } from './witnessing.js'
import { handlersOf, itemOf } from './work.js'

export interface LifeParts {
  readonly process: Process
  readonly link: Link
  readonly record: Witnessing
  readonly configuration: Configuration
  readonly plan: (n: number) => PlannedJob
}

/** `sorts`: what it can run. */
export interface WorkerParts extends LifeParts {
  readonly sorts: readonly Sort[]
}

/** A process that is up. */
export interface Life {
  readonly process: Process
  readonly link: Link
  /** Ends it in order; resolves when it is down. */
  stop(graceMs: number): Promise<void>
}

export class WorkerLife implements Life {
  readonly process: Process
  readonly link: Link
  readonly worker: Worker
  private readonly queue: Queue

  constructor({ process, link, record, configuration, plan, sorts }: WorkerParts) {
    this.process = process
    this.link = link
    const connection = connectionOf(process, witnessed(link, process, record), record)
    this.queue = new Queue(connection)
    const { keptMs } = configuration
    const { concurrency, leaseMs, beatMs, pollMs, prefetchWindowMs, claimBatch, graceMs } = configuration.worker
    this.worker = worker(this.queue, handlersOf({ process, record, plan, sorts }), {
      name: process.name,
      concurrency,
      queues: Object.fromEntries(configuration.queues.map(({ name, weight }) => [name, weight])),
      lease: leaseMs,
      beat: beatMs,
      poll: pollMs,
      prefetchWindow: prefetchWindowMs,
      claimBatch,
      shutdownGrace: graceMs,
      signals: false,
      ...(keptMs === undefined ? {} : { completedRetention: keptMs, deadRetention: keptMs }),
    })
  }

  /** Resolves when the worker is down, by itself or as it was told. */
  async run(): Promise<void> {
    // That it stopped itself is what its handlers asked for: the process ends, and another one comes.
    await this.worker.run().catch(() => {})
    await this.queue.close()
  }

  async stop(graceMs: number): Promise<void> {
    await this.worker.stop({ grace: graceMs })
  }
}

/** A busy key is asked for again. */
const TRIES_MAX = 6
const RETRY_MS = 800
/** Jobs that are sent within so long go together. */
const TOGETHER_MS = 400

export class ProducerLife implements Life {
  readonly process: Process
  readonly link: Link
  private readonly queue: Queue
  private stopped = false

  /** `from`: where it begins, in the order in which jobs are sent. `reached` is told how far it came. */
  constructor(
    private readonly parts: LifeParts,
    private readonly own: readonly PlannedJob[],
    private readonly reached: (next: number) => void,
  ) {
    this.process = parts.process
    this.link = parts.link
    this.queue = new Queue(connectionOf(this.process, this.link, parts.record), { storeTimeoutMs: 20_000 })
  }

  async run(from: number): Promise<void> {
    const underWay: Promise<void>[] = []
    for (let next = from; next < this.own.length && !this.stopped; ) {
      await this.process.sleep(this.own[next]!.sentAtMs - this.process.monotonic())
      const batch = this.batch(next)
      next += batch.length
      this.reached(next)
      underWay.push(batch.length > 2 ? this.together(batch) : this.singly(batch))
    }
    await Promise.all(underWay)
    await this.queue.close()
  }

  async stop(): Promise<void> {
    this.stopped = true
  }

  private batch(from: number): PlannedJob[] {
    const until = this.own[from]!.sentAtMs + TOGETHER_MS
    return this.own.slice(from).filter(({ sentAtMs }) => sentAtMs <= until)
  }

  private async together(batch: readonly PlannedJob[]): Promise<void> {
    for (const { n } of batch) this.parts.record.write(this.process, { what: 'sending', n })
    const results = await this.queue.enqueueMany(batch.map((planned) => this.item(planned)))
    for (const [i, result] of results.entries()) this.told(batch[i]!, result)
  }

  private async singly(batch: readonly PlannedJob[]): Promise<void> {
    await Promise.all(batch.map((planned) => this.single(planned)))
  }

  private async single(planned: PlannedJob): Promise<void> {
    const item = this.item(planned)
    let mayBeThere = false
    for (let tries = 1; tries <= TRIES_MAX; tries++) {
      this.parts.record.write(this.process, { what: 'sending', n: planned.n })
      const answer: EnqueueResult = await this.enqueued(item)
      const isOwn: boolean = mayBeThere && answer.status === 'refused' && answer.error.code === 'DUPLICATE_ID'
      const result: EnqueueResult = isOwn ? { status: 'created', id: item.options!.id! } : answer
      this.told(planned, result)
      // A job without a key or an id of its own is sent once: nobody knows whether it is there.
      const safe = planned.key !== undefined || planned.sort === 'chosen'
      if (!safe || result.status === 'created' || result.status === 'duplicate') return
      mayBeThere ||= result.status === 'unknown'
      await this.process.sleep(RETRY_MS)
    }
  }

  private async enqueued({ kind, payload, options }: JobItem): Promise<EnqueueResult> {
    try {
      const job = await this.queue.enqueue(kind, payload, options)
      return { status: job.duplicate ? 'duplicate' : 'created', id: job.id }
    } catch (error) {
      if (!(error instanceof QueueError)) throw error
      if (error.code === 'OUTCOME_UNKNOWN') return { status: 'unknown', id: error.jobId!, error }
      return { status: 'refused', error }
    }
  }

  private item(planned: PlannedJob): JobItem {
    const { process } = this
    return itemOf(planned, process.now() - process.skewMs, () => process.id())
  }

  private told({ n }: PlannedJob, result: EnqueueResult): void {
    const { record } = this.parts
    if (result.status === 'created' || result.status === 'duplicate')
      record.write(this.process, { what: 'told', n, outcome: result.status, id: result.id })
    else {
      const { code, jobId } = result.error
      const id = jobId === undefined ? {} : { id: jobId }
      record.write(this.process, { what: 'told', n, outcome: result.status, code, ...id })
    }
  }
}

export function connectionOf(process: Process, storage: Connection['storage'], record: Witnessing): Connection {
  const events = new EventBus()
  events.on((event) => record.hear(process, event))
  return { storage, env: process, events, hints: new LocalHints() }
}
