/** `leasehold verify`: holds a store to its promises, in a schema of verify's own. Called by the declarations in syntax/. */
import { realEnv } from '../../core/env.js'
import { CASES, type StoreFactory } from '../../testing/conformance/index.js'
import { memoryFactory } from '../../testing/conformance/memory-factory.js'
import { PACES } from '../../testing/verify/drill-plan.js'
import type { Answer } from '../answer.js'
import { startEmbedded } from '../embedded.js'
import { causeOf, causeText, exitCodeOf, untilAsked } from '../ending.js'
import { EXIT } from '../exit-codes.js'
import { CommandError } from '../failure.js'
import type { Invocation } from '../invocation.js'
import { Ground, VERIFY_PREFIX } from './ground.js'
import { page } from './page.js'
import { playDrills } from './play.js'
import { Progress } from './progress.js'
import { reportOf, type VerifyReport } from './report.js'
import type { SabotageName } from './sabotage.js'
import { Stage } from './stage.js'
import { type JudgedCase, judgeSuite } from './suite.js'

interface StoreChoice {
  quick?: boolean
  seconds?: number
  sabotage?: SabotageName
}

export interface VerifyChoice extends StoreChoice {
  /** A recorded log in place of a store. */
  log?: string
  lease?: string
  sharedClock?: boolean
}

/** Cases run side by side, each in a schema of its own: most of their time is the server's. */
const SCHEMAS = 4
/** The time in the name says how old one is that a killed run has left. */
const LEFT_AFTER_MS = 3_600_000
const CASES_ONLY = 'a memory store is gone with its process, so there is nothing that another process could take over'

export async function verify(
  invocation: Invocation,
  { log, lease, sharedClock, ...choice }: VerifyChoice,
): Promise<Answer> {
  if (log !== undefined) {
    refuseBeside(choice)
    return (await import('./recorded.js')).judgeRecorded(log, { lease, sharedClock })
  }
  if (lease !== undefined || sharedClock) throw new CommandError('USAGE', '--lease and --shared-clock are of --log')
  return onStore(invocation, choice)
}

/** A log is judged as it is: nothing runs, and no store is asked. */
function refuseBeside(choice: StoreChoice): void {
  const given = Object.entries(choice).find(([, value]) => value !== undefined)
  if (given !== undefined) throw new CommandError('USAGE', `--${given[0]} is of a store, and --log judges a file`)
}

async function onStore(invocation: Invocation, choice: StoreChoice): Promise<Answer> {
  const { terminal, namedSchema } = invocation
  const url = invocation.singleUrl('verify')
  const progress = new Progress(terminal, CASES.length)
  try {
    return await untilAsked(async (asked) => {
      try {
        return answerOf(await report({ url, given: namedSchema, choice, progress, asked }))
      } catch (error) {
        const cause = causeOf(asked)
        if (cause === undefined) throw error
        progress.note(`stopped by ${causeText(cause)}: nothing is verified, and what was made is gone`)
        return { exit: exitCodeOf(cause) }
      }
    })
  } finally {
    progress.end()
  }
}

interface Task {
  url: string
  given: string | undefined
  choice: StoreChoice
  progress: Progress
  asked: AbortSignal
}

async function report(task: Task): Promise<VerifyReport> {
  const { url, choice } = task
  if (/^memory:/i.test(url)) {
    if (choice.sabotage !== undefined || task.given !== undefined)
      throw new CommandError(
        'USAGE',
        'a memory store has no schema: --schema and --sabotage are for postgres:… and embedded:…',
      )
    return memoryReport(task)
  }
  const server = await located(url)
  try {
    return await serverReport({ ...task, url: server.url })
  } finally {
    await server.stop()
  }
}

async function memoryReport({ progress, asked }: Task): Promise<VerifyReport> {
  const began = realEnv.monotonic()
  const cases = await suite([memoryFactory()], progress, asked)
  return reportOf({ store: { name: 'memory' }, seconds: secondsSince(began), cases, withoutDrills: CASES_ONLY })
}

/** Schemas are PostgreSQL's; an embedded one is started for the time of the run. */
async function located(url: string): Promise<{ url: string; stop(): Promise<void> }> {
  if (/^postgres(ql)?:/i.test(url)) return { url, stop: async () => {} }
  if (!/^embedded:/i.test(url)) throw new CommandError('USAGE', 'verify works on postgres://…, embedded:… and memory:')
  const running = await startEmbedded(url.slice('embedded:'.length))
  return { url: running.url, stop: () => running.stop() }
}

async function serverReport({ url, given, choice, progress, asked }: Task): Promise<VerifyReport> {
  const began = realEnv.monotonic()
  const stamp = `${realEnv.now().toString(36)}_${process.pid}`
  const grounds: Ground[] = []
  const open = async (): Promise<Ground> => {
    const { sabotage } = choice
    const ground = await Ground.open({ url, given, sabotage, mark: `${stamp}_${grounds.length}` })
    grounds.push(ground)
    return ground
  }
  try {
    const first = await open()
    await tellLeft(first, progress)
    const version = await first.serverVersion()
    for (let schema = 1; schema < SCHEMAS && given === undefined; schema++) await open()
    const cases = await suiteOn(grounds, progress, asked)
    if (given !== undefined) await first.renew()
    const drills = await drilled({ url, choice, progress, asked, ground: given === undefined ? await open() : first })
    const store = { name: 'postgres', version }
    const sabotage = choice.sabotage === undefined ? {} : { sabotage: choice.sabotage }
    return reportOf({ store, ...sabotage, seconds: secondsSince(began), cases, drills })
  } finally {
    for (const ground of grounds.reverse()) await ground.close()
  }
}

/** What runs have left that were killed. */
async function tellLeft(ground: Ground, progress: Progress): Promise<void> {
  for (const schema of await ground.left()) {
    const madeAt = Number.parseInt(schema.slice(VERIFY_PREFIX.length).split('_')[0]!, 36)
    if (realEnv.now() - madeAt > LEFT_AFTER_MS)
      progress.note(`an earlier run was killed and has left a schema: drop schema ${schema} cascade`)
  }
}

async function suiteOn(grounds: readonly Ground[], progress: Progress, asked: AbortSignal): Promise<JudgedCase[]> {
  const storage = grounds[0]!.storage()
  const way = await storage.diagnose.hints().finally(() => storage.close())
  if (way !== 'arrive')
    progress.note('no hints come by this URL (a pooler?): workers poll, and what is promised of hints is not judged')
  for (const ground of grounds) await ground.moveClock()
  return suite(
    grounds.map((ground) => ground.factory(way === 'arrive' ? 'hears' : 'deaf')),
    progress,
    asked,
  )
}

async function suite(
  factories: readonly StoreFactory[],
  progress: Progress,
  asked: AbortSignal,
): Promise<JudgedCase[]> {
  progress.note(`holding the store to its promises: ${CASES.length} cases`)
  return judgeSuite({ cases: CASES, factories, asked, told: ({ verdict }) => progress.caseJudged(verdict) })
}

async function drilled({
  url,
  choice,
  progress,
  asked,
  ground,
}: Omit<Task, 'given'> & { ground: Ground }): Promise<VerifyReport['drills']> {
  const pace = choice.quick ? PACES.quick : PACES.whole
  progress.note('drills with real processes')
  const stage = await Stage.open({ url, schema: ground.schema.name, pace, asked })
  try {
    const played = await playDrills(stage, { ms: (choice.seconds ?? 0) * 1_000, progress })
    return { ...played, leaseMs: pace.leaseMs }
  } finally {
    await stage.close()
  }
}

function answerOf(report: VerifyReport): Answer {
  return {
    document: report,
    text: (view) => page(report, view),
    ...(report.verdict === 'kept' ? {} : { exit: EXIT.unproven }),
  }
}

function secondsSince(began: number): number {
  return Math.round((realEnv.monotonic() - began) / 100) / 10
}
