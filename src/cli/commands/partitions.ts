/** `leasehold partitions`: the stores of a queue over several, and what each has to do. Called by the declarations in syntax/. */
import type { JobState } from '../../core/job.js'
import { grouped } from '../../core/show.js'
import type { Count, Partition, Storage } from '../../storage/storage.js'
import type { Answer } from '../answer.js'
import { CommandError } from '../failure.js'
import type { Invocation } from '../invocation.js'
import { printable } from '../printable.js'
import { type Column, table } from '../table.js'

const SHOWN = ['ready', 'running', 'delayed', 'retrying', 'dead'] as const satisfies readonly JobState[]
type Shown = Record<(typeof SHOWN)[number], Count>

interface PartitionRow {
  partition: string
  status: 'open' | 'draining' | 'away'
  /** Over all of its queues; absent where it does not answer. */
  counts?: Shown
}

export async function partitions(invocation: Invocation): Promise<Answer> {
  const { storage } = (await invocation.store()).connection
  if (storage.partitions === undefined)
    throw new CommandError('USAGE', 'this queue has one store; several are named like --url by=tenant --url … --url …')
  const rows = await Promise.all(storage.partitions.all.map(rowOf))
  return {
    document: { partitions: rows },
    text: (view) => table(COLUMNS, rows, view),
  }
}

async function rowOf({ name, draining, storage, trouble }: Partition): Promise<PartitionRow> {
  if (trouble !== undefined) return { partition: name, status: 'away' }
  return { partition: name, status: draining ? 'draining' : 'open', counts: await countsOf(storage) }
}

async function countsOf({ inspect }: Storage): Promise<Shown> {
  const sums = Object.fromEntries(SHOWN.map((state) => [state, { count: 0, exact: true }])) as Shown
  for (const { queue } of await inspect!.queues()) {
    const counts = await inspect!.counts(queue)
    for (const state of SHOWN) {
      sums[state].count += counts[state].count
      sums[state].exact &&= counts[state].exact
    }
  }
  return sums
}

const COLUMNS: Column<PartitionRow>[] = [
  { head: 'PARTITION', cell: ({ partition }) => printable(partition), flexible: true },
  {
    head: 'STATUS',
    cell: ({ status }) => status,
    colour: ({ status }) => (({ open: undefined, draining: 'yellow', away: 'red' }) as const)[status],
  },
  ...SHOWN.map(
    (state): Column<PartitionRow> => ({
      head: state.toUpperCase(),
      cell: ({ counts }) => countText(counts?.[state]),
      align: 'right',
    }),
  ),
]

function countText(count: Count | undefined): string {
  if (count === undefined) return '-'
  return count.exact ? grouped(count.count) : `~${grouped(count.count)}`
}
