/** Migrations while the tables are in use: indexes beside all transactions, locks for moments, clients of several ages. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type pg from 'pg'
import { type Env, realEnv } from '../../src/core/env.js'
import { QueueError } from '../../src/core/errors.js'
import { Database } from '../../src/storage/postgres/database.js'
import { PostgresSetup } from '../../src/storage/postgres/migrate.js'
import { printMigrations } from '../../src/storage/postgres/migration-text.js'
import type { Migration } from '../../src/storage/postgres/migrations/index.js'
import { schemaName } from '../../src/storage/postgres/schema-name.js'
import { PLAN, type SchemaPlan } from '../../src/storage/postgres/schema-plan.js'
import { held } from '../support/held.js'
import { completed, newJob, TestWorker } from '../support/jobs.js'
import { type Scratch, scratch, serverUrl } from '../support/postgres.js'
import { until } from '../support/until.js'

const PRESENT = PLAN.migrations.at(-1)!.version
const INDEX = 'dead_worker'
const ALTERED = 'alter table :schema.dead add column seen_by text'

let database: Database
before(() => {
  const client = { connectionString: serverUrl(), application_name: 'migrator' }
  database = new Database({ client, connections: 2, callTimeoutMs: 30_000, env: realEnv })
})
after(() => database.close())

/** The present schema, followed by these. */
function planned(
  ...migrations: readonly (Omit<Migration, 'version' | 'name' | 'oldestClient'> & object)[]
): SchemaPlan {
  const later = migrations.map(
    (migration, n) => ({ version: PRESENT + 1 + n, name: `later ${n}`, oldestClient: 1, ...migration }) as Migration,
  )
  return { ...PLAN, migrations: [...PLAN.migrations, ...later] }
}

const WITH_INDEX = planned({ index: { name: INDEX, table: 'dead', on: '(worker, ended)' } })

function setup(store: Scratch, plan: SchemaPlan, env: Env = realEnv): PostgresSetup {
  return new PostgresSetup(database, schemaName(store.schema), env, plan)
}

/** Tells when somebody lets others pass and will try again. */
function pausingEnv(): { env: Env; paused: Promise<void> } {
  let tell = (): void => {}
  const paused = new Promise<void>((resolve) => {
    tell = resolve
  })
  const sleep: Env['sleep'] = (ms, signal) => {
    tell()
    return realEnv.sleep(ms, signal)
  }
  return { env: { ...realEnv, sleep }, paused }
}

async function withStore(run: (store: Scratch) => Promise<void>): Promise<void> {
  const store = await scratch()
  try {
    await run(store)
  } finally {
    await store.drop()
  }
}

/** One job dies, another one completes: what needs the tables that are being changed. */
async function work(store: Scratch): Promise<void> {
  await store.storage.enqueue([newJob(), newJob()])
  const worker = await TestWorker.registered(store.storage)
  const [lease] = (await worker.claim()).leases
  const error = { name: 'Error', message: 'no' }
  const history = { attempts: 1, crashes: 0, crashesAlone: 0, snoozes: 0, redrives: 0, entries: [] }
  const entries = [{ at: 0, attempt: 1, outcome: 'rejected' as const, error }]
  const answers = await store.storage.settle([
    completed(lease!.fence, 0),
    { fence: lease!.fence, ordinal: 1, to: 'dead', reason: 'rejected', history: { ...history, entries } },
  ])
  assert.deepEqual(answers, ['ok', 'ok'])
}

async function indexOf(store: Scratch): Promise<boolean | undefined> {
  const [row] = await store.sql(
    `select i.indisvalid as valid from pg_index i join pg_class c on c.oid = i.indexrelid where c.relname = $1 and c.relnamespace = $2::regnamespace`,
    [INDEX, store.quoted],
  )
  return row?.valid as boolean | undefined
}

/** The process of the server that builds the index, once it waits for those who were there before. */
async function builder(store: Scratch): Promise<number> {
  let pid: number | undefined
  await until('an index is being built', async () => {
    const [row] = await store.sql(
      `select pid from pg_stat_activity where query like 'create index concurrently%' and query like $1 and state = 'active' and wait_event_type = 'Lock'`,
      [`%${store.schema}%`],
    )
    pid = row?.pid as number | undefined
    return pid !== undefined
  })
  return pid!
}

/** Somebody who has written to the table and does not come to an end: whoever builds an index waits for him. */
function writer(store: Scratch): Promise<{ client: pg.Client; commit(): Promise<void> }> {
  return held(store, 'update :s.dead set reason = reason')
}

test('an index is built while jobs are claimed and settled on its table, and others look on', () =>
  withStore(async (store) => {
    const open = await writer(store)
    const migrating = setup(store, WITH_INDEX).migrate()
    await builder(store)
    await work(store)
    assert.equal(await indexOf(store), false, 'the work was done while it was being built')
    await open.commit()
    assert.deepEqual((await migrating).applied, [`${PRESENT + 1} later 0`])
    assert.equal(await indexOf(store), true)
    assert.deepEqual(await setup(store, WITH_INDEX).migrate(), { applied: [] })
  }))

test('B127: an index whose building was cut off is removed and built anew, by whoever comes next', () =>
  withStore(async (store) => {
    const open = await writer(store)
    const migrating = setup(store, WITH_INDEX).migrate()
    const cutOff = assert.rejects(migrating, (error: unknown) => error instanceof QueueError)
    await store.sql('select pg_terminate_backend($1)', [await builder(store)])
    await cutOff
    assert.equal(await indexOf(store), false)
    await assert.rejects(setup(store, WITH_INDEX).check(), { code: 'SCHEMA_OUTDATED' })
    await open.commit()
    await setup(store, WITH_INDEX).migrate()
    assert.equal(await indexOf(store), true)
    await setup(store, WITH_INDEX).check()
  }))

test('B127: what the server goes on building after its migrator died is waited for, and not built twice', () =>
  withStore(async (store) => {
    const open = await writer(store)
    // As a dead migrator leaves it: without the lock of migrators.
    const orphan = await store.client()
    const built = orphan.query(`create index concurrently "${INDEX}" on ${store.quoted}.dead (worker, ended)`)
    await builder(store)
    const [before] = await store.sql(`select $1::regclass::oid::int as oid`, [`${store.quoted}.${INDEX}`])
    const pausing = pausingEnv()
    const migrating = setup(store, WITH_INDEX, pausing.env).migrate()
    await pausing.paused
    await open.commit()
    await built
    await migrating
    const [now] = await store.sql(`select $1::regclass::oid::int as oid`, [`${store.quoted}.${INDEX}`])
    assert.equal(now!.oid, before!.oid)
  }))

test('B131: several migrators come to the same index at once; one builds it, all come up', () =>
  withStore(async (store) => {
    const open = await writer(store)
    const all = Promise.all([1, 2, 3, 4, 5].map(() => setup(store, WITH_INDEX).migrate()))
    await builder(store)
    await open.commit()
    assert.deepEqual(
      (await all).flatMap(({ applied }) => applied),
      [`${PRESENT + 1} later 0`],
    )
    assert.equal(await indexOf(store), true)
  }))

test('B128: a migration that waits for the lock of a table lets those who settle pass by', () =>
  withStore(async (store) => {
    const reader = await held(store, 'select count(*) from :s.dead')
    const plan = planned({ text: ALTERED })
    let done = false
    const migrating = setup(store, plan)
      .migrate()
      .finally(() => {
        done = true
      })
    await until('it waits for the reader', async () => {
      const [row] = await store.sql(
        `select count(*)::int as n from pg_locks where relation = $1::regclass and mode = 'AccessExclusiveLock' and not granted`,
        [`${store.quoted}.dead`],
      )
      return row!.n !== 0
    })
    // Queued behind the one who waits, which would be for as long as the reader reads.
    await work(store)
    assert.equal(done, false, 'the work was done before the migration')
    await reader.commit()
    assert.deepEqual((await migrating).applied, [`${PRESENT + 1} later 0`, `functions ${PLAN.functions.revision}`])
    await work(store)
  }))

test('an old client neither migrates nor uses a schema that serves newer ones only', () =>
  withStore(async (store) => {
    const text = 'drop function :schema.unregister(uuid)'
    const newer: SchemaPlan = {
      ...PLAN,
      migrations: [...PLAN.migrations, { version: PRESENT + 1, name: 'breaks', oldestClient: PLAN.protocol + 1, text }],
      functions: { text: 'select 1', revision: PLAN.functions.revision + 1, digest: 'later' },
      protocol: PLAN.protocol + 1,
    }
    await setup(store, newer).migrate()
    await setup(store, newer).check()
    const outdated = (error: unknown) => {
      assert.ok(error instanceof QueueError)
      assert.equal(error.code, 'SCHEMA_OUTDATED')
      const { protocol } = PLAN
      assert.ok(
        error.message.includes(`from protocol ${protocol + 1} on, this one speaks ${protocol}; update the package`),
      )
      return true
    }
    await assert.rejects(store.storage.setup.check(), outdated)
    await assert.rejects(store.storage.setup.migrate(), outdated)
    const [row] = await store.sql(`select to_regprocedure(':s.unregister(uuid)') is null as gone`)
    assert.equal(row!.gone, true, 'its functions were not brought back')
  }))

test('a client that is newer than the schema says what the schema has and what it needs', () =>
  withStore(async (store) => {
    const older = setup(store, planned({ text: ALTERED }))
    await assert.rejects(older.check(), {
      code: 'SCHEMA_OUTDATED',
      message: new RegExp(`is at version ${PRESENT}, this client needs ${PRESENT + 1}; run "leasehold migrate"`),
    })
    const { revision } = PLAN.functions
    const changed = { ...PLAN, functions: { ...PLAN.functions, revision: revision + 1 } }
    await assert.rejects(setup(store, changed).check(), {
      code: 'SCHEMA_OUTDATED',
      message: new RegExp(`functions at revision ${revision}, this client needs ${revision + 1}`),
    })
  }))

test('a process of an older revision leaves newer functions alone; one of a newer revision replaces them', () =>
  withStore(async (store) => {
    const later = (revision: number): SchemaPlan => ({
      ...PLAN,
      functions: {
        text: `create or replace function :schema.is_known(p_id uuid) returns boolean language sql as 'select ${revision} > 0'`,
        revision,
        digest: `digest ${revision}`,
      },
    })
    const { revision } = PLAN.functions
    assert.deepEqual((await setup(store, later(revision + 1)).migrate()).applied, [`functions ${revision + 1}`])
    assert.deepEqual(await store.storage.setup.migrate(), { applied: [] })
    await store.storage.setup.check()
    assert.deepEqual((await setup(store, later(revision + 2)).migrate()).applied, [`functions ${revision + 2}`])
  }))

test('B129: printed from a version on, indexes are marked as parts that stand in no transaction', () =>
  withStore(async (store) => {
    const plan = planned({ index: { name: INDEX, table: 'dead', on: '(worker, ended)' } }, { text: ALTERED })
    const sql = printMigrations(schemaName(store.schema), plan, PRESENT)
    assert.match(sql, /later 0: holds nobody up, and has to stand in no transaction/)
    for (const part of sql.split(/(?<=^create index concurrently .*;)\n/m)) await store.sql(part)
    assert.deepEqual(await setup(store, plan).migrate(), { applied: [] })
    assert.equal(await indexOf(store), true)
  }))
