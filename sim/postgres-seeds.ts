/** Seeds on a real PostgreSQL, one after the other: the server given, or an embedded one. Called by main.ts. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Configuration, type Simulated, type SimulateOptions, simulate } from '../src/testing/simulator/index.js'
import { PostgresSchema, type PostgresWorld } from './postgres-world.js'
import { addJudged, type SeedsDone, type SeedsOptions } from './seeds.js'

export type Simulate = (what: number | Configuration, options?: SimulateOptions) => Promise<Simulated>

export async function withPostgres<T>(url: string | undefined, use: (simulate: Simulate) => Promise<T>): Promise<T> {
  const server = url === undefined ? await embedded() : { url, stop: async () => {} }
  try {
    const schema = await PostgresSchema.make(server.url, `sim_${process.pid}`)
    try {
      return await use((what, options) => simulateOn(schema, what, options))
    } finally {
      await schema.drop()
    }
  } finally {
    await server.stop()
  }
}

export function onPostgres(url: string | undefined, { from, count, onProgress }: SeedsOptions): Promise<SeedsDone> {
  return withPostgres(url, async (simulate) => {
    const startedAt = performance.now()
    const done: SeedsDone = { seeds: 0, workerHours: 0, failures: [], judged: {}, seconds: 0 }
    for (let seed = from; seed < from + count; seed++) {
      const { violations, workerHours, verdict } = await simulate(seed)
      done.seeds += 1
      done.workerHours += workerHours
      addJudged(done.judged, verdict.rules)
      if (violations.length > 0) done.failures.push({ seed, violations })
      done.seconds = (performance.now() - startedAt) / 1_000
      onProgress(done)
    }
    return done
  })
}

/** One simulation in the schema; whatever it opened there is closed. */
export async function simulateOn(
  schema: PostgresSchema,
  what: number | Configuration,
  options: SimulateOptions = {},
): Promise<Simulated> {
  let world: PostgresWorld | undefined
  try {
    return await simulate(what, {
      ...options,
      world: async (time) => {
        world = await schema.world(time)
        return world
      },
    })
  } finally {
    await world?.close()
  }
}

export async function embedded(): Promise<{ url: string; stop(): Promise<void> }> {
  const { startEmbedded } = await import('@leasehold/embedded')
  const dir = await mkdtemp(join(tmpdir(), 'leasehold-sim-'))
  const server = await startEmbedded({ dir })
  return {
    url: server.url,
    stop: async () => {
      await server.stop()
      await rm(dir, { recursive: true, force: true })
    },
  }
}
