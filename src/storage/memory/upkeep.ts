/** Promotion, expiry and pruning: the `upkeep` facet. Called by any worker, at any time. */
import type { MovedJob, Retention, Upkeep } from '../storage.js'
import { nextDueMs } from './claim.js'
import { mayRun } from './enqueue.js'
import type { JobRow } from './jobs.js'
import type { KeyRow } from './keys.js'
import { type MemoryState, release, toFronts, withEntry } from './state.js'

export function upkeepOf(state: MemoryState): Upkeep {
  return {
    promote: async (limit) => promote(state, limit),
    expire: async (limit) => expire(state, limit),
    prune: async (options) => prune(state, options),
  }
}

function promote(state: MemoryState, limit: number): { moved: MovedJob[]; nextDueMs: number | null } {
  const now = state.now()
  const due = firstDue(state, limit, now)
  for (const job of due) {
    state.jobs.toBack(job)
    state.hints.tell(job.queue)
  }
  return { moved: due.map(movedJob), nextDueMs: nextDueMs(state, now) }
}

/** The earliest; of those that are due at one instant, by their ids. */
function firstDue({ jobs }: MemoryState, limit: number, now: number): JobRow[] {
  const earliest = jobs.delayed.take(limit, ({ dueAt }) => dueAt <= now)
  const last = earliest.at(-1)
  if (last === undefined) return []
  const upToLast = jobs.delayed.take(Number.POSITIVE_INFINITY, ({ dueAt }) => dueAt <= last.dueAt)
  return upToLast.sort((a, b) => a.dueAt - b.dueAt || (a.id < b.id ? -1 : 1)).slice(0, limit)
}

/** A leased one is not here: its worker sees that it came too late, or starts it in time. */
function expire(state: MemoryState, limit: number): MovedJob[] {
  const now = state.now()
  const late = state.jobs.expiring.take(limit, (job) => job.expiresAt !== null && job.expiresAt <= now)
  for (const job of late) {
    job.history = withEntry(job, { outcome: 'expired', note: 'not started in time' }, now)
    state.jobs.toDead(job, 'expired', now)
  }
  const limitOf = (queue: string) => state.queues.get(queue).limits.perKey
  state.jobs.permits.release(late, limitOf)
  // As the net of the other store does: what has a permit by now may be ready, whoever was ready before it.
  toFronts(state, state.jobs.permits.free(limitOf))
  return late.map(movedJob)
}

/** Records first, then keys: a key may outlive the record of its job, never a job that may still run. */
function prune(
  state: MemoryState,
  { completedMs, deadMs, completedMax, deadMax, limit }: Retention & { limit: number },
): { deleted: number; more: boolean } {
  const now = state.now()
  state.leases.prune(now)
  const over: JobRow[] = []
  const bounds = [
    ['completed', completedMs, completedMax],
    ['cancelled', completedMs, completedMax],
    ['dead', deadMs, deadMax],
  ] as const
  for (const [ended, ageMs, max] of bounds) {
    over.push(...endedBefore(state, ended, now - ageMs, limit - over.length))
    if (max === undefined) continue
    const known = new Set(over)
    over.push(...firstOf(beyondCount(state, ended, max), limit - over.length, (job) => !known.has(job)))
  }
  for (const job of over) state.jobs.remove(job)
  release(state, over)
  const keys = freeKeys(state, now, limit - over.length)
  for (const key of keys) state.keys.delete(key)
  const deleted = over.length + keys.length
  return { deleted, more: deleted === limit }
}

/** Behind every id that is written with the digits of sixteen. */
const LAST_ID = 'g'

/** The list is in order of the newest first, so the older ones are its end. */
function endedBefore(state: MemoryState, ended: 'completed' | 'cancelled' | 'dead', before: number, limit: number) {
  return firstOf(state.jobs.inState(ended).items([-before, LAST_ID]), limit)
}

/** What each queue has beyond its newest `max` records, the oldest first. */
function beyondCount(state: MemoryState, ended: 'completed' | 'cancelled' | 'dead', max: number): JobRow[] {
  const seen = new Map<string, number>()
  const beyond: JobRow[] = []
  for (const job of state.jobs.inState(ended).items()) {
    const newer = seen.get(job.queue) ?? 0
    if (newer >= max) beyond.push(job)
    seen.set(job.queue, newer + 1)
  }
  return beyond.reverse()
}

function freeKeys(state: MemoryState, now: number, limit: number): KeyRow[] {
  return firstOf(state.keys.over(now), limit, ({ id }) => !mayRun(state.jobs.get(id)))
}

function firstOf<T>(items: Iterable<T>, limit: number, wanted: (item: T) => boolean = () => true): T[] {
  const first: T[] = []
  for (const item of items) {
    if (first.length >= limit) break
    if (wanted(item)) first.push(item)
  }
  return first
}

function movedJob({ id, kind, queue }: JobRow): MovedJob {
  return { id, kind, queue }
}
