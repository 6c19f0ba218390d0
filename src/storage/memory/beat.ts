/** Beats and good byes of workers. Called by MemoryStorage. */
import type { Beat, BeatAnswer } from '../storage.js'
import { openSlots } from './leases.js'
import { giveBack, type MemoryState } from './state.js'
import { keepAlive } from './workers.js'

export function beat(state: MemoryState, beat: Beat): BeatAnswer {
  const row = state.workers.get(beat.worker)
  if (row === undefined && beat.n > 1) return goneAnswer(beat)
  if (row !== undefined && beat.n < row.n) return { status: 'stale', lost: [], cancel: [], paused: [] }
  const now = state.now()
  // A repeat of the newest beat is a sign of life too. What it says of leases was done, and may be old by now.
  const repeated = beat.n === row?.n
  if (row === undefined) state.workers.register(beat, now)
  else keepAlive(row, beat, now)
  if (!repeated) dropUnnamed(state, beat, now)
  return {
    status: 'ok',
    lost: beat.leases.filter((fence) => state.leases.isDead(fence)),
    cancel: cancelled(state, beat),
    paused: beat.info.queues.filter((queue) => state.queues.get(queue).paused),
  }
}

/** It holds nothing any more. What it left behind all the same is not lost. */
export function unregister(state: MemoryState, worker: string): void {
  const row = state.workers.get(worker)
  if (row === undefined) return
  // Leases it adopted and did not settle keep what is known of the crash, and wait for the next who takes over.
  giveBack(
    state,
    state.leases.of(worker).filter(({ request }) => request !== null),
    state.now(),
  )
  state.workers.delete(worker)
}

function goneAnswer(beat: Beat): BeatAnswer {
  return { status: 'gone', lost: [...beat.leases], cancel: [], paused: [] }
}

/** Leases whose answers never arrived go back. */
function dropUnnamed(state: MemoryState, { worker, known, leases }: Beat, now: number): void {
  const unnamed = state.leases
    .of(worker)
    .filter(({ fence, request }) => request !== null && request <= known && !leases.includes(fence))
  giveBack(state, unnamed, now)
}

/** Of the leases it names: of the others it will hear when it has them. */
function cancelled(state: MemoryState, { worker, leases }: Beat): [number, number][] {
  const named = state.leases.of(worker).filter(({ fence }) => leases.includes(fence))
  return named.flatMap((lease) =>
    openSlots(lease)
      .filter(({ job }) => job.cancelling)
      .map(({ ordinal }): [number, number] => [lease.fence, ordinal]),
  )
}
