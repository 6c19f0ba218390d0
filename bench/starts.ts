/** The starts of several worker processes as one log, by the clock that they share. Called by flood and ageing. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Place } from './setting.js'
import type { WorkerChild } from './worker-child.js'

const LOOK_EACH_MS = 50
/** A queue that needs longer does not keep up, and that is what it says then. */
const PATIENCE_MS = 120_000

/** Number and instant of each start in turns, as `WorkerChild.starts` gives them, in the order of the instants. */
export async function startsOf(children: readonly WorkerChild[]): Promise<Float64Array> {
  return inOrder(await Promise.all(children.map((child) => child.starts())))
}

export function inOrder(logs: readonly Float64Array[]): Float64Array {
  const starts = logs.flatMap((log) =>
    Array.from({ length: log.length / 2 }, (_, at) => [log[2 * at]!, log[2 * at + 1]!]),
  )
  return Float64Array.from(starts.sort((a, b) => a[1]! - b[1]!).flat())
}

/** Resolves when nothing waits and nothing runs. */
export function allEnded(place: Place): Promise<void> {
  return until('jobs still wait', async () => {
    const [row] = await place.sql(
      'select exists (select from :s.ready) or exists (select from :s.delayed) or exists (select from :s.lease) as left',
    )
    return row!.left === false
  })
}

/** Asks again and again, so seldom that it costs the measured ones nothing. */
export async function until(missing: string, holds: () => Promise<boolean>): Promise<void> {
  for (const patience = performance.now() + PATIENCE_MS; performance.now() < patience; await sleep(LOOK_EACH_MS))
    if (await holds()) return
  throw new Error(`${missing} after ${PATIENCE_MS / 1_000} seconds`)
}
