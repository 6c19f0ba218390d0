/**
 * What is ready, in the order in which claims read it: for each queue its levels, for each level a front and a back
 * list, apart for each kind, so that a claim never walks past kinds it cannot run. Suspects wait apart from all. Each
 * list is in the order in which its jobs came into it: so a store can read it from a cursor on. A level that shares fairly
 * has a list besides, in the order of virtual time, and no back list but what was there before.
 * Filled by the job table, read by claims.
 */
import { inFairOrder } from '../../core/tenants.js'
import { entryOf } from './entry.js'
import { FairShares } from './fair.js'
import { type JobRow, lanePosition } from './jobs.js'
import { SortedList } from './sorted-list.js'

interface Lane {
  /** Re-entered jobs. */
  front: SortedList<JobRow>
  /** By the shares of tenants. */
  fair: SortedList<JobRow>
  /** All others. */
  back: SortedList<JobRow>
}

interface QueueLanes {
  /** All but the suspects: most claims find nothing, and then need no look at the lists. */
  count: number
  /** By level, then by kind. */
  levels: Map<number, Map<string, Lane>>
  /** The higher level first; few. */
  suspects: SortedList<JobRow>
}

/** A job that a claim may take, and since when it counts as due. */
export interface Head {
  job: JobRow
  priority: number
  dueAt: number
  dueNth: number
}

const LISTS = ['front', 'fair', 'back'] as const
type ListName = (typeof LISTS)[number]

export class Lanes {
  readonly fair = new FairShares()
  private readonly queues = new Map<string, QueueLanes>()

  add(job: JobRow): void {
    this.listOf(job).add(job)
    if (job.fairPlace !== null) this.fair.add(job)
    if (!job.suspect) this.queues.get(job.queue)!.count += 1
  }

  delete(job: JobRow): void {
    const wasThere = this.listOf(job).delete(job)
    if (wasThere && !job.suspect) this.queues.get(job.queue)!.count -= 1
    if (job.fairPlace !== null) this.fair.delete(job)
  }

  /**
   * All that a claim of `limit` jobs of a queue may take: for each level the first `limit` of each of its lists. Of those
   * that one call made due together the first one comes first.
   */
  candidates(queue: string, kinds: readonly string[], limit: number): Head[] {
    const candidates: Head[] = []
    const lanes = this.queues.get(queue)
    if (lanes === undefined || lanes.count === 0) return candidates
    for (const level of lanes.levels.values()) {
      const ofKinds = kinds.flatMap((kind) => level.get(kind) ?? [])
      for (const list of LISTS) {
        const heads = firstOf(ofKinds, list, limit).map(headOf)
        candidates.push(...(list === 'fair' ? inFairOrder(heads) : heads))
      }
    }
    return candidates.sort((a, b) => a.dueNth - b.dueNth)
  }

  /** The lists that claims of a queue read, the first `limit` of each, of all kinds. */
  heads(queue: string, limit: number): { priority: number; list: ListName; jobs: JobRow[] }[] {
    const levels = [...(this.queues.get(queue)?.levels ?? [])]
    return levels.flatMap(([priority, ofKinds]) =>
      LISTS.map((list) => ({
        priority,
        list,
        jobs: firstOf([...ofKinds.values()], list, limit),
      })),
    )
  }

  /** The suspects of a queue in the order in which they are handed out. */
  suspects(queue: string, limit: number): JobRow[] {
    return this.queues.get(queue)?.suspects.take(limit) ?? []
  }

  /** The next suspect of a queue that one of the kinds can run. */
  suspect(queue: string, kinds: readonly string[]): JobRow | undefined {
    for (const job of this.queues.get(queue)?.suspects.items() ?? []) {
      if (kinds.includes(job.kind)) return job
    }
    return undefined
  }

  private listOf(job: JobRow): SortedList<JobRow> {
    const queue = entryOf(this.queues, job.queue, emptyQueue)
    if (job.suspect) return queue.suspects
    const level = entryOf(queue.levels, job.priority, () => new Map<string, Lane>())
    const lane = entryOf(level, job.kind, emptyLane)
    return job.fairPlace !== null ? lane.fair : job.front ? lane.front : lane.back
  }
}

function headOf(job: JobRow): Head {
  return { job, priority: job.priority, dueAt: job.dueAt, dueNth: job.dueNth }
}

function firstOf(lanes: readonly Lane[], list: ListName, limit: number): JobRow[] {
  const filled = lanes.filter((lane) => lane[list].size > 0)
  if (filled.length === 0) return []
  const firsts = filled.map((lane) => lane[list].take(limit))
  if (firsts.length === 1) return firsts[0]!
  return firsts
    .flat()
    .sort((a, b) => lanePosition(a) - lanePosition(b))
    .slice(0, limit)
}

function emptyLane(): Lane {
  return {
    front: new SortedList((job) => [job.position, 0]),
    fair: new SortedList((job) => [lanePosition(job), 0]),
    back: new SortedList((job) => [job.position, 0]),
  }
}

function emptyQueue(): QueueLanes {
  return {
    count: 0,
    levels: new Map(),
    suspects: new SortedList((job) => [-job.priority, lanePosition(job)]),
  }
}
