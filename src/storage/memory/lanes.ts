/**
 * What is ready, in the order in which claims read it: for each queue its levels, for each level a front and a back
 * list, apart for each kind, so that a claim never walks past kinds it cannot run. Suspects wait apart from all. Each
 * list is in the order in which its jobs came into it: so a store can read it from a cursor on.
 * Filled by the job table, read by claims.
 */
import { entryOf } from './entry.js'
import { type JobRow, lanePosition } from './jobs.js'
import { SortedList } from './sorted-list.js'

interface Lane {
  /** Re-entered jobs. */
  front: SortedList<JobRow>
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

export class Lanes {
  private readonly queues = new Map<string, QueueLanes>()

  add(job: JobRow): void {
    this.listOf(job).add(job)
    if (!job.suspect) this.queues.get(job.queue)!.count += 1
  }

  delete(job: JobRow): void {
    const wasThere = this.listOf(job).delete(job)
    if (wasThere && !job.suspect) this.queues.get(job.queue)!.count -= 1
  }

  /**
   * All that a claim of `limit` jobs of a queue may take: for each level the first `limit` of its front list, then
   * the first `limit` of its back list. Of those that one call made due together the first one comes first.
   */
  candidates(queue: string, kinds: readonly string[], limit: number): JobRow[] {
    const candidates: JobRow[] = []
    const lanes = this.queues.get(queue)
    if (lanes === undefined || lanes.count === 0) return candidates
    for (const level of lanes.levels.values()) {
      const ofKinds = kinds.flatMap((kind) => level.get(kind) ?? [])
      candidates.push(...firstOf(ofKinds, 'front', limit), ...firstOf(ofKinds, 'back', limit))
    }
    return candidates.sort((a, b) => a.dueNth - b.dueNth)
  }

  /** The lists that claims of a queue read, the first `limit` of each, of all kinds. */
  heads(queue: string, limit: number): { priority: number; front: boolean; jobs: JobRow[] }[] {
    const levels = [...(this.queues.get(queue)?.levels ?? [])]
    return levels.flatMap(([priority, ofKinds]) =>
      (['front', 'back'] as const).map((list) => ({
        priority,
        front: list === 'front',
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
    return job.front ? lane.front : lane.back
  }
}

function firstOf(lanes: readonly Lane[], list: 'front' | 'back', limit: number): JobRow[] {
  const filled = lanes.filter((lane) => lane[list].size > 0)
  if (filled.length === 0) return []
  const firsts = filled.map((lane) => lane[list].take(limit))
  if (firsts.length === 1) return firsts[0]!
  return firsts
    .flat()
    .sort((a, b) => a.position - b.position)
    .slice(0, limit)
}

function emptyLane(): Lane {
  return {
    front: new SortedList((job) => [job.position, 0]),
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
