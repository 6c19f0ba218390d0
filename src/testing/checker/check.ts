/**
 * The checker of a run: reads what handlers did, what clients were told and, once, what the store has at the end, and
 * finds every rule that was broken. Pure: history in, verdict out. Called by chaos, by the simulator and by verify.
 */
import { SUSPECT_CRASHES } from '../../core/job.js'
import type { Return } from './faults.js'
import type { History } from './history.js'
import { type Recovery, recoveriesOf } from './measures.js'
import type { Breach, Rule } from './rule.js'
import { RULES } from './rules.js'
import { stalledTakeOvers } from './scene-rules.js'
import { RULES_OF_SCENE } from './scene-table.js'
import { storiesOf } from './stories.js'
import { isThere, type Scene, type Story } from './story.js'

/** A rule that was broken, by which job, and how. */
export interface Finding {
  rule: string
  breach: Breach
  /** The job's number in the plan; undefined where it is about no job. */
  n?: number
  sort?: string
  ids: string[]
  why: string
}

/** By each breach: jobs, each counted once whatever number of rules it breaks. */
export type Counts = Record<Breach, number>

/** How much a rule has judged. One that judged nothing proves nothing. */
export interface RuleCount {
  rule: string
  /** Stories, or what else the rule is about. */
  judged: number
  broken: number
}

/** What was found: every rule that was broken, how much each has judged, and how much happened at all. */
export interface Verdict extends Counts {
  /** Jobs that were accepted, or are there although nobody was told. */
  jobs: number
  kills: number
  maxRecoveryMs: number
  /** Of the faults after which throughput was measured, the longest time until it was back. */
  slowestReturnMs: number
  /** No rule is broken. */
  holds: boolean
  /** The first of each rule; the counts are whole. */
  findings: Finding[]
  /** Of every rule, in the order of their tables. */
  rules: RuleCount[]
  facts: Facts
}

/** What tells how much a run has proven. None of it decides anything. */
export interface Facts {
  /** Jobs of each sort that exist. */
  sorts: Record<string, number>
  /** By what the kill met: `claim after`, `start`, … */
  kills: Record<string, number>
  killedProducers: number
  /** Workers that were not killed, as they ran a suspect alone that had been alone in a crash before. */
  spared: number
  /** Of jobs that killed workers had started and that ran again: of those with one crash in all, and of suspects. */
  recoveries: Record<'once' | 'suspects', { count: number; medianMs: number; maxMs: number }>
  slowestRecoveries: Recovery[]
  /** Runs whose effect was repeated, as their worker was lost before it was told. */
  repeatedEffects: number
  /** Jobs that were alone in a crash; and those with two crashes or more, which have to run alone. */
  alone: number
  suspects: number
  lostAtMostOnce: number
  committed: number
  rolledBack: number
  /** Jobs taken over from workers that lived and had been silent for a lease. */
  stalledTakeOvers: number
  /** How throughput came back after each fault. */
  returns: Return[]
  deadLetters: Record<string, number>
}

const FINDINGS_OF_RULE_MAX = 20
const SLOWEST_MAX = 5

/** Holds a history against every rule. A rule that lacks its evidence says so by what it has judged: nothing. */
export function check(history: History): Verdict {
  const { stories, scene } = storiesOf(history)
  const counts: Counts = {
    lost: 0,
    settledTwice: 0,
    doubledEffects: 0,
    quarantinedInnocents: 0,
    needlessTakeOvers: 0,
    otherFaults: 0,
  }
  const rules: RuleCount[] = []
  const findings = [...ofStories(stories, scene, counts, rules), ...ofScene(stories, scene, counts, rules)]
  const recoveries = recoveriesOf(stories, scene).sort((a, b) => b.ms - a.ms)
  return {
    jobs: stories.filter((story) => isThere(story, scene)).length,
    kills: scene.kills.length,
    ...counts,
    maxRecoveryMs: recoveries[0]?.ms ?? 0,
    slowestReturnMs: slowestOf(scene.disturbances.returns()),
    holds: Object.values(counts).every((count) => count === 0),
    findings,
    rules,
    facts: factsOf(stories, scene, { recoveries, leaseMs: history.leaseMs }),
  }
}

/** Adds to the counts. */
function ofStories(stories: readonly Story[], scene: Scene, counts: Counts, rules: RuleCount[]): Finding[] {
  const states = RULES.map((rule) => ({ rule, judged: 0, broken: 0, findings: [] as Finding[] }))
  for (const story of stories) {
    const broken = new Set<Breach>()
    for (const state of states) {
      const ruling = state.rule.judge(story, scene)
      if (ruling === 'not judged') continue
      state.judged += 1
      if (ruling === 'kept') continue
      state.broken += 1
      broken.add(state.rule.breach)
      if (state.findings.length < FINDINGS_OF_RULE_MAX) state.findings.push(findingOf(state.rule, story, ruling.broken))
    }
    for (const breach of broken) counts[breach] += 1
  }
  for (const { rule, judged, broken } of states) rules.push({ rule: rule.name, judged, broken })
  return states.flatMap(({ findings }) => findings)
}

/** Adds to the counts. */
function ofScene(stories: readonly Story[], scene: Scene, counts: Counts, rules: RuleCount[]): Finding[] {
  return RULES_OF_SCENE.flatMap((rule) => {
    const { name, breach } = rule
    const found = rule.faults(scene, scene.leaseMs, stories)
    rules.push({ rule: name, judged: rule.judged(scene, scene.leaseMs, stories), broken: found.length })
    for (const { weight } of found) counts[breach] += weight
    return found.slice(0, FINDINGS_OF_RULE_MAX).map(({ ids, why }) => ({ rule: name, breach, ids, why }))
  })
}

function findingOf({ name, breach }: Rule, { n, expected, traces }: Story, why: string): Finding {
  const sort = expected === undefined ? {} : { sort: expected.sort }
  return { rule: name, breach, n, ...sort, ids: traces.map(({ id }) => id), why }
}

// Facts.

function factsOf(
  stories: readonly Story[],
  scene: Scene,
  { recoveries, leaseMs }: { recoveries: Recovery[]; leaseMs: number },
): Facts {
  const traces = stories.flatMap((story) => story.traces)
  const records = traces.flatMap((trace) => trace.records)
  const transactions = [...scene.transactions.values()]
  return {
    sorts: countedBy(
      stories.filter((story) => isThere(story, scene)),
      ({ expected }) => expected?.sort ?? 'unknown',
    ),
    kills: countedBy(scene.kills, ({ moment }) => moment),
    killedProducers: scene.kills.filter(({ process }) => scene.processes.get(process)?.role === 'producer').length,
    spared: scene.spared,
    recoveries: {
      once: summedUp(recoveries.filter(({ suspect }) => !suspect)),
      suspects: summedUp(recoveries.filter(({ suspect }) => suspect)),
    },
    slowestRecoveries: recoveries.slice(0, SLOWEST_MAX),
    repeatedEffects: traces.reduce((sum, { runs }) => sum + Math.max(0, withEffect(runs) - 1), 0),
    alone: records.filter(({ crashesAlone }) => crashesAlone > 0).length,
    suspects: records.filter(({ crashes }) => crashes >= SUSPECT_CRASHES).length,
    lostAtMostOnce: records.filter(({ reason }) => reason === 'lost').length,
    committed: transactions.filter((state) => state === 'committed').length,
    rolledBack: transactions.filter((state) => state === 'rolled back').length,
    stalledTakeOvers: stalledTakeOvers(scene, leaseMs),
    returns: scene.disturbances.returns(),
    deadLetters: countedBy(
      records.filter(({ state }) => state === 'dead'),
      ({ reason }) => reason ?? 'unknown',
    ),
  }
}

function slowestOf(returns: readonly Return[]): number {
  return Math.max(0, ...returns.filter(({ is }) => is !== 'unknown').map(({ ms }) => Math.round(ms)))
}

/** Of recoveries in falling order. */
function summedUp(found: readonly Recovery[]): Facts['recoveries']['once'] {
  return { count: found.length, medianMs: found[found.length >> 1]?.ms ?? 0, maxMs: found[0]?.ms ?? 0 }
}

function withEffect(runs: Story['traces'][number]['runs']): number {
  return runs.filter(({ effectAt }) => effectAt !== undefined).length
}

function countedBy<Item>(items: readonly Item[], wordOf: (item: Item) => string): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const item of items) counts[wordOf(item)] = (counts[wordOf(item)] ?? 0) + 1
  return counts
}
