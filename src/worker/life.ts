/** The lives of a worker on one store: one session after the other, as long as there shall be one. Made by worker.ts. */
import type { BoundHandler } from '../core/handler.js'
import { silenceMsMax, storeRetryMs } from '../core/polling.js'
import type { Connection } from '../storage/connection.js'
import type { Company } from './company.js'
import type { HealthReason, StoreHealth } from './health.js'
import type { WorkerSettings } from './options.js'
import { Session, type SessionEnds } from './session.js'

export interface LifeParts {
  readonly connection: Connection
  readonly settings: WorkerSettings
  readonly handlers: ReadonlyMap<string, BoundHandler>
  /** The other stores of the worker, in the same process. */
  readonly company: Company
  /** Of one of several stores: resolves when it is fit for use. */
  readonly ready: (() => Promise<void>) | undefined
  readonly onFailure: SessionEnds['onFailure']
}

export class Life {
  session: Session | undefined
  /** The present session, or the one before. */
  last: Session | undefined
  /** Whether there shall be a session once the present one is down. */
  private wanted = false
  /** Its store has been waited for since, by the local clock. */
  private opening: { since: number; over: AbortController; done: Promise<void> } | undefined

  constructor(private readonly parts: LifeParts) {}

  get isOn(): boolean {
    return this.session !== undefined || this.opening !== undefined
  }

  /** Starts it, or lets it start again after a stop that is under way: then that is what there is to wait for. */
  start(): Promise<void> | undefined {
    this.wanted = true
    if (!this.isOn) this.begin()
    else if (this.session?.shutdown.begun) return this.session.shutdown.done
    return undefined
  }

  async end(graceMs: number, reason: string): Promise<void> {
    this.wanted = false
    if (this.opening) {
      this.opening.over.abort()
      await this.opening.done
    }
    await this.session?.shutdown.begin(graceMs, reason)
  }

  /** Resolves when the present session is down, or was never begun. */
  async down(): Promise<void> {
    await this.opening?.done
    await this.session?.shutdown.done
  }

  /** Resolves when nothing is ready in its queues and nothing of its own is unfinished; of a store that is away, when it is back. */
  async whenEmpty(): Promise<void> {
    if (this.opening) await this.opening.done
    if (this.session) await Promise.race([this.session.whenEmpty(), this.session.shutdown.done])
  }

  /** Nothing has come since it was found empty. */
  get isEmpty(): boolean {
    return this.session === undefined || (this.session.idle && this.session.fetcher.foundNothing)
  }

  health(): StoreHealth {
    const { session, last, parts } = this
    const now = parts.connection.env.monotonic()
    const ago = (at: number | undefined): number | null =>
      at === undefined || at === Number.NEGATIVE_INFINITY ? null : now - at
    const why = this.reasons(now)
    return {
      status: this.isOn ? (why.length === 0 ? 'ok' : 'degraded') : 'stopped',
      why,
      id: last?.identity.worker,
      draining: session?.shutdown.begun ?? false,
      lastClaimAgoMs: ago(last?.fetcher.lastAnswerAt),
      noClaimAnsweredForMs: session?.fetcher.silentMs(now) ?? 0,
      lastBeatAgoMs: ago(last?.heartbeat.confirmedAt),
      storeFailingForMs: this.opening ? now - this.opening.since : (session?.calls.failingForMs ?? 0),
      failing: this.opening ? ['open'] : (session?.calls.failingOperations ?? []),
      running: session?.executor.busy ?? 0,
      concurrency: parts.settings.concurrency,
      prefetched: session?.fetcher.waiting ?? 0,
      unconfirmed: session?.settler.size ?? 0,
      stuck: session?.stuck ?? 0,
    }
  }

  private reasons(now: number): HealthReason[] {
    if (this.opening) return ['unregistered', 'store failing']
    if (this.session === undefined) return []
    const { shutdown, heartbeat, fetcher, calls, stuck } = this.session
    const holds: Record<HealthReason, boolean> = {
      draining: shutdown.begun,
      unregistered: !heartbeat.registered,
      'leases doubtful': heartbeat.registered && !heartbeat.surelyHeld(now),
      // Beats have a connection of their own: they tell nothing of whether jobs come.
      'no claim answered': !shutdown.begun && fetcher.silentMs(now) > silenceMsMax(this.parts.settings.pollMs),
      'store failing': calls.failingOperations.length > 0,
      'slots stuck': stuck > 0,
    }
    return (Object.keys(holds) as HealthReason[]).filter((reason) => holds[reason])
  }

  private begin(): void {
    const { ready } = this.parts
    if (ready === undefined) {
      this.live()
      return
    }
    const over = new AbortController()
    const opening = { since: this.parts.connection.env.monotonic(), over, done: Promise.resolve() }
    this.opening = opening
    opening.done = this.open(ready, over.signal).then(() => {
      this.opening = undefined
      if (!this.wanted) return
      // Stopped and started again while it was waited for.
      if (over.signal.aborted) this.begin()
      else this.live()
    })
  }

  /** A store that is away is waited for: those of the others are worked on meanwhile. */
  private async open(ready: () => Promise<void>, over: AbortSignal): Promise<void> {
    const { env } = this.parts.connection
    const stopped = new Promise<void>((resolve) => over.addEventListener('abort', () => resolve(), { once: true }))
    for (let tries = 1; !over.aborted; tries++) {
      try {
        await Promise.race([ready(), stopped])
        return
      } catch {
        // The partition itself keeps what is wrong with it.
        await env.sleep(storeRetryMs(tries, env.random()), over)
      }
    }
  }

  private live(): void {
    const { connection, settings, handlers, company, onFailure } = this.parts
    const session = new Session(connection, settings, handlers, { onFailure, company })
    this.session = session
    this.last = session
    void session.shutdown.done.then(() => {
      this.session = undefined
      if (this.wanted) this.begin()
    })
    session.start()
  }
}
