/** Jobs, queues and workers as scripts get them: instants as ISO text, durations in milliseconds. Called by the commands. */
import type { Explanation } from '../core/explanation.js'
import type { JobHistory, JobSpec } from '../core/job.js'
import type { JobView, QueueCounts, QueueView, WorkerView } from '../storage/storage.js'
import { isoOrNull, isoTime } from './when.js'

export function jobDocument(job: JobView): Record<string, unknown> {
  const { idempotencyKey, ...policy } = job.spec
  return {
    id: job.id,
    kind: job.kind,
    queue: job.queue,
    ...(job.partition === undefined ? {} : { partition: job.partition }),
    priority: job.priority,
    state: job.state,
    ...(job.reason === undefined ? {} : { reason: job.reason }),
    ...(job.cancelling === true ? { cancelling: true } : {}),
    payload: job.payload,
    ...(job.result === undefined ? {} : { result: job.result }),
    idempotencyKey: idempotencyKey ?? null,
    attempts: { used: attemptsUsed(job), max: job.spec.attempts },
    enqueuedAt: isoTime(job.enqueuedAt),
    dueAt: isoOrNull(job.dueAt),
    startedAt: isoOrNull(job.startedAt),
    endedAt: isoOrNull(job.endedAt),
    worker: job.worker,
    policy: policy satisfies Omit<JobSpec, 'idempotencyKey'>,
    history: job.history === null ? null : historyDocument(job.history),
  }
}

function historyDocument({ entries, firstStartedAt, ...counts }: JobHistory): Record<string, unknown> {
  return {
    ...counts,
    ...(firstStartedAt === undefined ? {} : { firstStartedAt: isoTime(firstStartedAt) }),
    entries: entries.map(({ at, ...entry }) => ({ at: isoTime(at), ...entry })),
  }
}

/** A job that went well at once leaves none in its history, and has used one all the same. */
export function attemptsUsed({ history, state }: JobView): number {
  return Math.max(history?.attempts ?? 0, state === 'completed' ? 1 : 0)
}

/** Whatever clauses there are: what ends in `At` is an instant. */
export function explanationDocument({ nowMs, ...explanation }: Explanation): Record<string, unknown> {
  return { at: isoTime(nowMs), ...(withIsoTimes(explanation) as Record<string, unknown>) }
}

function withIsoTimes(value: unknown, key = ''): unknown {
  if (typeof value === 'number' && /(^at|At)$/.test(key)) return isoTime(value)
  if (Array.isArray(value)) return value.map((item) => withIsoTimes(item))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, own]) => [name, withIsoTimes(own, name)]))
}

export function queueDocument(view: QueueView, counts: QueueCounts): Record<string, unknown> {
  return { ...view, counts }
}

export function workerDocument({ startedAt, ...worker }: WorkerView): Record<string, unknown> {
  return { ...worker, startedAt: isoTime(startedAt) }
}
