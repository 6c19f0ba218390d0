/** How attempts end. Called by MemoryStorage and by claims. */

import { keepsPermit } from '../../core/keys.js'
import type { SettleAnswer, Settlement } from '../storage.js'
import { copyOfHistory } from './copy.js'
import type { JobRow } from './jobs.js'
import type { LeaseRow, Slot } from './leases.js'
import { endCancelled, keepCancelled, type MemoryState, release, toFronts } from './state.js'

export function settle(state: MemoryState, settlements: readonly Settlement[]): SettleAnswer[] {
  const now = state.now()
  const moved: Moved = { back: [], freed: [] }
  const answers = settlements.map((settlement) => settleOne(state, settlement, moved, now))
  toFronts(state, moved.back)
  release(state, moved.freed)
  return answers
}

/** What one call has to see to when all of it is moved. */
interface Moved {
  /** Goes to the front, in the order that the whole call decides. */
  back: JobRow[]
  /** Holds no permit of its key any more. */
  freed: JobRow[]
}

/** The fence decides, then the open mark; nothing else is looked at, and only an open job is moved. */
function settleOne(state: MemoryState, settlement: Settlement, moved: Moved, now: number): SettleAnswer {
  const { fence, ordinal } = settlement
  const lease = state.leases.get(fence)
  if (lease === undefined) return state.leases.diedOpen(fence, ordinal) ? 'lost' : 'already'
  const slot = lease.slots[ordinal]
  if (!slot?.open) return 'already'
  if (settlement.to === 'started') {
    slot.started = true
    return 'ok'
  }
  return settleOpen(state, lease, slot, settlement, moved, now)
}

function settleOpen(
  state: MemoryState,
  lease: LeaseRow,
  slot: Slot,
  settlement: Exclude<Settlement, { to: 'started' }>,
  moved: Moved,
  now: number,
): SettleAnswer {
  const { job } = slot
  state.leases.close(lease, slot)
  job.history = copyOfHistory(settlement.history)
  // The worker reckons from when it asked for the job, a moment before the claim.
  const { startedAfterMs } = settlement
  job.startedAt = startedAfterMs === undefined ? null : Math.min(now, lease.claimedAt + startedAfterMs)
  job.ranMs = settlement.ranMs ?? null
  if (slot.crash !== null) job.worker = slot.crash.worker
  // Somebody wants it cancelled, and this would let it run again.
  if (job.cancelling && (settlement.to === 'ready' || settlement.to === 'delayed')) {
    endCancelled(state, job, now)
    moved.freed.push(job)
    return 'cancelled'
  }
  move(state, job, settlement, moved.back, now)
  if (!keepsPermit(job.spec, settlement.to)) moved.freed.push(job)
  // Its permit is free: somebody idle may take the next one.
  if (state.queues.get(job.queue).limits.concurrency !== null) state.hints.tell(job.queue)
  return 'ok'
}

/** `back`: gathers what goes to the front, as the whole call decides in which order. */
function move(
  state: MemoryState,
  job: JobRow,
  fate: Exclude<Settlement, { to: 'started' }>,
  back: JobRow[],
  now: number,
): void {
  switch (fate.to) {
    case 'completed':
      if (fate.keep) state.jobs.toEnded(job, 'completed', now, fate.result ?? null)
      else state.jobs.remove(job)
      return
    case 'cancelled':
      keepCancelled(state, job, now)
      return
    case 'dead':
      state.jobs.toDead(job, fate.reason, now)
      return
    case 'ready':
      job.suspect = fate.suspect
      back.push(job)
      return
    case 'delayed':
      job.suspect = fate.suspect
      state.jobs.toDelayed(job, now + fate.delayMs)
      state.hints.tell(job.queue)
  }
}
