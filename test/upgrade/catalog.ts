/** All that the server knows of a schema, but for its name: to compare an upgraded one with a new one. */

/** Each line is one fact. */
const FACTS: Record<string, string> = {
  relations: `select c.relkind::text || ' ' || c.relname || ' ' || coalesce(array_to_string(c.reloptions, ','), '') || ' ' || coalesce(c.relacl::text, '')
    from pg_class c where c.relnamespace = $1::regnamespace and not c.relispartition`,
  columns: `select c.relname || '.' || a.attnum || ' ' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
      || case when a.attnotnull then ' not null' else '' end || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '')
      || ' ' || a.attidentity::text || a.attgenerated::text || a.attstorage::text || coalesce(a.attacl::text, '')
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
    where c.relnamespace = $1::regnamespace and not c.relispartition`,
  constraints: `select r.conrelid::regclass || ' ' || r.conname || ' ' || pg_get_constraintdef(r.oid) || ' ' || r.convalidated
    from pg_constraint r join pg_class c on c.oid = r.conrelid where r.connamespace = $1::regnamespace and not c.relispartition`,
  indexes: `select pg_get_indexdef(i.indexrelid) || ' ' || i.indisvalid || ' ' || i.indisready
    from pg_index i join pg_class c on c.oid = i.indexrelid where c.relnamespace = $1::regnamespace and not c.relispartition`,
  functions: `select pg_get_functiondef(p.oid) || coalesce(p.proacl::text, '') from pg_proc p where p.pronamespace = $1::regnamespace`,
  views: `select c.relname || ' ' || pg_get_viewdef(c.oid) from pg_class c where c.relkind = 'v' and c.relnamespace = $1::regnamespace`,
  sequences: `select s.seqrelid::regclass || ' ' || format_type(s.seqtypid, null) || ' ' || s.seqstart || ' ' || s.seqincrement || ' ' || s.seqmax || ' ' || s.seqcycle
    from pg_sequence s join pg_class c on c.oid = s.seqrelid where c.relnamespace = $1::regnamespace`,
  types: `select t.typname || ' ' || t.typtype::text from pg_type t left join pg_class c on c.oid = t.typrelid
    where t.typnamespace = $1::regnamespace and not coalesce(c.relispartition, false) and t.typname !~ '^_?ended_[0-9]{8}$'`,
  migrations: `select version || ' ' || name || ' ' || oldest_client from :schema.migration`,
  state: `select revision || ' ' || digest from :schema.functions`,
  schema: `select coalesce(nspacl::text, '') from pg_namespace where oid = $1::regnamespace`,
}

type Sql = (text: string, values?: unknown[]) => Promise<Record<string, unknown>[]>

export async function catalogOf(sql: Sql, schema: string): Promise<Record<string, string[]>> {
  const facts: Record<string, string[]> = {}
  for (const [name, text] of Object.entries(FACTS)) {
    const values = text.includes('$1') ? [schema] : []
    const rows = await sql(text.replaceAll(':schema', schema), values)
    facts[name] = rows.map((row) => String(Object.values(row)[0]).replaceAll(schema, 'the schema')).sort()
  }
  return facts
}
