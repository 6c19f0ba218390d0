/** `leasehold jobs show` and `dead show`: the answer to "what happened to this job". Called by the declarations in syntax/. */
import type { Queue } from '../../client/queue.js'
import type { JobView } from '../../storage/storage.js'
import type { Answer } from '../answer.js'
import { jobDocument } from '../documents.js'
import { CommandError } from '../failure.js'
import type { Invocation } from '../invocation.js'
import { jobPage } from '../job-page.js'

export async function jobsShow(invocation: Invocation, id: string): Promise<Answer> {
  const queue = await invocation.store()
  return shown(queue, await found(queue, id))
}

export async function deadShow(invocation: Invocation, id: string): Promise<Answer> {
  const queue = await invocation.store()
  const job = await found(queue, id)
  if (job.state === 'dead') return shown(queue, job)
  throw new CommandError('NOT_FOUND', `job ${job.id} is no dead letter, it is ${job.state}`, {
    fix: `leasehold jobs show ${job.id}`,
  })
}

async function found(queue: Queue, id: string): Promise<JobView> {
  return known(await queue.get(id), id)
}

/** Throws NOT_FOUND for what the store does not know. */
export function known<T>(answer: T | null, id: string): T {
  if (answer !== null) return answer
  throw new CommandError('NOT_FOUND', `no job ${id} is known; its record may have been pruned, or its kind keeps none`)
}

async function shown(queue: Queue, job: JobView): Promise<Answer> {
  const workers = await queue.workers()
  const names = new Map(workers.map(({ id, name }) => [id, name]))
  const nowMs = queue.connection.env.now()
  return { document: jobDocument(job), text: (view) => jobPage(job, { names, nowMs, view }) }
}
