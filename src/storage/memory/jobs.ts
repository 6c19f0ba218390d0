/**
 * The jobs of the memory store and the places they are in. A job is in exactly one place: every move goes through
 * here, takes it out of each index of the old place and puts it into each of the new one. Called by all operations.
 */
import { assert } from '../../core/errors.js'
import {
  type DeadReason,
  JOB_STATES,
  type JobHistory,
  type JobSpec,
  type JobState,
  type Place,
  PRIORITY_LEVELS,
} from '../../core/job.js'
import { entryOf } from './entry.js'
import { Lanes } from './lanes.js'
import { Permits } from './permits.js'
import { SortedList, type SortKey } from './sorted-list.js'

/** A job as the store keeps it. Only this module changes what the indexes are ordered by. */
export interface JobRow {
  readonly id: string
  readonly kind: string
  readonly queue: string
  readonly priority: number
  /** JSON text. */
  readonly payload: string
  readonly spec: JobSpec
  readonly enqueuedAt: number
  history: JobHistory | null
  place: Place
  state: JobState
  dueAt: number
  /** When it has to be started by; null when it never expires, or was brought back from the dead. */
  expiresAt: number | null
  suspect: boolean
  /** Waits in the front list of its lane: it was there before. */
  front: boolean
  /** Where it stands in the fair list of its level; null: not there. */
  fairPlace: number | null
  /** Orders what became due at one instant: rises with each that is due when it comes in; 0 for who waited for it. */
  dueNth: number
  /** Of its enqueue. */
  readonly enqueuedNth: number
  /** The number of its queue: those of an older one are listed first. */
  readonly queueNumber: number
  /** Falls where the id rises: of those that ended at one instant the one with the larger id is listed first. */
  readonly mirroredId: string
  /** Rises with each move; orders what waits in one list of a lane. */
  position: number
  claimedAt: number | null
  startedAt: number | null
  endedAt: number | null
  worker: string | null
  result: string | null
  reason: DeadReason | null
  /** Of the attempt that ended it; null while it waits or runs, and where no attempt did. */
  ranMs: number | null
  /** It runs, and somebody wants it cancelled. */
  cancelling: boolean
}

/** A front entry sorts before every other one of the same key; positions stay far below. */
const FRONT_OFFSET = 2 ** 50

export class JobTable {
  readonly lanes = new Lanes()
  readonly permits = new Permits()
  /** Waiting for their due time, the earliest first. */
  readonly delayed = new SortedList<JobRow>((job) => [job.dueAt, job.id])
  /** Waiting and never started, the first to expire first. */
  readonly expiring = new SortedList<JobRow>((job) => [job.expiresAt ?? Infinity, job.position])
  private readonly byId = new Map<string, JobRow>()
  private readonly states = new Map(JOB_STATES.map((state) => [state, new SortedList<JobRow>(naturalKey)]))
  private readonly countsByQueue = new Map<string, Record<JobState, number>>()
  private readonly countsByKind = new Map<string, Record<JobState, number>>()
  /** What waits of each tenant of a queue; no entry of one of whom nothing does. */
  private readonly waitingByTenant = new Map<string, number>()
  private positions = 0
  private nths = 0

  /** For a job that comes due at once. */
  nextNth(): number {
    return ++this.nths
  }

  get(id: string): JobRow | undefined {
    return this.byId.get(id)
  }

  /** All jobs of a state in its natural order: next to run, next due, newest end first. */
  inState(state: JobState): SortedList<JobRow> {
    return this.states.get(state)!
  }

  counts(queue: string): Readonly<Record<JobState, number>> {
    return this.countsByQueue.get(queue) ?? noCounts()
  }

  /** Jobs of a queue, or of one kind in it, that wait. */
  waiting(queue: string, kind?: string): number {
    const { ready, delayed, retrying, blocked } =
      kind === undefined ? this.counts(queue) : (this.countsByKind.get(`${queue} ${kind}`) ?? noCounts())
    return ready + delayed + retrying + blocked
  }

  /** Jobs of one tenant of a queue that wait; undefined: those without a tenant. */
  waitingOf(queue: string, tenant: string | undefined): number {
    return this.waitingByTenant.get(tenantKey(queue, tenant)) ?? 0
  }

  /** A new job; it is ready when it is due, else delayed. */
  insert(job: JobRow, now: number): void {
    assert(!this.byId.has(job.id), `job ${job.id} is in the store already`)
    this.byId.set(job.id, job)
    if (job.dueAt <= now) this.enterBack(job)
    else this.enterDelayed(job)
  }

  /** It waits for `dueAt`, also where that is now: promotion makes it ready. */
  toDelayed(job: JobRow, dueAt: number): void {
    this.leave(job)
    job.dueAt = dueAt
    job.dueNth = 0
    this.enterDelayed(job)
  }

  /** Ready, behind all that is ready before. */
  toBack(job: JobRow, dueAt = job.dueAt, nth = job.dueNth): void {
    this.leave(job)
    job.dueAt = dueAt
    job.dueNth = nth
    this.enterBack(job)
  }

  /** It was there before: ready again, ahead of what came due after it. */
  toFront(job: JobRow, dueAt = job.dueAt, nth = job.dueNth): void {
    this.leave(job)
    job.dueAt = dueAt
    job.dueNth = nth
    job.front = true
    job.fairPlace = null
    this.enterWaiting(job, 'ready', 'ready')
  }

  /** No permit of its key is free: it is taken from what claims read, and comes back to the front. */
  toBlocked(job: JobRow): void {
    assert(job.place === 'ready', `job ${job.id} was blocked while ${job.place}`)
    this.leave(job)
    job.front = false
    job.fairPlace = null
    this.enterWaiting(job, 'blocked', 'blocked')
  }

  toLeased(job: JobRow, worker: string, now: number): void {
    assert(job.place === 'ready', `job ${job.id} was taken while ${job.place}`)
    this.leave(job)
    job.worker = worker
    job.claimedAt = now
    this.enter(job, 'leased', 'running')
  }

  /** Its lease has another fence, and is another worker's. */
  toHeir(job: JobRow, worker: string): void {
    this.leave(job)
    job.worker = worker
    this.enter(job, 'leased', 'running')
  }

  toEnded(job: JobRow, state: 'completed' | 'cancelled', now: number, result: string | null = null): void {
    this.leave(job)
    job.endedAt = now
    job.result = result
    job.cancelling = false
    this.enter(job, 'ended', state)
  }

  toDead(job: JobRow, reason: DeadReason, now: number): void {
    this.leave(job)
    job.endedAt = now
    job.reason = reason
    job.cancelling = false
    this.enter(job, 'dead', 'dead')
  }

  /** No record stays. */
  remove(job: JobRow): void {
    this.leave(job)
    this.byId.delete(job.id)
  }

  /** Of a level that shares fairly, behind what waits of its tenant. */
  private enterBack(job: JobRow): void {
    job.front = false
    job.fairPlace = job.suspect ? null : this.lanes.fair.placeFor(job)
    this.enterWaiting(job, 'ready', 'ready')
  }

  private enterDelayed(job: JobRow): void {
    job.front = false
    job.fairPlace = null
    this.enterWaiting(job, 'delayed', job.history === null ? 'delayed' : 'retrying')
  }

  /** Of its last attempt its history tells. */
  private enterWaiting(job: JobRow, place: 'ready' | 'delayed' | 'blocked', state: JobState): void {
    job.endedAt = null
    job.reason = null
    job.worker = null
    job.startedAt = null
    job.ranMs = null
    this.enter(job, place, state)
  }

  private enter(job: JobRow, place: Place, state: JobState): void {
    job.place = place
    job.state = state
    job.position = ++this.positions
    if (place === 'ready') this.lanes.add(job)
    if (place === 'delayed') this.delayed.add(job)
    this.permits.add(job)
    if (mayExpire(job)) this.expiring.add(job)
    this.inState(state).add(job)
    this.count(job, 1)
  }

  private leave(job: JobRow): void {
    if (job.place === 'ready') this.lanes.delete(job)
    if (job.place === 'delayed') this.delayed.delete(job)
    this.permits.delete(job)
    this.expiring.delete(job)
    const found = this.inState(job.state).delete(job)
    assert(found, `job ${job.id} is not among the ${job.state} ones`)
    this.count(job, -1)
  }

  private count(job: JobRow, by: 1 | -1): void {
    entryOf(this.countsByQueue, job.queue, noCounts)[job.state] += by
    entryOf(this.countsByKind, `${job.queue} ${job.kind}`, noCounts)[job.state] += by
    if (isWaiting(job)) this.countTenant(tenantKey(job.queue, job.spec.tenant), by)
  }

  private countTenant(key: string, by: 1 | -1): void {
    const count = (this.waitingByTenant.get(key) ?? 0) + by
    if (count === 0) this.waitingByTenant.delete(key)
    else this.waitingByTenant.set(key, count)
  }
}

/** Whether the job was never started, as far as is known: only then it can expire. */
export function neverStarted(job: JobRow): boolean {
  return job.history?.firstStartedAt === undefined
}

function isWaiting({ place }: JobRow): boolean {
  return place === 'ready' || place === 'delayed' || place === 'blocked'
}

/** Names of queues have no space. */
function tenantKey(queue: string, tenant = ''): string {
  return `${queue} ${tenant}`
}

function mayExpire(job: JobRow): boolean {
  return isWaiting(job) && job.expiresAt !== null && neverStarted(job)
}

function naturalKey(job: JobRow): SortKey {
  switch (job.place) {
    case 'ready':
      return [laneRank(job), lanePosition(job)]
    case 'delayed':
    case 'blocked':
      return [job.dueAt, job.id]
    case 'leased':
      return [0, job.position]
    case 'ended':
    case 'dead':
      return [-(job.endedAt ?? 0), job.mirroredId]
  }
}

/** By queue, then by level, the higher first; in a level the fair list, suspects, what was there before, all others. */
function laneRank({ queueNumber, priority, suspect, front, fairPlace }: JobRow): number {
  const range = suspect ? 1 : fairPlace !== null ? 0 : front ? 2 : 3
  return (queueNumber * PRIORITY_LEVELS + PRIORITY_LEVELS - 1 - priority) * 4 + range
}

/** Its place in its list. Suspects that were there before come ahead of the others of their level. */
export function lanePosition({ front, position, fairPlace }: JobRow): number {
  if (fairPlace !== null) return fairPlace
  return front ? position - FRONT_OFFSET : position
}

function noCounts(): Record<JobState, number> {
  return { ready: 0, delayed: 0, retrying: 0, blocked: 0, running: 0, completed: 0, cancelled: 0, dead: 0 }
}
