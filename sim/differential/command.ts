/** `npm run sim -- --differential N`: runs the differential test and tells what it found. Called by ../main.ts. */
import { EXIT } from '../../src/cli/exit-codes.js'
import { embedded } from '../postgres-seeds.js'
import { type DifferentialOptions, differential, type Found } from './differential.js'

export interface DifferentialWish {
  sequences: number
  store: 'memory' | 'postgres'
  /** Of the first sequence; the others have the seeds that follow. */
  seed: number
  /** Of a PostgreSQL server; an embedded one without it. */
  url?: string | undefined
  /** The last line is JSON: `sequences`, `differences`. */
  json: boolean
}

const PROGRESS_SEQUENCES = 25

/** Answers the exit code of the process. */
export async function differentialCommand(wish: DifferentialWish): Promise<number> {
  const { sequences, differences, found } = await onServer(wish, { ...wish, told: progress })
  for (const each of found) console.error(storyOf(each))
  if (wish.json) console.log(JSON.stringify({ sequences, differences }))
  else
    console.log(
      `${sequences} sequences of 200 operations on memory and ${wish.store}, ${differences} with a difference`,
    )
  return differences === 0 ? EXIT.ok : EXIT.unproven
}

async function onServer({ store, url }: DifferentialWish, options: DifferentialOptions) {
  if (store === 'memory' || url !== undefined) return differential(options)
  const server = await embedded()
  try {
    return await differential({ ...options, url: server.url })
  } finally {
    await server.stop()
  }
}

function progress(sequence: number): void {
  if (process.stderr.isTTY && sequence % PROGRESS_SEQUENCES === 0) console.error(`${sequence} sequences`)
}

/** The operations, and where the two stores differ after the last of them. */
export function storyOf({ seed, commands, difference }: Found): string {
  const { model, store, of } = difference
  return [
    `the sequence of seed ${seed}, made smaller:`,
    ...commands.map((command, at) => `  ${at}: ${JSON.stringify(command)}`),
    ...differing(model, store, of).map((line) => `  ${line}`),
  ].join('\n')
}

/** Down to the leaves. */
function differing(model: unknown, store: unknown, path: string): string[] {
  if (!isObject(model) || !isObject(store))
    return model === store ? [] : [`${path}: memory ${JSON.stringify(model)}, the other ${JSON.stringify(store)}`]
  const names = new Set([...Object.keys(model), ...Object.keys(store)])
  return [...names].flatMap((name) => differing(model[name], store[name], `${path}.${name}`))
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
