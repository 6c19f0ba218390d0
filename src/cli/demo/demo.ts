/** `leasehold demo`: plays the scenario, proves what came of it, puts everything down. Called by program.ts. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { connect } from '../../connect.js'
import { realEnv } from '../../core/env.js'
import type { Answer } from '../answer.js'
import { startEmbedded } from '../embedded.js'
import { type EndingCause, exitCodeOf, onEnding } from '../ending.js'
import { EXIT } from '../exit-codes.js'
import { CommandError } from '../failure.js'
import type { Invocation } from '../invocation.js'
import type { Terminal } from '../terminal.js'
import { evidenceOf } from './evidence.js'
import { type DemoFiles, type DemoRecord, filesIn, writeJson, writeLines } from './files.js'
import { Progress } from './progress.js'
import { type Proof, prove } from './proof.js'
import { proofLine, proofText } from './report.js'
import { Scenario } from './scenario.js'
import { Stage } from './stage.js'

export interface DemoChoice {
  jobs: number
  seed: number
  keep?: string
  recount?: string
}

export async function demo(invocation: Invocation, choice: DemoChoice): Promise<Answer> {
  invocation.refuseStore('demo')
  if (choice.recount === undefined) return played(invocation.terminal, choice)
  if (choice.keep !== undefined) throw new CommandError('USAGE', 'give --keep or --recount, not both')
  return recounted(choice.recount)
}

async function played(terminal: Terminal, choice: DemoChoice): Promise<Answer> {
  const progress = new Progress(terminal, realEnv, choice.jobs)
  const asked = new AbortController()
  const stopHearing = onEnding((cause, before) => {
    if (before >= 2) process.exit(exitCodeOf(cause))
    if (cause !== 'reader gone') progress.note(before === 0 ? `${cause}: putting everything down` : 'once more ends it')
    if (before === 0) asked.abort(cause)
  })
  try {
    return await onStage(progress, choice, asked.signal)
  } catch (error) {
    if (!asked.signal.aborted) throw error
    progress.note('ended before it was done; nothing is proven')
    return { exit: exitCodeOf(asked.signal.reason as EndingCause) }
  } finally {
    stopHearing()
  }
}

async function onStage(progress: Progress, choice: DemoChoice, asked: AbortSignal): Promise<Answer> {
  progress.note('starting a PostgreSQL of its own')
  const stage = await Stage.open(choice.keep)
  try {
    asked.throwIfAborted()
    const { jobs, seed } = choice
    const { record, deliveries } = await new Scenario(stage, progress, { jobs, seed, asked }).play()
    await writeJson(stage.files.demo, record)
    await writeLines(stage.files.deliveries, deliveries)
    const proof = prove(await evidenceOf(stage.files, stage.queue))
    await writeJson(stage.files.proof, proof)
    return answer(proof, record, choice.keep === undefined ? undefined : stage.files)
  } finally {
    progress.end()
    await stage.close()
  }
}

async function recounted(dir: string): Promise<Answer> {
  const files = filesIn(resolve(dir))
  if (!existsSync(files.demo))
    throw new CommandError('NOT_FOUND', `${dir} holds no demo; one is kept by "leasehold demo --keep ${dir}"`)
  const server = await startEmbedded(files.store)
  try {
    const queue = await connect(server.url, { migrate: false })
    try {
      const evidence = await evidenceOf(files, queue)
      return answer(prove(evidence), evidence.record, undefined)
    } finally {
      await queue.close()
    }
  } finally {
    await server.stop()
  }
}

function answer(proof: Proof, record: DemoRecord, kept: DemoFiles | undefined): Answer {
  const again = kept === undefined ? '' : `\n\nKept in ${kept.dir}: npx leasehold demo --recount ${kept.dir}`
  return {
    document: proofLine(proof),
    text: ({ paint }) => `${proofText(proof, record, paint)}${again}`,
    ...(proof.holds ? {} : { exit: EXIT.unproven }),
  }
}
