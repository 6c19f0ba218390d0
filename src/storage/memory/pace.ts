/** How a queue moves, and who works on it. Called by enqueues that are refused, and by inspect. */
import { DRAINED_MAX, DRAINED_MS, type Drained } from '../../core/capacity.js'
import type { CapacityFacts } from '../storage.js'
import type { JobRow } from './jobs.js'
import { openSlots } from './leases.js'
import type { MemoryState } from './state.js'
import { isDead, type WorkerRow } from './workers.js'

export function drained(state: MemoryState, queue: string, now: number): Drained {
  return drainedBy(newest(state, queue, now), now)
}

export function capacity(state: MemoryState, queue: string): CapacityFacts {
  const now = state.now()
  const alive = state.workers.all().filter((row) => row.info.queues.includes(queue) && !isDead(row, now))
  const sum = (of: (row: WorkerRow) => number): number => alive.reduce((total, row) => total + of(row), 0)
  const { paused, limits } = state.queues.get(queue)
  const jobs = newest(state, queue, now)
  const ran = jobs.flatMap(({ ranMs }) => (ranMs === null ? [] : [ranMs]))
  return {
    workers: alive.length,
    slots: sum(({ info }) => info.concurrency),
    busy: sum((row) => row.info.busy ?? Math.min(row.info.concurrency, held(state, row))),
    paused,
    ready: { count: state.jobs.counts(queue).ready, exact: true },
    depth: { count: state.jobs.waiting(queue), exact: true },
    drained: drainedBy(jobs, now),
    ranMs: ran.length === 0 ? null : ran.reduce((total, ms) => total + ms, 0) / ran.length,
    limits: structuredClone(limits),
  }
}

/** The newest records of completed jobs, as many as the pace is made of. */
function newest(state: MemoryState, queue: string, now: number): JobRow[] {
  const jobs: JobRow[] = []
  for (const job of state.jobs.inState('completed').items()) {
    if (now - job.endedAt! > DRAINED_MS || jobs.length === DRAINED_MAX) break
    if (job.queue === queue) jobs.push(job)
  }
  return jobs
}

function drainedBy(jobs: readonly JobRow[], now: number): Drained {
  const oldest = jobs.at(-1)
  return { count: jobs.length, sinceMs: oldest === undefined ? 0 : now - oldest.endedAt! }
}

function held(state: MemoryState, { id }: WorkerRow): number {
  return state.leases.of(id).reduce((jobs, lease) => jobs + openSlots(lease).length, 0)
}
