/**
 * Drops the days whose records are over: detached, then dropped, two steps that each may be cut off and are gone on
 * with by whoever comes next. Nobody is ever kept waiting behind a reader of such a day. Called by pruning.ts.
 */
import type { Database, Statement } from './database.js'
import { failureKind, queueError, sqlState, Unanswered } from './failures.js'
import { literal } from './schema-name.js'

/** A detach waits for everybody who still sees the day; so long, then the next prune finishes it. */
const DETACH_MS_MAX = 3_000

/**
 * What passes by itself: somebody has the day's lock or waits for ours, the server has cancelled the statement or its
 * session, the day is being detached by another one or has gone.
 */
const PASSING = new Set(['55P03', '40P01', '57014', '55000', '42P01'])

/** What came of a prune. `failure`: of a day that stays until somebody does something about it. */
export interface PrunedDays {
  dropped: number
  failure: Error | undefined
}

interface Day {
  name: string
  /** pg_inherits' own mark of a detach that was begun and not finished; null when the day is detached. */
  pending: boolean | null
  over: boolean
  /** This role may detach it. */
  own: boolean
}

/** Makes the days ahead that are missing. */
export function ensureDays(schema: string): Statement {
  return { name: 'lh_ensure_days', text: `select ${schema}.ensure_days()` }
}

export class DayPruning {
  private readonly days: Statement
  private readonly cancel: Statement
  private readonly dropDay: Statement

  constructor(
    private readonly database: Database,
    private readonly schema: string,
    schemaName: string,
  ) {
    // A day that somebody reads by its own name is left for later: a detach would wait for him with the lock that the
    // making of a new day needs. Readers of all days are seen and waited for without it.
    this.days = {
      name: 'lh_days',
      text: `select c.relname as name, i.inhdetachpending as pending,
          to_date(right(c.relname, 8), 'YYYYMMDD') + 1 <= ((${schema}.instant(${schema}.clock() - $1::bigint)) at time zone 'UTC')::date as over,
          pg_has_role(c.relowner, 'usage') as own
        from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_inherits i on i.inhrelid = c.oid
        where n.nspname = ${literal(schemaName)} and c.relkind = 'r' and c.relname ~ '^ended_[0-9]{8}$'
          and not exists (select from pg_locks l where l.relation = c.oid and l.database = (select oid from pg_database where datname = current_database()))
        order by 1`,
    }
    this.dropDay = { name: 'lh_drop_day', text: `select ${schema}.drop_day(to_date(right($1, 8), 'YYYYMMDD')) as what` }
    this.cancel = {
      name: 'lh_cancel_detach',
      text: `select pg_cancel_backend(pid) from pg_stat_activity
        where datname = current_database() and usename = session_user and state = 'active' and query = $1`,
    }
  }

  /** One day that cannot be dropped keeps none of the others. */
  async prune(completedMs: number): Promise<PrunedDays> {
    const days = (await this.database.run(this.days, [completedMs * 1_000])) as unknown as Day[]
    const pruned: PrunedDays = { dropped: 0, failure: undefined }
    for (const day of days.filter(({ over, pending }) => over || pending !== false)) {
      try {
        if (await this.drop(day)) pruned.dropped += 1
      } catch (error) {
        if (isPassing(error)) continue
        if (failureKind(error) !== 'refused') throw error
        pruned.failure ??= queueError(error, `prune: the records of ${day.name} cannot be dropped`)
      }
    }
    return pruned
  }

  /** False where it stays a while longer, as somebody reads it or somebody else is at it. */
  private async drop(day: Day): Promise<boolean> {
    const table = `${this.schema}."${day.name}"`
    if (!day.own) return this.dropByFunction(day)
    const detach = `alter table ${this.schema}.ended detach partition ${table}`
    if (day.pending === true) await this.unlessRead(table, `${detach} finalize`)
    else if (day.pending === false) await this.bounded(`${detach} concurrently`)
    if (!day.over) return false
    await this.unlessRead(table, `drop table ${table}`)
    return true
  }

  /** For a role that does not own the days: with less patience, and with the owner's rights for this alone. */
  private async dropByFunction({ name, over }: Day): Promise<boolean> {
    if (!over) return false
    const [row] = await this.database.run(this.dropDay, [name])
    return row!.what === 'dropped'
  }

  /** It may stand in no transaction. Given up here, the server would wait on; so it is told. */
  private async bounded(statement: string): Promise<void> {
    try {
      await this.database.forMoment(statement, DETACH_MS_MAX)
    } catch (error) {
      await this.database.run(this.cancel, [statement])
      throw error
    }
  }

  /**
   * With the table's own lock in hand, or not at all: nobody waits behind us while we wait. No setting outlives its
   * transaction, as behind a pooler it would be somebody else's.
   */
  private unlessRead(table: string, statement: string): Promise<void> {
    return this.database.session(async (client) => {
      await client.query(
        `begin; set local lock_timeout = '100ms'; lock table only ${table} in access exclusive mode nowait; ${statement}; commit`,
      )
    })
  }
}

function isPassing(error: unknown): boolean {
  return error instanceof Unanswered || PASSING.has(sqlState(error) ?? '')
}
