/** Figures of the server and of the schema, from its own views. Called by the command line through the port. */
import type {
  AccessFacts,
  ConnectionFacts,
  DatabaseFacts,
  DatabaseSettings,
  DayFacts,
  SnapshotHolder,
  TableFacts,
} from '../storage.js'
import type { Database, Row } from './database.js'
import { literal, type SchemaName } from './schema-name.js'

const HOLDERS_MAX = 20
/** A day table for each day of ten years. */
const TABLES_MAX = 4_000

export class PostgresFacts implements DatabaseFacts {
  private readonly namespace: string

  constructor(
    private readonly database: Database,
    private readonly schema: SchemaName,
  ) {
    this.namespace = `(select oid from pg_namespace where nspname = ${literal(schema.name)})`
  }

  async settings(): Promise<DatabaseSettings> {
    const [row] = await this.ask('lh_settings', SETTINGS)
    return {
      version: (row!.version as string).split(' ')[0]!,
      versionNumber: row!.number as number,
      readOnly: row!.read_only as boolean,
      fsync: row!.fsync === 'on',
      fullPageWrites: row!.pages === 'on',
      synchronousCommit: row!.commit as string,
      isolation: row!.isolation as string,
      // Without the counts it works by, it never comes.
      autovacuum: row!.autovacuum === 'on' && row!.counts === 'on',
    }
  }

  async connections(): Promise<ConnectionFacts[]> {
    const rows = await this.ask('lh_connections', CONNECTIONS)
    return rows.map((row) => ({
      scope: row.scope as ConnectionFacts['scope'],
      max: row.most as number,
      open: row.open as number,
    }))
  }

  async holders(): Promise<SnapshotHolder[]> {
    const rows = await this.ask('lh_holders', HOLDERS)
    return rows.map((row) => ({
      what: row.what as SnapshotHolder['what'],
      name: row.name as string,
      application: row.application as string,
      user: row.user as string,
      state: row.state as string,
      openMs: row.open_ms as number | null,
      transactions: row.transactions as number,
    }))
  }

  async tables(): Promise<TableFacts[]> {
    const rows = await this.ask('lh_tables', tablesText(this.namespace))
    return rows.map((row) => ({
      table: row.name as string,
      liveRows: row.live as number,
      deadRows: row.dead as number,
      bytes: row.bytes as number,
      vacuumedAgoMs: row.vacuumed_ago as number | null,
      autovacuum: row.autovacuum as boolean,
      vacuumFrom: row.vacuum_from as number,
    }))
  }

  async days(): Promise<DayFacts> {
    const [row] = await this.ask('lh_day_tables', daysText(this.namespace, this.schema.quoted))
    const { today, attached, pending, detached } = row as unknown as DayFacts
    return { today, attached, pending, detached }
  }

  async access(): Promise<AccessFacts> {
    const [row] = await this.ask('lh_rights', accessText(this.namespace))
    const { role, usage, tables, sequences, functions } = row as unknown as Access
    const schema = `schema ${this.schema.quoted}`
    const missing = [
      ...(usage ? [] : [`use ${schema}`]),
      ...tables.map((table) => `read and write ${table}`),
      ...sequences.map((sequence) => `use sequence ${sequence}`),
      ...functions.map((name) => `call function ${name}`),
    ]
    return { role, missing }
  }

  private ask(name: string, text: string): Promise<Row[]> {
    return this.database.ask({ name, text }, [])
  }
}

interface Access {
  role: string
  usage: boolean
  tables: string[]
  sequences: string[]
  functions: string[]
}

const SETTINGS = `select current_setting('server_version') as version, current_setting('server_version_num')::int as number,
  pg_is_in_recovery() or current_setting('default_transaction_read_only') = 'on' as read_only, current_setting('fsync') as fsync,
  current_setting('full_page_writes') as pages, current_setting('synchronous_commit') as commit,
  current_setting('default_transaction_isolation') as isolation, current_setting('autovacuum') as autovacuum, current_setting('track_counts') as counts`

/** Those of others show no type to a role that may not see their sessions; processes of the server have no database. */
const CONNECTIONS = `with c as materialized (select datname, usename from pg_stat_activity
    where datid is not null and coalesce(backend_type, 'client backend') = 'client backend')
  select 'server' as scope, current_setting('max_connections')::int - case when current_setting('is_superuser') = 'on' then 0
      else current_setting('superuser_reserved_connections')::int + coalesce(current_setting('reserved_connections', true)::int, 0) end as most,
    (select count(*)::int from c) as open
  union all select 'database', d.datconnlimit, (select count(*)::int from c where c.datname = d.datname) from pg_database d
    where d.datname = current_database() and d.datconnlimit >= 0
  union all select 'role', r.rolconnlimit, (select count(*)::int from c where c.usename = r.rolname) from pg_roles r
    where r.rolname = current_user and r.rolconnlimit >= 0`

/** Only who looks at this database holds its rows; a standby with feedback holds those of all. */
const HOLDERS = `select * from (
  select 'connection' as what, a.pid::text as name, coalesce(a.application_name, '') as application, coalesce(a.usename, '') as user, coalesce(a.state, '') as state,
    extract(epoch from clock_timestamp() - a.xact_start)::float8 * 1000 as open_ms,
    greatest(coalesce(age(a.backend_xmin), 0), coalesce(age(a.backend_xid), 0))::int as transactions
  from pg_stat_activity a where a.datname = current_database() and a.pid <> pg_backend_pid() and (a.backend_xmin is not null or a.backend_xid is not null)
    and coalesce(a.backend_type, '') not in ('walsender', 'autovacuum worker')
  union all select 'prepared transaction', p.gid, '', p.owner, 'prepared', extract(epoch from clock_timestamp() - p.prepared)::float8 * 1000, age(p.transaction)::int
  from pg_prepared_xacts p where p.database = current_database()
  union all select 'replication slot', s.slot_name, coalesce(s.plugin, ''), '', case when s.active then 'active' else 'inactive' end, null, age(s.xmin)::int
  from pg_replication_slots s where s.xmin is not null
  union all select 'standby', r.pid::text, coalesce(r.application_name, ''), coalesce(r.usename, ''), coalesce(r.state, ''), null, age(r.backend_xmin)::int
  from pg_stat_replication r where r.backend_xmin is not null
) h order by h.transactions desc, h.open_ms desc nulls last limit ${HOLDERS_MAX}`

function tablesText(namespace: string): string {
  const option = (name: string): string =>
    `(select o.option_value from pg_options_to_table(c.reloptions) o where o.option_name = '${name}')`
  return `select c.relname as name, coalesce(s.n_live_tup, 0)::float8 as live, coalesce(s.n_dead_tup, 0)::float8 as dead,
      pg_total_relation_size(c.oid)::float8 as bytes,
      extract(epoch from clock_timestamp() - greatest(s.last_vacuum, s.last_autovacuum))::float8 * 1000 as vacuumed_ago,
      coalesce(${option('autovacuum_enabled')}, 'true')::boolean as autovacuum,
      coalesce(${option('autovacuum_vacuum_threshold')}, current_setting('autovacuum_vacuum_threshold'))::float8
        + coalesce(${option('autovacuum_vacuum_scale_factor')}, current_setting('autovacuum_vacuum_scale_factor'))::float8 * greatest(c.reltuples, 0) as vacuum_from
    from pg_class c left join pg_stat_all_tables s on s.relid = c.oid
    where c.relnamespace = ${namespace} and c.relkind = 'r' order by c.relname limit ${TABLES_MAX}`
}

function daysText(namespace: string, schema: string): string {
  const names = (condition: string): string =>
    `coalesce(json_agg(to_char(d.day, 'YYYY-MM-DD') order by d.day) filter (where ${condition}), '[]')`
  return `select to_char(${schema}.instant(${schema}.clock()) at time zone 'UTC', 'YYYY-MM-DD') as today,
      ${names('d.pending = false')} as attached, ${names('d.pending')} as pending, ${names('d.pending is null')} as detached
    from (select to_date(right(c.relname, 8), 'YYYYMMDD') as day, i.inhdetachpending as pending
      from pg_class c left join pg_inherits i on i.inhrelid = c.oid
      where c.relnamespace = ${namespace} and c.relkind = 'r' and c.relname ~ '^ended_[0-9]{8}$' order by c.relname limit ${TABLES_MAX}) d`
}

/**
 * One right at a time: of several named together any one would do. The case: a table asked for as a sequence is an error.
 * Sequences of intakes are the owner's alone.
 */
function accessText(namespace: string): string {
  const rights = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'].map((right) => `has_table_privilege(c.oid, '${right}')`)
  // What was migrated is only looked at.
  const looked = `c.relname in ('migration', 'functions', 'job')`
  const used = `case when ${looked} then ${rights[0]} else ${rights.join(' and ')} end`
  const without = (kind: string, condition: string): string =>
    `coalesce((select json_agg(c.relname order by c.relname) from pg_class c where c.relnamespace = ${namespace} and (c.relkind ${kind})
      and c.relname !~ '^(ended_[0-9]{8}|intake_[0-9]+)$' and not (${condition})), '[]')`
  return `select current_user::text as role, has_schema_privilege(${namespace}, 'USAGE') as usage,
      ${without("in ('r', 'p') or c.relname = 'job'", used)} as tables, ${without("= 'S'", "case when c.relkind = 'S' then has_sequence_privilege(c.oid, 'USAGE') end")} as sequences,
      coalesce((select json_agg(p.proname order by p.proname) from pg_proc p where p.pronamespace = ${namespace} and not has_function_privilege(p.oid, 'EXECUTE')), '[]') as functions`
}
