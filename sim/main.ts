/** `npm run sim`: simulates seeds and says which rules they broke; shows one of them, shrinks it, replays a small one. */
import { parseArgs } from 'node:util'
import { EXIT } from '../src/cli/exit-codes.js'
import { type Configuration, type Simulated, shrink, simulate } from '../src/testing/simulator/index.js'
import { differentialCommand } from './differential/command.js'
import { mutantsCommand } from './mutants/command.js'
import { onPostgres, type Simulate, withPostgres } from './postgres-seeds.js'
import { type Failure, runSeeds, type SeedsDone } from './seeds.js'

const USAGE = `npm run sim -- [options]

  --seeds N      simulates N seeds (default: 100), on all cores
  --from S       from this seed on (default: 1)
  --seed S       this one alone
  --trace        prints its trace: virtual time, process, what
  --replay JSON  this configuration alone, as it was printed by a shrink
  --shrink       makes the first one that fails small, and prints it
  --threads N    so many threads
  --mutants      breaks the library in one way after the other; a named rule has to notice each within N seeds (2,000)
  --differential N  plays N random sequences of operations on the memory store and on a second one (postgres)
  --store NAME   memory (default) or postgres: the real adapter on a real server, some seconds a seed
  --url URL      a PostgreSQL of yours; a schema of its own is made and dropped (default: an embedded server)
  --json         one line of JSON at the end`

class Usage extends Error {}

const SHRINK_RUNS_MAX = 400
const PROGRESS_MS = 5_000
const FAILURES_TOLD_MAX = 20

process.exitCode = await main(process.argv.slice(2)).catch((error: Error) => {
  console.error(error instanceof Usage ? `${error.message}\n\n${USAGE}` : error)
  return error instanceof Usage ? EXIT.usage : EXIT.failed
})

async function main(args: string[]): Promise<number> {
  const { values } = read(args)
  // Two stores are compared to see that the real one is as the model is.
  const store = values.store ?? (values.differential === undefined ? 'memory' : 'postgres')
  if (store !== 'memory' && store !== 'postgres') throw new Usage(`--store: "${store}" is neither memory nor postgres`)
  const json = values.json === true
  const threads = values.threads === undefined ? {} : { threads: whole(values.threads, '--threads') }
  const from = whole(values.from ?? values.seed ?? '1', '--from')
  if (values.differential !== undefined) {
    const sequences = whole(values.differential, '--differential', 1)
    return differentialCommand({ sequences, store, seed: from, url: values.url, json })
  }
  if (values.mutants) {
    if (store !== 'memory') throw new Usage('--mutants break the memory store; leave --store out')
    return mutantsCommand({ from, seedsMax: whole(values.seeds ?? '2000', '--seeds', 1), ...threads, json })
  }
  if (values.seed !== undefined || values.replay !== undefined) {
    const what = values.replay === undefined ? whole(values.seed!, '--seed') : configuration(values.replay)
    const how = { trace: values.trace === true, shrinks: values.shrink === true, json }
    if (store === 'memory') return one(what, how, simulate)
    return withPostgres(values.url, (simulate) => one(what, how, simulate))
  }
  const count = whole(values.seeds ?? '100', '--seeds', 1)
  const options = { from, count, ...threads, onProgress: progress() }
  const done = await (store === 'postgres' ? onPostgres(values.url, options) : runSeeds(options))
  if (values.shrink && done.failures.length > 0) await tellSmall(await simulate(done.failures[0]!.seed), simulate)
  tellEnd(done, json)
  return done.failures.length === 0 ? EXIT.ok : EXIT.unproven
}

interface OneOptions {
  trace: boolean
  shrinks: boolean
  json: boolean
}

async function one(
  what: number | Configuration,
  { trace, shrinks, json }: OneOptions,
  simulate: Simulate,
): Promise<number> {
  const startedAt = performance.now()
  const simulated = await simulate(what, { trace: trace ? 'lines' : 'digest' })
  for (const line of simulated.trace) console.log(line)
  const { violations, workerHours, digest, configuration } = simulated
  if (violations.length > 0) tellFailure({ seed: configuration.seed, violations })
  if (shrinks && violations.length > 0) await tellSmall(simulated, simulate)
  note(`digest ${digest}`)
  const failures = violations.length > 0 ? [{ seed: configuration.seed, violations }] : []
  tellEnd({ seeds: 1, workerHours, failures, seconds: (performance.now() - startedAt) / 1_000 }, json)
  return failures.length === 0 ? EXIT.ok : EXIT.unproven
}

function tellFailure({ seed, violations }: Failure): void {
  for (const { rule, why } of violations.slice(0, 3)) note(`seed ${seed}: ${rule}: ${why}`)
  if (violations.length > 3) note(`seed ${seed}: and ${violations.length - 3} more`)
  note(`  npm run sim -- --seed ${seed} --trace`)
}

async function tellSmall({ configuration, violations }: Simulated, simulate: Simulate): Promise<void> {
  const { rule } = violations[0]!
  const small = await shrink(configuration, rule, { simulate, runsMax: SHRINK_RUNS_MAX })
  note(`the smallest that breaks "${rule}" as well:`)
  note(`  npm run sim -- --trace --replay '${JSON.stringify(small)}'`)
}

function tellEnd({ seeds, failures, workerHours, seconds }: Omit<SeedsDone, 'judged'>, json: boolean): void {
  const line = {
    seeds,
    violations: failures.reduce((sum, { violations }) => sum + violations.length, 0),
    simulatedHours: rounded(workerHours),
    seconds: rounded(seconds),
  }
  if (json) console.log(JSON.stringify(line))
  else
    console.log(
      `${seeds} seeds in ${line.seconds} s, ${line.simulatedHours} hours of workers: ${
        failures.length === 0 ? 'no rule was broken' : `${failures.length} seeds broke ${line.violations} rules`
      }`,
    )
}

/** What fails is told at once; for whoever watches, a line now and then beside. */
function progress(): (done: SeedsDone) => void {
  let toldAt = 0
  let told = 0
  return ({ seeds, failures, seconds }) => {
    for (const failure of failures.slice(told, FAILURES_TOLD_MAX)) tellFailure(failure)
    told = failures.length
    if (!process.stderr.isTTY || seconds * 1_000 - toldAt < PROGRESS_MS) return
    toldAt = seconds * 1_000
    note(`${seeds} seeds, ${failures.length} of them broke a rule`)
  }
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100
}

function configuration(text: string): Configuration {
  try {
    return JSON.parse(text) as Configuration
  } catch (cause) {
    throw new Usage(`--replay: not JSON: ${(cause as Error).message}`)
  }
}

function whole(text: string, name: string, min = 0): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value) || value < min)
    throw new Usage(`${name} takes a whole number from ${min} on, not "${text}"`)
  return value
}

function read(args: string[]) {
  try {
    return parseArgs({
      args,
      options: {
        seeds: { type: 'string' },
        from: { type: 'string' },
        seed: { type: 'string' },
        trace: { type: 'boolean' },
        replay: { type: 'string' },
        shrink: { type: 'boolean' },
        threads: { type: 'string' },
        mutants: { type: 'boolean' },
        differential: { type: 'string' },
        json: { type: 'boolean' },
        store: { type: 'string' },
        url: { type: 'string' },
      },
    })
  } catch (error) {
    throw new Usage((error as Error).message)
  }
}

function note(text: string): void {
  console.error(text)
}
