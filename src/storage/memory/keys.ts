/** Idempotency records: which job was the first of its kind and key. Called by enqueue, purge and prune. */
import type { NewJob } from '../storage.js'
import { SortedList } from './sorted-list.js'

export interface KeyRow {
  readonly kind: string
  readonly key: string
  /** The first job's. */
  readonly id: string
  readonly payloadHash: string
  /** It lives at least until then, and while its job may still run, as a dead letter may. */
  readonly until: number
  readonly position: number
}

export class KeyTable {
  private readonly rows = new Map<string, KeyRow>()
  private readonly byEnd = new SortedList<KeyRow>((row) => [row.until, row.position])
  private positions = 0

  get(kind: string, key: string): KeyRow | undefined {
    return this.rows.get(scoped(kind, key))
  }

  /** From now or, for a delayed job, from its due time on the record lives for its retention. */
  add(job: NewJob, idempotency: NonNullable<NewJob['idempotency']>, dueAt: number): void {
    const { key, payloadHash, retentionMs } = idempotency
    const row = { kind: job.kind, key, id: job.id, payloadHash, until: dueAt + retentionMs, position: ++this.positions }
    this.rows.set(scoped(row.kind, key), row)
    this.byEnd.add(row)
  }

  delete(row: KeyRow): void {
    this.rows.delete(scoped(row.kind, row.key))
    this.byEnd.delete(row)
  }

  all(): KeyRow[] {
    return [...this.byEnd.items()]
  }

  /** Those whose retention is over, the oldest first. */
  *over(now: number): Generator<KeyRow> {
    for (const row of this.byEnd.items()) {
      if (row.until > now) return
      yield row
    }
  }
}

/** Kinds hold no space, so that no two pairs give the same text. */
function scoped(kind: string, key: string): string {
  return `${kind} ${key}`
}
