/** What a migrator says that has waited in vain: for whom, and what to do about it. With real sessions, and little patience. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { realEnv } from '../../src/core/env.js'
import { QueueError } from '../../src/core/errors.js'
import { Database } from '../../src/storage/postgres/database.js'
import { PostgresSetup } from '../../src/storage/postgres/migrate.js'
import { PATIENCE, type Patience } from '../../src/storage/postgres/migration-waits.js'
import type { Migration } from '../../src/storage/postgres/migrations/index.js'
import { schemaName } from '../../src/storage/postgres/schema-name.js'
import { PLAN, type SchemaPlan } from '../../src/storage/postgres/schema-plan.js'
import { type Held, held } from '../support/held.js'
import { type Scratch, scratch, serverUrl } from '../support/postgres.js'
import { until } from '../support/until.js'

const NEXT = PLAN.migrations.at(-1)!.version + 1
/** Whoever has waited once has waited long enough. */
const NONE: Patience = { migratorMs: 0, lockMs: 0, buildMs: 60_000 }

let store: Scratch
let database: Database
before(async () => {
  store = await scratch()
  const client = { connectionString: serverUrl(), application_name: 'patient migrator' }
  database = new Database({ client, connections: 4, callTimeoutMs: 30_000, env: realEnv })
})
after(async () => {
  await database.close()
  await store.drop()
})

function planned(next: object): SchemaPlan {
  const migration = { version: NEXT, name: 'next', oldestClient: 1, ...next } as Migration
  return { ...PLAN, migrations: [...PLAN.migrations, migration] }
}

const ALTERED = planned({ text: 'alter table :schema.dead add column seen_by text' })

function indexed(name: string): SchemaPlan {
  return planned({ index: { name, table: 'dead', on: '(worker, ended)' } })
}

function setup(plan: SchemaPlan, patience: Patience): PostgresSetup {
  return new PostgresSetup(database, schemaName(store.schema), realEnv, plan, patience)
}

function role(): string {
  return decodeURIComponent(new URL(serverUrl()).username)
}

async function saidBy(migrating: Promise<unknown>): Promise<string> {
  const error = await migrating.then(
    () => assert.fail('it migrated'),
    (error: unknown) => error,
  )
  assert.ok(error instanceof QueueError)
  assert.equal(error.code, 'STORE_UNAVAILABLE', error.message)
  return error.message
}

/** Somebody with a name, who holds what the statement takes. */
async function holder(application: string, text: string): Promise<{ held: Held; pid: number }> {
  const one = await held(
    store,
    `set local application_name to '${application}'; ${text.replaceAll(':s', store.quoted)}`,
  )
  const { rows } = await one.client.query('select pg_backend_pid() as pid')
  return { held: one, pid: rows[0].pid }
}

async function building(): Promise<number> {
  let pid: number | undefined
  await until('an index waits for a writer', async () => {
    const [row] = await store.sql(
      `select p.pid from pg_stat_progress_create_index p where p.relid = $1::regclass and p.current_locker_pid <> 0`,
      [`${store.quoted}.dead`],
    )
    pid = row?.pid as number | undefined
    return pid !== undefined
  })
  return pid!
}

async function withoutIndex(name: string): Promise<void> {
  await until('the server has ended the building', async () => {
    const [row] = await store.sql(
      'select count(*)::int as n from pg_stat_progress_create_index where relid = $1::regclass',
      [`${store.quoted}.dead`],
    )
    return row!.n === 0
  })
  await store.sql(`drop index if exists :s."${name}"`)
}

test('the patience with a migrator is longer than an index may take, and that is longer than the one with a lock', () => {
  assert.ok(PATIENCE.migratorMs > PATIENCE.buildMs && PATIENCE.buildMs > PATIENCE.lockMs)
})

test('who waited for the lock of a table hears whose transaction holds it, and how to end it', async () => {
  const reader = await holder('a long report', 'select count(*) from :s.dead')
  const said = await saidBy(setup(ALTERED, { ...PATIENCE, lockMs: 0 }).migrate())
  assert.match(said, /^migrate: \d+ next and functions \d+ waited \d+ seconds for a moment without others' locks/)
  assert.ok(
    said.includes(
      `process ${reader.pid} of the server ("a long report", role ${role()}, idle in transaction, open for`,
    ),
    said,
  )
  assert.ok(said.includes(`select pg_terminate_backend(${reader.pid})`), said)
  await reader.held.commit()
})

test('who waited for another migrator hears who it is, and nothing of locks of tables', async () => {
  const [lock] = await store.sql(`select hashtextextended('leasehold migrate ${store.quoted}', 0)::text as key`)
  const other = await holder('another migrator', `select pg_advisory_xact_lock(${lock!.key})`)
  const said = await saidBy(setup(ALTERED, NONE).migrate())
  assert.match(said, /waited \d+ seconds for another migrator: /)
  assert.ok(
    said.includes(`process ${other.pid} of the server ("another migrator", role ${role()}, idle in transaction`),
    said,
  )
  assert.match(said, /When that is done, migrate again/)
  await other.held.rollback()
})

test('where the other migrator builds an index, its phase is told, and whom that waits for', async () => {
  const writer = await holder('a slow writer', 'update :s.dead set reason = reason')
  const migrating = setup(indexed('dead_slow'), PATIENCE).migrate()
  await building()
  const said = await saidBy(setup(indexed('dead_slow'), NONE).migrate())
  assert.match(said, /for another migrator: process \d+ of the server \("patient migrator"/)
  assert.match(said, /the index "dead_slow" is being built \(waiting for writers before build/)
  assert.ok(said.includes(`which waits for process ${writer.pid} of the server ("a slow writer"`), said)
  await writer.held.commit()
  assert.deepEqual((await migrating).applied, [`${NEXT} next`])
  await store.sql(`drop index :s.dead_slow; delete from :s.migration where version = ${NEXT}`)
})

test('an index that is not built in time says who keeps it, and the next migrator waits for what the server goes on with', async () => {
  const writer = await holder('a slow writer', 'update :s.dead set reason = reason')
  const said = await saidBy(setup(indexed('dead_late'), { ...PATIENCE, buildMs: 1_000 }).migrate())
  assert.match(
    said,
    /next is not built after 1 seconds: the index "dead_late" is being built \(waiting for writers before build/,
  )
  assert.ok(said.includes(`it waits for process ${writer.pid} of the server ("a slow writer"`), said)
  const pid = await building()
  const next = await saidBy(setup(indexed('dead_late'), NONE).migrate())
  assert.ok(next.includes(`for an index that another migrator has begun: process ${pid} of the server`), next)
  const patient = setup(indexed('dead_late'), PATIENCE).migrate()
  await writer.held.commit()
  assert.deepEqual((await patient).applied, [`${NEXT} next`])
  await store.sql(`delete from :s.migration where version = ${NEXT}`)
  await withoutIndex('dead_late')
})
