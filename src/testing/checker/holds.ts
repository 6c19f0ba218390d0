/**
 * Which hold of a job something belongs to. A worker tells how a job was settled without its fence; but it tells in order,
 * and nobody else speaks for it. Called by the fold, while the events of one process come in their order.
 */
import type { CrashNote, Hold, Settlement, Trace } from './story.js'

export function holdOf(process: string, { fence, crash }: { fence?: number; crash?: CrashNote }): Hold {
  return {
    process,
    fence,
    attempt: undefined,
    claimed: undefined,
    crash,
    startedAt: undefined,
    effectAt: undefined,
    finishedAt: undefined,
    finishedAs: undefined,
    told: [],
  }
}

/** The hold of the process under the fence; made when this is the first word of it. */
export function holdUnder({ holds }: Trace, process: string, fence: number): Hold {
  const known = holds.findLast((one) => one.process === process && one.fence === fence)
  if (known !== undefined) return known
  const hold = holdOf(process, { fence })
  holds.push(hold)
  return hold
}

/**
 * An end that follows a take-over at once belongs to it. Else it is the oldest hold of the worker of which nothing was
 * told yet and that fits, as each one is told of: one that came to such an end, or else any; or, for the `dead` that
 * follows the last failure, the one that failed. Usually they are told in order, but not after an answer was lost.
 */
export function holdOfSettlement({ holds }: Trace, settlement: Settlement, of: SettledFor): Hold | undefined {
  const { as, process } = settlement
  const own = holds.filter((hold) => isFor(hold, process, of))
  const failed = as === 'dead' ? own.findLast(isJustFailed(settlement.at)) : undefined
  if (failed !== undefined) return failed
  const last = own.at(-1)
  if (last?.crash !== undefined && last.told.length === 0 && ENDS.has(as)) return last
  const open = own.filter(({ told, crash }) => told.length === 0 && crash === undefined)
  // What has ended was held for the last time: of earlier holds the answers are still to come.
  if (ENDS.has(as) && open.length > 0) return open.findLast((hold) => cameTo(hold, as)) ?? open.at(-1)
  if (open.length > 0) return open.find((hold) => cameTo(hold, as)) ?? open[0]
  return as === 'dead' ? own.findLast(({ told }) => told.length === 1 && FAILED.has(told[0]!.as)) : undefined
}

/** The last failure and the end that it led to are told in one breath. */
function isJustFailed(at: number): (hold: Hold) => boolean {
  return ({ told }) => told.length === 1 && FAILED.has(told[0]!.as) && told[0]!.at === at
}

interface SettledFor {
  /** Empty where it is not known. */
  worker: string
  attempt: number | undefined
}

function isFor(hold: Hold, process: string, { worker, attempt }: SettledFor): boolean {
  if (hold.process !== process) return false
  if (attempt !== undefined && hold.attempt !== undefined && hold.attempt !== attempt) return false
  return worker === '' || hold.claimed === undefined || hold.claimed.worker === worker
}

/** What its handler wrote down fits with it. */
function cameTo({ startedAt, effectAt, finishedAs }: Hold, as: Settlement['as']): boolean {
  switch (as) {
    case 'completed':
      return effectAt !== undefined || finishedAs === 'returned'
    case 'failed':
      return finishedAs === 'failed' || finishedAs === 'postponed'
    case 'snoozed':
      return finishedAs === 'snoozed'
    case 'timed out':
      // Its code may go on.
      return startedAt !== undefined && effectAt === undefined && (finishedAs ?? 'aborted') === 'aborted'
    default:
      return effectAt === undefined
  }
}

const ENDS: ReadonlySet<string> = new Set(['dead', 'cancelled'])
const FAILED: ReadonlySet<string> = new Set(['failed', 'timed out'])
