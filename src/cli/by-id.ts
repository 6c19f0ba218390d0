/** Changes jobs that are named by id: in steps, at a rate, until it is asked to end. Called by the commands that take ids. */
import type { Queue } from '../client/queue.js'
import type { JobView } from '../storage/storage.js'
import type { Answer } from './answer.js'
import type { BulkChoice } from './bulk.js'
import { causeOf, causeText, exitCodeOf, untilAsked } from './ending.js'
import type { Invocation } from './invocation.js'
import { type JobOutcome, type Meanings, outcomesAnswer } from './outcomes.js'

const BATCH_DEFAULT = 500
/** At a rate, steps are what is due in so long. */
const STEP_MS = 250

export interface IdTask<Word extends string> {
  readonly meanings: Meanings<Word>
  ask(queue: Queue, ids: readonly string[]): Promise<Word[]>
  /** What would be answered of a job as it is; null: it is not known. */
  foreseen(job: JobView | null): Word
}

export async function byId<Word extends string>(
  invocation: Invocation,
  ids: readonly string[],
  task: IdTask<Word>,
  choice: BulkChoice,
): Promise<Answer> {
  const queue = await invocation.store()
  if (choice.dryRun) return outcomesAnswer(await rehearsed(queue, ids, task), task.meanings, { dryRun: true })
  return untilAsked(async (asked) => {
    const outcomes = await changed(queue, ids, task, choice, asked)
    const answer = outcomesAnswer(outcomes, task.meanings)
    const cause = causeOf(asked)
    if (cause === undefined || outcomes.length === ids.length) return answer
    const left = ids.length - outcomes.length
    invocation.terminal.note(
      `stopped by ${causeText(cause)}: ${left} of ${ids.length} ids were not come to, from ${ids[outcomes.length]} on`,
    )
    return { ...answer, exit: exitCodeOf(cause) }
  })
}

async function rehearsed<Word extends string>(
  queue: Queue,
  ids: readonly string[],
  task: IdTask<Word>,
): Promise<JobOutcome<Word>[]> {
  const outcomes: JobOutcome<Word>[] = []
  for (const id of ids) outcomes.push({ id, outcome: task.foreseen(await queue.get(id)) })
  return outcomes
}

async function changed<Word extends string>(
  queue: Queue,
  ids: readonly string[],
  task: IdTask<Word>,
  { rate, batch = BATCH_DEFAULT }: BulkChoice,
  asked: AbortSignal,
): Promise<JobOutcome<Word>[]> {
  const { env } = queue.connection
  const size = rate === undefined ? batch : Math.min(batch, Math.max(1, Math.floor((rate * STEP_MS) / 1_000)))
  const outcomes: JobOutcome<Word>[] = []
  for (let start = 0; start < ids.length; start += size) {
    if (rate !== undefined && start > 0) await env.sleep((size / rate) * 1_000, asked)
    if (asked.aborted) break
    const step = ids.slice(start, start + size)
    const answers = await task.ask(queue, step)
    step.forEach((id, at) => {
      outcomes.push({ id, outcome: answers[at]! })
    })
  }
  return outcomes
}
