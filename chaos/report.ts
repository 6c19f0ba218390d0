/** A verdict as scripts and as people read it. Called by main. */
import type { FormName } from '../src/testing/chaos/forms.js'
import type { Verdict } from '../src/testing/checker/check.js'
import type { Return } from '../src/testing/checker/faults.js'
import type { RunFacts } from './folder.js'

/** The last line of `--json`. */
export interface ReportLine
  extends Pick<
    Verdict,
    | 'jobs'
    | 'kills'
    | 'lost'
    | 'settledTwice'
    | 'doubledEffects'
    | 'quarantinedInnocents'
    | 'needlessTakeOvers'
    | 'maxRecoveryMs'
    | 'slowestReturnMs'
    | 'otherFaults'
  > {
  form: FormName
  /** What was done to it, kills and faults. */
  faults: number
  /** After so many of them the throughput could be compared with that before. */
  measured: number
  seed: number
}

export function reportLine({ form, plan }: RunFacts, verdict: Verdict): ReportLine {
  const { jobs, kills, lost, settledTwice, doubledEffects, quarantinedInnocents } = verdict
  const { needlessTakeOvers, maxRecoveryMs, slowestReturnMs, otherFaults } = verdict
  const { returns } = verdict.facts
  const counts = { jobs, kills, lost, settledTwice, doubledEffects, quarantinedInnocents, needlessTakeOvers }
  const faults = { faults: returns.length, measured: measuredOf(returns).length }
  return { form, ...counts, maxRecoveryMs, slowestReturnMs, ...faults, otherFaults, seed: plan.seed }
}

/** Something was done to the system, and nothing broke. */
export function isProven({ holds, facts }: Verdict): boolean {
  return holds && facts.returns.length > 0
}

export function reportText({ form, plan }: RunFacts, verdict: Verdict): string {
  const { facts, findings } = verdict
  const word = !verdict.holds
    ? 'IT DOES NOT HOLD'
    : isProven(verdict)
      ? 'it holds'
      : 'NOTHING IS PROVEN: nothing was done to it; give it more --seconds'
  return [
    `${form}, seed ${plan.seed}: ${word}`,
    `  ${verdict.jobs} jobs (${listed(facts.sorts)})`,
    `  ${verdict.kills} kills, ${facts.killedProducers} of producers (${listed(facts.kills)}); ${facts.spared} spared`,
    `  lost ${verdict.lost}, settled twice ${verdict.settledTwice}, doubled effects ${verdict.doubledEffects}, innocents in quarantine ${verdict.quarantinedInnocents}, needless take-overs ${verdict.needlessTakeOvers}, other faults ${verdict.otherFaults}`,
    `  jobs of killed workers that ran again: ${recoveryText(facts.recoveries.once)}; suspects: ${recoveryText(facts.recoveries.suspects)}; ${facts.repeatedEffects} effects repeated for it`,
    `  ${returnText(facts.returns)}`,
    `  ${facts.suspects} suspects, ${facts.alone} of them alone in a crash; ${facts.lostAtMostOnce} at-most-once jobs lost; ${facts.stalledTakeOvers} jobs taken over from stalled workers`,
    `  ${facts.committed} transactions committed, ${facts.rolledBack} rolled back; dead letters: ${listed(facts.deadLetters) || 'none'}`,
    ...findings.map(
      ({ rule, n, sort, why }) => `  BROKEN: ${rule}${n === undefined ? '' : ` (job ${n}, ${sort})`}: ${why}`,
    ),
  ].join('\n')
}

function measuredOf(returns: readonly Return[]): Return[] {
  return returns.filter(({ is }) => is !== 'unknown')
}

/** By each kind of fault, how soon as much was done again as before it. */
function returnText(returns: readonly Return[]): string {
  const measured = measuredOf(returns)
  const kinds = [...new Set(measured.map(({ kind }) => kind))].map((kind) => {
    const times = measured.filter((one) => one.kind === kind).map(({ ms }) => ms)
    return `${times.length} ${kind}, slowest ${seconds(Math.max(...times))}`
  })
  return `${returns.length} faults; throughput back after ${kinds.join('; ') || 'none that was measured'}`
}

function recoveryText({ count, medianMs, maxMs }: Verdict['facts']['recoveries']['once']): string {
  return count === 0 ? 'none' : `${count}, median ${seconds(medianMs)}, slowest ${seconds(maxMs)}`
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}

function listed(counts: Record<string, number>): string {
  return Object.entries(counts)
    .sort(([, a], [, b]) => b - a)
    .map(([word, count]) => `${count} ${word}`)
    .join(', ')
}
