/** `npm run sim -- --mutants`: breaks the library in one way after the other and tells which rule noticed. Called by ../main.ts. */
import { EXIT } from '../../src/cli/exit-codes.js'
import type { Hunt } from './hunt.js'
import { huntAll } from './mutants.js'

export interface MutantsWish {
  from: number
  seedsMax: number
  threads?: number
  /** The last line is JSON: `mutants`, `caught`, `missed`. */
  json: boolean
}

/** Answers the exit code of the process. */
export async function mutantsCommand({ json, ...options }: MutantsWish): Promise<number> {
  const hunts = await huntAll({ ...options, onHunt: (hunt) => console.error(lineOf(hunt)) })
  const caught = hunts.filter(({ seed }) => seed !== undefined).length
  const line = { mutants: hunts.length, caught, missed: hunts.length - caught }
  if (line.missed > 0) console.error(`what ${options.seedsMax} seeds do not show more may; 2,000 have to be enough`)
  console.log(json ? JSON.stringify(line) : `${line.mutants} mutants, ${line.caught} caught, ${line.missed} missed`)
  return line.missed === 0 ? EXIT.ok : EXIT.unproven
}

function lineOf({ mutant, rule, seed, seeds, others }: Hunt): string {
  if (seed !== undefined) return `caught by seed ${seed}: ${mutant}  →  ${rule}`
  const told = Object.entries(others).map(([name, count]) => `${name} (${count})`)
  return `MISSED by ${seeds} seeds: ${mutant}  →  ${rule}; broken were: ${told.join(', ') || 'none'}`
}
