/** What waits in queues, as a scaler sees it: without what is paused, and without what the workers cannot run. Called by supervise.ts and `scale`. */
import { need } from '../../client/need.js'
import type { Queue } from '../../client/queue.js'
import type { Count, QueueLimits, WaitingKind } from '../../storage/storage.js'

export interface QueueLoad {
  queue: string
  paused: boolean
  /** All that wait: due, delayed, and for a retry. */
  depth: Count
  /** Due, and of kinds that can be run. Of a paused queue none, of a limited one what its permits let go: more workers would do nothing for the rest. */
  ready: Count
  /** For how long the one of them that is due longest has been due; null when none is. */
  oldestWaitMs: number | null
  /** Claimed by some worker. */
  running: Count
}

/**
 * Loads of the queues, in their order; one that nobody has used yet has zeros. `kinds` are those that can be run: jobs of
 * others wait whatever is scaled, and count for nothing. Undefined: all can. Throws CAPABILITY_MISSING where the store
 * tells nothing of what waits.
 */
export async function loadsOf(
  queue: Queue,
  names: readonly string[],
  kinds: readonly string[] | undefined,
): Promise<QueueLoad[]> {
  const diagnose = need(queue.connection.storage, 'diagnose', 'scaling')
  const views = new Map((await queue.queues()).map((view) => [view.queue, view]))
  const heads = await diagnose.waiting(names)
  const loads: QueueLoad[] = []
  for (const name of names) {
    const { ready, delayed, retrying, blocked, running } = await queue.counts(name)
    const paused = views.get(name)?.paused ?? false
    const depth = sum([ready, delayed, retrying, blocked])
    const own = heads.filter((head) => head.queue === name)
    // Both are looked at one after the other, and jobs move meanwhile: the sum may be off by those.
    const due = paused ? NOTHING : limited(dueOf(ready, own, kinds), running, views.get(name)?.limits)
    loads.push({ queue: name, paused, depth, running, ...due })
  }
  return loads
}

const NOTHING = { ready: { count: 0, exact: true }, oldestWaitMs: null }

/** A queue at its limit asks for nobody, however long its jobs wait; nor does one of which a rate lets so little go. */
function limited(due: Pick<QueueLoad, 'ready' | 'oldestWaitMs'>, running: Count, limits?: QueueLimits): typeof due {
  const { concurrency = null, rate = null } = limits ?? {}
  const permits = concurrency === null ? Number.POSITIVE_INFINITY : Math.max(0, concurrency - running.count)
  // What may start within a minute, which is long for a scaler.
  const tokens = rate === null ? Number.POSITIVE_INFINITY : rate.burst + (60_000 * rate.limit) / rate.perMs
  const room = Math.floor(Math.min(permits, tokens))
  if (due.ready.count <= room) return due
  return { ready: { count: room, exact: true }, oldestWaitMs: null }
}

function dueOf(
  ready: Count,
  heads: readonly WaitingKind[],
  kinds: readonly string[] | undefined,
): Pick<QueueLoad, 'ready' | 'oldestWaitMs'> {
  const isOwn = ({ kind }: WaitingKind): boolean => kinds === undefined || kinds.includes(kind)
  const own = heads.filter(isOwn)
  // Known of the heads only: what lies behind a long line of them may be anything, and counts.
  const foreign = heads.filter((head) => !isOwn(head)).reduce((count, head) => count + head.count.count, 0)
  return {
    ready: { count: Math.max(0, ready.count - foreign), exact: ready.exact },
    oldestWaitMs: own.length === 0 ? null : Math.max(...own.map(({ oldestMs }) => oldestMs)),
  }
}

export function sum(counts: readonly Count[]): Count {
  return {
    count: counts.reduce((all, { count }) => all + count, 0),
    exact: counts.every(({ exact }) => exact),
  }
}

/** Of all of them together: the longest. */
export function oldestOf(loads: readonly QueueLoad[]): number | null {
  const waits = loads.flatMap(({ oldestWaitMs }) => (oldestWaitMs === null ? [] : [oldestWaitMs]))
  return waits.length === 0 ? null : Math.max(...waits)
}
