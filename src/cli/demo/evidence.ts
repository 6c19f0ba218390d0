/** Gathers what a demo left: the files, and every job of the store, whatever its state. Called by the demo and a recount. */
import type { Queue } from '../../client/queue.js'
import { JOB_STATES } from '../../core/job.js'
import { WEBHOOKS } from './deliver.js'
import {
  type DemoFiles,
  type DemoRecord,
  type EnqueuedDelivery,
  type ReceivedRequest,
  readJson,
  readLines,
} from './files.js'
import type { Evidence, JobFacts } from './proof.js'

const PAGE = 1_000

/** From the files alone, also right after the demo: what is judged is what others can read. */
export async function evidenceOf(files: DemoFiles, queue: Queue): Promise<Evidence> {
  const jobs: JobFacts[] = []
  for (const state of JOB_STATES)
    for await (const job of queue.jobs({ state, queue: WEBHOOKS, limit: PAGE })) jobs.push(job)
  return {
    record: await readJson<DemoRecord>(files.demo),
    deliveries: await readLines<EnqueuedDelivery>(files.deliveries),
    requests: await readLines<ReceivedRequest>(files.receiver),
    jobs,
  }
}
