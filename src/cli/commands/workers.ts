/** `leasehold workers`: who is alive. Called by the declarations in syntax/. */
import { formatDuration } from '../../core/duration.js'
import type { WorkerView } from '../../storage/storage.js'
import type { Answer } from '../answer.js'
import { workerDocument } from '../documents.js'
import type { Invocation } from '../invocation.js'
import { printable } from '../printable.js'
import { type Column, table } from '../table.js'
import { ago } from '../when.js'

export async function workers(invocation: Invocation): Promise<Answer> {
  const queue = await invocation.store()
  const found = await queue.workers()
  const nowMs = queue.connection.env.now()
  return {
    document: { workers: found.map(workerDocument) },
    text: (view) => (found.length === 0 ? 'no workers are alive' : table(columns(found, nowMs), found, view)),
  }
}

const PARTITION: Column<WorkerView> = {
  head: 'PARTITION',
  cell: ({ partition = '' }) => printable(partition),
  flexible: true,
}

function columns(found: readonly WorkerView[], nowMs: number): Column<WorkerView>[] {
  const partitioned = found.some(({ partition }) => partition !== undefined)
  return [
    { head: 'ID', cell: ({ id }) => id },
    { head: 'NAME', cell: ({ name }) => printable(name), flexible: true },
    ...(partitioned ? [PARTITION] : []),
    { head: 'JOBS', cell: ({ jobs }) => String(jobs), align: 'right' },
    { head: 'SLOTS', cell: ({ concurrency }) => String(concurrency), align: 'right' },
    {
      head: 'LAST BEAT',
      cell: ({ lastBeatAgoMs }) => `${formatDuration(lastBeatAgoMs)} ago`,
      // Two beats missed: it may be gone.
      colour: ({ lastBeatAgoMs, beatMs }) => (lastBeatAgoMs > 2 * beatMs ? 'yellow' : undefined),
    },
    { head: 'LOOP LAG', cell: ({ mainLagMs }) => formatDuration(mainLagMs), align: 'right', fromWidth: 110 },
    { head: 'STARTED', cell: ({ startedAt }) => ago(startedAt, nowMs), fromWidth: 100 },
    { head: 'QUEUES', cell: ({ queues }) => queues.join(','), flexible: true, fromWidth: 120 },
  ]
}
