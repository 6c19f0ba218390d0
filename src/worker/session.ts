/**
 * One life of a worker, from start to stop: makes its parts, wires them, and takes them down in order. Made by
 * worker.ts, which may make another one afterwards.
 */
import type { Timer } from '../core/env.js'
import type { BoundHandler } from '../core/handler.js'
import { Paces } from '../core/prefetch.js'
import type { Connection } from '../storage/connection.js'
import type { BeatAnswer, Storage, WorkerInfo } from '../storage/storage.js'
import type { Company } from './company.js'
import { Endings } from './endings.js'
import { Executor } from './executor.js'
import { Fetcher } from './fetcher.js'
import { Hearing } from './hearing.js'
import { Heartbeat, type Identity } from './heartbeat.js'
import { Holdings } from './holdings.js'
import type { WorkerSettings } from './options.js'
import { Settler } from './settler.js'
import { Shutdown } from './shutdown.js'
import { emptyStats } from './stats.js'
import { StoreCalls } from './store-calls.js'
import { Upkeep } from './upkeep.js'
import { Watch } from './watch.js'

/** A store that writes every new identity off at once must not make us register in a hot loop. */
const IDENTITY_MS_MIN = 1_000

/** More kinds are not told: each beat carries them. */
const KINDS_TOLD_MAX = 200
/** To listen and to beat. */
const OWN_CONNECTIONS = 2

export interface SessionEnds {
  /** The other sessions of this process. */
  readonly company: Company
  /** The session cannot go on: half of its slots hang, or the connection was closed. It has to be stopped. */
  readonly onFailure: (failure: { reason: string; cause?: unknown }) => void
}

export class Session {
  readonly identity: Identity
  readonly stats = emptyStats()
  readonly holdings = new Holdings()
  readonly settler: Settler
  readonly executor: Executor
  readonly fetcher: Fetcher
  readonly heartbeat: Heartbeat
  readonly calls: StoreCalls
  readonly upkeep: Upkeep
  readonly hearing: Hearing
  readonly watch: Watch
  readonly shutdown: Shutdown
  /** Handlers that go on although their attempts have ended, when last looked at. */
  stuck = 0
  /** The leases may have been taken over: nothing starts until a beat is answered. */
  doubtful = false
  private readonly endings: Endings
  private readonly ended = new AbortController()
  private onEmpty: (() => void) | undefined
  private newIdentity: Timer | undefined
  private identityAt = Number.NEGATIVE_INFINITY

  constructor(
    readonly connection: Connection,
    readonly settings: WorkerSettings,
    handlers: ReadonlyMap<string, BoundHandler>,
    private readonly ends: SessionEnds,
  ) {
    const { env, events, storage } = connection
    const { stats, holdings } = this
    const paces = new Paces()
    this.identity = { worker: env.id(), known: 0 }
    this.calls = new StoreCalls(env, events, this.ended.signal, () => this.upkeep.retry())
    const { identity, calls } = this
    const shared = { env, events, storage, calls, settings, handlers, identity, holdings, paces, stats }
    const onFatal = (cause: unknown): void => ends.onFailure({ reason: 'the store can never be asked again', cause })
    this.settler = new Settler({ env, storage, calls, onRoom: () => this.fetcher.pump(), onFatal })
    const { settler } = this
    this.endings = new Endings({ ...shared, settler, onClosed: () => this.onClosed() })
    const { endings } = this
    const info = infoOf(settings, [...handlers.keys()], storage)
    const onGone = (): void => this.onGone()
    const busy = (): number => this.executor.busy
    this.heartbeat = new Heartbeat({ ...shared, info, busy, onGone, onAnswer: (answer) => this.onBeat(answer) })
    const { heartbeat } = this
    this.executor = new Executor({
      ...shared,
      settler,
      endings,
      surelyHeld: (now) => heartbeat.surelyHeld(now),
      onFree: () => this.onFree(),
    })
    const { executor } = this
    const { company } = ends
    this.upkeep = new Upkeep({ ...shared, onReady: () => this.fetcher.hint() })
    this.fetcher = new Fetcher({
      ...shared,
      company,
      settler,
      endings,
      executor,
      heartbeat,
      onGone,
      onFatal,
      onNextDue: (inMs) => settings.upkeep && this.upkeep.nextDue(inMs),
      onAnswer: () => this.changed(),
    })
    this.hearing = new Hearing(connection, calls, info.queues, this.fetcher)
    this.watch = new Watch(env, (now, blockedMs) => this.look(now, blockedMs))
    this.shutdown = new Shutdown(this, () => {
      this.newIdentity?.cancel()
      this.ended.abort()
      company.leave(this.fetcher)
    })
  }

  start(): void {
    const { settings, connection, identity } = this
    this.ends.company.join(this.fetcher)
    this.heartbeat.start()
    this.hearing.start()
    if (settings.upkeep) this.upkeep.start()
    this.watch.start()
    connection.events.emit({
      type: 'worker.started',
      worker: identity.worker,
      queues: settings.queues.map(({ queue }) => queue),
      concurrency: settings.concurrency,
    })
  }

  /** Nothing waits for a slot, runs, or is to be settled. */
  get idle(): boolean {
    return this.executor.busy === 0 && this.fetcher.waiting === 0 && this.settler.size === 0
  }

  /** Resolves when nothing is ready for this worker's queues and nothing of its own is unfinished. */
  whenEmpty(): Promise<void> {
    return new Promise((resolve) => {
      this.onEmpty = resolve
      this.fetcher.hint()
    })
  }

  private onFree(): void {
    this.fetcher.pump()
    this.changed()
  }

  private onClosed(): void {
    // A suspect may be waiting for the last of the others to be settled.
    if (this.holdings.size <= 1) this.fetcher.pump()
    // What was settled may be ready again: only a claim after it can tell that nothing is.
    if (this.onEmpty && this.idle) this.fetcher.hint()
    this.changed()
  }

  private changed(): void {
    this.shutdown.changed()
    if (this.onEmpty && this.fetcher.foundNothing && this.idle) this.onEmpty()
  }

  private onBeat(answer: BeatAnswer): void {
    for (const fence of answer.lost) this.onLost(fence)
    for (const [fence, ordinal] of answer.cancel) this.onCancel(fence, ordinal)
    this.fetcher.paused(answer.paused)
    this.doubtful = false
    this.fetcher.forgetEnded()
    this.changed()
  }

  /**
   * A job of it that was handed to the settler is left to the answer that its settlement gets: this beat may have
   * been sent before that settlement arrived, and then the lease is not lost but done.
   */
  private onLost(fence: number): void {
    const lease = this.holdings.get(fence)
    if (!lease) return
    this.holdings.drop(fence)
    for (const held of lease.jobs) {
      if (held.state === 'waiting') this.endings.lose(held)
      else if (held.state !== 'ended') this.executor.lose(held)
    }
  }

  private onCancel(fence: number, ordinal: number): void {
    const held = this.holdings.get(fence)?.jobs.find((one) => one.ordinal === ordinal)
    if (held?.state === 'waiting') this.endings.end(held, { type: 'cancelled' })
    else if (held && held.state !== 'ended') this.executor.cancel(held)
  }

  /** Written off: whatever this worker held is or will be somebody else's. It goes on as a new worker. */
  private onGone(): void {
    const { connection, identity, executor } = this
    const { env, events } = connection
    events.emit({ type: 'worker.written off', worker: identity.worker, running: executor.undecided })
    for (const lease of this.holdings.clear()) {
      for (const held of lease.jobs) {
        if (held.state === 'waiting') this.endings.lose(held)
        else if (held.state !== 'ended') executor.lose(held)
      }
    }
    identity.worker = env.id()
    identity.known = 0
    this.fetcher.reset()
    this.changed()
    if (this.shutdown.begun) return
    const waitMs = Math.max(0, this.identityAt + IDENTITY_MS_MIN - env.monotonic())
    this.identityAt = env.monotonic() + waitMs
    if (waitMs === 0) this.heartbeat.now()
    // Until then the next beat in turn may register it, which is as good.
    else this.newIdentity = env.timer(waitMs, () => this.heartbeat.now())
  }

  private look(now: number, blockedMs: number): void {
    const { events } = this.connection
    const { worker } = this.identity
    if (blockedMs > 0) events.emit({ type: 'worker.loop blocked', worker, blockedMs })
    if (this.heartbeat.registered && !this.doubtful && !this.heartbeat.surelyHeld(now)) this.doubt()
    this.fetcher.tick(now)
    this.stuck = this.executor.stuck(this.settings.concurrency)
    if (this.stuck * 2 >= this.settings.concurrency)
      this.ends.onFailure({ reason: `the code of ${this.stuck} ended attempts does not end; a new process is needed` })
  }

  /** No beat was confirmed for a whole lease: others may take over, so the handlers have to end. */
  private doubt(): void {
    this.doubtful = true
    const jobs = this.executor.stopAll('LEASE_LOST')
    if (this.holdings.size === 0) return
    const sinceBeatMs = this.heartbeat.sinceConfirmedMs
    this.connection.events.emit({ type: 'worker.leases lost', worker: this.identity.worker, jobs, sinceBeatMs })
  }
}

/** What people and tools see of this worker. */
function infoOf(settings: WorkerSettings, kinds: string[], { connections }: Storage): WorkerInfo {
  const { name, queues, concurrency, leaseMs, beatMs, upkeep, retention } = settings
  return {
    name,
    queues: queues.map(({ queue }) => queue),
    concurrency,
    leaseMs,
    beatMs,
    ...(kinds.length > KINDS_TOLD_MAX ? {} : { kinds }),
    ...(connections === undefined ? {} : { connections: connections + OWN_CONNECTIONS }),
    ...(upkeep ? { completedMs: retention.completedMs } : {}),
  }
}
