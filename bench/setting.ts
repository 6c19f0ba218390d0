/** Where a benchmark runs: a real server with durable commits, schemas of its own, and what to write beside the figures. */
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { type ConnectOptions, connect, type Queue } from '../src/index.js'
import type { Size } from './options.js'

export type Rows = Record<string, unknown>[]
export type Conditions = Readonly<Record<string, string | number | boolean>>

export interface Setting {
  /** Its connections bear a name of this run, by which `left` knows them. */
  readonly url: string
  readonly conditions: Conditions
  /** A schema of its own, not yet made: `open` or the caller's SQL makes it. */
  place(): Place
  /** Runs SQL on a connection beside those that are measured. */
  sql(text: string, values?: unknown[]): Promise<Rows>
  /** A connection beside those that are measured; the caller ends it. */
  beside(): Promise<pg.Client>
  /** Writes out what is dirty, where the role may: no checkpoint shall fall into what is measured next. */
  checkpoint(): Promise<void>
  /** Resolves when every connection of this run has left the server, and its counts are written. */
  left(): Promise<void>
  close(): Promise<void>
}

/** A schema and what is opened in it. */
export interface Place {
  readonly url: string
  readonly schema: string
  /** A queue in it; the first one makes its tables. */
  open(options?: ConnectOptions): Promise<Queue>
  /** Runs SQL; `:s` is the schema. */
  sql(text: string, values?: unknown[]): Promise<Rows>
  /** Closes the queues that are still open, and removes the schema. */
  drop(): Promise<void>
}

const LEFT_MS_MAX = 15_000

/** Uses LEASEHOLD_BENCH_URL, or starts an embedded server in a temporary folder. */
export async function openSetting(size: Size): Promise<Setting> {
  const { url, stop } = await server()
  const admin = await besideOf(url)
  const name = `leasehold-bench-${process.pid}`
  const places = new Set<Place>()
  const sql = async (text: string, values?: unknown[]): Promise<Rows> => (await admin.query(text, values)).rows
  const closed = async (): Promise<void> => {
    for (const place of places) await place.drop()
    await admin.end()
    await stop()
  }
  let made = 0
  let closing: Promise<void> | undefined
  return {
    url: named(url, name),
    conditions: await describe(sql),
    place: () => {
      const place = placeIn({ url: named(url, name), schema: `bench_${process.pid}_${made++}`, sql, places })
      places.add(place)
      return place
    },
    sql,
    beside: () => besideOf(url),
    checkpoint: async () => {
      // A role that may not is none to fail for: the figures are a little noisier. Those of a quick run are none.
      if (size === 'full') await sql('checkpoint').catch(() => {})
    },
    left: () => left(sql, name),
    close: () => {
      closing ??= closed()
      return closing
    },
  }
}

async function besideOf(url: string): Promise<pg.Client> {
  const client = new pg.Client(named(url, 'leasehold-bench-beside'))
  client.on('error', () => {})
  await client.connect()
  // What it fills and analyzes takes as long as it takes, whatever the role has set.
  await client.query("set statement_timeout = 0; set client_min_messages = 'warning'")
  return client
}

function named(url: string, name: string): string {
  if (!URL.canParse(url)) return url
  const withName = new URL(url)
  withName.searchParams.set('application_name', name)
  return withName.href
}

async function left(sql: Setting['sql'], name: string): Promise<void> {
  for (const until = performance.now() + LEFT_MS_MAX; performance.now() < until; await sleep(5)) {
    const [row] = await sql('select count(*)::int as n from pg_stat_activity where application_name = $1', [name])
    if (row!.n === 0) return
  }
  throw new Error('connections of this run are still open: their counts would be missing')
}

interface PlaceParts {
  url: string
  schema: string
  sql: Setting['sql']
  places: Set<Place>
}

function placeIn({ url, schema, sql, places }: PlaceParts): Place {
  const queues = new Set<Queue>()
  const place: Place = {
    url,
    schema,
    open: async (options) => {
      const queue = await connect(url, { schema, ...options })
      queues.add(queue)
      return queue
    },
    sql: (text, values) => sql(text.replaceAll(':s', `"${schema}"`), values),
    drop: async () => {
      places.delete(place)
      await Promise.all([...queues].map((queue) => queue.close()))
      await dropped(place)
    },
  }
  return place
}

/** A statement of a process that was just killed may still run; the server then sees a deadlock, and it is over soon. */
async function dropped(place: Place): Promise<void> {
  for (;;) {
    try {
      await place.sql('drop schema if exists :s cascade')
      return
    } catch (error) {
      if ((error as { code?: string }).code !== '40P01') throw error
    }
  }
}

async function server(): Promise<{ url: string; stop(): Promise<void> }> {
  const given = process.env.LEASEHOLD_BENCH_URL
  if (given !== undefined && given !== '') return { url: given, stop: async () => {} }
  const { startEmbedded } = await import('@leasehold/embedded')
  const dir = await mkdtemp(join(tmpdir(), 'leasehold-bench-'))
  const settings = { shared_buffers: '1GB', max_wal_size: '4GB' }
  const running = await startEmbedded({ dir, settings })
  return {
    url: running.url,
    stop: async () => {
      await running.stop()
      await rm(dir, { recursive: true, force: true })
    },
  }
}

async function describe(sql: Setting['sql']): Promise<Conditions> {
  const [row] = await sql(
    `select current_setting('server_version') as postgres, current_setting('fsync') as fsync,
      current_setting('synchronous_commit') as commit, current_setting('full_page_writes') as pages,
      current_setting('shared_buffers') as buffers, current_setting('max_wal_size') as wal,
      current_setting('autovacuum') as autovacuum`,
  )
  const { postgres, fsync, commit, pages, buffers, wal, autovacuum } = row as Record<string, string>
  return {
    postgres: postgres!,
    fsync: fsync!,
    synchronousCommit: commit!,
    // A commit that is answered survives a crash of the server and of its machine.
    durable: fsync === 'on' && commit !== 'off',
    fullPageWrites: pages!,
    sharedBuffers: buffers!,
    maxWalSize: wal!,
    autovacuum: autovacuum!,
    node: process.version,
    cores: cpus().length,
    cpu: cpus()[0]?.model ?? 'unknown',
    where: process.env.LEASEHOLD_BENCH_URL
      ? 'a server given by LEASEHOLD_BENCH_URL'
      : 'server and client on one machine, over loopback',
  }
}
