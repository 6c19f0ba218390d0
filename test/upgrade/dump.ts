/** The rows of a schema as SQL that puts them into an empty one of the same shape. Called by make-release.ts. */
import type { Scratch } from '../support/postgres.js'

/** Filled by the SQL of the release itself, or by the test's clock. */
const NOT_DUMPED = ['migration', 'functions', 'test_clock']

interface Column {
  name: string
  type: string
}

/** Instants are written as microseconds since 1970, of sixteen digits, so that the reader can move them to his own time. */
export async function dumpRows(store: Scratch): Promise<string> {
  const tables = await store.sql(
    `select c.oid::int as oid, c.relname as name from pg_class c where c.relnamespace = ':s'::regnamespace
      and c.relkind in ('r', 'p') and not c.relispartition and c.relname <> all($1) order by 2`,
    [NOT_DUMPED],
  )
  const parts = [await days(store)]
  for (const { oid, name } of tables) parts.push(await rowsOf(store, oid as number, name as string))
  parts.push(await sequences(store))
  return `${parts.filter((part) => part !== '').join('\n')}\n`
}

async function days(store: Scratch): Promise<string> {
  const rows = await store.sql(
    `select (extract(epoch from min(ended)) * 1000000)::bigint as us from :s.ended group by (ended at time zone 'UTC')::date order by 1`,
  )
  return rows
    .map(({ us }) => `select ${store.quoted}.ensure_day((${store.quoted}.instant(${us}) at time zone 'UTC')::date);`)
    .join('\n')
}

async function rowsOf(store: Scratch, oid: number, table: string): Promise<string> {
  const columns = (await store.sql(
    `select a.attname as name, format_type(a.atttypid, null) as type from pg_attribute a
      where a.attrelid = $1 and a.attnum > 0 and not a.attisdropped order by a.attnum`,
    [oid],
  )) as unknown as Column[]
  const values = columns.map(({ name, type }) => literalOf(name, type, store)).join(` || ', ' || `)
  const rows = await store.sql(`select ${values} as line from :s."${table}" order by 1`)
  if (rows.length === 0) return ''
  const names = columns.map(({ name }) => `"${name}"`).join(', ')
  const lines = rows.map(({ line }) => `  (${line})`)
  return `insert into ${store.quoted}."${table}" (${names}) values\n${lines.join(',\n')};`
}

function literalOf(name: string, type: string, { quoted }: Scratch): string {
  if (type !== 'timestamp with time zone') return `quote_nullable("${name}"::text)`
  return `coalesce('${quoted}.instant(' || (extract(epoch from "${name}") * 1000000)::bigint || ')', 'null')`
}

async function sequences(store: Scratch): Promise<string> {
  const names = await store.sql(
    `select c.relname as name from pg_class c where c.relnamespace = ':s'::regnamespace and c.relkind = 'S' order by 1`,
  )
  const lines: string[] = []
  for (const { name } of names) {
    const [row] = await store.sql(`select last_value as value from :s."${name}"`)
    lines.push(`select setval('${store.quoted}."${name}"', ${row!.value});`)
  }
  return lines.join('\n')
}
