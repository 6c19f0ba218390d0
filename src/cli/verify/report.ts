/** What verify came to, as data: for scripts, and for the page that people read. Made by verify.ts. */
import { idleRules } from '../../testing/verify/unfed-rules.js'
import type { Played } from './play.js'
import { groupedPromises, type PromiseGroup } from './promises.js'
import type { SabotageName } from './sabotage.js'
import type { JudgedCase } from './suite.js'

/** `not judged`: nothing was found broken; the store was away for a part of it, or rules had nothing to judge that the drills are to feed. */
export type Verdict = 'kept' | 'broken' | 'not judged'

export interface VerifyReport {
  verdict: Verdict
  store: { name: string; version?: string }
  sabotage?: SabotageName
  seconds: number
  cases: { all: number; kept: number; broken: number; notJudged: number }
  promises: PromiseGroup[]
  /** Absent where there were none, for the reason that `withoutDrills` gives. */
  drills?: Played & { leaseMs: number }
  withoutDrills?: string
}

export interface ReportParts extends Pick<VerifyReport, 'store' | 'seconds' | 'sabotage' | 'drills' | 'withoutDrills'> {
  cases: readonly JudgedCase[]
}

export function reportOf({ cases, ...parts }: ReportParts): VerifyReport {
  const count = (verdict: Verdict): number => cases.filter((one) => one.verdict === verdict).length
  return {
    verdict: verdictOf(cases, parts.drills),
    ...parts,
    cases: { all: cases.length, kept: count('kept'), broken: count('broken'), notJudged: count('not judged') },
    promises: groupedPromises(cases),
  }
}

function verdictOf(cases: readonly JudgedCase[], drills: Played | undefined): Verdict {
  const brokenDrill =
    drills?.drills.some(({ verdict }) => verdict === 'broken') || drills?.rules.some(({ broken }) => broken > 0)
  if (brokenDrill || cases.some(({ verdict }) => verdict === 'broken')) return 'broken'
  const trouble = cases.some((one) => one.verdict === 'not judged' && one.because === 'trouble')
  return trouble || idleRules(drills?.rules ?? []).length > 0 ? 'not judged' : 'kept'
}
