/** A worker: takes jobs of its queues and runs their handlers. What users start and stop; a session does the work. */
import { type Duration, durationMs } from '../core/duration.js'
import { QueueError } from '../core/errors.js'
import type { BoundHandler } from '../core/handler.js'
import { badRelation } from '../core/options.js'
import type { Connection } from '../storage/connection.js'
import { Company } from './company.js'
import { healthTogether, type WorkerHealth } from './health.js'
import { Life } from './life.js'
import { readHandlers, readWorkerOptions, type WorkerOptions, type WorkerSettings } from './options.js'
import { onSignals } from './signals.js'
import { emptyStats, type Stats } from './stats.js'

/** Makes a worker for the handlers; it does nothing until it is started. */
export function worker(
  queue: { connection: Connection },
  handlers: readonly BoundHandler[],
  options?: WorkerOptions,
): Worker {
  return new Worker(queue.connection, handlers, options)
}

/** Runs the jobs of its queues in this process. Made by `worker()`; `run`, `start`, `stop`, `runUntilEmpty`, `health`, `stats`. */
export class Worker {
  private readonly settings: WorkerSettings
  private readonly handlers: ReadonlyMap<string, BoundHandler>
  /** One for each store, in the order of the list. */
  private readonly lives: ReadonlyMap<string, Life>
  private failure: QueueError | undefined

  constructor(
    private readonly connection: Connection,
    handlers: readonly BoundHandler[],
    options?: WorkerOptions,
  ) {
    this.handlers = readHandlers(handlers)
    this.settings = readWorkerOptions(options, this.handlers.values())
    this.lives = this.made()
  }

  /**
   * As the store knows it; a new one for each start, and after the store has written the worker off. Over several stores it
   * has one in each, and this is that of the first.
   */
  get id(): string | undefined {
    return this.all[0]!.last?.identity.worker
  }

  /** Starts it, or lets it start again after a stop that is under way. A store that is away is waited for. */
  async start(): Promise<void> {
    this.failure = undefined
    const stops = this.all.flatMap((life) => life.start() ?? [])
    if (stops.length > 0) await Promise.all(stops)
  }

  /**
   * No new jobs; running ones finish within the grace, then they are aborted and given back without the cost of an
   * attempt. Resolves when everything is down, at most a second after the grace. Called again with a shorter grace it
   * hurries; on a worker that is not running it does nothing.
   */
  async stop(options: { grace?: Duration } = {}): Promise<void> {
    const graceMs = options.grace === undefined ? this.settings.graceMs : durationMs(options.grace, 'stop.grace')
    await this.end(graceMs, 'stop')
  }

  /**
   * Starts it and resolves after it was stopped: by stop(), or (unless `signals` is off) by SIGTERM or SIGINT, the
   * first of which drains while the second one ends at once. Rejects with WORKER_STOPPED when the worker had to stop
   * itself, as half of its slots hang in code that does not end: a supervisor should start a new process then.
   */
  async run(): Promise<void> {
    const unlisten = this.settings.signals ? this.handleSignals() : () => {}
    try {
      await this.start()
      while (this.isOn) await Promise.all(this.all.map((life) => life.down()))
    } finally {
      unlisten()
    }
    if (this.failure) throw this.failure
  }

  /** Runs until nothing is ready in its queues and nothing of its own is unfinished, or `maxMs` are over; then stops. */
  async runUntilEmpty(options: { maxMs?: Duration } = {}): Promise<Stats> {
    if (this.isOn)
      throw new QueueError('WORKER_STOPPED', 'the worker is running already; runUntilEmpty() starts it itself')
    const maxMs = options.maxMs === undefined ? undefined : durationMs(options.maxMs, 'runUntilEmpty.maxMs')
    await this.start()
    const over = new AbortController()
    const timeUp = new Promise<void>((resolve) => {
      if (maxMs === undefined) return
      const timer = this.connection.env.timer(maxMs, resolve)
      over.signal.addEventListener('abort', () => timer.cancel(), { once: true })
    })
    await Promise.race([this.whenEmpty(over.signal), timeUp])
    over.abort()
    await this.stop()
    if (this.failure) throw this.failure
    return this.stats()
  }

  /** Counts since the last start. */
  stats(): Stats {
    const sum = emptyStats()
    for (const { last } of this.all)
      for (const name of Object.keys(sum) as (keyof Stats)[]) sum[name] += last?.stats[name] ?? 0
    return sum
  }

  /** How it is at this moment; asks nothing of the store. */
  health(): WorkerHealth {
    const { partitions } = this.connection.storage
    if (partitions === undefined) return this.all[0]!.health()
    return healthTogether(Object.fromEntries([...this.lives].map(([name, life]) => [name, life.health()])))
  }

  private get all(): Life[] {
    return [...this.lives.values()]
  }

  private get isOn(): boolean {
    return this.all.some((life) => life.isOn)
  }

  /** A job of one store may enqueue one for another: empty is what all are at once. */
  private async whenEmpty(over: AbortSignal): Promise<void> {
    do {
      await Promise.all(this.all.map((life) => life.whenEmpty()))
    } while (!over.aborted && this.all.some((life) => !life.isEmpty))
  }

  /** On several stores it is a worker of each, with its share of the slots: no lease, beat or fence of one is known to another. */
  private made(): Map<string, Life> {
    const { connection, settings, handlers } = this
    const company = new Company()
    const onFailure = (failure: { reason: string; cause?: unknown }): void => this.onFailure(failure)
    const shared = { handlers, company, onFailure }
    const { partitions } = connection.storage
    if (partitions === undefined)
      return new Map([['', new Life({ ...shared, connection, settings, ready: undefined })]])
    const slots = slotsOf(settings.concurrency, partitions.all.length)
    return new Map(
      partitions.all.map(({ name, storage, ready }, index) => [
        name,
        new Life({
          ...shared,
          connection: { ...connection, storage },
          settings: { ...settings, concurrency: slots[index]! },
          ready: () => ready.call(partitions.all[index]),
        }),
      ]),
    )
  }

  private async end(graceMs: number, reason: string): Promise<void> {
    await Promise.all(this.all.map((life) => life.end(graceMs, reason)))
  }

  private onFailure({ reason, cause }: { reason: string; cause?: unknown }): void {
    if (this.failure) return
    this.failure = new QueueError('WORKER_STOPPED', `the worker stopped itself: ${reason}`, { cause })
    void this.end(cause === undefined ? this.settings.graceMs : 0, reason)
  }

  private handleSignals(): () => void {
    return onSignals((signal, before) => void this.end(before === 0 ? this.settings.graceMs : 0, signal))
  }
}

/** As even as can be; each store has one at least. */
function slotsOf(concurrency: number, stores: number): number[] {
  if (concurrency < stores)
    throw badRelation(
      'concurrency',
      `${concurrency} slots are too few for ${stores} partitions; each needs one at least`,
    )
  return Array.from(
    { length: stores },
    (_, index) => Math.floor(concurrency / stores) + Number(index < concurrency % stores),
  )
}
