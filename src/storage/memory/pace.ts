/** How a queue moves, by the newest records of it. Called by enqueues that are refused, and by inspect. */
import { DRAINED_MAX, DRAINED_MS, type Drained } from '../../core/capacity.js'
import type { MemoryState } from './state.js'

export function drained(state: MemoryState, queue: string, now: number): Drained {
  let count = 0
  let sinceMs = 0
  for (const job of state.jobs.inState('completed').items()) {
    const agoMs = now - job.endedAt!
    if (agoMs > DRAINED_MS || count === DRAINED_MAX) break
    if (job.queue !== queue) continue
    count += 1
    sinceMs = agoMs
  }
  return { count, sinceMs }
}
