/** How the work of dead workers is adopted. Called by MemoryStorage. */
import type { Beat, RecoveredLease, TakeOver } from '../storage.js'
import { leaseAnswer } from './claim.js'
import { type LeaseRow, openSlots, type Slot } from './leases.js'
import type { MemoryState } from './state.js'
import { isDead, isSteady, type WorkerRow } from './workers.js'

export function takeOver(state: MemoryState, { worker, limit }: { worker: string; limit: number }): TakeOver {
  const now = state.now()
  const asker = state.workers.get(worker)
  // Who said good bye, or was written off, has left what it adopted to the next one.
  if (asker === undefined) return { leases: [], nowMs: now }
  if (isSteady(asker, now)) adopt(state, asker, limit, now)
  const leases = upTo(limit, adopted(state, worker))
  return { leases: leases.map((lease) => recoveredLease(lease)), nowMs: now }
}

/** Leases that the worker has adopted and not settled yet. */
function adopted(state: MemoryState, worker: string): LeaseRow[] {
  return state.leases.of(worker).filter((lease) => lease.request === null)
}

/** Whole leases of dead workers, until the asker has `limit` jobs to settle. */
function adopt(state: MemoryState, asker: WorkerRow, limit: number, now: number): void {
  let jobs = jobsIn(adopted(state, asker.id))
  for (const dead of deadWorkers(state, asker, now)) {
    if (jobs >= limit) return
    for (const lease of state.leases.of(dead)) {
      if (jobs >= limit) break
      jobs += openSlots(lease).length
      adoptLease(state, lease, asker.id, now)
    }
    // It is written off with its last lease; until then it may come back to those that are left.
    if (state.leases.of(dead).length === 0) state.workers.delete(dead)
  }
}

/** The first to fall silent first; then those that said good bye and left adopted leases. */
function deadWorkers(state: MemoryState, asker: WorkerRow, now: number): string[] {
  const silent = state.workers
    .all()
    .filter((row) => row !== asker && isDead(row, now))
    .sort((a, b) => a.lastBeatAt - b.lastBeatAt)
  const gone = state.leases.holders().filter((worker) => state.workers.get(worker) === undefined)
  return [...silent.map(({ id }) => id), ...gone]
}

/** The same slots under a new fence; the old one is dead. */
function adoptLease(state: MemoryState, lease: LeaseRow, adopter: string, now: number): void {
  const told = state.workers.get(lease.worker)?.started ?? []
  state.leases.revoke(lease, now)
  const slots = lease.slots.map((slot): Slot => ({ ...slot, crash: crashOf(lease, slot, told) }))
  for (const { job, open } of slots) if (open) state.jobs.toHeir(job, adopter)
  state.leases.add({ ...lease, worker: adopter, request: null, slots })
}

/** What is known of the crash. Nothing ran since an earlier one, so its facts stand. */
function crashOf(lease: LeaseRow, slot: Slot, told: Beat['started']): Slot['crash'] {
  if (!slot.open) return null
  if (slot.crash !== null) return slot.crash
  const started = slot.started || told.some(([fence, ordinal]) => fence === lease.fence && ordinal === slot.ordinal)
  return { worker: lease.worker, started, alone: lease.alone, cancelled: false }
}

function recoveredLease(lease: LeaseRow): RecoveredLease {
  const crashes = lease.slots.map(({ job, open, crash }) =>
    open && crash !== null ? { ...crash, cancelled: job.cancelling } : null,
  )
  return { ...leaseAnswer(lease), crashes }
}

function upTo(limit: number, leases: LeaseRow[]): LeaseRow[] {
  let jobs = 0
  return leases.filter((lease) => {
    const fits = jobs < limit
    jobs += openSlots(lease).length
    return fits
  })
}

function jobsIn(leases: LeaseRow[]): number {
  return leases.reduce((sum, lease) => sum + openSlots(lease).length, 0)
}
