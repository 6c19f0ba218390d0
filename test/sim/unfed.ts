/** Rules that the seeds give nothing to judge, and why. A rule that is not here has to have judged something. */
import { RULES } from '../../src/testing/checker/rules.js'
import { RULES_OF_SCENE } from '../../src/testing/checker/scene-table.js'

const IN_NO_SEED: Readonly<Record<string, string>> = {
  'a rollback leaves nothing': 'a store in memory is in no transaction of a caller',
  'throughput comes back': 'work goes at no pace of its own that could be measured; chaos judges it',
  'whoever is up consumes': 'nobody tells how much waits at a moment; chaos judges it',
}

/** What needs several things to go wrong, one after the other, and comes once in some twenty seeds. */
const IN_FEW_SEEDS: readonly string[] = [
  'lost only with a dead worker',
  'quarantine follows two crashes alone',
  'a redriven job lives again',
  'a discarded job is gone',
  'nobody alive is taken over',
  'whoever can beat keeps what it holds',
  'nobody judges right after an outage',
]

/** Rules that have judged nothing though they should have. */
export function idleRules(judged: Readonly<Record<string, number>>, seeds: 'few' | 'many'): string[] {
  return [...RULES, ...RULES_OF_SCENE]
    .map(({ name }) => name)
    .filter((name) => !(name in IN_NO_SEED) && (seeds === 'many' || !IN_FEW_SEEDS.includes(name)))
    .filter((name) => !((judged[name] ?? 0) > 0))
}

/** Names in the lists of which there is no rule, or that judge after all. */
export function listedInVain(judged: Readonly<Record<string, number>>): string[] {
  const names = new Set([...RULES, ...RULES_OF_SCENE].map(({ name }) => name))
  const unknown = [...Object.keys(IN_NO_SEED), ...IN_FEW_SEEDS].filter((name) => !names.has(name))
  return [...unknown, ...Object.keys(IN_NO_SEED).filter((name) => (judged[name] ?? 0) > 0)]
}
