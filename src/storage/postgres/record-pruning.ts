/**
 * Deletes single records where a retention is set that days cannot keep: ages below a day, and counts. Bounded steps,
 * and nothing at all where neither is set. Called by pruning.ts.
 */
import type { Retention } from '../storage.js'
import { CountPruning } from './count-pruning.js'
import type { Database, Statement } from './database.js'

const DAY_MS = 86_400_000

export class RecordPruning {
  private readonly aged: Statement
  private readonly counted: CountPruning
  private readonly dead: CountPruning

  constructor(
    private readonly database: Database,
    schema: string,
  ) {
    this.aged = {
      name: 'lh_prune_aged',
      // Deleted by id, each an index probe in the few days that the boundary leaves; rows that somebody else deletes at
      // this moment are passed over, so two pruners never wait for each other.
      text: `with cutoff as materialized (select ${schema}.instant(${schema}.clock() - $1::bigint) as at),
        o as materialized (select coalesce(array_agg(r.id), '{}') as ids, max(r.ended) as latest
          from (select r.* from cutoff, ${schema}.queue q cross join (values (1), (2)) s(state), lateral (select e.id, e.ended from ${schema}.ended e
            where e.queue = q.id and e.state = s.state and e.ended < cutoff.at order by e.ended limit $2 for update skip locked) r limit $2) r),
        d as (delete from ${schema}.ended e using o where e.id = any(o.ids) and e.ended <= o.latest returning 1)
        select count(*)::int as deleted from d`,
    }
    this.counted = new CountPruning(database, schema, { name: 'ended', states: [1, 2], ofState: 'e.state = s.state' })
    this.dead = new CountPruning(database, schema, { name: 'dead', states: [0], ofState: 'true' })
  }

  async prune(retention: Retention & { limit: number }): Promise<{ deleted: number; more: boolean }> {
    const { completedMs, completedMax, deadMax, limit } = retention
    const counts = [
      // A day and more is kept by dropping whole days.
      completedMs < DAY_MS ? await this.pruneAged(completedMs, limit) : 0,
      completedMax === undefined ? 0 : await this.counted.prune(completedMax, limit),
      deadMax === undefined ? 0 : await this.dead.prune(deadMax, limit),
    ]
    return { deleted: counts.reduce((sum, count) => sum + count, 0), more: Math.max(...counts) >= limit }
  }

  private async pruneAged(completedMs: number, limit: number): Promise<number> {
    const [row] = await this.database.run(this.aged, [completedMs * 1_000, limit])
    return row!.deleted as number
  }
}
