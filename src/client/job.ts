/** What enqueue gives back: the job's id, and ways to learn what becomes of it. Made by the producer. */
import { QueueError } from '../core/errors.js'
import type { ErrorRecord } from '../core/job.js'
import { duration, type Given, type OptionTable, object, optionReader } from '../core/options.js'
import type { Connection } from '../storage/connection.js'
import type { JobView } from '../storage/storage.js'
import type { Inspector } from './inspector.js'
import type { Waits } from './waits.js'

const WAIT_OPTIONS = {
  /** How long to wait; 5 minutes unless given. */
  timeout: { default: 300_000, check: duration() },
  /** Ends the wait, not the job. */
  signal: { check: object<AbortSignal>('an AbortSignal') },
} satisfies OptionTable

/** The options of `job.result()`. */
export type WaitOptions = Given<typeof WAIT_OPTIONS>

const readWait = optionReader(WAIT_OPTIONS)

/** What a handle needs of the client. */
export interface JobAccess {
  readonly connection: Connection
  readonly waits: Waits
  readonly inspector: Inspector
}

/** Names one job in the store. `Result` is what its handler returns. */
export class Job<Result> {
  constructor(
    private readonly access: JobAccess,
    readonly id: string,
    /** The name of its kind. */
    readonly kind: string,
    readonly queue: string,
    /** Its idempotency key was there before: this is the first job of the key, and nothing new was stored. */
    readonly duplicate: boolean,
  ) {}

  /**
   * What the handler returned, once the job has ended; undefined when it returned nothing.
   *
   *     const { messageId } = await job.result({ timeout: '30s' })
   *
   * Rejects with JOB_ENDED_BADLY when the job ends as dead or cancelled (the last error of the handler is the `cause`),
   * WAIT_TIMEOUT, JOB_NOT_FOUND when no record is left (a kind may keep none), or the signal's reason.
   */
  async result(options?: WaitOptions): Promise<Result> {
    const { timeout, signal } = readWait(options)
    const deadline = this.access.connection.env.monotonic() + timeout
    const view = await this.access.waits.ended(this.id, { deadline, signal })
    if (view.state === 'completed') return view.result as Result
    throw endedBadly(view)
  }

  /** The job as the store knows it now; null when it knows none with this id. */
  get(): Promise<JobView | null> {
    return this.access.inspector.get(this.id)
  }
}

function endedBadly(view: JobView): QueueError {
  const last = view.history?.entries.findLast((entry) => entry.error !== undefined)?.error
  const ended = view.state === 'dead' ? `is dead (${view.reason})` : 'was cancelled'
  const said = last === undefined ? '' : `: ${last.message}`
  return new QueueError('JOB_ENDED_BADLY', `job ${view.id} ${ended}${said}`, {
    jobId: view.id,
    cause: last && thrown(last),
  })
}

/** The handler's error, as far as its record tells. */
function thrown(record: ErrorRecord): Error {
  const error = new Error(record.message)
  error.name = record.name
  if (record.stack !== undefined) error.stack = record.stack
  return error
}
