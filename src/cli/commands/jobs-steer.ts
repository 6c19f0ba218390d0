/** `leasehold jobs cancel` and `jobs retry`: by id, or all that match. Called by the declarations in syntax/. */
import type { CancelFilter, RetryFilter } from '../../client/filters.js'
import type { JobState } from '../../core/job.js'
import type { CancelAnswer, RetryAnswer } from '../../storage/storage.js'
import type { Answer } from '../answer.js'
import { type BulkChoice, bulk, filtersOf, filterText } from '../bulk.js'
import { byId, type IdTask } from '../by-id.js'
import { idsOf } from '../ids.js'
import type { Invocation } from '../invocation.js'

interface Filters<State extends JobState> {
  queue?: string
  kind?: string
  state?: State[]
  olderThan?: string
  newerThan?: string
}

const CANCEL: IdTask<CancelAnswer> = {
  meanings: {
    cancelled: { text: 'cancelled', done: true, would: 'would be cancelled' },
    signalled: {
      text: "it runs: its handler's signal fires within seconds",
      done: true,
      would: "it runs: its handler's signal would fire",
    },
    ended: { text: 'too late: it has ended', done: false },
    unknown: { text: 'not found', done: false },
  },
  ask: (queue, ids) => queue.cancel(ids),
  foreseen: (job) => {
    if (job === null) return 'unknown'
    if (job.state === 'running') return 'signalled'
    return ENDED.has(job.state) ? 'ended' : 'cancelled'
  },
}

const RETRY: IdTask<RetryAnswer> = {
  meanings: {
    ok: { text: 'ready now', done: true, would: 'would be ready now' },
    ready: { text: 'it is ready already', done: true },
    blocked: { text: 'it waits for its key alone: see "jobs explain"', done: false },
    running: { text: 'it runs already', done: true },
    ended: { text: 'it has ended; a dead letter is brought back by "dead redrive"', done: false },
    unknown: { text: 'not found', done: false },
  },
  ask: (queue, ids) => queue.retry(ids),
  foreseen: (job) => {
    if (job === null) return 'unknown'
    if (job.state === 'running' || job.state === 'ready' || job.state === 'blocked') return job.state
    return ENDED.has(job.state) ? 'ended' : 'ok'
  },
}

const ENDED: ReadonlySet<JobState> = new Set(['completed', 'cancelled', 'dead'])

export async function jobsCancel(
  invocation: Invocation,
  given: string[],
  choice: BulkChoice & Filters<'ready' | 'delayed' | 'retrying' | 'blocked' | 'running'>,
): Promise<Answer> {
  const filter = filtersOf<CancelFilter>(given, filtersIn(choice), choice)
  if (filter === undefined) return byId(invocation, await idsOf(given), CANCEL, choice)
  const queue = await invocation.store()
  const task = {
    verb: 'Cancel',
    word: 'cancelled',
    noun: NOUN,
    destructive: true,
    filter: filterText({ state: 'pending', ...filter }),
    meanings: CANCEL.meanings,
  }
  return bulk(invocation, { ...task, run: (options) => queue.cancelAll(filter, options) }, choice)
}

export async function jobsRetry(
  invocation: Invocation,
  given: string[],
  choice: BulkChoice & Filters<'delayed' | 'retrying'>,
): Promise<Answer> {
  const filter = filtersOf<RetryFilter>(given, filtersIn(choice), choice)
  if (filter === undefined) return byId(invocation, await idsOf(given), RETRY, choice)
  const queue = await invocation.store()
  const task = {
    verb: 'Start',
    word: 'ready now',
    noun: NOUN,
    destructive: false,
    filter: filterText({ state: 'retrying', ...filter }),
    meanings: RETRY.meanings,
  }
  return bulk(invocation, { ...task, run: (options) => queue.retryAll(filter, options) }, choice)
}

const NOUN = ['job', 'jobs'] as const

function filtersIn<State extends JobState>({
  queue,
  kind,
  state,
  olderThan,
  newerThan,
}: Filters<State>): Filters<State> {
  return { queue, kind, state, olderThan, newerThan } as Filters<State>
}
