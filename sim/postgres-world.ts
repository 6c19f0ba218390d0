/**
 * A real PostgreSQL as the store of a simulation: one schema, emptied for each seed, whose clock reads the virtual time.
 * Operations come one at a time, in the order of the world; time stands still while one is under way. Used by main.ts and
 * by tests.
 */
import pg from 'pg'
import { type Env, realEnv } from '../src/core/env.js'
import { openPostgres, type PostgresStorage } from '../src/storage/postgres/index.js'
import type { Storage } from '../src/storage/storage.js'
import type { VirtualTime } from '../src/testing/index.js'
import type { World } from '../src/testing/simulator/index.js'

/** Of the schema itself, and never emptied. */
const KEPT_TABLES = ['migration', 'functions']

export class PostgresSchema {
  private constructor(
    private readonly url: string,
    private readonly schema: string,
    private readonly admin: pg.Client,
    private readonly emptying: string,
  ) {}

  /** A migrated schema of its own on that server. */
  static async make(url: string, schema: string): Promise<PostgresSchema> {
    const store = openPostgres({ url, schema })
    await store.setup.migrate()
    await store.close()
    const admin = new pg.Client(url)
    await admin.connect()
    await admin.query(`set search_path to "${schema}"`)
    // A sequence and no row: what it says is seen at once, by whoever asks, and leaves no dead rows behind.
    await admin.query(`create sequence virtual_us minvalue 0`)
    await admin.query(`create or replace function clock() returns bigint language plpgsql stable as $$
      begin return (select last_value from "${schema}".virtual_us); end $$`)
    return new PostgresSchema(url, schema, admin, await emptyingOf(admin, schema))
  }

  /** The world of one seed. */
  async world(time: VirtualTime): Promise<PostgresWorld> {
    await this.admin.query(this.emptying)
    return new PostgresWorld(this.url, this.schema, this.admin, time)
  }

  async drop(): Promise<void> {
    await this.admin.query(`drop schema "${this.schema}" cascade`)
    await this.admin.end()
  }
}

export class PostgresWorld implements World {
  private readonly opened: PostgresStorage[] = []
  private readonly env: Env
  private toldUs = -1

  constructor(
    private readonly url: string,
    private readonly schema: string,
    private readonly admin: pg.Client,
    private readonly time: VirtualTime,
  ) {
    // What the adapter reckons with is virtual; how long it waits for its server is not, as time stands still then.
    this.env = { ...realEnv, now: () => time.now(), monotonic: () => time.monotonic() }
  }

  /** An adapter of its own, with cursors and connections of its own. Hints would come in real time: workers poll. */
  open(): Storage {
    const { url, schema, env } = this
    const storage = openPostgres({ url, schema, env, connections: 1 })
    this.opened.push(storage)
    return without(storage, ['wake', 'beatSource'])
  }

  async before(): Promise<void> {
    const us = Math.round(this.time.now() * 1_000)
    if (us === this.toldUs) return
    this.toldUs = us
    await this.admin.query({ name: 'tell', text: `select setval('virtual_us', $1::bigint)`, values: [us] })
  }

  async close(): Promise<void> {
    await Promise.all(this.opened.map((storage) => storage.close()))
  }
}

async function emptyingOf(admin: pg.Client, schema: string): Promise<string> {
  const { rows } = await admin.query<{ name: string; kind: string }>(
    `select c.relname as name, c.relkind as kind from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = $1 and c.relkind in ('r', 'p', 'S') and not c.relispartition`,
    [schema],
  )
  const quoted = (name: string): string => `"${schema}"."${name}"`
  const tables = rows.filter(({ kind, name }) => kind !== 'S' && !KEPT_TABLES.includes(name))
  const sequences = rows.filter(({ kind, name }) => kind === 'S' && name !== 'virtual_us')
  return [
    `truncate ${tables.map(({ name }) => quoted(name)).join(', ')}`,
    ...sequences.map(({ name }) => `alter sequence ${quoted(name)} restart`),
  ].join('; ')
}

function without<Target extends object>(target: Target, names: readonly string[]): Target {
  return new Proxy(target, {
    get: (_, name) => {
      if (names.includes(String(name))) return undefined
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
