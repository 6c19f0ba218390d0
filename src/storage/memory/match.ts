/** Jobs by filter, and dead letters by what they died of. Called by inspect.ts. */
import { QueueError } from '../../core/errors.js'
import type { DeadReason } from '../../core/job.js'
import type { DeadGroup, DeadGroups, MatchedJob, MatchPage, MatchRequest } from '../storage.js'
import { entryOf } from './entry.js'
import type { JobRow } from './jobs.js'
import type { SortKey } from './sorted-list.js'
import type { MemoryState } from './state.js'

/** Jobs that one page looks at; what matches may lie far apart. */
const LOOKS_MAX = 1_000

/** What a job has to be. */
interface Wish {
  queue?: string | undefined
  kind?: string | undefined
  reason?: DeadReason | undefined
  fingerprint?: string | null | undefined
  since?: number | undefined
  before?: number | undefined
}

export function matches(job: JobRow, { queue, kind, reason, fingerprint, since, before }: Wish): boolean {
  const at = job.endedAt ?? job.enqueuedAt
  return (
    (queue === undefined || job.queue === queue) &&
    (kind === undefined || job.kind === kind) &&
    (reason === undefined || job.reason === reason) &&
    (fingerprint === undefined || printOf(job) === fingerprint) &&
    (since === undefined || at >= since) &&
    (before === undefined || at < before)
  )
}

/** Of the failure that it died of: the last entry of its history. */
function printOf(job: JobRow): string | null {
  return job.history?.entries.at(-1)?.fingerprint ?? null
}

export function match(state: MemoryState, request: MatchRequest): MatchPage {
  const { limit, after } = request
  const inOrder = state.jobs.inState(request.state)
  const from = after === undefined ? undefined : cursorKey(after)
  const jobs: MatchedJob[] = []
  let looked = 0
  let last: JobRow | undefined
  // The list of dead ones has the newest first.
  for (const job of request.state === 'dead' ? inOrder.backwards(from) : inOrder.items(from)) {
    if (jobs.length >= limit || looked >= LOOKS_MAX)
      return { jobs, next: JSON.stringify(inOrder.keyOf(last!)), nowMs: state.now() }
    looked += 1
    last = job
    if (matches(job, request)) jobs.push(matchedJob(job))
  }
  return { jobs, next: null, nowMs: state.now() }
}

function matchedJob({ id, kind, queue, reason }: JobRow): MatchedJob {
  return { id, kind, queue, ...(reason === null ? {} : { reason }) }
}

export function cursorKey(cursor: string): SortKey {
  const found = /^\[(-?\d+(?:\.\d+)?),(?:(-?\d+)|"([^"]*)")\]$/.exec(cursor)
  if (found === null)
    throw new QueueError('INVALID_OPTION', 'after: give the `next` of the page before', { field: 'after' })
  return [Number(found[1]), found[3] ?? Number(found[2])]
}

export function deadGroups(
  state: MemoryState,
  { queue, kind, limit }: { queue?: string; kind?: string; limit: number },
): DeadGroups {
  const groups = new Map<string, DeadGroup>()
  // The newest first: so are the groups, by the first of their jobs that is met.
  for (const job of state.jobs.inState('dead').items()) {
    if (!matches(job, { queue, kind })) continue
    const group = entryOf(groups, JSON.stringify([job.queue, job.kind, job.reason, printOf(job)]), () => groupOf(job))
    group.count.count += 1
    group.oldestAt = Math.round(job.endedAt!)
  }
  return { groups: [...groups.values()].slice(0, limit), complete: groups.size <= limit }
}

/** Begun with its newest job; none is counted yet. */
function groupOf(job: JobRow): DeadGroup {
  const { error, note } = job.history?.entries.at(-1) ?? {}
  const { stack: _, ...told } = error ?? { name: '', message: '' }
  const at = Math.round(job.endedAt!)
  return {
    queue: job.queue,
    kind: job.kind,
    reason: job.reason!,
    fingerprint: printOf(job),
    count: { count: 0, exact: true },
    oldestAt: at,
    newestAt: at,
    sample: { id: job.id, error: error === undefined ? null : told, ...(note === undefined ? {} : { note }) },
  }
}
