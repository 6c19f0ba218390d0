/**
 * What there is to see of jobs, queues and workers: the `inspect` facet of the port, and what its answers are made of.
 * Part of storage.ts, which passes all of it on.
 */
import type { Drained } from '../core/capacity.js'
import type { DeadReason, ErrorRecord, JobHistory, JobSpec, JobState, Json } from '../core/job.js'
import type { JobFacts } from '../core/job-facts.js'
import type { QueueLimits } from '../core/limits.js'
import type { QueueOrder } from '../core/priority.js'

/** A job by its id, and what events tell of it. */
export interface MovedJob {
  id: string
  kind: string
  queue: string
}

/** What a worker says of itself with each beat. */
export interface WorkerInfo {
  /** For people: host, process id. */
  name: string
  queues: string[]
  concurrency: number
  /** Slots taken, of `concurrency`; absent of older versions. */
  busy?: number
  /** A worker whose beats stop for so long is written off. */
  leaseMs: number
  beatMs: number
  /** What it can run; absent of older versions, and where there are more than a beat should carry. */
  kinds?: string[]
  /** Connections that its process opens at most, those to listen and to beat included; absent where there are none. */
  connections?: number
  /** For how long it keeps records of completed jobs, where it prunes; absent where it does not. */
  completedMs?: number
}

/** All there is to know of one job. Instants are ISO-free epoch milliseconds of the store's clock. */
export interface JobView {
  id: string
  kind: string
  queue: string
  priority: number
  state: JobState
  payload: Json
  spec: JobSpec
  history: JobHistory | null
  enqueuedAt: number
  /** When it may start or became ready; null for ended ones. */
  dueAt: number | null
  /** Of the attempt that runs, or of the last one; null when it never started or the start is not known yet. */
  startedAt: number | null
  endedAt: number | null
  /** Of the last attempt that ended under this record; null where it never ran. */
  ranMs: number | null
  /** Who holds it, or held it last; a worker id. */
  worker: string | null
  result?: Json
  /** For dead ones. */
  reason?: DeadReason
  /** A running one that somebody wants cancelled. */
  cancelling?: boolean
  /** Of a queue over several stores: the one that holds it. */
  partition?: string
}

/** A page of jobs, in the natural order of their state: next to run, next due, newest end first. */
export interface JobPage {
  jobs: JobView[]
  /** One for each job: given as `after`, a page begins behind it. */
  cursors: string[]
  /** Give it as `after` for the next page; null at the end. */
  next: string | null
  /** Of a queue over several stores: those that did not answer. What they hold is not among the jobs. */
  missing?: string[]
}

/** Which jobs a page shows. What is not said is not looked at. */
export interface ListRequest {
  state: JobState
  queue?: string
  kind?: string
  /** Of dead ones only. */
  reason?: DeadReason
  /** Of dead ones only; null: those that have none. */
  fingerprint?: string | null
  /** Of those that have ended: at or after this instant of the store's clock. */
  endedAfter?: number
  /** Of those that have ended: before this instant. */
  endedBefore?: number
  limit: number
  /** The `next` of the page before. */
  after?: string
}

/** The states of jobs that operators change by filter. */
export type MatchState = Exclude<JobState, 'completed' | 'cancelled'>

/** Which jobs match. What is not said is not looked at; instants are the store's clock's. */
export interface MatchRequest {
  state: MatchState
  queue?: string
  kind?: string
  /** Of dead ones only. */
  reason?: DeadReason
  /** Of dead ones only; null: those that have none. */
  fingerprint?: string | null
  /** Dead ones ended at or after this instant; all others were enqueued so. */
  since?: number
  /** Before this instant. */
  before?: number
  limit: number
  /** The `next` of the page before. */
  after?: string
}

/** A job that matches: enough to change it and to tell of it, and no payload. */
export interface MatchedJob extends MovedJob {
  /** Of a dead one. */
  reason?: DeadReason
}

/** `next` is null at the end. A page may be short, or empty, and have a `next`: the store looks at so many jobs at a time. */
export interface MatchPage {
  jobs: MatchedJob[]
  next: string | null
  /** The store's clock. */
  nowMs: number
}

/** Dead letters of one kind in one queue that died for one reason of one failure. */
export interface DeadGroup {
  queue: string
  kind: string
  reason: DeadReason
  /** Of the error they died of; null where they died of none, or before errors had one. */
  fingerprint: string | null
  /** How many. Counted up to a bound: where it is not exact, at least so many. */
  count: Count
  /** When the first and the last of them died, epoch milliseconds of the store's clock. */
  oldestAt: number
  newestAt: number
  /** The last of them, with its error (without the stack; null where it died of none) and what its history notes. */
  sample: { id: string; error: ErrorRecord | null; note?: string }
}

/** Groups, the newest first. Not complete: there are more of them than were asked for, or than a store looks at. */
export interface DeadGroups {
  groups: DeadGroup[]
  complete: boolean
}

/** A queue as operators see it. */
export interface QueueView {
  queue: string
  paused: boolean
  draining: boolean
  order: QueueOrder
  limits: QueueLimits
  /** Of a queue over several stores that do not agree: what is set on it in each that knows it. */
  partitions?: Record<string, Omit<QueueView, 'queue' | 'partitions'>>
}

/** What a queue has to do, and who does it. Bounded: no more is counted than 10,000 jobs that are ready, and as many others. */
export interface CapacityFacts {
  /** Workers whose beats come in time, and that serve the queue. */
  workers: number
  /** Of all of them, also where they serve other queues. */
  slots: number
  /** Slots taken, as the last beats tell; of workers that do not tell, the jobs they hold. */
  busy: number
  paused: boolean
  ready: Count
  /** All that waits: ready, delayed and retrying. */
  depth: Count
  drained: Drained
  /** How long those ran on average; null where there are none, or their records do not say. */
  ranMs: number | null
  limits: QueueLimits
}

/** `exact: false`: at least so many were there and the rest is the store's estimate. */
export interface Count {
  count: number
  exact: boolean
}

/** How many jobs of a queue are in each state. */
export type QueueCounts = Record<JobState, Count>

/** A worker as the store knows it. Durations in milliseconds, `startedAt` in epoch milliseconds. */
export interface WorkerView extends WorkerInfo {
  id: string
  startedAt: number
  lastBeatAgoMs: number
  mainLagMs: number
  leases: number
  jobs: number
  /** Of a queue over several stores: the one that it takes jobs from. */
  partition?: string
}

/** Looks at jobs, queues and workers; changes nothing. */
export interface Inspect {
  /**
   * One statement over all places: a moving job is seen once. Null for those not known; undefined where nobody can tell, as
   * one of several stores does not answer.
   */
  get(ids: readonly string[]): Promise<(JobView | null | undefined)[]>
  /**
   * A page in the natural order of the state: next due, newest end first; ready ones by queue, then the higher priority
   * first, then suspects, what was there before, and what came in.
   */
  list(request: ListRequest): Promise<JobPage>
  /**
   * Which jobs match, in bounded steps: dead ones by their end, the oldest first; others in an order of the store's own.
   * What leaves the state between two pages shifts nothing.
   */
  match(request: MatchRequest): Promise<MatchPage>
  /** Dead letters by what they died of, at most `limit` groups. The work is bounded by the groups, not by their jobs. */
  deadGroups(request: { queue?: string; kind?: string; limit: number }): Promise<DeadGroups>
  queues(): Promise<QueueView[]>
  /** Of a queue that nobody has seen, zeros; it is not made by asking. */
  counts(queue: string): Promise<QueueCounts>
  /**
   * What decides whether the job runs now, in one consistent look; null for one not known. The work is bounded: of each
   * list that claims read its first 1,001 jobs, whatever the backlog.
   */
  facts(id: string): Promise<JobFacts | null>
  workers(): Promise<WorkerView[]>
  /** Of a queue that nobody has seen, zeros; it is not made by asking. For producers, too: it tells numbers and nothing else. */
  capacity(queue: string): Promise<CapacityFacts>
}
