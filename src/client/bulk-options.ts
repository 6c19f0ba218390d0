/** How a bulk call goes about it, and what it tells. Read by bulk.ts. */
import {
  between,
  callback,
  flag,
  type Given,
  type Held,
  type OptionTable,
  object,
  optionReader,
  whole,
} from '../core/options.js'
import type { MovedOn } from '../storage/storage.js'

/**
 * Counted where the store did not answer whether it had changed a job, and does not show it either: no record of the
 * job is left, or the run ended before it could be asked again.
 */
export const UNCONFIRMED = 'unconfirmed'
export type Unconfirmed = typeof UNCONFIRMED

/** What is said of a job in a bulk call; `moved on`: it no longer matched when it was come to, and was left alone. */
export type BulkAnswer<Answer extends string = string> = Answer | MovedOn | Unconfirmed

/** How far a bulk call has come. */
export interface BulkProgress<Answer extends string = string> {
  /** Jobs that matched and were come to. */
  matched: number
  /** Of those, so many were changed; none in a dry run. */
  done: number
  /** In a dry run only: so many would be changed. */
  expected?: number
  /** How often each answer was given. */
  answers: Partial<Record<BulkAnswer<Answer>, number>>
}

/** What came of a bulk call. */
export interface BulkResult<Answer extends string = string> extends BulkProgress<Answer> {
  /**
   * `all`: nothing that matched is left; `limit`: so many were asked for, or 500,000 jobs that may match again were come
   * to, as a `retryAll` and a `cancelAll` of what runs keep those in mind; `stopped`: the signal fired. The same call made
   * again goes on.
   */
  ended: 'all' | 'limit' | 'stopped'
  /** Nothing was changed; `answers` are those that can be foreseen. */
  dryRun: boolean
  /** The first ten that matched. */
  sample: { id: string; kind: string; queue: string }[]
}

export const BULK_OPTIONS = {
  /** Jobs a second at most, evenly; as fast as the store answers unless given. */
  rate: { check: between(0.01, 100_000) },
  /** Jobs in one call to the store at most; 500 unless given. */
  batch: { default: 500, check: whole({ min: 1, max: 1_000 }) },
  /** So many jobs at most; all that match unless given. */
  limit: { check: whole({ min: 1, max: 1_000_000_000 }) },
  /** Changes nothing, counts what matches: 100,000 at most unless a limit is given. */
  dryRun: { default: false, check: flag },
  /** Ends the run between two batches; it resolves with what was done. */
  signal: { check: object<AbortSignal>('an AbortSignal') },
  /** Called after each batch. What it throws ends the run, and is thrown on. */
  onProgress: { check: callback<(progress: BulkProgress) => void>() },
} satisfies OptionTable

export const REDRIVE_ALL_OPTIONS = {
  ...BULK_OPTIONS,
  /** Also at-most-once jobs that may have run. */
  force: { default: false, check: flag },
} satisfies OptionTable

// Interfaces with a member of their own, as the compiler names those in its messages; of an alias, or of an interface that
// adds nothing, it shows the whole table.

/** The options of `discardAll`, `cancelAll` and `retryAll`. */
export interface BulkOptions extends Given<typeof BULK_OPTIONS> {
  /** Jobs a second at most, evenly; as fast as the store answers unless given. */
  rate?: number
}
/** The options of `redriveAll`. */
export interface RedriveAllOptions extends Given<typeof REDRIVE_ALL_OPTIONS> {
  /** Jobs a second at most, evenly; as fast as the store answers unless given. */
  rate?: number
}
export type HeldBulk = Held<typeof BULK_OPTIONS>

export const readBulk = optionReader(BULK_OPTIONS)
export const readRedriveAll = optionReader(REDRIVE_ALL_OPTIONS)
