/** What a check finds: a verdict, a sentence, the figures behind it, and what to do. Made by the judges, shown by doctor.ts. */

import { grouped } from '../../core/show.js'

/** `unknown`: it could not be looked at, for a reason that the sentence gives. */
export type Verdict = 'ok' | 'warn' | 'fail' | 'unknown'

export interface Finding {
  verdict: Verdict
  /** For people. */
  text: string
  /** For scripts: the figures, durations in milliseconds. */
  measured: Record<string, unknown>
  /** What to do about it. */
  fix?: string
  /** One line for each thing of many. */
  items?: string[]
}

/** A finding with the name of its check. */
export interface CheckFinding extends Finding {
  check: string
}

const ORDER: readonly Verdict[] = ['ok', 'unknown', 'warn', 'fail']

export function worstOf(verdicts: readonly Verdict[]): Verdict {
  return verdicts.reduce((worst, one) => (ORDER.indexOf(one) > ORDER.indexOf(worst) ? one : worst), 'ok' as Verdict)
}

/** Something that is wrong, of several that one check looks for. */
export interface Fault {
  verdict: 'warn' | 'fail'
  text: string
  fix: string
}

/** One finding of the faults there are; `well` where there are none. */
export function findingOf(faults: readonly Fault[], well: string, measured: Record<string, unknown>): Finding {
  if (faults.length === 0) return { verdict: 'ok', text: well, measured }
  return {
    verdict: worstOf(faults.map(({ verdict }) => verdict)),
    text: faults.map(({ text }) => text).join('; '),
    measured,
    fix: [...new Set(faults.map(({ fix }) => fix))].join('; '),
  }
}

/** `3 jobs`, `1 job`. */
export function many(count: number, one: string, more = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : more}`
}
