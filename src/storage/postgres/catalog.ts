/**
 * What the server knows of a schema, as facts by name: `column dead.reason` → `text not null`. The same in every schema
 * and on every server, so that two can be compared. Called by drift.ts, and by what writes schema-manifest.ts.
 */
import type { Database } from './database.js'
import type { SchemaName } from './schema-name.js'

export type Facts = Record<string, string>

export interface FoundFunction {
  name: string
  /** How many arguments: what tells functions of one name apart. */
  arguments: number
  body: string
  /** Runs with the rights of its owner. */
  definer: boolean
  /** Settings while it runs: `lock_timeout=50ms`. */
  settings: string[]
}

export interface Catalog {
  facts: Facts
  functions: FoundFunction[]
}

export async function readCatalog(database: Database, schema: SchemaName): Promise<Catalog> {
  const values = [schema.name]
  const facts: Facts = {}
  for (const text of FACTS)
    for (const { name, said } of await database.run({ name: '', text }, values)) facts[name as string] = said as string
  const functions = await database.run({ name: '', text: FUNCTIONS }, values)
  return { facts, functions: functions as unknown as FoundFunction[] }
}

/** Day tables are as their parent is; what belongs to them is left out, and so are the sequences of intakes. */
const OURS = `c.relnamespace = (select n.oid from pg_namespace n where n.nspname = $1) and not c.relispartition and c.relname !~ '^(ended_[0-9]{8}|intake_[0-9]+)$'`

/** A type of the schema itself is named without it. */
const TYPE = `case when t.typnamespace = c.relnamespace then case when t.typelem <> 0 then e.typname || '[]' else t.typname end else format_type(a.atttypid, a.atttypmod) end`

const RELATIONS = `select case c.relkind when 'S' then 'sequence ' when 'v' then 'view ' else 'table ' end || c.relname as name,
    case c.relkind when 'r' then 'ordinary' when 'p' then 'partitioned by ' || pg_get_partkeydef(c.oid) when 'S' then format_type(s.seqtypid, null)
      when 'v' then 'of ' || (select count(*) from pg_attribute a where a.attrelid = c.oid and a.attnum > 0) || ' columns' else 'of kind ' || c.relkind::text end
    || case c.relpersistence when 'u' then ', unlogged' else '' end as said
  from pg_class c left join pg_sequence s on s.seqrelid = c.oid where ${OURS} and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')`

const COLUMNS = `select 'column ' || c.relname || '.' || a.attname as name, ${TYPE} || case when a.attnotnull then ' not null' else '' end
    || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') || case when a.attgenerated <> '' then ' generated' else '' end
    || case when a.attidentity <> '' then ' identity' else '' end as said
  from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    join pg_type t on t.oid = a.atttypid left join pg_type e on e.oid = t.typelem
    left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
  where ${OURS} and c.relkind in ('r', 'p', 'v', 'm', 'f')`

const INDEXES = `select 'index ' || x.relname as name, case when i.indisunique then 'unique, ' else '' end || m.amname || ' on ' || c.relname || ' ('
      || (select string_agg(pg_get_indexdef(i.indexrelid, n, true), ', ' order by n) from generate_series(1, i.indnatts) n) || ')'
    || coalesce(' where ' || pg_get_expr(i.indpred, i.indrelid), '') || case when i.indisvalid then '' else ', not valid' end as said
  from pg_class c join pg_index i on i.indrelid = c.oid join pg_class x on x.oid = i.indexrelid join pg_am m on m.oid = x.relam where ${OURS}`

/** That a column is not null is said of the column; later servers have a constraint for it, too. */
const CONSTRAINTS = `select 'constraint ' || c.relname || '.' || r.conname as name, pg_get_constraintdef(r.oid) as said
  from pg_class c join pg_constraint r on r.conrelid = c.oid where ${OURS} and r.contype in ('c', 'p', 'u', 'x', 'f')`

const TRIGGERS = `select 'trigger ' || c.relname || '.' || g.tgname as name, 'on ' || c.relname as said
  from pg_class c join pg_trigger g on g.tgrelid = c.oid where ${OURS} and not g.tgisinternal
  union all select 'rule ' || c.relname || '.' || r.rulename, 'on ' || c.relname
  from pg_class c join pg_rewrite r on r.ev_class = c.oid where ${OURS} and c.relkind in ('r', 'p')
  union all select 'policy ' || c.relname || '.' || p.polname, 'on ' || c.relname from pg_class c join pg_policy p on p.polrelid = c.oid where ${OURS}`

const FACTS: readonly string[] = [RELATIONS, COLUMNS, INDEXES, CONSTRAINTS, TRIGGERS]

const FUNCTIONS = `select p.proname as name, p.pronargs::int as arguments, p.prosrc as body, p.prosecdef as definer, coalesce(p.proconfig, '{}') as settings
  from pg_proc p where p.pronamespace = (select n.oid from pg_namespace n where n.nspname = $1) order by 1, 2`
