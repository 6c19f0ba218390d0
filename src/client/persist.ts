/**
 * Tries again where that helps and is safe: for jobs with an idempotency key, while the key is busy or it is unknown
 * whether they were stored. A job without one is sent once, as a second time might make a second job. Called by the
 * sender and the producer.
 */
import type { Env } from '../core/env.js'
import type { NewJob } from '../storage/storage.js'
import { isUnknown, type Sent } from './outcome.js'

/** For so long a key that somebody else is deciding is asked for again. */
const BUSY_MS_MAX = 500
const RETRY_MS_MIN = 10
const RETRY_MS_MAX = 1_000

export interface Persistence {
  /** One try of some of the jobs: an outcome for each. Never rejects. */
  attempt(jobs: readonly NewJob[]): Promise<Sent[]>
  /** By the monotonic clock. */
  deadline: number
  /** Fires when nobody waits for it any more. */
  over?: AbortSignal
  /** A broken connection ends the caller's transaction: then there is nothing to repeat. */
  tx: unknown
}

/** Whether another try may tell more. */
export function isOpen(job: NewJob, sent: Sent): boolean {
  return job.idempotency !== undefined && (sent.status === 'busy' || isUnknown(sent))
}

/** An outcome for each job, in order. */
export async function persist(env: Env, jobs: readonly NewJob[], persistence: Persistence): Promise<Sent[]> {
  const sent = await persistence.attempt(jobs)
  const busyUntil = Math.min(persistence.deadline, env.monotonic() + BUSY_MS_MAX)
  const unknownUntil = persistence.tx === undefined ? persistence.deadline : 0
  for (let round = 0; ; round++) {
    const now = env.monotonic()
    const open: number[] = []
    for (let index = 0; index < jobs.length; index++) {
      const until = sent[index]!.status === 'busy' ? busyUntil : unknownUntil
      if (now < until && isOpen(jobs[index]!, sent[index]!)) open.push(index)
    }
    if (open.length === 0) return sent
    await env.sleep(Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** round) * (0.5 + env.random()), persistence.over)
    if (persistence.over?.aborted) return sent
    const answers = await persistence.attempt(open.map((index) => jobs[index]!))
    open.forEach((index, at) => {
      sent[index] = learnt(sent[index]!, answers[at]!)
    })
  }
}

/** A first try that may have been done stays unknown until the store decides its key. */
function learnt(before: Sent, answer: Sent): Sent {
  const decided = answer.status === 'created' || answer.status === 'duplicate' || answer.status === 'mismatch'
  return isUnknown(before) && !decided ? before : answer
}
