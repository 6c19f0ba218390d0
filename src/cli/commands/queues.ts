/** `leasehold queues list`, `pause` and `resume`. Called by the declarations in syntax/. */
import type { JobState } from '../../core/job.js'
import { checkName } from '../../core/name.js'
import type { Count, QueueCounts, QueueView } from '../../storage/storage.js'
import type { Answer } from '../answer.js'
import { queueDocument } from '../documents.js'
import { EXIT } from '../exit-codes.js'
import type { Invocation } from '../invocation.js'
import { type Column, table } from '../table.js'
import { LISTED_STATES } from '../values.js'
import { limitsText } from './queues-limit.js'

interface QueueRow {
  view: QueueView
  counts: QueueCounts
}

export async function queuesList(invocation: Invocation): Promise<Answer> {
  const queue = await invocation.store()
  const rows: QueueRow[] = []
  for (const view of await queue.queues()) rows.push({ view, counts: await queue.counts(view.queue) })
  rows.sort((a, b) => (a.view.queue < b.view.queue ? -1 : 1))
  return {
    document: { queues: rows.map(({ view, counts }) => queueDocument(view, counts)) },
    text: (view) => (rows.length === 0 ? 'no queues yet' : table(columns(rows), rows, view)),
  }
}

function columns(rows: readonly QueueRow[]): Column<QueueRow>[] {
  const limited = rows.some(({ view }) => limitsText(view.limits) !== undefined)
  return [
    { head: 'QUEUE', cell: ({ view }) => view.queue, flexible: true },
    {
      head: 'STATUS',
      cell: ({ view }) => statusOf(view),
      colour: ({ view }) => (statusOf(view) === 'open' ? undefined : 'yellow'),
    },
    { head: 'ORDER', cell: ({ view }) => view.order, fromWidth: 110 },
    ...(limited ? [LIMITS] : []),
    ...LISTED_STATES.map(countColumn),
  ]
}

const LIMITS: Column<QueueRow> = { head: 'LIMITS', cell: ({ view }) => limitsText(view.limits) ?? '', fromWidth: 100 }

function statusOf({ paused, draining, partitions }: QueueView): string {
  if (
    partitions !== undefined &&
    Object.values(partitions).some((one) => one.paused !== paused || one.draining !== draining)
  )
    return Object.entries(partitions)
      .map(([name, one]) => `${name}: ${statusOf({ queue: '', ...one })}`)
      .join('; ')
  if (paused) return draining ? 'paused, draining' : 'paused'
  return draining ? 'draining' : 'open'
}

function countColumn(state: JobState): Column<QueueRow> {
  return {
    head: state.toUpperCase(),
    cell: ({ counts }) => countText(counts[state]),
    align: 'right',
    colour: ({ counts }) => (state === 'dead' && counts.dead.count > 0 ? 'red' : undefined),
    ...(state === 'cancelled' ? { fromWidth: 100 } : {}),
  }
}

function countText({ count, exact }: Count): string {
  return exact ? String(count) : `~${count}`
}

export async function queuesPause(invocation: Invocation, names: string[]): Promise<Answer> {
  return steered(invocation, names, 'paused')
}

export async function queuesResume(invocation: Invocation, names: string[]): Promise<Answer> {
  return steered(invocation, names, 'resumed')
}

/** A queue that nobody has used yet is steered as well, and named: it may be a slip of the pen. */
async function steered(invocation: Invocation, names: string[], status: 'paused' | 'resumed'): Promise<Answer> {
  for (const name of names) checkName(name, 'queue')
  const queue = await invocation.store()
  const known = new Set((await queue.queues()).map((view) => view.queue))
  const results: { queue: string; status: 'paused' | 'resumed' | 'unknown' }[] = []
  for (const name of new Set(names)) {
    if (known.has(name)) await (status === 'paused' ? queue.pause(name) : queue.resume(name))
    results.push({ queue: name, status: known.has(name) ? status : 'unknown' })
  }
  const complete = results.every((result) => result.status === status)
  const text = (result: (typeof results)[number]): string =>
    result.status === 'unknown' ? `${result.queue}: no such queue; nothing was done` : `${result.queue}: ${status}`
  return {
    document: { results },
    text: () => results.map(text).join('\n'),
    ...(complete ? {} : { exit: EXIT.notFound }),
  }
}
