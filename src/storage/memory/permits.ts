/** Who holds the permits of keys, and what waits for them. Filled by the job table, asked by claims and by all that ends a job. */
import { type JobKey, type KeyLimit, keyOf, permitsOf } from '../../core/keys.js'
import { entryOf } from './entry.js'
import type { JobRow } from './jobs.js'
import { SortedList } from './sorted-list.js'

interface KeyRow extends JobKey {
  queue: string
  /** Ids, in the order in which they got their permits. */
  holders: Set<string>
  /** What found no permit, the first to go first. */
  blocked: SortedList<JobRow>
  /** Of an order key: what is ready. */
  ready: SortedList<JobRow>
}

export class Permits {
  private readonly rows = new Map<string, KeyRow>()

  /** It is ready or blocked from now on. */
  add(job: JobRow): void {
    const key = keyOf(job.spec)
    if (key === undefined) return
    if (job.place === 'blocked') this.rowOf(job, key).blocked.add(job)
    if (job.place === 'ready' && key.ordered) this.rowOf(job, key).ready.add(job)
  }

  delete(job: JobRow): void {
    const key = keyOf(job.spec)
    if (key === undefined) return
    const row = this.rowOf(job, key)
    if (job.place === 'blocked') row.blocked.delete(job)
    if (job.place === 'ready') row.ready.delete(job)
    this.forgetEmpty(row)
  }

  /** Takes the permit that a claim of the job needs; false: it has to wait for one. */
  take(job: JobRow, limit: KeyLimit | null): boolean {
    const key = keyOf(job.spec)
    if (key === undefined) return true
    const row = this.rowOf(job, key)
    if (row.holders.has(job.id)) return true
    if (row.holders.size >= permitsOf(key, limit)) return false
    if (key.ordered && firstOf(row.ready.first(), row.blocked.first()) !== job) return false
    row.holders.add(job.id)
    return true
  }

  /** What these leave behind: their permits are free, and this is what may be ready again because of it. */
  release(jobs: readonly JobRow[], limitOf: (queue: string) => KeyLimit | null): JobRow[] {
    const freed = new Set<KeyRow>()
    for (const job of jobs) {
      const key = keyOf(job.spec)
      if (key === undefined) continue
      const row = this.rowOf(job, key)
      row.holders.delete(job.id)
      freed.add(row)
    }
    const next = [...freed].flatMap((row) => nextOf(row, limitOf(row.queue)))
    for (const row of freed) this.forgetEmpty(row)
    return next
  }

  /** What may be ready: of each key that has permits, of one queue or of all. */
  free(limitOf: (queue: string) => KeyLimit | null, queue?: string): JobRow[] {
    const rows = [...this.rows.values()].filter((row) => queue === undefined || row.queue === queue)
    return rows.flatMap((row) => nextOf(row, limitOf(row.queue)))
  }

  /** For those who look at all that is there. */
  held(): { queue: string; key: string; ordered: boolean; id: string }[] {
    return [...this.rows.values()].flatMap(({ queue, key, ordered, holders }) =>
      [...holders].map((id) => ({ queue, key, ordered, id })),
    )
  }

  holders(job: JobRow): readonly string[] {
    const key = keyOf(job.spec)
    return key === undefined ? [] : [...this.rowOf(job, key).holders]
  }

  /** Who of its key goes before the job; only an order key keeps an order. */
  ahead(job: JobRow): JobRow | undefined {
    const key = keyOf(job.spec)
    if (key === undefined || !key.ordered) return undefined
    const { ready, blocked } = this.rowOf(job, key)
    const first = firstOf(ready.first(), blocked.first())
    return first === job ? undefined : first
  }

  private forgetEmpty(row: KeyRow): void {
    if (row.holders.size + row.blocked.size + row.ready.size === 0) this.rows.delete(nameOf(row, row))
  }

  private rowOf(job: { queue: string }, jobKey: JobKey): KeyRow {
    const { queue } = job
    const { key, ordered } = jobKey
    return entryOf(this.rows, nameOf(job, jobKey), () => ({
      queue,
      key,
      ordered,
      holders: new Set<string>(),
      blocked: new SortedList<JobRow>(turnOf),
      ready: new SortedList<JobRow>(turnOf),
    }))
  }
}

function nameOf({ queue }: { queue: string }, { key, ordered }: JobKey): string {
  return `${ordered ? 'o' : 'l'} ${queue} ${key}`
}

/** Blocked ones go as far as there are permits; of an order key not before what is ready. */
function nextOf(row: KeyRow, limit: KeyLimit | null): JobRow[] {
  const { holders, blocked, ready, ordered } = row
  const next = blocked.take(permitsOf(row, limit) - holders.size)
  return next[0] !== undefined && ordered && firstOf(ready.first(), next[0]) !== next[0] ? [] : next
}

function firstOf(one: JobRow | undefined, other: JobRow | undefined): JobRow | undefined {
  if (one === undefined || other === undefined) return one ?? other
  const [a, b] = [turnOf(one), turnOf(other)]
  return a[0] < b[0] || (a[0] === b[0] && a[1] < b[1]) ? one : other
}

/** By due time; of one call in its order. */
function turnOf({ dueAt, dueNth, id }: JobRow): readonly [number, string] {
  return [dueAt, `${String(dueNth).padStart(16, '0')}${id}`]
}
