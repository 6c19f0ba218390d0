/** `leasehold stats`: queues at work, once or again and again. Called by the declarations in syntax/. */
import { need } from '../../client/need.js'
import type { Queue } from '../../client/queue.js'
import { durationMs, formatDuration } from '../../core/duration.js'
import { checkName } from '../../core/name.js'
import { grouped } from '../../core/show.js'
import type { Count, QueueCounts, QueuePace, QueueView, WorkerView } from '../../storage/storage.js'
import type { Answer } from '../answer.js'
import { Away } from '../away.js'
import { untilAsked } from '../ending.js'
import { CommandError } from '../failure.js'
import type { Invocation } from '../invocation.js'
import { LiveBlock } from '../live-block.js'
import { printable, safeJson } from '../printable.js'
import { type Column, type TableView, table } from '../table.js'
import type { Terminal } from '../terminal.js'
import { isoTime } from '../when.js'

interface QueueStats {
  view: QueueView
  counts: QueueCounts
  pace: QueuePace
  workers: number
  slots: number
}

interface Look {
  atMs: number
  queues: QueueStats[]
}

/** Queues looked at together: each takes two short statements. */
const TOGETHER = 4

export async function stats(
  invocation: Invocation,
  { queue: name, watch, every }: { queue?: string; watch?: true; every: string },
): Promise<Answer> {
  const queue = await invocation.store()
  if (!watch) return answered(await look(queue, name))
  return untilAsked(async (asked) => {
    await watched(queue, invocation.terminal, { name, everyMs: durationMs(every, '--every') }, asked)
    // Ctrl-C is the way to end it, and no failure.
    return {}
  })
}

function answered(look: Look): Answer {
  return { document: documentOf(look), text: (view) => textOf(look, view) }
}

async function watched(
  queue: Queue,
  terminal: Terminal,
  { name, everyMs }: { name: string | undefined; everyMs: number },
  asked: AbortSignal,
): Promise<void> {
  const { env } = queue.connection
  const draws = terminal.redraws && terminal.width !== undefined && !terminal.json
  const block = new LiveBlock(terminal)
  const yellow = (text: string): string => terminal.notePaint('yellow', text)
  const away = new Away((text) => (draws ? block.note(yellow(text)) : terminal.note(yellow(text))))
  try {
    for (let seen: Look | undefined; !asked.aborted; await env.sleep(everyMs, asked)) {
      try {
        seen = await look(queue, name)
        away.back()
        if (!asked.aborted && !draws) terminal.answer(lineOrTable(seen, terminal))
      } catch (error) {
        // Whoever watches wants to go on after a failover; whoever begins wants to know.
        if (seen === undefined || error instanceof CommandError) throw error
        away.away(error)
      }
      // Old figures, with the time that they are of, say more than none.
      if (!asked.aborted && draws) block.show(linesOf(seen, terminal))
    }
  } finally {
    block.leave()
  }
}

function lineOrTable(seen: Look, terminal: Terminal): string {
  return terminal.json ? safeJson(documentOf(seen)) : `${isoTime(seen.atMs)}\n${textOf(seen, terminal)}\n`
}

function linesOf(look: Look, terminal: Terminal): string[] {
  const head = `${isoTime(look.atMs)}  Ctrl-C ends it`
  const view = { width: terminal.noteWidth() - 1, paint: terminal.notePaint }
  return [terminal.notePaint('dim', head), '', ...textOf(look, view).split('\n')]
}

async function look(queue: Queue, name: string | undefined): Promise<Look> {
  const diagnose = need(queue.connection.storage, 'diagnose', 'the pace of a queue')
  const views = await queue.queues()
  const wanted = name === undefined ? views : views.filter((view) => view.queue === name)
  if (name !== undefined && wanted.length === 0) {
    checkName(name, '--queue')
    throw new CommandError('NOT_FOUND', `there is no queue "${name}"`, { fix: 'leasehold queues list' })
  }
  const workers = await queue.workers()
  const queues: QueueStats[] = []
  for (let start = 0; start < wanted.length; start += TOGETHER)
    queues.push(
      ...(await Promise.all(
        wanted.slice(start, start + TOGETHER).map(async (view) => ({
          view,
          counts: await queue.counts(view.queue),
          pace: await diagnose.pace(view.queue),
          ...workersOf(view.queue, workers),
        })),
      )),
    )
  return { atMs: queue.connection.env.now(), queues: queues.sort(byNeed) }
}

/** Who waits longest comes first, then who has the most dead letters; in whole seconds, so that rows do not jump about. */
function byNeed(a: QueueStats, b: QueueStats): number {
  return (
    secondsWaited(b) - secondsWaited(a) ||
    b.counts.dead.count - a.counts.dead.count ||
    (a.view.queue < b.view.queue ? -1 : 1)
  )
}

function secondsWaited({ pace }: QueueStats): number {
  return Math.floor((pace.oldestReadyMs ?? 0) / 1_000)
}

/** A worker of several queues counts for each of them, with all of its slots. */
function workersOf(queue: string, workers: readonly WorkerView[]): { workers: number; slots: number } {
  const own = workers.filter(({ queues }) => queues.includes(queue))
  return { workers: own.length, slots: own.reduce((sum, { concurrency }) => sum + concurrency, 0) }
}

function documentOf({ atMs, queues }: Look): Record<string, unknown> {
  return {
    at: isoTime(atMs),
    queues: queues.map(({ view, counts, pace, workers, slots }) => ({ ...view, counts, ...pace, workers, slots })),
  }
}

function textOf({ queues }: Look, view: TableView): string {
  if (queues.length === 0) return 'no queues yet'
  const drawn = table(COLUMNS, queues, view)
  const inexact = queues.some(({ counts, pace }) =>
    [...Object.values(counts), pace.completedMinute, pace.completedHour].some(({ exact }) => !exact),
  )
  return inexact ? `${drawn}\n${view.paint('dim', '~ estimated   ≥ at least so many')}` : drawn
}

const COLUMNS: Column<QueueStats>[] = [
  { head: 'QUEUE', cell: ({ view }) => printable(view.queue) + statusOf(view), flexible: true },
  countColumn('READY', ({ counts }) => counts.ready),
  {
    head: 'OLDEST',
    cell: ({ pace }) => (pace.oldestReadyMs === null ? '-' : formatDuration(pace.oldestReadyMs)),
    align: 'right',
  },
  countColumn('RUNNING', ({ counts }) => counts.running),
  countColumn('DELAYED', ({ counts }) => counts.delayed, 90),
  countColumn('RETRYING', ({ counts }) => counts.retrying, 75),
  countColumn('BLOCKED', ({ counts }) => counts.blocked, 85),
  {
    ...countColumn('DEAD', ({ counts }) => counts.dead),
    colour: ({ counts }) => (counts.dead.count > 0 ? 'red' : undefined),
  },
  countColumn('DONE/MIN', ({ pace }) => pace.completedMinute, 60),
  {
    ...countColumn('DONE/HOUR', ({ pace }) => pace.completedHour, 100),
    cell: ({ pace }) => leastText(pace.completedHour),
  },
  { head: 'WORKERS', cell: ({ workers }) => grouped(workers), align: 'right', colour: unattended, fromWidth: 75 },
  { head: 'SLOTS', cell: ({ slots }) => grouped(slots), align: 'right', fromWidth: 100 },
]

function countColumn(head: string, of: (row: QueueStats) => Count, fromWidth?: number): Column<QueueStats> {
  return {
    head,
    cell: (row) => countText(of(row)),
    align: 'right',
    ...(fromWidth === undefined ? {} : { fromWidth }),
  }
}

function countText({ count, exact }: Count): string {
  return exact ? grouped(count) : `~${grouped(count)}`
}

function leastText({ count, exact }: Count): string {
  return exact ? grouped(count) : `≥${grouped(count)}`
}

/** Something waits and nobody will take it. */
function unattended({ workers, counts }: QueueStats): 'yellow' | undefined {
  return workers === 0 && counts.ready.count > 0 ? 'yellow' : undefined
}

function statusOf({ paused, draining }: QueueView): string {
  const words = [paused && 'paused', draining && 'draining'].filter((word) => word !== false)
  return words.length === 0 ? '' : ` (${words.join(', ')})`
}
