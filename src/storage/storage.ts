/**
 * The port: what Leasehold asks of a store. Batches in, one answer per item out, in the order of the input. Losing a
 * lease is an answer, not an exception. Durations cross the port, instants do not (but a caller's own run-at, and those of
 * the store's own clock in filters); instants that a store returns are epoch milliseconds of its own clock, for people
 * and for histories.
 *
 * Every call may be sent twice, be done and have its answer lost, or be done after its caller gave up: each operation
 * says how it bears that. The memory store is the executable form of this text, the conformance suite its test.
 */
import type { QueueError } from '../core/errors.js'
import type { JobHistory, JobSpec, Json } from '../core/job.js'
import type { Early, Full, QueueLimits } from '../core/limits.js'
import type { QueueOrder } from '../core/priority.js'
import type { Crash, Fate } from '../core/settlement.js'
import type { Diagnose } from './diagnose.js'
import type { Inspect, MatchState, MovedJob, WorkerInfo } from './views.js'

export type { DepthLimit, Early, Full, QueueLimits, RateLimit } from '../core/limits.js'
export type { QueueOrder } from '../core/priority.js'
export type {
  AccessFacts,
  ConnectionFacts,
  Crashes,
  DatabaseFacts,
  DatabaseSettings,
  DayFacts,
  Diagnose,
  Ending,
  EndingState,
  EndingsRequest,
  KindRuns,
  Overdue,
  QueuePace,
  SnapshotHolder,
  TableFacts,
  WaitingKind,
} from './diagnose.js'
export type {
  CapacityFacts,
  Count,
  DeadGroup,
  DeadGroups,
  Inspect,
  JobPage,
  JobView,
  ListRequest,
  MatchedJob,
  MatchPage,
  MatchRequest,
  MatchState,
  MovedJob,
  QueueCounts,
  QueueView,
  WorkerInfo,
  WorkerView,
} from './views.js'

/** A job on its way into the store. */
export interface NewJob {
  /** The client's UUIDv7. */
  id: string
  /** The caller chose the id himself: the store has to look whether it is known already, in any place. */
  chosen?: true
  kind: string
  queue: string
  /** 0 to 15, a higher one goes first. */
  priority: number
  /** JSON text, checked and bounded by the client. */
  payload: string
  spec: JobSpec
  /** When it may start: a delay from the store's now, or an instant in epoch milliseconds. Nothing runs early. */
  due: { delayMs: number } | { atMs: number }
  /** Present for a job with an idempotency key: decides `duplicate` and `mismatch`. */
  idempotency?: { key: string; payloadHash: string; retentionMs: number }
}

/**
 * Per job, in input order. `duplicate` names the first job of the key; `busy`: the key is in an open transaction; `full`: so
 * many wait already as the queue, or the kind or tenant in it, may have; `early`: its intake has no token for it. A call that fits in part is stored in part, from its first job on.
 */
export type EnqueueOutcome =
  | { status: 'created' }
  | { status: 'duplicate'; id: string }
  | { status: 'mismatch'; id: string }
  | { status: 'busy' }
  | { status: 'draining' }
  | ({ status: 'full' } & Full)
  | ({ status: 'early' } & Early)
  | { status: 'refused'; code: 'DUPLICATE_ID' | 'STORE_REJECTED'; cause: unknown }
  /** Of a store over several: the one of this job failed, as a call to it alone would have; others did not. */
  | { status: 'failed'; cause: unknown }

/** How a call of `enqueue` differs from the usual. */
export interface EnqueueOptions {
  /** The caller's own transaction, in the shape that the store's `transactions` facet takes. */
  tx?: unknown
}

/** A queue as one claim asks for it: at most `share` first, then what others left. */
export interface QueueShare {
  queue: string
  share: number
  /**
   * How many jobs of the queue this worker has claimed so far: decides whose turn it is (see core/priority.ts). Each
   * queue counts for itself, as two that shared one count could always meet the same turns.
   */
  turn: number
}

/** What a worker asks for, and what it can run. */
export interface ClaimRequest {
  worker: string
  /** Rises by one with each claim of the worker. Asked again with the same number the store gives the same batch. */
  request: number
  /** In the order they are served. */
  queues: readonly QueueShare[]
  /** Jobs at most, over all queues. */
  limit: number
  /** Kinds the worker can run; jobs of others are passed over and stay. */
  kinds: readonly string[]
  /** Kinds whose jobs get a lease of their own: slow, transactional or at-most-once ones. */
  apart: readonly string[]
  /** The longest it may wait before it asks again; for so long and a margin it needs hints. */
  pollMs: number
  /** Whether a suspect may be handed out: then the answer holds it alone, and nothing else. */
  suspects: boolean
  /** Settlements of earlier batches, done first, in the same round trip. */
  finished?: readonly Settlement[]
}

/** A job in the hands of a worker. Instants in epoch milliseconds of the store's clock. */
export interface ClaimedJob {
  id: string
  kind: string
  queue: string
  priority: number
  payload: Json
  spec: JobSpec
  history: JobHistory | null
  enqueuedAt: number
  /** For how long it had been due when it was claimed. */
  waitedMs: number
  /** Time left until it expires, 0 or less when it has; null where it does not. Only while it was never started. */
  expiresInMs: number | null
}

/** Jobs under one fence. A job in it is named by fence and ordinal (its index in `jobs`). */
export interface Lease {
  /** Larger than every fence drawn before it; a safe integer. */
  fence: number
  /** It holds a suspect, which has to run alone. */
  alone: boolean
  jobs: ClaimedJob[]
}

/** The answer to a claim. */
export interface Claim {
  /** `gone`: the store has written this worker off; it has to drop what it holds and register anew. */
  status: 'ok' | 'gone'
  leases: Lease[]
  /** One for each of `finished`. */
  settled: SettleAnswer[]
  /**
   * There may be more to take at once: beyond the limit, held by other claims at that moment, or not looked for. What the
   * limits of its queue hold back is not.
   */
  more: boolean
  /** Until the next delayed job of these queues is due; null when none is known. */
  nextDueMs: number | null
  /** Those of the queues asked for that are paused. */
  paused: string[]
  /** Those of the queues asked for that have jobs which could be taken, but for the limits of the queue. */
  limited: string[]
  /** Until the rate of one of them lets the next job start; null where none waits for that alone. */
  nextTokenMs: number | null
  /** The store's clock at the claim, epoch milliseconds. */
  nowMs: number
}

/** A fate, and the job it is for. `started` settles nothing: it writes down that the handler starts now. */
export type Settlement = { fence: number; ordinal: number } & (
  | (Exclude<Fate, { to: 'completed' }> & Times)
  | (Extract<Fate, { to: 'completed' }> & Times & { keep: boolean })
  | { to: 'started' }
)

/** Durations that a record needs: from the claim to the start of the handler, and how long that ran. */
export interface Times {
  /** Absent when the handler never started. */
  startedAfterMs?: number
  ranMs?: number
}

/**
 * `ok`: this call moved the job (or wrote its start down). `already`: an earlier settlement of this very lease did;
 * a repeat, nothing to do. `lost`: the fence is dead, nothing was changed. `cancelled`: moved, but to cancelled, as
 * somebody had asked for it while the settlement would have let the job run again.
 */
export type SettleAnswer = 'ok' | 'already' | 'lost' | 'cancelled'
/** So long a store remembers a dead fence at least: a settlement that comes later may hear `already` for `lost`. */
export const DEAD_FENCE_MS = 3_600_000

/** A sign of life, and what the worker holds. */
export interface Beat {
  worker: string
  /**
   * Rises with each beat, from 1; 1 registers the worker. An older beat changes nothing. The newest one sent again is a
   * sign of life as it was, and changes nothing else.
   */
  n: number
  /** The last claim request whose answer the main loop read or gave up. */
  known: number
  /** Fences of the leases that the worker holds. */
  leases: readonly number[]
  /**
   * Of those, the jobs whose handlers have started: [fence, ordinal, for how many ms it ran when the main loop said so].
   * Workers of older versions do not say how long.
   */
  started: readonly (readonly [fence: number, ordinal: number, ranMs?: number])[]
  /** For how long the main loop has not answered; its leases end by this, not by the thread that beats. */
  mainLagMs: number
  info: WorkerInfo
}

/** What became of what the worker holds. */
export interface BeatAnswer {
  /** `gone`: written off. `stale`: a newer beat was there before; nothing was changed. */
  status: 'ok' | 'stale' | 'gone'
  /** Of the leases named, those that are not this worker's any more, whole. */
  lost: number[]
  /** Jobs of this worker that somebody wants cancelled: [fence, ordinal]. */
  cancel: [number, number][]
  /** Queues of this worker that are paused: prefetched jobs go back. */
  paused: string[]
}

/** What a dead worker held, under a new fence of the worker that asked. Settled like any other lease. */
export interface RecoveredLease extends Lease {
  /** One for each job; null where the job was settled already (nothing to do). */
  crashes: (Crash | null)[]
}

/** The answer to a take-over. */
export interface TakeOver {
  leases: RecoveredLease[]
  nowMs: number
}

/** A store. Facets that it may lack are optional. */
export interface Storage {
  /** The word for it in messages: `postgres`, `memory`. */
  readonly name: string

  /**
   * Stores jobs; visible on commit. An answer that is lost leaves the outcome unknown (the call rejects with
   * OUTCOME_UNKNOWN, naming the first id, or STORE_UNAVAILABLE when surely nothing was stored); sent twice it would
   * double jobs without a key, so nobody sends it twice. A bad item never sinks its neighbours.
   */
  enqueue(jobs: readonly NewJob[], options?: EnqueueOptions): Promise<EnqueueOutcome[]>

  /**
   * Due and allowed jobs in the promised order. A repeat of a request gives the same batch, and never a second one; where
   * it found nothing it may look again.
   */
  claim(request: ClaimRequest): Promise<Claim>

  /** Keeps the worker and the leases it names; gives back leases of requests up to `known` that it does not name. */
  beat(beat: Beat): Promise<BeatAnswer>

  /** Moves only the jobs whose open mark this call clears itself; a repeat answers `already`. */
  settle(settlements: readonly Settlement[]): Promise<SettleAnswer[]>

  /**
   * What dead workers held, at most `limit` jobs beyond whole leases, adopted by `worker`. First comes what it adopted
   * before and has not settled, so a lost answer is asked for again. Nothing before `worker` itself has beaten
   * without a gap of two beats for one whole lease.
   */
  takeOver(request: { worker: string; limit: number }): Promise<TakeOver>

  /** A good bye: the worker holds nothing any more and its row may go. A repeat changes nothing. */
  unregister(worker: string): Promise<void>

  close(): Promise<void>

  readonly upkeep: Upkeep
  readonly control?: Control
  readonly inspect?: Inspect
  readonly wake?: Wake
  readonly setup?: Setup
  /** What the store tells of its own health. */
  readonly diagnose?: Diagnose
  /** Connections that this object opens at most; a worker takes two more, to listen and to beat. */
  readonly connections?: number
  /** How a thread of its own can send beats; absent where beats go through this object. */
  readonly beatSource?: BeatSource
  /** Of a store over several: which they are. Workers speak to each of them by itself. */
  readonly partitions?: Partitions
  /** Whether a caller's open transaction runs in the database of this store; absent where there are none. */
  ownsTransaction?(tx: unknown): Promise<boolean>
}

/** The stores of a queue over several. */
export interface Partitions {
  /** In the order of the list. */
  readonly all: readonly Partition[]
  /** The one that a new job goes to. */
  homeOf(job: NewJob): Partition
}

/** One of the stores of a queue over several. A fence of one means nothing to another. */
export interface Partition {
  /** What is hashed: jobs stay where they are as long as it does. */
  readonly name: string
  /** Nothing new goes to it; what it has is worked off. */
  readonly draining: boolean
  readonly storage: Storage
  /** Resolves when the store was found fit for use, which is tried anew where it was not. */
  ready(): Promise<void>
  /** Why it is left alone for now; undefined while it answers. */
  readonly trouble: QueueError | undefined
}

/** Small bounded steps that any worker takes, in any number of processes at once. Each may be repeated. */
export interface Upkeep {
  /** Due jobs become ready, the earliest first. */
  promote(limit: number): Promise<{ moved: MovedJob[]; nextDueMs: number | null }>
  /** Jobs that were not started in time become dead (expired). */
  expire(limit: number): Promise<MovedJob[]>
  /** Deletes what has outlived its retention, and makes room ahead. `more`: call again soon. */
  prune(options: Retention & { limit: number }): Promise<{ deleted: number; more: boolean }>
}

/** For how long records are kept, and how many. Ages are kept at least, and may be outlived by a day. */
export interface Retention {
  /** Of completed and cancelled jobs. */
  completedMs: number
  deadMs: number
  /** Of each queue, the newest so many completed jobs, and as many cancelled ones; all unless given. */
  completedMax?: number | undefined
  /** Of each queue, the newest so many dead letters; all unless given. */
  deadMax?: number | undefined
}

/** `cancelled`: it waited and has ended; `signalled`: it runs, its signal fires within a beat; `ended`: too late; `unknown`: no such job. */
export type CancelAnswer = 'cancelled' | 'signalled' | 'ended' | 'unknown'
/** `ok`: pending again; `needs force`: an at-most-once job that may have run; `not dead`; `unknown`. */
export type RedriveAnswer = 'ok' | 'needs force' | 'not dead' | 'unknown'
/** `discarded`: no record of it is left, and its key is free; `not dead`; `unknown`: no such job. */
export type DiscardAnswer = 'discarded' | 'not dead' | 'unknown'
/** `ok`: it waits no longer and is ready now. `blocked`: it waits for its key, and nothing else. */
export type RetryAnswer = 'ok' | 'running' | 'ready' | 'blocked' | 'ended' | 'unknown'

/**
 * Answered only where a call said which of the jobs it means: the job could be changed, but is none of those any more.
 * Nothing was done to it.
 */
export type MovedOn = 'moved on'

/** The states of jobs that wait or run. */
export type OpenState = Exclude<MatchState, 'dead'>

/** Jobs that are in one of these states when they are come to. */
export interface InStates<State extends OpenState> {
  states: readonly State[]
}

/** Letters that ended before this instant of the store's clock: not those that were redriven and died anew since. */
export interface DeadBefore {
  endedBefore?: number | undefined
}

/**
 * What operators do to jobs and queues. Who found the jobs by a filter says again which ones he means, as they may have
 * moved on since: it is looked at in the same step that changes them.
 */
export interface Control {
  /** Waiting jobs end now; for a running one its worker's signal fires. */
  cancel(ids: readonly string[], only?: InStates<OpenState>): Promise<(CancelAnswer | MovedOn)[]>
  /** A delayed or retrying job becomes ready at once, at the front of its lane. Uses no attempt. */
  retry(ids: readonly string[], only?: InStates<'delayed' | 'retrying'>): Promise<(RetryAnswer | MovedOn)[]>
  /** Dead letters become pending again with fresh attempts: same id, key, payload and history. */
  redrive(ids: readonly string[], options: { force: boolean } & DeadBefore): Promise<(RedriveAnswer | MovedOn)[]>
  /** Dead letters are deleted, with their idempotency keys. */
  discard(ids: readonly string[], only?: DeadBefore): Promise<(DiscardAnswer | MovedOn)[]>
  /** After it resolved no claim of the queue begins. */
  pause(queue: string): Promise<void>
  /** Ends a pause and a drain. */
  resume(queue: string): Promise<void>
  /** From now on enqueue answers `draining`; the caller waits until the counts are zero. */
  refuse(queue: string): Promise<void>
  /** Deletes what waits, at most `limit` jobs a call; running ones go on. Their keys are free. */
  purge(queue: string, limit: number): Promise<{ deleted: number; more: boolean }>
  /** How a claim orders the priorities of the queue. */
  order(queue: string, order: QueueOrder): Promise<void>
  /**
   * Sets the limits that are given and leaves the others. From then on claims keep to them: what is held beyond a lower
   * one goes on, and nothing is claimed until it has ended. A changed rate begins with a full bucket. What waits beyond a
   * lower depth stays, and enqueues are refused until it has drained. A changed intake begins with a full bucket, too.
   */
  limit(queue: string, limits: Partial<QueueLimits>): Promise<void>
}

/** Hints that there may be work. Polling stays the floor: a hint may be missing, late or doubled. */
export interface Wake {
  /**
   * Calls `listener` with the names of queues that got work, and of all of them when it begins to hear; `deaf` when it
   * hears no longer, until it does again. Resolves to a function that ends it.
   */
  listen(
    queues: readonly string[],
    listener: (queues: string[]) => void,
    deaf?: () => void,
  ): Promise<() => Promise<void>>
}

/** The schema of a store that has one. */
export interface Setup {
  /** Brings the schema up to date; any number of processes may call it at once. */
  migrate(): Promise<{ applied: string[] }>
  /** Throws SCHEMA_MISSING or SCHEMA_OUTDATED unless this version can work with the schema. */
  check(): Promise<void>
  /** Throws as `check` does; else in what the schema differs from what this version has made of it. Changes nothing. */
  drift(): Promise<Difference[]>
}

/** `extra`: somebody's own addition, which does no harm as long as it refuses nothing that the store writes. */
export interface Difference {
  kind: 'missing' | 'changed' | 'extra'
  /** `table dead`, `column dead.reason`, `index dead_list`, `function claim of 26 arguments`. */
  about: string
  /** What it is, for people. */
  sentence: string
}

/** What a thread needs to send beats on a connection of its own. */
export interface BeatSource {
  /**
   * A module exporting `openBeats(data, { timeoutMs }): { beat(beat): Promise<BeatAnswer>; close(): Promise<void> }`.
   * A beat that is not answered within `timeoutMs` has to fail and give its connection up: one that is half open would
   * swallow the beats that follow, and with them the lease.
   */
  module: string
  /** Structured-cloneable. */
  data: unknown
}
