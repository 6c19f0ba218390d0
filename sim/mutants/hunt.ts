/** Runs one mutant, seed after seed, until its rule notices. Called by the threads of the runner, and by tests. */
import { simulate } from '../../src/testing/simulator/index.js'
import type { Mutant } from './mutant.js'

export interface Hunt {
  mutant: string
  rule: string
  /** The first seed by which the rule noticed; undefined where none did. */
  seed: number | undefined
  seeds: number
  /** Other rules that were broken on the way, by how many seeds. */
  others: Record<string, number>
}

export async function hunt({ name, caughtBy, spoil }: Mutant, from: number, seedsMax: number): Promise<Hunt> {
  const others: Record<string, number> = {}
  for (let seed = from; seed < from + seedsMax; seed++) {
    const { violations } = await simulate(seed, { spoil })
    const rules = new Set(violations.map(({ rule }) => rule))
    if (rules.has(caughtBy)) return { mutant: name, rule: caughtBy, seed, seeds: seed - from + 1, others }
    for (const rule of rules) others[rule] = (others[rule] ?? 0) + 1
  }
  return { mutant: name, rule: caughtBy, seed: undefined, seeds: seedsMax, others }
}
