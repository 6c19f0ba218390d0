/**
 * Keeps the slots filled: when to claim, how much, and what waits for a slot. One claim at a time for the whole
 * process. Woken by ended jobs, hints, the poll and the watch; wired by session.ts.
 */
import type { Env, Timer } from '../core/env.js'
import type { BoundHandler } from '../core/handler.js'
import { claimLimit, type Paces, prefetchBeyond, SLOW_MS } from '../core/prefetch.js'
import { sharesOf, type WeightedQueue } from '../core/shares.js'
import type { EventBus } from '../observe/events.js'
import type { Claim, ClaimRequest, Storage } from '../storage/storage.js'
import { Buffer } from './buffer.js'
import { ClaimCall } from './claim-call.js'
import type { Companion, Company } from './company.js'
import type { Endings } from './endings.js'
import type { Executor } from './executor.js'
import type { Heartbeat, Identity } from './heartbeat.js'
import type { HeldJob, Holdings } from './holdings.js'
import type { WorkerSettings } from './options.js'
import { Polls } from './polls.js'
import type { Settler } from './settler.js'
import type { Stats } from './stats.js'
import type { StoreCalls } from './store-calls.js'
import { tellClaimed } from './telling.js'

/** Handlers that end at once are run in a row for so long; then I/O, timers and beats get their turn. */
const TURN_MS_MAX = 1
/** A prefetched job that has waited for so many windows is given back: somebody else may have a slot for it. */
const OVERDUE_WINDOWS = 5
/** How often a worker offers to run a suspect, which costs it everything else for a while. */
const SUSPECTS_MS = 250
/** The same while a slow handler runs, for which all the other slots would have to wait. */
const SUSPECTS_MS_SLOW = 10_000
/** A slow job's slot may stay free for a moment, so that slots freed one by one do not make a claim each. */
const GATHER_MS_MAX = 10
const SERIAL_WEIGHT = 0.1
const ELSEWHERE_ALONE = 'a suspect of another store has to run alone in this process'

export interface FetcherParts {
  readonly env: Env
  readonly events: EventBus
  readonly storage: Storage
  readonly calls: StoreCalls
  readonly settings: WorkerSettings
  readonly handlers: ReadonlyMap<string, BoundHandler>
  readonly identity: Identity
  readonly holdings: Holdings
  readonly settler: Settler
  readonly endings: Endings
  readonly executor: Executor
  readonly heartbeat: Heartbeat
  readonly paces: Paces
  readonly stats: Stats
  /** The other sessions of this process. */
  readonly company: Company
  /** The store has written this worker off. */
  readonly onGone: () => void
  /** For how long no delayed job will be due. */
  readonly onNextDue: (inMs: number) => void
  /** A claim was answered. */
  readonly onAnswer: () => void
  /** The store can never be asked again. */
  readonly onFatal: (error: unknown) => void
}

export class Fetcher implements Companion {
  /** By the local clock; when the last claim was answered. */
  lastAnswerAt = Number.NEGATIVE_INFINITY
  /** By the local clock; until then the loop had an answer, or no reason to ask. */
  private quietSince: number
  /** The last claim asked for everything and got nothing, and nothing has happened since. */
  foundNothing = false
  private readonly buffer = new Buffer()
  private readonly kinds: string[]
  private readonly stopping = new AbortController()
  private queues: WeightedQueue[]
  private requests = 0
  private flight: ClaimCall | undefined
  private readonly landed: (() => void)[] = []
  private readonly polls: Polls
  private gather: Timer | undefined
  private gathered = false
  private pumping = false
  private yielding = false
  /** Jobs worth having beyond the free slots. */
  private beyond = 0
  private apart: string[] = []
  /** For how long one start keeps the loop busy, smoothed. */
  private serialMs = 0
  private suspectsAskedAt = Number.NEGATIVE_INFINITY
  /** A suspect that waits until nothing else is held, or runs. */
  private alone: HeldJob | undefined

  constructor(private readonly parts: FetcherParts) {
    this.kinds = [...parts.handlers.keys()]
    this.quietSince = parts.env.monotonic()
    this.queues = parts.settings.queues.map((queue) => ({ ...queue, credit: 0, turn: 0 }))
    this.polls = new Polls(parts.env, parts.settings.pollMs, () => this.pump())
    this.measure()
  }

  /** For how long the loop has had room for jobs and no answer to a claim. 0 while all slots are taken. */
  silentMs(now: number): number {
    return this.asks ? now - this.quietSince : 0
  }

  get waiting(): number {
    return this.buffer.size + (this.alone?.state === 'waiting' ? 1 : 0)
  }

  /** While the store fails claims, one that is under way is taken to have brought nothing: it may never be answered. */
  get rests(): boolean {
    const { executor, holdings, calls } = this.parts
    const flies = this.flight !== undefined && !calls.failingOperations.includes('claim')
    return executor.busy === 0 && holdings.size === 0 && !flies
  }

  get hangs(): boolean {
    return this.parts.executor.left > 0 && this.parts.executor.undecided === 0
  }

  /** A suspect of another store wants to run alone in this process. */
  withdraw(): void {
    this.giveBack(
      this.buffer.remove(() => true),
      ELSEWHERE_ALONE,
    )
  }

  /** Starts what can start, then claims if that is due. Called whenever a slot, a beat or an answer came. */
  pump(): void {
    if (this.pumping) return
    this.pumping = true
    try {
      this.fillSlots()
    } finally {
      this.pumping = false
    }
    if (this.alone) this.tryAlone()
    this.consider()
    this.parts.company.stirred(this)
  }

  /** There may be work: claim at once, or again after the claim that is under way. */
  hint(from: 'store' | 'here' = 'here'): void {
    this.foundNothing = false
    this.polls.hint(from)
  }

  /** The store's hints come no longer: until they do again polling is all there is. */
  deaf(): void {
    this.foundNothing = false
    this.polls.deaf()
  }

  /** Jobs that wait and have ended meanwhile (lost, cancelled) are forgotten. */
  forgetEnded(): void {
    this.buffer.remove((held) => held.state !== 'waiting')
    this.pump()
  }

  /** Of a paused queue nothing starts any more. */
  paused(queues: readonly string[]): void {
    if (queues.length === 0 || this.buffer.size === 0) return
    this.giveBack(
      this.buffer.remove(({ job }) => queues.includes(job.queue)),
      'the queue is paused',
    )
  }

  /** Now and then, by the watch: measures anew, and gives back what has waited for too long. */
  tick(now: number): void {
    if (!this.asks) this.quietSince = now
    this.measure()
    const { settler, settings } = this.parts
    const patienceMs = Math.max(OVERDUE_WINDOWS * settings.prefetchWindowMs, SUSPECTS_MS)
    const oldest = this.buffer.first()
    // A store that cannot take outcomes is the reason for the wait, and would not be helped by more of them.
    if (oldest && !settler.full && now - oldest.lease.claimedAt > patienceMs)
      this.giveBack(
        this.buffer.remove(({ lease }) => now - lease.claimedAt > patienceMs),
        'prefetched, and no slot came free',
      )
    this.pump()
  }

  /** The worker has a new identity: all that it held is gone, and the claim under way was somebody else's. */
  reset(): void {
    this.buffer.remove(() => true)
    this.endAlone()
    this.requests = 0
    this.flight?.unload(this.parts.settler)
    this.flight = undefined
    this.parts.settler.riding = false
    this.polls.reset()
  }

  /** No claim begins after it; what waits for a slot is given back. Resolves when the claim under way has ended too. */
  stop(): Promise<void> {
    this.stopping.abort()
    this.polls.stop()
    this.gather?.cancel()
    this.flight?.unload(this.parts.settler)
    this.giveBack(
      this.buffer.remove(() => true),
      'shutdown',
    )
    if (this.alone?.state === 'waiting') this.giveBack([this.alone], 'shutdown')
    if (!this.flight) return Promise.resolve()
    return new Promise((resolve) => this.landed.push(resolve))
  }

  private fillSlots(): void {
    const { env, executor, settler, heartbeat, settings } = this.parts
    let now = env.monotonic()
    const until = now + TURN_MS_MAX
    while (executor.busy < settings.concurrency && this.buffer.size > 0 && !settler.full) {
      if (!heartbeat.surelyHeld(now)) return
      if (now > until) {
        this.yieldTurn()
        return
      }
      const held = this.buffer.shift()!
      if (held.state === 'waiting') executor.run(held, now)
      const before = now
      now = env.monotonic()
      this.serialMs += SERIAL_WEIGHT * (now - before - this.serialMs)
      this.consider()
    }
  }

  private yieldTurn(): void {
    if (this.yielding) return
    this.yielding = true
    this.parts.env.soon(() => {
      this.yielding = false
      this.pump()
    })
  }

  /** Claims if there is room, and reason to think that there is work. */
  private consider(): void {
    if (this.flight || this.alone || this.polls.rests || this.stopping.signal.aborted) return
    if (this.parts.company.isClosedTo(this)) return
    const limit = this.limit()
    if (limit === 0) return
    const now = this.parts.env.monotonic()
    if (!this.parts.heartbeat.registered || !this.parts.heartbeat.surelyHeld(now)) return
    if (this.gathers()) return
    this.claim(limit, now)
  }

  /** Whether a claim should be answered before long. Outcomes that the store does not take are no excuse for silence. */
  private get asks(): boolean {
    if (this.flight !== undefined) return true
    if (this.alone !== undefined || this.parts.company.isClosedTo(this)) return false
    return this.parts.settler.full || this.limit() > 0
  }

  private limit(): number {
    const { executor, settler, settings } = this.parts
    if (settler.full) return 0
    const free = settings.concurrency - executor.busy
    return claimLimit({ free, buffered: this.buffer.size, beyond: this.beyond, max: this.most() })
  }

  /** Handlers that keep the loop busy run one after another, whatever the number of slots. */
  private most(): number {
    const { claimBatch, prefetchWindowMs } = this.parts.settings
    if (prefetchWindowMs === 0 || this.serialMs === 0) return claimBatch
    return Math.max(1, Math.min(claimBatch, Math.ceil((OVERDUE_WINDOWS * prefetchWindowMs) / 2 / this.serialMs)))
  }

  /** Whether to wait a moment for more slots: only where jobs are slow and most slots are taken. */
  private gathers(): boolean {
    const { env, executor, settings, paces } = this.parts
    const free = settings.concurrency - executor.busy
    if (this.gathered || this.beyond > 0 || free * 4 >= settings.concurrency) {
      this.gathered = false
      return false
    }
    this.gather ??= env.timer(Math.min(GATHER_MS_MAX, paces.meanMs(settings.prefetchWindowMs) / 50), () => {
      this.gather = undefined
      this.gathered = true
      this.pump()
    })
    return true
  }

  private claim(limit: number, now: number): void {
    const { parts } = this
    const { queues, shares } = sharesOf(this.queues, limit)
    this.queues = queues
    this.requests += 1
    const request: ClaimRequest = {
      worker: parts.identity.worker,
      request: this.requests,
      queues: shares,
      limit,
      kinds: this.kinds,
      apart: this.apart,
      pollMs: parts.settings.pollMs,
      suspects: this.offersSuspects(now),
    }
    this.polls.sent()
    parts.settler.riding = true
    const flight = new ClaimCall(request, parts.settler.take(), () => parts.env.monotonic())
    this.flight = flight
    void this.fly(flight)
  }

  private async fly(flight: ClaimCall): Promise<void> {
    const { storage, calls, settler, identity } = this.parts
    try {
      const claim = await flight.send(storage, calls, settler, () => identity.worker, this.stopping.signal)
      flight.deliver(settler, claim)
      if (this.flight === flight) this.answered(flight, claim)
    } catch (error) {
      flight.unload(settler)
      if (this.flight === flight) this.land()
      if (!this.stopping.signal.aborted && flight.request.worker === identity.worker) this.parts.onFatal(error)
    }
  }

  private land(): void {
    this.flight = undefined
    this.parts.settler.riding = false
    for (const resolve of this.landed.splice(0)) resolve()
  }

  private answered(flight: ClaimCall, claim: Claim): void {
    const { parts } = this
    this.land()
    this.lastAnswerAt = this.quietSince = parts.env.monotonic()
    if (claim.status === 'gone') {
      parts.onGone()
      return
    }
    const jobs = this.take(flight, claim)
    if (this.stopping.signal.aborted) this.giveBack(jobs, 'shutdown')
    else if (parts.company.isClosedTo(this)) this.giveBack(jobs, ELSEWHERE_ALONE)
    else if (jobs[0]?.lease.alone) this.beginAlone(jobs[0])
    else this.buffer.push(jobs)
    this.paused(claim.paused)
    if (claim.nextDueMs !== null) parts.onNextDue(claim.nextDueMs)
    if (!this.stopping.signal.aborted) this.plan(flight.request, claim, jobs.length)
    parts.onAnswer()
    this.pump()
  }

  private take({ request, sentAt }: ClaimCall, claim: Claim): HeldJob[] {
    const { parts } = this
    parts.identity.known = request.request
    const facts = { worker: request.worker, claimedAt: sentAt, storeNowMs: claim.nowMs }
    const jobs = claim.leases.flatMap((lease) => parts.holdings.add(lease, facts))
    parts.stats.claimed += jobs.length
    const queues = new Map(this.queues.map((queue) => [queue.queue, queue]))
    for (const { job } of jobs) queues.get(job.queue)!.turn += 1
    parts.paces.claimed(jobs.map(({ job }) => job.kind))
    if (parts.events.active) for (const held of jobs) tellClaimed(parts.events, held)
    return jobs
  }

  /** When to claim next: at once while there is more, else by hint or poll. */
  private plan(request: ClaimRequest, claim: Claim, got: number): void {
    const dueNow = claim.nextDueMs !== null && claim.nextDueMs <= 0 && this.parts.settings.upkeep
    const nothing = got === 0 && !claim.more && claim.limited.length === 0
    this.foundNothing = nothing && request.suspects && !this.polls.hinted && !dueNow
    this.polls.answered(got, claim.more || this.alone !== undefined, claim.nextTokenMs)
    this.measure()
  }

  private measure(): void {
    const { env, paces, settings, executor, handlers } = this.parts
    const windowMs = settings.prefetchWindowMs
    const quickSlots = settings.concurrency - executor.slowSlots(windowMs, env.monotonic())
    // Two batches: while one is fetched another is there to run.
    const max = 2 * settings.claimBatch
    this.beyond = prefetchBeyond({ quickSlots, meanMs: paces.meanMs(windowMs), windowMs, max })
    const once = [...handlers.values()].filter(({ delivery }) => delivery === 'at-most-once').map(({ kind }) => kind)
    this.apart = [...new Set([...once, ...paces.slow()])]
  }

  private offersSuspects(now: number): boolean {
    const { executor } = this.parts
    if (executor.left > 0) return false
    const idle = executor.busy === 0 && this.buffer.size === 0 && this.parts.company.restsBeside(this)
    const pauseMs = executor.slowSlots(SLOW_MS, now) > 0 ? SUSPECTS_MS_SLOW : SUSPECTS_MS
    if (!idle && now - this.suspectsAskedAt < pauseMs) return false
    this.suspectsAskedAt = now
    return true
  }

  /** A suspect came: nothing else may be held when it runs, as whatever is held when it kills us becomes suspect too. */
  private beginAlone(held: HeldJob): void {
    this.alone = held
    this.parts.company.enter(this)
    this.giveBack(
      this.buffer.remove(() => true),
      'a suspect has to run alone here',
    )
  }

  private tryAlone(): void {
    const { executor, holdings, heartbeat, env, company } = this.parts
    const { alone } = this
    if (!alone) return
    if (!holdings.get(alone.lease.fence)) {
      this.endAlone()
      return
    }
    if (alone.state !== 'waiting') return
    const now = env.monotonic()
    // Code that does not end would be under suspicion too; another worker can run it really alone.
    if (this.hangs || company.hangsBeside(this)) this.giveBack([alone], 'the code of an ended attempt still runs here')
    else if (executor.busy === 0 && holdings.size === 1 && company.restsBeside(this) && heartbeat.surelyHeld(now))
      executor.run(alone, now)
  }

  private endAlone(): void {
    this.alone = undefined
    this.parts.company.release(this)
  }

  private giveBack(jobs: readonly HeldJob[], note: string): void {
    for (const held of jobs) if (held.state === 'waiting') this.parts.endings.end(held, { type: 'given back', note })
  }
}
