/**
 * What a migrator waits for, for how long, and who it is that he waits for: another migrator, the lock of a table, or the
 * transactions that an index has to wait for. Called by migrate.ts and index-build.ts.
 */
import { QueueError } from '../../core/errors.js'
import type { Database, Row } from './database.js'
import { sqlState } from './failures.js'
import { literal, type SchemaName } from './schema-name.js'

export type Wait = 'for a migrator' | 'for a lock'

export interface Patience {
  /** With another migrator, whoever builds its index included: longer than that may take. */
  readonly migratorMs: number
  /** With those who hold a table, while others are let pass. */
  readonly lockMs: number
  /** With the building of one index: of a large table, behind transactions that were open before. */
  readonly buildMs: number
}

export const PATIENCE: Patience = { migratorMs: 4_200_000, lockMs: 600_000, buildMs: 3_600_000 }

/** Another migrator has the lock of migrators, or what he has begun goes on without him. */
export class OtherMigrator extends Error {}

/** An index that was not there in time. The server goes on with it. */
export class SlowBuild extends Error {}

/** Undefined where trying again is of no use. */
export function waitOf(error: unknown): Wait | undefined {
  if (error instanceof OtherMigrator) return 'for a migrator'
  // By a lock of somebody's, which he will give back; a deadlock was ended by the server.
  return sqlState(error) === '55P03' || sqlState(error) === '40P01' ? 'for a lock' : undefined
}

export function migratorsLock(schema: SchemaName): string {
  return `hashtextextended('leasehold migrate ${schema.inLiteral}', 0)`
}

/** A session of the server, as far as this role may see it. */
interface Holder {
  /** Null: of a transaction that was prepared for two phases. */
  pid: number | null
  application: string | null
  role: string | null
  state: string | null
  /** For how long its transaction is open. */
  openS: number | null
}

interface Progress extends Holder {
  index: string | null
  phase: string | null
  done: string | null
  total: string | null
  waitsFor: number | null
}

const HOLDER = `a.application_name as application, a.usename::text as role, a.state,
  extract(epoch from clock_timestamp() - a.xact_start)::float8 as "openS"`
const HERE = '(select d.oid from pg_database d where d.datname = current_database())'

export class MigrationWaits {
  constructor(
    private readonly database: Database,
    private readonly schema: SchemaName,
  ) {}

  /** What is said at the end of the patience. */
  async givenUp(wait: Wait, what: string, waitedMs: number, cause: unknown): Promise<QueueError> {
    const text = wait === 'for a migrator' ? await this.ofMigrator() : await this.ofLock()
    return failure(`${what} waited ${spoken(waitedMs / 1_000)} ${text}`, cause)
  }

  /** Of an index that is still being built at the end of the patience. */
  async slowBuild(what: string, builtMs: number, cause: unknown): Promise<QueueError> {
    const [building] = await this.builds()
    const seen = building === undefined ? '' : `: ${progressOf(building)}`
    const [holder] = building?.waitsFor ? await this.session(building.waitsFor) : []
    const fix =
      holder === undefined
        ? 'the server goes on with it; migrate again, which waits for it'
        : `it waits for ${named(holder)}; ${endOf(holder)}, and migrate again`
    return failure(`${what} is not built after ${spoken(builtMs / 1_000)}${seen}; ${fix}`, cause)
  }

  private async ofMigrator(): Promise<string> {
    const [[holder], [building]] = await Promise.all([this.migrators(), this.builds()])
    const builds = building === undefined ? '' : `, and ${progressOf(building)}`
    const culprit = building?.waitsFor ? (await this.session(building.waitsFor))[0] : undefined
    const behind = culprit === undefined ? '' : `, which waits for ${named(culprit)}: ${endOf(culprit)}`
    // Who began it may be gone, while the server goes on with his index.
    const who = holder ?? building
    if (who === undefined) return 'for another migrator, who is gone by now; migrate again'
    const role = holder === undefined ? 'for an index that another migrator has begun' : 'for another migrator'
    return `${role}: ${named(who)}${builds}${behind}. When that is done, migrate again; if it has come to a standstill, ${endOf(who)} first`
  }

  private async ofLock(): Promise<string> {
    const holders = await this.holders()
    const head = "for a moment without others' locks"
    if (holders.length === 0) return `${head}; nobody holds one now: migrate again`
    return `${head}. The oldest: ${holders.map(named).join('; ')}. End what is open for long (${endOf(holders[0]!)}), and migrate again`
  }

  private async migrators(): Promise<Holder[]> {
    const key = migratorsLock(this.schema)
    return this.seen(`select l.pid, ${HOLDER} from pg_locks l left join pg_stat_activity a on a.pid = l.pid
      where l.locktype = 'advisory' and l.granted and l.objsubid = 1 and l.database = ${HERE}
        and l.classid::bigint = (${key} >> 32) & 4294967295 and l.objid::bigint = ${key} & 4294967295`)
  }

  /** Of indexes in this schema; of other roles' only that there is one. */
  private async builds(): Promise<Progress[]> {
    return this.seen(`select p.pid, ${HOLDER}, x.relname::text as index, p.phase, p.blocks_done::text as done, p.blocks_total::text as total,
        nullif(p.current_locker_pid, 0)::int as "waitsFor"
      from pg_stat_progress_create_index p join pg_class t on t.oid = p.relid join pg_namespace n on n.oid = t.relnamespace
        left join pg_class x on x.oid = p.index_relid left join pg_stat_activity a on a.pid = p.pid
      where p.datname = current_database() and n.nspname = ${literal(this.schema.name)}`)
  }

  /** Who holds tables of the schema in a transaction that is open for longer than anybody's call, the oldest first. */
  private async holders(): Promise<Holder[]> {
    return this.seen(`select l.pid, ${HOLDER} from (select distinct l.pid from pg_locks l join pg_class c on c.oid = l.relation
          join pg_namespace n on n.oid = c.relnamespace
        where l.locktype = 'relation' and l.granted and l.database = ${HERE} and n.nspname = ${literal(this.schema.name)}
          and c.relkind in ('r', 'p') and l.pid is distinct from pg_backend_pid()) l
      left join pg_stat_activity a on a.pid = l.pid
      order by a.xact_start nulls first limit 3`)
  }

  private async session(pid: number): Promise<Holder[]> {
    return this.seen(`select a.pid, ${HOLDER} from pg_stat_activity a where a.pid = ${pid}`)
  }

  /** It says more of a failure, and must not become one: what cannot be seen is not said. */
  private async seen<T extends Holder>(text: string): Promise<T[]> {
    try {
      return (await this.database.run({ name: '', text }, [])) as (Row & T)[]
    } catch {
      return []
    }
  }
}

function failure(text: string, cause: unknown): QueueError {
  return new QueueError('STORE_UNAVAILABLE', `migrate: ${text}`, { cause })
}

function named({ pid, application, role, state, openS }: Holder): string {
  if (pid === null) return 'a prepared transaction (see pg_prepared_xacts)'
  const facts = [
    application ? `"${application}"` : 'without a name',
    ...(role === null ? [] : [`role ${role}`]),
    ...(state === null ? [] : [state]),
    ...(openS === null ? [] : [`open for ${spoken(openS)}`]),
  ]
  return `process ${pid} of the server (${facts.join(', ')})`
}

function endOf({ pid }: Holder): string {
  return pid === null ? 'commit prepared, or rollback prepared' : `select pg_terminate_backend(${pid})`
}

function progressOf({ index, phase, done, total }: Progress): string {
  const blocks = done !== null && total !== null && total !== '0' ? `, ${done} of ${total} blocks` : ''
  return `the index ${index === null ? '' : `"${index}" `}is being built (${phase ?? 'its phase is not for this role to see'}${blocks})`
}

function spoken(seconds: number): string {
  if (seconds < 120) return `${Math.max(0, Math.round(seconds))} seconds`
  return `${Math.round(seconds / 60)} minutes`
}
