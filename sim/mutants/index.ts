/** All mutants, in one table. Run by mutants.ts. */
import type { Mutant } from './mutant.js'
import { MUTANTS_OF_CLAIM } from './of-claim.js'
import { MUTANTS_OF_PEOPLE } from './of-people.js'
import { MUTANTS_OF_SETTLEMENT } from './of-settlement.js'
import { MUTANTS_OF_WORKER } from './of-worker.js'

export const MUTANTS: readonly Mutant[] = [
  ...MUTANTS_OF_SETTLEMENT,
  ...MUTANTS_OF_CLAIM,
  ...MUTANTS_OF_PEOPLE,
  ...MUTANTS_OF_WORKER,
]
