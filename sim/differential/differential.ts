/**
 * The differential test: random sequences of operations of the port, played on the memory store and on another one,
 * have to give equal answers and to leave equal places. Called by `npm run sim -- --differential` and by tests.
 */
import fc from 'fast-check'
import { compare } from './compare.js'
import { type GlassStorage, memorySide } from './memory-side.js'
import { PostgresGround } from './postgres-side.js'
import { sequencesOf } from './sequences.js'
import { type Shown, shrunk, type Trial } from './shrink.js'
import type { Side } from './stage.js'

export interface DifferentialOptions {
  sequences: number
  store: 'memory' | 'postgres'
  seed: number
  /** Of the server, for PostgreSQL. */
  url?: string | undefined
  /** Of each sequence; 200 unless given. */
  operations?: number
  /** Breaks the store that is compared, where it is a memory store: to see that it is noticed. */
  spoil?: (store: GlassStorage) => void
  /** How long a sequence that shows a difference is made smaller. */
  shrinkMs?: number
  /** Ends at the first difference. */
  first?: boolean
  told?: (sequence: number) => void
}

/** What the seed showed, made smaller. */
export interface Found extends Shown {
  seed: number
}

export interface DifferentialResult {
  sequences: number
  differences: number
  operations: number
  found: Found[]
}

/** Beyond so many there is enough to look at. */
const FOUND_MAX = 5

export async function differential(options: DifferentialOptions): Promise<DifferentialResult> {
  const { sequences, seed, operations = 200 } = options
  const ground = await groundOf(options)
  const result: DifferentialResult = { sequences: 0, differences: 0, operations, found: [] }
  try {
    for (let n = 0; n < sequences && result.found.length < (options.first ? 1 : FOUND_MAX); n++) {
      const found = await tried(ground.sides, seed + n, operations, options.shrinkMs ?? 30_000)
      result.sequences += 1
      if (found !== undefined) result.found.push(found)
      options.told?.(n + 1)
    }
  } finally {
    await ground.close()
  }
  return { ...result, differences: result.found.length }
}

interface Ground {
  sides(): Promise<[model: Side, store: Side]>
  close(): Promise<void>
}

async function groundOf({ store, url, spoil, seed }: DifferentialOptions): Promise<Ground> {
  if (store === 'memory') return { sides: () => Promise.all([memorySide(), memorySide(spoil)]), close: async () => {} }
  if (url === undefined) throw new Error('give the url of a PostgreSQL server')
  const ground = await PostgresGround.open(url, `differential_${process.pid}_${seed}`)
  return {
    sides: () => Promise.all([memorySide(), ground.side()]),
    close: () => ground.drop(),
  }
}

/** One sequence; where it shows a difference, the smallest one that was found to show one. */
async function tried(
  sides: Ground['sides'],
  seed: number,
  operations: number,
  shrinkMs: number,
): Promise<Found | undefined> {
  const arbitrary = sequencesOf(operations)
  const [commands] = fc.sample(arbitrary, { seed, numRuns: 1 })
  const played: Trial = async (tryThis) => compare(tryThis, ...(await sides()))
  const difference = await played(commands!)
  if (difference === undefined) return undefined
  return { seed, ...(await shrunk({ commands: commands!, difference }, arbitrary, played, shrinkMs)) }
}
