/** `leasehold jobs list`: a page of each state asked for. Called by the declarations in syntax/. */
import type { Queue } from '../../client/queue.js'
import type { DeadReason, JobState } from '../../core/job.js'
import type { JobView } from '../../storage/storage.js'
import type { Answer } from '../answer.js'
import { jobDocument } from '../documents.js'
import { CommandError } from '../failure.js'
import type { Invocation } from '../invocation.js'
import { jobTable } from '../job-table.js'
import { LISTED_STATES } from '../values.js'

export interface ListFilter {
  queue?: string
  kind?: string
  limit?: number
  after?: string
  /** Of dead letters. */
  reason?: DeadReason
  fingerprint?: string
}

const LIMIT = 50
/** Without --state: enough to see what there is. */
const LIMIT_OF_ALL_STATES = 5

export async function jobsList(invocation: Invocation, options: ListFilter & { state?: JobState[] }): Promise<Answer> {
  const { state: states = LISTED_STATES, after } = options
  if (after !== undefined && states.length !== 1)
    throw new CommandError('USAGE', '--after continues the list of one state; give that --state')
  const queue = await invocation.store()
  const limit = options.limit ?? (options.state === undefined ? LIMIT_OF_ALL_STATES : LIMIT)
  return listed(queue, states, { ...options, limit })
}

/** The jobs of these states, a page of each, and where the next pages begin. */
export async function listed(
  queue: Queue,
  states: readonly JobState[],
  filter: ListFilter,
  none = 'no jobs',
): Promise<Answer> {
  const { queue: name, kind, limit, after, reason, fingerprint } = filter
  const jobs: JobView[] = []
  const more: { state: JobState; after: string }[] = []
  for (const state of states) {
    const page = await queue.list({ state, queue: name, kind, limit, after, reason, fingerprint })
    jobs.push(...page.jobs)
    if (page.next !== null) more.push({ state, after: page.next })
  }
  const nowMs = queue.connection.env.now()
  return {
    document: { jobs: jobs.map(jobDocument), more },
    text: (view) => {
      if (jobs.length === 0) return none
      const lines = [jobTable(jobs, nowMs, view), ...moreLines(states, more).map((line) => view.paint('dim', line))]
      return lines.join('\n')
    },
  }
}

function moreLines(states: readonly JobState[], more: readonly { state: JobState; after: string }[]): string[] {
  if (more.length === 0) return []
  // A cursor is long; where several states were listed the way to one of them is enough.
  if (states.length > 1) return [`\nmore: --state ${more.map(({ state }) => state).join(', --state ')}`]
  return [`\nmore: --after ${more[0]!.after}`]
}
