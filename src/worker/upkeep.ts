/**
 * What any worker does for all: takes over from dead ones, promotes due jobs, expires late ones, prunes old records.
 * Small bounded steps, in any number of processes at once, without a leader. Wired by session.ts.
 */
import type { Env } from '../core/env.js'
import { emptyHistory } from '../core/job.js'
import { type Crash, fateOfCrash } from '../core/settlement.js'
import type { EventBus } from '../observe/events.js'
import type { ClaimedJob, MovedJob, RecoveredLease, Settlement, Storage } from '../storage/storage.js'
import { Duty } from './duty.js'
import type { Identity } from './heartbeat.js'
import type { WorkerSettings } from './options.js'
import { type Settling, settleAll } from './settle-all.js'
import type { StoreCalls } from './store-calls.js'
import { tellCrash } from './telling.js'

/** Together with beats and polls an idle worker makes two statements a second at most. */
const SWEEP_MS = 2_000
const PROMOTE_MS = 20_000
const EXPIRE_MS = 10_000
const PRUNE_MS = 60_000
/** Deleting a thousand records from a cold disk takes its time, keeps nobody waiting, and is no outage. */
const PRUNE_CALL_MS_MAX = 60_000
/** One step: short enough that nobody waits for its locks. */
const STEP_MAX = 1_000
/** When the store says that a job is due and promotion finds none: it may come with the next commit. */
const DUE_MS_MIN = 5

export interface UpkeepParts {
  readonly env: Env
  readonly events: EventBus
  readonly storage: Storage
  readonly calls: StoreCalls
  readonly settings: WorkerSettings
  readonly identity: Identity
  /** Jobs became ready. */
  readonly onReady: () => void
}

export class Upkeep {
  private readonly promotion: Duty
  private readonly duties: Duty[]
  private idlePromotions = 0

  constructor(private readonly parts: UpkeepParts) {
    const duty = (operation: string, everyMs: number, step: () => Promise<boolean>): Duty =>
      new Duty(parts.env, parts.calls, operation, everyMs, step)
    this.promotion = duty('promote', PROMOTE_MS, () => this.promote())
    this.duties = [
      this.promotion,
      duty('take over', SWEEP_MS, () => this.sweep()),
      duty('expire', EXPIRE_MS, () => this.expire()),
      duty('prune', PRUNE_MS, () => this.prune()),
    ]
  }

  /** Promotion at once, as nobody may have been here for a while; the rest at its time, not all together. */
  start(): void {
    const { env } = this.parts
    this.promotion.within(0)
    for (const duty of this.duties.slice(1)) duty.within(SWEEP_MS * env.random())
  }

  async stop(): Promise<void> {
    await Promise.all(this.duties.map((duty) => duty.stop()))
  }

  /** The store answers again: what failed meanwhile is tried soon. */
  retry(): void {
    for (const duty of this.duties) duty.retry()
  }

  /** The store says when the next delayed job is due. */
  nextDue(inMs: number): void {
    // What stays due although promotion found nothing is asked for ever more seldom.
    const floorMs = DUE_MS_MIN * 2 ** Math.min(10, this.idlePromotions)
    if (inMs < PROMOTE_MS) this.promotion.within(Math.max(inMs, floorMs))
  }

  private async promote(): Promise<boolean> {
    const { storage, calls, onReady } = this.parts
    const { moved, nextDueMs } = await calls.once(() => storage.upkeep.promote(STEP_MAX))
    const overdue = moved.length === 0 && nextDueMs !== null && nextDueMs <= 0
    this.idlePromotions = overdue ? this.idlePromotions + 1 : 0
    this.tellMoved('job.promoted', moved)
    if (moved.length > 0) onReady()
    if (nextDueMs !== null) this.nextDue(nextDueMs)
    return moved.length >= STEP_MAX
  }

  private async expire(): Promise<boolean> {
    const { storage, calls, events } = this.parts
    const moved = await calls.once(() => storage.upkeep.expire(STEP_MAX))
    this.tellMoved('job.expired', moved)
    if (events.active) for (const job of moved) events.emit({ type: 'job.dead', ...this.facts(job), reason: 'expired' })
    return moved.length >= STEP_MAX
  }

  private async prune(): Promise<boolean> {
    const { storage, calls, settings } = this.parts
    const options = { ...settings.retention, limit: STEP_MAX }
    return (await calls.once(() => storage.upkeep.prune(options), PRUNE_CALL_MS_MAX)).more
  }

  private tellMoved(type: 'job.promoted' | 'job.expired', moved: readonly MovedJob[]): void {
    const { events } = this.parts
    if (events.active) for (const job of moved) events.emit({ type, ...this.facts(job) })
  }

  private facts({ id, kind, queue }: MovedJob): { jobId: string; kind: string; queue: string; worker: string } {
    return { jobId: id, kind, queue, worker: this.parts.identity.worker }
  }

  /** Adopts what dead workers held and decides each job's fate. What is not settled now the store hands out again. */
  private async sweep(): Promise<boolean> {
    const { storage, calls, identity, events, onReady } = this.parts
    const worker = identity.worker
    const { leases, nowMs } = await calls.once(() => storage.takeOver({ worker, limit: STEP_MAX }))
    const found = leases.flatMap((lease) => this.recovered(lease, nowMs))
    if (found.length === 0) return false
    const { settled, refusal } = await settleAll(storage, calls, 'settle taken over', found)
    const jobs = new Map<string, number>()
    found.forEach((one, i) => {
      const { answer, instead } = settled[i] ?? { answer: 'refused' }
      // Adopted by somebody else before we could settle it: that one tells. Of the refused ones the failure tells.
      if (answer === 'lost' || answer === 'refused') return
      jobs.set(one.crash.worker, (jobs.get(one.crash.worker) ?? 0) + 1)
      if (events.active) tellCrash(events, worker, one, instead ?? one.settlement, answer)
    })
    for (const [deadWorker, count] of jobs) events.emit({ type: 'worker.took over', worker, deadWorker, jobs: count })
    onReady()
    // The store hands those out again with the next sweep.
    if (refusal !== undefined && settled.some((one) => one === null || one.answer === 'refused')) throw refusal
    return found.length >= STEP_MAX
  }

  private recovered(lease: RecoveredLease, nowMs: number): Recovered[] {
    const { identity, env } = this.parts
    return lease.crashes.flatMap((crash, ordinal) => {
      const job: ClaimedJob | null = lease.jobs[ordinal] ?? null
      if (crash === null || job === null) return []
      const place = { fence: lease.fence, ordinal }
      return [new Recovered(place, job, crash, { worker: identity.worker, nowMs, random: env.random() })]
    })
  }
}

/** A job of a dead worker, with the fate that it gets. */
export class Recovered implements Settling {
  readonly settlement: Settlement

  constructor(
    private readonly place: { fence: number; ordinal: number },
    readonly job: ClaimedJob,
    readonly crash: Crash,
    private readonly facts: { worker: string; nowMs: number; random: number },
  ) {
    this.settlement = this.settled(job)
  }

  /** With the counts of its history and without the texts in it, one of which may be what the store refuses. */
  instead(): Settlement {
    const { progress: _, entries: __, ...counts } = this.job.history ?? emptyHistory()
    return this.settled({ ...this.job, history: { ...counts, entries: [] } })
  }

  private settled({ spec, history }: ClaimedJob): Settlement {
    const fate = fateOfCrash({ spec, history, ...this.facts }, this.crash)
    if (fate.to === 'completed') throw new Error('invariant broken: a crash completed a job')
    return { ...this.place, ...fate }
  }
}
