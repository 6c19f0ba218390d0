/** The public API. Nothing else is public but the subpaths `leasehold/postgres` and `leasehold/testing`. */
export type { BulkAnswer, BulkOptions, BulkProgress, BulkResult, RedriveAllOptions } from './client/bulk-options.js'
export type { EnqueueManyOptions, EnqueueOptions, TransactionClient } from './client/calls.js'
export type { Capacity } from './client/capacities.js'
export type { DrainOptions, PurgeOptions, PurgeProgress, RedriveOptions } from './client/controller.js'
export type { CancelFilter, DeadFilter, RetryFilter } from './client/filters.js'
export type { DeadGroupOptions, ListOptions } from './client/inspector.js'
export type { Job, WaitOptions } from './client/job.js'
export type { DepthOptions, LimitOptions, RateOptions } from './client/limits.js'
export type { EnqueueResult } from './client/outcome.js'
export type { Queue } from './client/queue.js'
export { type ConnectOptions, connect } from './connect.js'
export type { JobChoices } from './core/choices.js'
export type { Instant } from './core/due.js'
export type { Duration } from './core/duration.js'
export { ERROR_CODES, type ErrorCode, QueueError } from './core/errors.js'
export type { Clause, ClauseCode, Estimate, Explanation, Note } from './core/explanation.js'
export {
  type BoundHandler,
  dead,
  type HandlerContext,
  retryAfter,
  type StopReason,
  snooze,
  type Verdict,
} from './core/handler.js'
export { newJobId } from './core/id.js'
export type { DeadReason, ErrorRecord, HistoryEntry, JobHistory, JobState, Json, Priority, Tier } from './core/job.js'
export { defineJob, type JobItem, type JobKind, type Kind, type KindOptions, type Returned } from './core/kind.js'
export type { PartitionOptions, PartitionSketch } from './core/partition-list.js'
export type { BackoffFunction, BackoffOptions } from './core/policy.js'
export type { PartitionKey } from './core/rendezvous.js'
export type { EventListener, LogLevel, QueueEvent } from './observe/events.js'
export type { Connection } from './storage/connection.js'
export type {
  CancelAnswer,
  Count,
  DeadGroup,
  DeadGroups,
  DiscardAnswer,
  JobPage,
  JobView,
  QueueCounts,
  QueueLimits,
  QueueOrder,
  QueueView,
  RedriveAnswer,
  RetryAnswer,
  WorkerView,
} from './storage/storage.js'
export {
  type HealthReason,
  type StoreHealth,
  type Worker,
  type WorkerHealth,
  type WorkerOptions,
  type WorkerStats,
  worker,
} from './worker/index.js'
