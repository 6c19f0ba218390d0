/** A schema of its own on a real server, for tests. The servers are started by the runner (scripts/run.mjs). */
import pg from 'pg'
import { openPostgres, type PostgresOptions, type PostgresStorage } from '../../src/storage/postgres/index.js'

/** The URL of the server of a major version. */
export function serverUrl(major: 18 | 15 = 18): string {
  const url = process.env[`LEASEHOLD_TEST_URL_${major}`]
  if (url === undefined)
    throw new Error(`LEASEHOLD_TEST_URL_${major} is not set: run the tests by "npm test", which starts the servers`)
  return url
}

export interface Scratch {
  url: string
  schema: string
  quoted: string
  storage: PostgresStorage
  /** Another handle to the same store. */
  open(options?: Partial<PostgresOptions>): PostgresStorage
  /** Runs SQL; `:s` is the schema. */
  sql(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  /** A connection of its own, for transactions; ended with the scratch. */
  client(): Promise<pg.Client>
  /** Moves the store's clock forward. */
  advance(ms: number): Promise<void>
  drop(): Promise<void>
}

let counter = 0

/** A migrated schema whose clock the test can move. */
export async function scratch(options: { major?: 18 | 15; schema?: string; url?: string } = {}): Promise<Scratch> {
  const url = options.url ?? serverUrl(options.major)
  counter += 1
  const schema = options.schema ?? `test_${process.pid}_${counter}`
  const quoted = `"${schema.replaceAll('"', '""')}"`
  const admin = new pg.Client(url)
  await admin.connect()
  const opened: { close(): Promise<void> }[] = []
  const clients: pg.Client[] = []
  const open = (more: Partial<PostgresOptions> = {}): PostgresStorage => {
    const storage = openPostgres({ url, schema, ...more })
    opened.push(storage)
    return storage
  }
  const sql = async (text: string, values?: unknown[]): Promise<Record<string, unknown>[]> =>
    (await admin.query(text.replaceAll(':s', quoted), values)).rows
  const storage = open()
  await storage.setup.migrate()
  await movableClock(sql)
  return {
    url,
    schema,
    quoted,
    storage,
    open,
    sql,
    client: async () => {
      const client = new pg.Client(url)
      client.on('error', () => {})
      await client.connect()
      clients.push(client)
      return client
    },
    advance: async (ms) => {
      await sql('update :s.test_clock set us = us + $1::bigint', [Math.round(ms * 1000)])
    },
    drop: async () => {
      await Promise.all(clients.map((client) => client.end().catch(() => {})))
      await Promise.all(opened.map((each) => each.close()))
      await dropped(sql)
      await admin.end()
    },
  }
}

/** A statement of a process that was just killed may still run; the server then sees a deadlock, and it is over soon. */
async function dropped(sql: (text: string) => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await sql('drop schema :s cascade')
      return
    } catch (error) {
      if ((error as { code?: string }).code !== '40P01') throw error
    }
  }
}

/** The one clock function, replaced in this schema only by one with an offset. */
async function movableClock(sql: (text: string) => Promise<unknown>): Promise<void> {
  await sql('create table :s.test_clock (us bigint not null)')
  await sql('insert into :s.test_clock values (0)')
  await sql(`create or replace function :s.clock() returns bigint language plpgsql stable as $$
    begin return (extract(epoch from clock_timestamp()) * 1000000)::bigint + (select us from :s.test_clock); end $$`)
}

/** Makes the day table of yesterday: what a test dates back by minutes or hours may have ended before midnight. */
export async function withYesterday(store: Scratch): Promise<void> {
  await store.sql(`select :s.ensure_day((now() at time zone 'UTC')::date - 1)`)
}
