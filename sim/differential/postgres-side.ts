/**
 * A schema on a real PostgreSQL server whose clock the test moves. It is made once and emptied for each sequence; each
 * sequence gets a store of its own, as a store remembers queues and cursors. Opened by differential.ts and tests.
 */
import pg from 'pg'
import { type Env, realEnv } from '../../src/core/env.js'
import { openPostgres } from '../../src/storage/postgres/index.js'
import { VirtualTime } from '../../src/testing/virtual-time.js'
import { PLACES_SQL, readPlaces } from './postgres-places.js'
import type { Side } from './stage.js'

/**
 * Statements of one operation come one after the other, and so do their instants: with a clock that stands still the
 * jobs of two statements would get the same positions.
 */
const BETWEEN_STATEMENTS_US = 20

const TABLES =
  'queue_limit fair_lane permit ready delayed lease claim_request revoked ended dead idempotency expiry idle worker queue'.split(
    ' ',
  )

const DEADLOCK = '40P01'

export class PostgresGround {
  private constructor(
    private readonly admin: pg.Client,
    private readonly pool: pg.Pool,
    private readonly schema: string,
    private readonly step: { statements: number },
  ) {}

  static async open(url: string, schema: string): Promise<PostgresGround> {
    const admin = new pg.Client(url)
    await admin.connect()
    await admin.query('set synchronous_commit = off')
    const store = openPostgres({ url, schema })
    await store.setup.migrate()
    await store.close()
    const quoted = pg.escapeIdentifier(schema)
    await admin.query(
      `create table ${quoted}.test_clock (us bigint not null); insert into ${quoted}.test_clock values (0)`,
    )
    await admin.query(`create or replace function ${quoted}.clock() returns bigint language plpgsql stable as $$
      begin return (select us from ${quoted}.test_clock); end $$`)
    const step = { statements: 0 }
    // One connection: what a store does at once would come in an order of its own.
    const pool = new pg.Pool({ connectionString: url, max: 1, options: '-c synchronous_commit=off' })
    pool.on('connect', (client) => spread(client, quoted, step))
    return new PostgresGround(admin, pool, quoted, step)
  }

  async side(): Promise<Side> {
    const time = new VirtualTime()
    await this.emptied()
    await this.setClock(time)
    const env: Env = { ...realEnv, now: () => time.now(), monotonic: () => time.monotonic() }
    const store = openPostgres({ pool: this.pool, schema: this.schema.slice(1, -1), env })
    return {
      name: 'postgres',
      store,
      nowMs: () => time.now(),
      advance: async (ms) => {
        await time.advance(ms)
        await this.setClock(time)
      },
      places: async (numberOf) => {
        const { rows } = await this.admin.query(PLACES_SQL.replaceAll(':s', this.schema))
        return readPlaces(rows[0].places, numberOf)
      },
      close: () => store.close(),
    }
  }

  /** A vacuum of the server's own may lock two of the tables in another order; then it was the truncation that gave way. */
  private async emptied(): Promise<void> {
    const tables = TABLES.map((table) => `${this.schema}.${table}`).join()
    for (;;) {
      try {
        await this.admin.query(`truncate ${tables}`)
        return
      } catch (error) {
        if (!(error instanceof pg.DatabaseError) || error.code !== DEADLOCK) throw error
      }
    }
  }

  async drop(): Promise<void> {
    await this.pool.end()
    await this.admin.query(`drop schema ${this.schema} cascade`)
    await this.admin.end()
  }

  private async setClock(time: VirtualTime): Promise<void> {
    this.step.statements = 0
    await this.admin.query(`update ${this.schema}.test_clock set us = ${Math.round(time.now() * 1_000)}`)
  }
}

/** Before each statement of an operation but the first the clock goes on a little. */
function spread(client: pg.PoolClient, schema: string, step: { statements: number }): void {
  const query = client.query.bind(client) as (...values: unknown[]) => unknown
  const spaced = async (...values: unknown[]): Promise<unknown> => {
    step.statements += 1
    if (step.statements > 1) await query(`update ${schema}.test_clock set us = us + ${BETWEEN_STATEMENTS_US}`)
    return query(...values)
  }
  client.query = spaced as typeof client.query
}
