/** Whether a job may be sent at all: by the intake of this process, and by how long it would wait. Called by producer and batches. */
import type { Env } from '../core/env.js'
import { type Bucket, type RateLimit, taken, tokensAt, untilToken } from '../core/limits.js'
import type { Connection } from '../storage/connection.js'
import type { NewJob } from '../storage/storage.js'
import type { Capacities } from './capacities.js'
import type { HeldBack } from './outcome.js'

export class Gate {
  private bucket: Bucket = { takenUntil: Number.NEGATIVE_INFINITY }

  constructor(
    private readonly connection: Connection,
    private readonly capacities: Capacities,
    private readonly intake: RateLimit | undefined,
  ) {}

  /**
   * Why the job is held back; undefined: it may go, and is counted as sent. A promise only where the store has to be asked, at
   * most once a second for each queue.
   */
  heldBack(job: NewJob, maxWaitMs: number | undefined): HeldBack | undefined | Promise<HeldBack | undefined> {
    // A job for later does not wait in today's queue.
    if (maxWaitMs === undefined || delayMs(this.connection.env, job) > 0) return this.byIntake(job)
    const wait = this.capacities.wait(job)
    const judge = (expectedWaitMs: number | null): HeldBack | undefined => {
      if (expectedWaitMs !== null && expectedWaitMs > maxWaitMs) return { status: 'late', expectedWaitMs, maxWaitMs }
      return this.byIntake(job)
    }
    return wait instanceof Promise ? wait.then(judge) : judge(wait)
  }

  /** Takes a token, where there is one. */
  private byIntake(job: NewJob): HeldBack | undefined {
    const { intake, bucket } = this
    this.capacities.sending(job)
    if (intake === undefined) return undefined
    const now = this.connection.env.monotonic()
    if (tokensAt(bucket, intake, now) === 0)
      return { status: 'limited', limit: intake.limit, retryAfterMs: Math.ceil(untilToken(bucket, intake, now)) }
    this.bucket = taken(bucket, intake, now, 1)
    return undefined
  }
}

function delayMs(env: Env, { due }: NewJob): number {
  return 'delayMs' in due ? due.delayMs : due.atMs - env.now()
}
