/** When a job in line may start, by the pace of its queue. Pure; called by the client with what `diagnose.pace` answers. */
import type { Estimate, Explanation } from './explanation.js'
import { grouped } from './show.js'

/** How a queue has moved of late: completed jobs of the last minute and hour. */
export interface Pace {
  completedMinute: { count: number }
  completedHour: { count: number; exact: boolean }
}

/** When a job in line will start, by the pace of its queue; the same where nothing can be said. */
export function withEstimate(explanation: Explanation, pace: Pace): Explanation {
  const [turn] = explanation.clauses
  if (turn.code !== 'its turn' || turn.next || turn.able === 0) return explanation
  const startsIn = estimateOf(turn, pace)
  return startsIn === undefined ? explanation : { ...explanation, clauses: [{ ...turn, startsIn }] }
}

function estimateOf(
  { rank, exact, freeSlots: free }: { rank: number; exact: boolean; freeSlots: number },
  { completedMinute, completedHour }: Pace,
): Estimate | undefined {
  const minute = completedMinute.count > 0
  const [done, spanMs, span] = minute
    ? [completedMinute.count, 60_000, 'minute']
    : [completedHour.count, 3_600_000, 'hour']
  if (done === 0) return undefined
  const ms = Math.round((Math.max(1, rank - free) * spanMs) / done)
  const jobs = done === 1 ? 'the 1 job' : `the ${grouped(done)} jobs`
  return { ms, atLeast: !exact, basis: `its rank and ${jobs} completed in the last ${span}` }
}
