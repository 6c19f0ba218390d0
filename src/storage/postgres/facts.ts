/** What decides whether a job runs now, from one look. Called by inspect.ts. */
import type { DeadReason, JobHistory, JobSpec, JobState } from '../../core/job.js'
import type { JobFacts, KeySeen, LeaseSeen, ListSeen, QueueSeen, WorkerSeen } from '../../core/job-facts.js'
import { decodeSpec } from './codec.js'
import type { Row } from './database.js'
import { readHistory } from './odd-text.js'

/** See facts-sql.ts. */
type WireList = [range: 0 | 1 | 2 | 3, level: number, kinds: string[], dues: number[], own: number | null, cut: boolean]

/** An older worker says nothing of its kinds. */
type WireWorker = Omit<WorkerSeen, 'kinds'> & { kinds: string[] | null }

const RANGES = ['back', 'front', 'suspects', 'fair'] as const

export function decodeFacts(row: Row): JobFacts {
  return {
    nowMs: row.now_ms as number,
    job: decodeJob(row),
    queue: decodeQueue(row),
    workers: ((row.workers as WireWorker[] | null) ?? []).map(({ kinds, ...worker }) =>
      kinds === null ? worker : { ...worker, kinds },
    ),
    workersElsewhere: row.elsewhere as number,
    ...(row.key === null ? {} : { key: row.key as KeySeen }),
    lease: row.state === 'running' ? decodeLease(row) : null,
    suspectRunning: row.suspect_running as JobFacts['suspectRunning'],
    lists: ((row.lists as WireList[] | null) ?? []).map(decodeList),
  }
}

function decodeJob(row: Row): JobFacts['job'] {
  return {
    id: row.id as string,
    kind: row.kind as string,
    queue: row.queue_name as string,
    priority: row.level as number,
    state: row.state as JobState,
    suspect: row.suspect as boolean,
    spec: decodeSpec(row.spec as Partial<JobSpec> | null),
    history: readHistory(row.history as JobHistory | null),
    enqueuedAt: row.enqueued as number,
    dueAt: row.due as number | null,
    startedAt: row.started as number | null,
    endedAt: row.ended as number | null,
    ...(row.reason === null ? {} : { reason: row.reason as DeadReason }),
    ...(row.cancelling === true ? { cancelling: true } : {}),
  }
}

/** Null: no such limit. */
type WireLimits = { [Limit in 'concurrency' | 'rate']: NonNullable<QueueSeen[Limit]> | null }

function decodeQueue(row: Row): QueueSeen {
  const { concurrency, rate } = (row.limits as WireLimits | null) ?? { concurrency: null, rate: null }
  return {
    paused: row.paused as boolean,
    draining: row.draining as boolean,
    order: row.ordering as QueueSeen['order'],
    ...(concurrency === null ? {} : { concurrency }),
    ...(rate === null ? {} : { rate }),
  }
}

function decodeLease(row: Row): LeaseSeen {
  return {
    worker: row.worker as string,
    claimedAt: Math.round(Number(row.claimed) / 1_000),
    adopted: row.adopted as boolean,
    holder: row.holder as LeaseSeen['holder'],
  }
}

function decodeList([range, priority, kinds, dues, own, cut]: WireList): ListSeen {
  return {
    range: RANGES[range],
    priority,
    entries: kinds.map((kind, at) => ({ kind, dueAt: dues[at]! / 1_000 })),
    ...(own === null ? {} : { own }),
    cut,
  }
}
