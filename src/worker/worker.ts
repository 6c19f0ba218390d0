/** A worker: takes jobs of its queues and runs their handlers. What users start and stop; a session does the work. */
import { type Duration, durationMs } from '../core/duration.js'
import { QueueError } from '../core/errors.js'
import type { BoundHandler } from '../core/handler.js'
import { silenceMsMax } from '../core/polling.js'
import type { Connection } from '../storage/connection.js'
import { readHandlers, readWorkerOptions, type WorkerOptions, type WorkerSettings } from './options.js'
import { Session } from './session.js'
import { onSignals } from './signals.js'
import { emptyStats, type Stats } from './stats.js'

/**
 * Why a worker does not do all of its work. `draining`: it takes no new jobs and will stop. `unregistered`: the store has
 * not answered a beat of it yet. `leases doubtful`: no beat was confirmed for a whole lease, so nothing starts. `no claim
 * answered`: it has room for jobs, and for longer than a poll and three seconds no claim was answered. `store failing`:
 * the last try of the operations in `failing` failed. `slots stuck`: code goes on although its attempt has ended.
 */
export type HealthReason =
  | 'draining'
  | 'unregistered'
  | 'leases doubtful'
  | 'no claim answered'
  | 'store failing'
  | 'slots stuck'

/** How a worker is, for probes. `degraded`: it is up and does not do all of its work; `why` says why not. */
export interface WorkerHealth {
  status: 'ok' | 'degraded' | 'stopped'
  /** Every reason there is, the first ones explaining the others; empty unless it is degraded. */
  why: HealthReason[]
  id: string | undefined
  /** It takes no new jobs and will stop. */
  draining: boolean
  /** Null while no claim was answered. Grows while all slots are busy. */
  lastClaimAgoMs: number | null
  /** For how long it has had room for jobs and no answer to a claim; 0 while all slots are busy. */
  noClaimAnsweredForMs: number
  /** For how long the leases are unconfirmed; null while no beat was answered. */
  lastBeatAgoMs: number | null
  /** For how long the store has failed some operation; 0 when it does not. */
  storeFailingForMs: number
  /** The operations that it fails, such as `claim`, `beat`, `settle` or `prune`. */
  failing: string[]
  /** Slots taken. */
  running: number
  concurrency: number
  /** Claimed jobs that wait for a slot. */
  prefetched: number
  /** Outcomes that the store has not confirmed yet. */
  unconfirmed: number
  /** Slots whose code goes on although their attempts have ended. */
  stuck: number
}

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
  private session: Session | undefined
  private last: Session | undefined
  /** Whether there shall be a session once the present one is down. */
  private wanted = false
  private failure: QueueError | undefined

  constructor(
    private readonly connection: Connection,
    handlers: readonly BoundHandler[],
    options?: WorkerOptions,
  ) {
    this.handlers = readHandlers(handlers)
    this.settings = readWorkerOptions(options, this.handlers.values())
  }

  /** As the store knows it; a new one for each start, and after the store has written the worker off. */
  get id(): string | undefined {
    return this.last?.identity.worker
  }

  /** Starts it, or lets it start again after a stop that is under way. A store that is away is waited for. */
  async start(): Promise<void> {
    this.wanted = true
    this.failure = undefined
    if (!this.session) this.begin()
    else if (this.session.shutdown.begun) await this.session.shutdown.done
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
      while (this.session) await this.session.shutdown.done
    } finally {
      unlisten()
    }
    if (this.failure) throw this.failure
  }

  /** Runs until nothing is ready in its queues and nothing of its own is unfinished, or `maxMs` are over; then stops. */
  async runUntilEmpty(options: { maxMs?: Duration } = {}): Promise<Stats> {
    if (this.session)
      throw new QueueError('WORKER_STOPPED', 'the worker is running already; runUntilEmpty() starts it itself')
    const maxMs = options.maxMs === undefined ? undefined : durationMs(options.maxMs, 'runUntilEmpty.maxMs')
    await this.start()
    const session = this.session!
    const timeUp = new Promise<void>((resolve) => {
      if (maxMs === undefined) return
      const timer = this.connection.env.timer(maxMs, resolve)
      void session.shutdown.done.then(() => timer.cancel())
    })
    await Promise.race([session.whenEmpty(), timeUp, session.shutdown.done])
    await this.stop()
    if (this.failure) throw this.failure
    return session.stats
  }

  /** Counts since the last start. */
  stats(): Stats {
    return { ...(this.last?.stats ?? emptyStats()) }
  }

  /** How it is at this moment; asks nothing of the store. */
  health(): WorkerHealth {
    const { session, last } = this
    const now = this.connection.env.monotonic()
    const ago = (at: number | undefined): number | null =>
      at === undefined || at === Number.NEGATIVE_INFINITY ? null : now - at
    const why = session ? this.reasons(session, now) : []
    return {
      status: session ? (why.length === 0 ? 'ok' : 'degraded') : 'stopped',
      why,
      id: this.id,
      draining: session?.shutdown.begun ?? false,
      lastClaimAgoMs: ago(last?.fetcher.lastAnswerAt),
      noClaimAnsweredForMs: session?.fetcher.silentMs(now) ?? 0,
      lastBeatAgoMs: ago(last?.heartbeat.confirmedAt),
      storeFailingForMs: session?.calls.failingForMs ?? 0,
      failing: session?.calls.failingOperations ?? [],
      running: session?.executor.busy ?? 0,
      concurrency: this.settings.concurrency,
      prefetched: session?.fetcher.waiting ?? 0,
      unconfirmed: session?.settler.size ?? 0,
      stuck: session?.stuck ?? 0,
    }
  }

  private reasons({ shutdown, heartbeat, fetcher, calls, stuck }: Session, now: number): HealthReason[] {
    const holds: Record<HealthReason, boolean> = {
      draining: shutdown.begun,
      unregistered: !heartbeat.registered,
      'leases doubtful': heartbeat.registered && !heartbeat.surelyHeld(now),
      // Beats have a connection of their own: they tell nothing of whether jobs come.
      'no claim answered': !shutdown.begun && fetcher.silentMs(now) > silenceMsMax(this.settings.pollMs),
      'store failing': calls.failingOperations.length > 0,
      'slots stuck': stuck > 0,
    }
    return (Object.keys(holds) as HealthReason[]).filter((reason) => holds[reason])
  }

  private begin(): void {
    const session = new Session(this.connection, this.settings, this.handlers, {
      onFailure: (failure) => this.onFailure(failure),
    })
    this.session = session
    this.last = session
    void session.shutdown.done.then(() => {
      this.session = undefined
      if (this.wanted) this.begin()
    })
    session.start()
  }

  private async end(graceMs: number, reason: string): Promise<void> {
    this.wanted = false
    await this.session?.shutdown.begin(graceMs, reason)
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
