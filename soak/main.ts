/** `npm run soak -- [--seconds N] [--processes N] [--seed N] [--json]`: everybody does everything at once; no deadlock may reach a caller. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { openPostgres } from '../src/storage/postgres/index.js'
import type { Told } from './process.js'

export interface SoakReport {
  seconds: number
  processes: number
  /** Of the random order and batches of the first process; each further one has the next number. */
  seed: number
  calls: number
  /** Deadlocks that reached a caller. */
  deadlocks: number
  /** Every error that reached a caller, by how often. */
  errors: Record<string, number>
  byOperation: Record<string, number>
}

const SEED_MAX = 2 ** 31

export interface SoakOptions {
  seconds: number
  processes: number
  seed?: number
}

/** Runs so many processes against a fresh schema of the server for so long. */
export async function soak(url: string, options: SoakOptions): Promise<SoakReport> {
  const { seconds, processes, seed = Math.floor(Math.random() * SEED_MAX) } = options
  const schema = `soak_${process.pid}`
  const storage = openPostgres({ url, schema })
  await storage.setup.migrate()
  try {
    const script = fileURLToPath(new URL('./process.js', import.meta.url))
    const told = await Promise.all(
      Array.from({ length: processes }, async (_, i) => {
        const child = fork(script, [url, schema, String(seconds), String(seed + i)])
        const [answer] = await Promise.race([once(child, 'message'), died(child)])
        return answer as Told
      }),
    )
    const byOperation = summed(told.map(({ calls }) => calls))
    return {
      seconds,
      processes,
      seed,
      calls: Object.values(byOperation).reduce((sum, count) => sum + count, 0),
      deadlocks: told.reduce((sum, { deadlocks }) => sum + deadlocks, 0),
      errors: summed(told.map(({ errors }) => errors)),
      byOperation,
    }
  } finally {
    await storage.close()
    await dropped(url, schema)
  }
}

async function died(child: ReturnType<typeof fork>): Promise<never> {
  const [code, signal] = await once(child, 'exit')
  throw new Error(`a soak process ended with ${code ?? signal} and told nothing`)
}

function summed(parts: readonly Record<string, number>[]): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const part of parts) for (const [name, count] of Object.entries(part)) sums[name] = (sums[name] ?? 0) + count
  return sums
}

async function dropped(url: string, schema: string): Promise<void> {
  const { default: pg } = await import('pg')
  const client = new pg.Client(url)
  await client.connect()
  await client.query(`drop schema if exists "${schema}" cascade`)
  await client.end()
}

async function main(args: string[]): Promise<void> {
  const text = { type: 'string' } as const
  const options = { seconds: text, processes: text, seed: text, url: text, json: { type: 'boolean' } as const }
  const { values } = parseArgs({ args, options })
  const [seconds, processes] = [Number(values.seconds ?? 900), Number(values.processes ?? 4)]
  if (!(seconds > 0) || !(processes > 0)) throw new Error('--seconds and --processes take numbers above 0')
  const seed = values.seed === undefined ? {} : { seed: Number(values.seed) }
  if (seed.seed !== undefined && !Number.isSafeInteger(seed.seed)) throw new Error('--seed takes a whole number')
  const { url, stop } = await server(values.url)
  try {
    const report = await soak(url, { seconds, processes, ...seed })
    console.log(values.json ? JSON.stringify(report) : report)
    if (report.deadlocks > 0 || Object.keys(report.errors).length > 0) process.exitCode = 1
  } finally {
    await stop()
  }
}

async function server(url: string | undefined): Promise<{ url: string; stop(): Promise<void> }> {
  if (url !== undefined) return { url, stop: async () => {} }
  const { startEmbedded } = await import('@leasehold/embedded')
  const dir = await mkdtemp(join(tmpdir(), 'leasehold-soak-'))
  const running = await startEmbedded({ dir })
  const stop = async (): Promise<void> => {
    await running.stop()
    await rm(dir, { recursive: true, force: true })
  }
  return { url: running.url, stop }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2))
