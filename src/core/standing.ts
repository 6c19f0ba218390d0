/**
 * Where a ready job stands among those that claims of its queue may take, by the rules that claims go by
 * (priority.ts). Pure; called by explain.ts.
 */
import { type EntrySeen, type JobFacts, LIST_ENTRIES_MAX, type ListSeen, type WorkerSeen } from './job-facts.js'
import {
  ageingKey,
  type Candidate,
  inMainOrder,
  PASSED_OVER_INTERVAL,
  type QueueOrder,
  quotasOfLists,
  TIER_PATTERN,
} from './priority.js'
import { inFairOrder } from './tenants.js'

/** A claim, as far as it decides who is taken. Kinds absent: all. */
export interface ClaimSeen {
  kinds?: readonly string[] | undefined
  limit: number
  turn: number
}

/** From 1 on. Not exact: it is at least so far back. */
export interface Rank {
  rank: number
  exact: boolean
}

/** Where it stands in the queue, and among those of its own priority. */
export interface Standing extends Rank {
  inLevel: Rank
}

/** A rank above this is not counted. */
export const RANK_MAX = LIST_ENTRIES_MAX - 1
/** After so many turns the rules of an order begin anew. */
const TURNS: Record<QueueOrder, number> = { ageing: PASSED_OVER_INTERVAL, strict: 1, weighted: TIER_PATTERN.length }

interface Waiting extends Candidate {
  list: number
}

/** What is left of a list for who can run only some kinds. */
interface Line extends Omit<ListSeen, 'own'> {
  own: number | undefined
}

/**
 * Whether such a claim takes the job, where nothing holds it. A suspect is taken first, and alone. Up to a limit of
 * `RANK_MAX`: further back nothing was looked at.
 */
export function takenBy({ lists, queue, job }: JobFacts, { kinds, limit, turn }: ClaimSeen): boolean {
  if (!canRun(kinds, job.kind)) return false
  const lines = lists.map((list) => lineOf(list, kinds))
  const at = lines.findIndex(({ own }) => own !== undefined)
  if (at < 0) return false
  const own = lines[at]!.own!
  const most = Math.min(limit, roomOf(queue))
  if (job.suspect) return own === 0 && most > 0
  const claim = { order: queue.order, turn, limit: most }
  const quotas = quotasOfLists(waiting(lines, most), claim, ({ list }) => list)
  return own < (quotas.get(at) ?? 0)
}

/** Whether a claim of so many takes it at whichever turn. */
export function surelyTaken(facts: JobFacts, { kinds, limit }: Omit<ClaimSeen, 'turn'>): boolean {
  for (let turn = 0; turn < TURNS[facts.queue.order]; turn++) if (!takenBy(facts, { kinds, limit, turn })) return false
  return true
}

/** Among those that the able workers may take; where there are none, among all. */
export function standingOf(facts: JobFacts): Standing {
  const { job, queue } = facts
  const lines = facts.lists.map((list) => lineOf(list, kindsOfAll(ableWorkers(facts))))
  const at = lines.findIndex(({ own }) => own !== undefined)
  const beyond = { rank: RANK_MAX + 1, exact: false }
  if (at < 0) return { ...beyond, inLevel: beyond }
  const line = lines[at]!
  if (job.suspect) {
    const rank = { rank: line.own! + 1, exact: true }
    return { ...rank, inLevel: rank }
  }
  const ofLevel = lines.filter(({ priority }) => priority === job.priority)
  return {
    ...rankIn(lines, line, queue.order),
    inLevel: rankIn(ofLevel, line, queue.order === 'ageing' ? 'ageing' : 'strict'),
  }
}

/** The place of the entry with which its list has given the job, too. */
function rankIn(lines: readonly Line[], own: Line, order: QueueOrder): Rank {
  const at = lines.indexOf(own)
  let left = own.own!
  const rank =
    1 + inMainOrder(waiting(lines, LIST_ENTRIES_MAX), order).findIndex(({ list }) => list === at && left-- === 0)
  if (rank > RANK_MAX) return { rank: RANK_MAX + 1, exact: false }
  // Of a list that gave so many a claim of that size reads no more.
  const short = lines.filter((line) => line !== own && line.cut && line.entries.length < rank)
  return { rank, exact: !short.some((line) => mayHide(line, own, order)) }
}

/** What was not read of the list may go before the job. */
function mayHide({ entries, priority }: Line, own: Line, order: QueueOrder): boolean {
  const [last, job] = [entries.at(-1), own.entries[own.own!]!]
  if (last === undefined || order !== 'ageing') return true
  return ageingKey({ priority, dueAt: last.dueAt }) < ageingKey({ priority: own.priority, dueAt: job.dueAt })
}

/** The workers of the queue that can run the job, as far as they say. */
export function ableWorkers({ workers, job }: JobFacts): WorkerSeen[] {
  return workers.filter(({ kinds }) => canRun(kinds, job.kind))
}

/** Slots that nothing holds; prefetch may have taken more than there are. */
export function freeSlots({ concurrency, jobs }: WorkerSeen): number {
  return Math.max(0, concurrency - jobs)
}

/** How many jobs the limits of the queue still let go. */
export function roomOf({ concurrency, rate }: JobFacts['queue']): number {
  const permits =
    concurrency === undefined ? Number.POSITIVE_INFINITY : Math.max(0, concurrency.limit - concurrency.held)
  return Math.min(permits, rate?.tokens ?? Number.POSITIVE_INFINITY)
}

/** Undefined: all. */
function kindsOfAll(workers: readonly WorkerSeen[]): readonly string[] | undefined {
  if (workers.length === 0 || workers.some(({ kinds }) => kinds === undefined)) return undefined
  return [...new Set(workers.flatMap(({ kinds }) => kinds!))]
}

function canRun(kinds: readonly string[] | undefined, kind: string): boolean {
  return kinds === undefined || kinds.includes(kind)
}

function lineOf(list: ListSeen, kinds: readonly string[] | undefined): Line {
  const able = ({ kind }: EntrySeen): boolean => canRun(kinds, kind)
  const own = list.own === undefined ? undefined : list.entries.slice(0, list.own).filter(able).length
  return { ...list, entries: list.entries.filter(able), own }
}

/** As a claim of so many reads them: of a level the front list first; of one call what came in first. */
function waiting(lines: readonly Line[], limit: number): Waiting[] {
  const read = lines.flatMap(({ range, priority, entries }, list) =>
    (range === 'fair' ? inFairOrder(entries.slice(0, limit)) : entries.slice(0, limit)).map(
      ({ dueAt, dueNth }): Waiting => ({
        priority,
        dueAt,
        list,
        ...(dueNth === undefined ? {} : { dueNth }),
      }),
    ),
  )
  return read.sort((a, b) => (a.dueNth ?? 0) - (b.dueNth ?? 0))
}
