/** `leasehold bench`: figures of this store, in schemas of its own that go afterwards. Called by the declarations in syntax/. */
import { cpus } from 'node:os'
import type { Queue } from '../../client/queue.js'
import { durationMs } from '../../core/duration.js'
import { realEnv } from '../../core/env.js'
import { grouped } from '../../core/show.js'
import { didYouMean } from '../../core/suggest.js'
import type { Answer } from '../answer.js'
import { type EmbeddedServer, startEmbedded } from '../embedded.js'
import { causeOf, causeText, exitCodeOf, untilAsked } from '../ending.js'
import { CommandError } from '../failure.js'
import type { Invocation } from '../invocation.js'
import { LiveBlock } from '../live-block.js'
import { type Column, table } from '../table.js'
import type { Terminal } from '../terminal.js'
import { wrapped } from '../width.js'
import type { Figures } from './figures.js'
import { SCENARIO_NAMES, type ScenarioName } from './names.js'
import { Places } from './place.js'
import { SCENARIOS } from './scenarios.js'

interface BenchChoice {
  jobs?: number
  max: string
}

type Conditions = Record<string, string | number | boolean>

export async function bench(invocation: Invocation, names: string[], choice: BenchChoice): Promise<Answer> {
  const scenarios = names.length === 0 ? SCENARIO_NAMES : names.map(scenarioOf)
  await invocation.refuseMissing()
  const { url, stop } = await server(invocation.singleUrl('bench'))
  const places = new Places(url, realEnv.now())
  try {
    await tellLeft(places, invocation.terminal)
    return await untilAsked((asked) => measured(places, invocation.terminal, { ...choice, scenarios, asked }))
  } finally {
    await places.close()
    await stop()
  }
}

function scenarioOf(name: string): ScenarioName {
  const found = SCENARIO_NAMES.find((one) => one === name)
  if (found !== undefined) return found
  throw new CommandError('USAGE', `there is no scenario "${name}"${didYouMean(name, SCENARIO_NAMES)}`, {
    fix: `one or more of ${SCENARIO_NAMES.join(', ')}`,
  })
}

/** Schemas are PostgreSQL's; an embedded one is started for the time of the run. */
async function server(url: string): Promise<{ url: string; stop(): Promise<void> }> {
  if (/^postgres(ql)?:/i.test(url)) return { url, stop: async () => {} }
  if (!/^embedded:/i.test(url))
    throw new CommandError('USAGE', 'bench measures a PostgreSQL: postgres://… or embedded:…')
  const running: EmbeddedServer = await startEmbedded(url.slice('embedded:'.length))
  return { url: running.url, stop: () => running.stop() }
}

async function tellLeft(places: Places, terminal: Terminal): Promise<void> {
  for (const schema of await places.left())
    terminal.note(
      terminal.notePaint('yellow', `an earlier run was killed and has left a schema: drop schema ${schema} cascade`),
    )
}

async function measured(
  places: Places,
  terminal: Terminal,
  { scenarios, asked, jobs, max }: BenchChoice & { scenarios: readonly ScenarioName[]; asked: AbortSignal },
): Promise<Answer> {
  const block = new LiveBlock(terminal)
  const results: Figures[] = []
  let conditions: Conditions = {}
  try {
    for (const name of scenarios) {
      if (asked.aborted) break
      const show = (text: string): void => {
        if (terminal.redraws) block.show([`${terminal.notePaint('dim', 'measuring')} ${name}${text}`])
      }
      show('')
      const progress = (done: number, all: number): void => show(`  ${grouped(done)} of ${grouped(all)}`)
      const bounds = { jobs, maxMs: durationMs(max, '--max'), asked, env: realEnv, progress }
      await places.within(async (place) => {
        conditions = { ...conditions, ...(await conditionsOf(place.queue)) }
        results.push(...(await SCENARIOS[name](place, bounds)))
      })
    }
  } finally {
    block.end()
  }
  return answerOf(results, conditions, asked, terminal)
}

/** The first ones bring up a connection and a plan. */
const ROUND_TRIPS = 5

async function conditionsOf({ connection: { storage, env } }: Queue): Promise<Conditions> {
  const trips: number[] = []
  for (let n = 0; n < ROUND_TRIPS; n++) {
    const began = env.monotonic()
    await storage.diagnose?.clock()
    trips.push(env.monotonic() - began)
  }
  const roundTripMs = Math.round(Math.min(...trips) * 100) / 100
  const settings = await storage.diagnose?.database?.settings()
  return {
    postgres: settings?.version ?? 'unknown',
    fsync: settings?.fsync ?? 'unknown',
    synchronousCommit: settings?.synchronousCommit ?? 'unknown',
    roundTripMs,
    node: process.version,
    cores: cpus().length,
  }
}

function answerOf(results: Figures[], conditions: Conditions, asked: AbortSignal, terminal: Terminal): Answer {
  const cause = causeOf(asked)
  if (cause !== undefined)
    terminal.note(`stopped by ${causeText(cause)}; its schemas are gone, the figures are of what was done`)
  return {
    document: { results, conditions },
    text: (view) => {
      const said = Object.entries(conditions).map(([word, value]) => `${word} ${value}`)
      return results.length === 0
        ? 'nothing was measured'
        : [table(COLUMNS, results, view), '', ...wrapped(said.join(', '), view.width ?? Number.POSITIVE_INFINITY)].join(
            '\n',
          )
    },
    ...(cause === undefined ? {} : { exit: exitCodeOf(cause) }),
  }
}

const COLUMNS: Column<Figures>[] = [
  { head: 'SCENARIO', cell: ({ scenario }) => scenario },
  { head: 'FORM', cell: ({ form }) => form ?? '', flexible: true },
  { head: 'JOBS', cell: ({ jobs }) => grouped(jobs), align: 'right' },
  { head: 'JOBS/S', cell: ({ jobsPerSecond: rate }) => (rate === undefined ? '' : grouped(rate)), align: 'right' },
  { head: 'P50', cell: ({ p50Ms }) => msText(p50Ms), align: 'right' },
  { head: 'P95', cell: ({ p95Ms }) => msText(p95Ms), align: 'right' },
  { head: 'P99', cell: ({ p99Ms }) => msText(p99Ms), align: 'right', fromWidth: 70 },
]

function msText(ms: number | undefined): string {
  return ms === undefined ? '' : `${ms}ms`
}
