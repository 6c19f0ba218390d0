/** `leasehold dead redrive` and `dead discard`: by id, or all that match. Called by the declarations in syntax/. */
import type { DeadFilter } from '../../client/filters.js'
import type { Queue } from '../../client/queue.js'
import type { DeadReason } from '../../core/job.js'
import type { DiscardAnswer, JobView, RedriveAnswer } from '../../storage/storage.js'
import type { Answer } from '../answer.js'
import { type BulkChoice, bulk, filtersOf, filterText } from '../bulk.js'
import { byId, type IdTask } from '../by-id.js'
import { confirm } from '../confirm.js'
import { idsOf } from '../ids.js'
import type { Invocation } from '../invocation.js'
import type { Meanings } from '../outcomes.js'

interface Filters {
  queue?: string
  kind?: string
  reason?: DeadReason
  fingerprint?: string
  olderThan?: string
  newerThan?: string
}

const NOUN = ['dead letter', 'dead letters'] as const

const REDRIVE: Meanings<RedriveAnswer> = {
  ok: { text: 'redriven', done: true, would: 'would be redriven' },
  'needs force': { text: 'it runs at most once and may have run; --force redrives it all the same', done: false },
  'not dead': { text: 'it is no dead letter', done: false },
  unknown: { text: 'not found', done: false },
}

const DISCARD: Meanings<DiscardAnswer> = {
  discarded: { text: 'discarded', done: true, would: 'would be discarded' },
  'not dead': { text: 'it is no dead letter', done: false },
  unknown: { text: 'not found', done: false },
}

export async function deadRedrive(
  invocation: Invocation,
  given: string[],
  choice: BulkChoice & Filters & { force?: true },
): Promise<Answer> {
  const filter = filtersOf<DeadFilter>(given, filtersIn(choice), choice)
  const { force = false } = choice
  const queue = await invocation.store()
  if (filter === undefined) return byId(invocation, await idsOf(given), redriveById(force), choice)
  const task = {
    verb: 'Redrive',
    word: 'redriven',
    noun: NOUN,
    destructive: false,
    filter: filterText(filter),
    meanings: REDRIVE,
  }
  return bulk(invocation, { ...task, run: (options) => queue.redriveAll(filter, { ...options, force }) }, choice)
}

function redriveById(force: boolean): IdTask<RedriveAnswer> {
  return {
    meanings: REDRIVE,
    ask: (queue, ids) => queue.redrive(ids, { force }),
    foreseen: (job) => badly(job) ?? (job?.reason === 'lost' && !force ? 'needs force' : 'ok'),
  }
}

export async function deadDiscard(
  invocation: Invocation,
  given: string[],
  choice: BulkChoice & Filters,
): Promise<Answer> {
  const filter = filtersOf<DeadFilter>(given, filtersIn(choice), choice)
  const queue = await invocation.store()
  if (filter === undefined) return discardById(invocation, await idsOf(given), choice)
  const task = {
    verb: 'Delete',
    word: 'discarded',
    noun: NOUN,
    destructive: true,
    filter: filterText(filter),
    meanings: DISCARD,
  }
  return bulk(invocation, { ...task, run: (options) => queue.discardAll(filter, options) }, choice)
}

/** Also those that were named one by one are gone for good. */
async function discardById(invocation: Invocation, ids: string[], choice: BulkChoice): Promise<Answer> {
  const named = ids.length === 1 ? `dead letter ${ids[0]}` : `${ids.length} dead letters`
  if (!choice.dryRun) await confirm(invocation.terminal, `Delete ${named} for good?`, { ...choice, destructive: true })
  const task: IdTask<DiscardAnswer> = {
    meanings: DISCARD,
    ask: (queue: Queue, some) => queue.discard(some),
    foreseen: (job) => badly(job) ?? 'discarded',
  }
  return byId(invocation, ids, task, choice)
}

function badly(job: JobView | null): 'unknown' | 'not dead' | undefined {
  if (job === null) return 'unknown'
  return job.state === 'dead' ? undefined : 'not dead'
}

function filtersIn({ queue, kind, reason, fingerprint, olderThan, newerThan }: Filters): Filters {
  return { queue, kind, reason, fingerprint, olderThan, newerThan } as Filters
}
