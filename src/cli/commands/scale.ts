/** `leasehold scale`: what an autoscaler outside wants to know, and the number that our own rule makes of it. Called by the declarations in syntax/. */
import { need } from '../../client/need.js'
import type { Queue } from '../../client/queue.js'
import { formatDuration } from '../../core/duration.js'
import { askedFor, type ScalePolicy } from '../../core/scaling.js'
import { grouped } from '../../core/show.js'
import type { Count, Diagnose, QueuePace, WorkerView } from '../../storage/storage.js'
import type { Answer } from '../answer.js'
import { CommandError } from '../failure.js'
import type { Invocation } from '../invocation.js'
import { printable } from '../printable.js'
import { policyOf, type ScaleChoice } from '../supervisor/policy.js'
import { loadsOf, oldestOf, type QueueLoad, sum } from '../supervisor/queue-load.js'
import { p95 } from '../supervisor/sample.js'
import { type Column, table } from '../table.js'
import { isoTime } from '../when.js'

type Choice = Omit<ScaleChoice, 'concurrency'> & { concurrency?: number; queues?: Record<string, number> }

interface QueueSignals extends QueueLoad {
  p95WaitMs: number | null
  completedMinute: Count
}

/** The workers that are scaled: those of the queues. */
interface Crew {
  workers: number
  slots: number
  busy: number
  /** What they can run; undefined where one of them does not say, and where there are none. */
  kinds: string[] | undefined
}

/** Of a worker that nobody knows yet, as `work` has it. */
const SLOTS_DEFAULT = 10

export async function scale(invocation: Invocation, choice: Choice): Promise<Answer> {
  const queue = await invocation.store()
  const { storage } = queue.connection
  const diagnose = need(storage, 'diagnose', 'scaling')
  const sites = storage.partitions?.all.flatMap((one) => (one.trouble ? [] : one.storage.diagnose!)) ?? [diagnose]
  const names = await namesOf(queue, choice)
  const crew = crewOf(await queue.workers(), names)
  const policy = policyOf({ ...choice, concurrency: choice.concurrency ?? slotsEach(crew) })
  const signals: QueueSignals[] = []
  for (const load of await loadsOf(queue, names, crew.kinds)) {
    const pace = await diagnose.pace(load.queue)
    const p95WaitMs = await startedWaits(sites, load.queue, pace)
    signals.push({ ...load, p95WaitMs: p95(p95WaitMs), completedMinute: pace.completedMinute })
  }
  const wanted = wantedOf(signals, crew, policy)
  return {
    document: documentOf(signals, { crew, wanted, policy, atMs: queue.connection.env.now() }),
    text: (view) => `${table(COLUMNS, signals, view)}\n\n${sentence(wanted, crew, policy)}`,
  }
}

/** Of a queue that was named nothing may be known yet: its first job may be what workers are to be started for. */
async function namesOf(queue: Queue, { queues }: Choice): Promise<string[]> {
  if (queues !== undefined) return Object.keys(queues)
  const names = (await queue.queues()).map((view) => view.queue)
  if (names.length > 0) return names
  throw new CommandError('NOT_FOUND', 'there is no queue yet', { fix: 'name those of the workers with --queues' })
}

function crewOf(all: readonly WorkerView[], names: readonly string[]): Crew {
  const own = all.filter(({ queues }) => queues.some((queue) => names.includes(queue)))
  const kinds = own.flatMap((one) => one.kinds ?? [])
  const told = own.length > 0 && own.every((one) => one.kinds !== undefined)
  return {
    workers: own.length,
    slots: own.reduce((slots, { concurrency }) => slots + concurrency, 0),
    // What is claimed ahead waits for a slot.
    busy: own.reduce((busy, { jobs, concurrency }) => busy + Math.min(jobs, concurrency), 0),
    kinds: told ? [...new Set(kinds)] : undefined,
  }
}

function slotsEach({ workers, slots }: Crew): number {
  return workers === 0 ? SLOTS_DEFAULT : Math.max(1, Math.round(slots / workers))
}

const SAMPLE_MAX = 1_000
const MINUTE_MS = 60_000

/**
 * From enqueue to start, of the newest jobs that ended in the last minute at their first attempt. Records do not say from
 * when on a job was due, so a delay counts: it is told, and decides nothing.
 */
async function startedWaits(
  sites: readonly Diagnose[],
  queue: string,
  { completedMinute }: QueuePace,
): Promise<number[]> {
  const backMs = MINUTE_MS * Math.min(1, SAMPLE_MAX / Math.max(1, completedMinute.count))
  const request = { states: ['completed', 'dead'], queue, backMs, limit: SAMPLE_MAX } as const
  const pages = await Promise.all(sites.map((diagnose) => diagnose.endings(request)))
  return pages
    .flatMap(({ endings }) => endings)
    .flatMap(({ attempts, enqueuedAt, startedAt }) =>
      attempts === 1 && startedAt !== null ? [Math.max(0, startedAt - enqueuedAt)] : [],
    )
}

function wantedOf(signals: readonly QueueSignals[], crew: Crew, policy: ScalePolicy): { count: number; why: string } {
  const ready = sum(signals.map((one) => one.ready)).count
  const look = { ready, oldestWaitMs: oldestOf(signals) ?? 0, p95WaitMs: null, busy: crew.busy }
  return askedFor(look, policy, crew.workers)
}

interface Told {
  crew: Crew
  wanted: { count: number; why: string }
  policy: ScalePolicy
  atMs: number
}

/** Plain numbers, as an autoscaler takes them; `exact` says whether all counts are. */
function documentOf(signals: readonly QueueSignals[], { crew, wanted, policy, atMs }: Told): Record<string, unknown> {
  const { workers, slots, busy } = crew
  const { by, target, min, max, slots: slotsOfEach } = policy
  return {
    at: isoTime(atMs),
    processes: { wanted: wanted.count, why: wanted.why, by, target, min, max, slotsOfEach },
    ...figures(signals),
    workers,
    slots,
    busy,
    queues: signals.map((one) => ({ queue: one.queue, paused: one.paused, ...figures([one]) })),
  }
}

function figures(signals: readonly QueueSignals[]): Record<string, number | boolean | null> {
  const of = (pick: (one: QueueSignals) => Count): Count => sum(signals.map(pick))
  const counts = { depth: of((one) => one.depth), ready: of((one) => one.ready), running: of((one) => one.running) }
  const completedMinute = of((one) => one.completedMinute)
  const waits = signals.flatMap(({ p95WaitMs }) => (p95WaitMs === null ? [] : [Math.round(p95WaitMs)]))
  const oldest = oldestOf(signals)
  return {
    ...Object.fromEntries(Object.entries(counts).map(([name, { count }]) => [name, count])),
    completedMinute: completedMinute.count,
    exact: [...Object.values(counts), completedMinute].every(({ exact }) => exact),
    oldestWaitMs: oldest === null ? null : Math.round(oldest),
    p95WaitMs: waits.length === 0 ? null : Math.max(...waits),
  }
}

function sentence({ count, why }: Told['wanted'], { workers, slots, busy }: Crew, { by }: ScalePolicy): string {
  const some = `${grouped(workers)} ${workers === 1 ? 'is' : 'are'} there, with ${grouped(busy)} of ${grouped(slots)} slots busy`
  const there = workers === 0 ? 'none is there' : some
  return `${grouped(count)} ${count === 1 ? 'process is' : 'processes are'} asked for by ${by}: ${why}; ${there}`
}

const COLUMNS: Column<QueueSignals>[] = [
  { head: 'QUEUE', cell: ({ queue, paused }) => printable(queue) + (paused ? ' (paused)' : ''), flexible: true },
  { head: 'READY', cell: ({ ready }) => countText(ready), align: 'right' },
  { head: 'OLDEST', cell: ({ oldestWaitMs }) => durationText(oldestWaitMs), align: 'right' },
  { head: 'P95 WAIT', cell: ({ p95WaitMs }) => durationText(p95WaitMs), align: 'right', fromWidth: 60 },
  { head: 'DEPTH', cell: ({ depth }) => countText(depth), align: 'right' },
  { head: 'RUNNING', cell: ({ running }) => countText(running), align: 'right' },
  { head: 'DONE/MIN', cell: ({ completedMinute }) => countText(completedMinute), align: 'right', fromWidth: 75 },
]

function countText({ count, exact }: Count): string {
  return exact ? grouped(count) : `~${grouped(count)}`
}

function durationText(ms: number | null): string {
  return ms === null ? '-' : formatDuration(ms)
}
