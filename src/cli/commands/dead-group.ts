/** `leasehold dead group`: dead letters by what they died of. Called by the declarations in syntax/. */
import { grouped } from '../../core/show.js'
import type { DeadGroup } from '../../storage/storage.js'
import type { Answer } from '../answer.js'
import type { Invocation } from '../invocation.js'
import { printable } from '../printable.js'
import { type Column, type TableView, table } from '../table.js'
import { asTyped } from '../typed.js'
import { ago, isoTime } from '../when.js'
import { broken } from '../width.js'

const ERROR_LENGTH_MAX = 400
const ERROR_BESIDE_WIDTH = 160
const ERROR_LINES_MAX = 2
const INDENT = '    '

export async function deadGroup(
  invocation: Invocation,
  { queue: name, kind, limit }: { queue?: string; kind?: string; limit?: number },
): Promise<Answer> {
  const queue = await invocation.store()
  const { groups, complete } = await queue.deadGroups({ queue: name, kind, limit })
  const nowMs = queue.connection.env.now()
  return {
    document: { groups: groups.map(groupDocument), complete },
    text: (view) => {
      if (groups.length === 0) return 'no dead letters'
      const more = complete ? [] : ['', view.paint('dim', 'There are more groups than these; name a queue or a kind.')]
      const next = view.width === undefined ? [] : ['', view.paint('dim', hint(groups[0]!))]
      return [groupTable(groups, nowMs, view), ...more, ...next].join('\n')
    },
  }
}

/** The error is what people look for: where its column would be narrow, it stands below its group. */
function groupTable(groups: readonly DeadGroup[], nowMs: number, view: TableView): string {
  const { width, paint } = view
  const all = columns(nowMs)
  if (width === undefined || width >= ERROR_BESIDE_WIDTH) return table(all, groups, view)
  const below = (group: DeadGroup): string[] =>
    broken(errorText(group), width - INDENT.length, ERROR_LINES_MAX).map((line) => `${INDENT}${paint('red', line)}`)
  return table(all.slice(0, -1), groups, view, below)
}

function columns(nowMs: number): Column<DeadGroup>[] {
  return [
    { head: 'JOBS', cell: ({ count }) => `${count.exact ? '' : '≥'}${grouped(count.count)}`, align: 'right' },
    { head: 'QUEUE', cell: ({ queue }) => queue },
    { head: 'KIND', cell: ({ kind }) => kind, flexible: true },
    { head: 'REASON', cell: ({ reason }) => reason, colour: () => 'red', fromWidth: 70 },
    { head: 'NEWEST', cell: ({ newestAt }) => ago(newestAt, nowMs), fromWidth: 100 },
    { head: 'OLDEST', cell: ({ oldestAt }) => ago(oldestAt, nowMs), fromWidth: 130 },
    { head: 'FINGERPRINT', cell: ({ fingerprint }) => fingerprint ?? 'none' },
    { head: 'ERROR', cell: errorText, flexible: true },
  ]
}

function errorText({ sample }: DeadGroup): string {
  const { error, note } = sample
  const text = printable(error === null ? (note ?? '') : `${error.name}: ${error.message}`)
  return text.length <= ERROR_LENGTH_MAX ? text : `${text.slice(0, ERROR_LENGTH_MAX)}…`
}

function hint({ queue, kind, fingerprint }: DeadGroup): string {
  // All three: the same error may have ended jobs of other queues and kinds too.
  const chosen = `--queue ${queue} --kind ${kind} --fingerprint ${fingerprint ?? 'none'}`
  return asTyped(`leasehold dead redrive ${chosen} --dry-run`)
}

function groupDocument({ newestAt, oldestAt, ...group }: DeadGroup): Record<string, unknown> {
  return { ...group, oldestAt: isoTime(oldestAt), newestAt: isoTime(newestAt) }
}
