/**
 * What a store can tell of itself: the pace of its queues, endings as they come, and figures by which somebody can judge
 * its health. The `diagnose` facet of the port; part of storage.ts, which passes all of it on. Every answer is bounded:
 * samples and probes, never a count over all there is. Durations in milliseconds, instants in epoch milliseconds of the
 * store's clock.
 */
import type { DeadReason, ErrorRecord } from '../core/job.js'
import type { Count } from './views.js'

/** Looks at the store itself; changes nothing. Each part may fail alone: a role may not see everything. */
export interface Diagnose {
  /** How a queue moves. Of a queue that nobody has seen, zeros; it is not made by asking. */
  pace(queue: string): Promise<QueuePace>
  /** Jobs that ended, the oldest first. */
  endings(request: EndingsRequest): Promise<{ endings: Ending[]; next: string | null }>
  /** The store's clock now. */
  clock(): Promise<{ nowMs: number }>
  /** How long attempts ran, by kind: of the newest records of each queue. */
  runs(): Promise<KindRuns[]>
  /** What waits at the heads of the queues, by kind; of all of them where none are named. */
  waiting(queues?: readonly string[]): Promise<WaitingKind[]>
  overdue(): Promise<Overdue>
  crashes(): Promise<Crashes>
  /** Whether a hint that is sent arrives. */
  hints(): Promise<'arrive' | 'do not arrive'>
  /** Where the store is an SQL database. */
  readonly database?: DatabaseFacts
}

/** How a queue moves. */
export interface QueuePace {
  /** For how long the job that is due longest has been due; null when none waits for a worker. */
  oldestReadyMs: number | null
  /**
   * Completed in the last minute and hour, of those kinds that keep records. Of more than 10,000 the minute is an
   * estimate, by the pace of the newest ones, and the hour is at least so many.
   */
  completedMinute: Count
  completedHour: Count
}

/** How a job may end. */
export type EndingState = 'completed' | 'cancelled' | 'dead'

/** Which endings, and from where on. */
export interface EndingsRequest {
  states: readonly EndingState[]
  queue?: string
  kind?: string
  /** Begins so long before `after`, or before now. */
  backMs: number
  /** The `next` or the `cursor` of an earlier answer. With `backMs: 0` nothing up to it comes again. */
  after?: string
  limit: number
}

/** How a job ended. No payload and no result: it is one line of many. */
export interface Ending {
  id: string
  kind: string
  queue: string
  priority: number
  state: EndingState
  reason?: DeadReason
  attempts: number
  enqueuedAt: number
  startedAt: number | null
  endedAt: number
  /** Of the last attempt; null where it never ran. */
  ranMs: number | null
  worker: string | null
  /** What a dead one died of, without the stack. */
  error?: ErrorRecord
  /** What its history says of the end, where there was no error. */
  note?: string
  /** Give it as `after` to go on behind this one. */
  cursor: string
}

/** How long the attempts of a kind ran. */
export interface KindRuns {
  kind: string
  queue: string
  /** Completed attempts in the sample. */
  completed: number
  p50Ms: number
  p95Ms: number
  p99Ms: number
  maxMs: number
  /** The most frequent time-out of the sample. */
  timeoutMs: number
  /** Attempts that timed out, among the newest dead letters and the retrying jobs of the kind. */
  timedOut: number
}

/** Jobs of a kind at the head of a queue. */
export interface WaitingKind {
  queue: string
  kind: string
  /** Not exact: at least so many. */
  count: Count
  oldestMs: number
}

/** Delayed jobs that should have become ready. */
export interface Overdue {
  count: Count
  /** By how much the one that is due longest is late; 0 when none is. */
  oldestMs: number
}

/** Traces of dead workers. */
export interface Crashes {
  /** Leases that ended otherwise than by their worker in the last hour: taken over, or given back for it. */
  leasesEnded: Count
  /** Jobs waiting that have to run alone, as workers died while they held them. */
  suspects: Count
  /** Dead letters of the last day. */
  poison: Count
  lost: Count
}

/** Figures of an SQL database. */
export interface DatabaseFacts {
  settings(): Promise<DatabaseSettings>
  connections(): Promise<ConnectionFacts[]>
  /** Whoever keeps old row versions from being removed, the oldest first. */
  holders(): Promise<SnapshotHolder[]>
  tables(): Promise<TableFacts[]>
  days(): Promise<DayFacts>
  access(): Promise<AccessFacts>
}

/** Settings of the server, as this role and database have them. */
export interface DatabaseSettings {
  /** As the server writes it: `18.4`. */
  version: string
  /** 180004. */
  versionNumber: number
  /** A standby, or a database that takes no writes. */
  readOnly: boolean
  fsync: boolean
  fullPageWrites: boolean
  /** `on`, `off`, `local`, `remote_write`, `remote_apply`; as this role and database have it. */
  synchronousCommit: string
  isolation: string
  autovacuum: boolean
}

/** A limit of connections, and how many are open. */
export interface ConnectionFacts {
  scope: 'server' | 'database' | 'role'
  /** Without those that are kept for superusers. */
  max: number
  open: number
}

/** Something that sees an old state of the database: what has died since cannot be removed. */
export interface SnapshotHolder {
  what: 'connection' | 'prepared transaction' | 'replication slot' | 'standby'
  /** Process id, or the name of the transaction or slot. */
  name: string
  application: string
  user: string
  state: string
  /** Since when its transaction is open; null where this role may not see it. */
  openMs: number | null
  /** How many transactions have begun since. */
  transactions: number
}

/** A table of the schema, by the server's own statistics. */
export interface TableFacts {
  table: string
  liveRows: number
  deadRows: number
  /** With indexes and TOAST. */
  bytes: number
  /** Null: never. */
  vacuumedAgoMs: number | null
  autovacuum: boolean
  /** From so many dead rows on autovacuum comes. */
  vacuumFrom: number
}

/** The day tables of ended jobs. */
export interface DayFacts {
  /** The day of the store's clock, `2030-01-31`, UTC. */
  today: string
  /** Days that records go to. */
  attached: string[]
  /** A detach was begun and not finished. */
  pending: string[]
  /** Not part of the records any more, and not dropped. */
  detached: string[]
}

/** What the role may not do, of all that workers do. */
export interface AccessFacts {
  role: string
  /** In words: `create tables in schema "leasehold"`. */
  missing: string[]
}
