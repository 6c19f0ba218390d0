/** The schema: any name, and what is said of one that is missing or of another age. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { realEnv } from '../../src/core/env.js'
import { QueueError } from '../../src/core/errors.js'
import { openPostgres } from '../../src/storage/postgres/index.js'
import { ownDatabase } from '../support/database.js'
import { completed, newJob, TestWorker } from '../support/jobs.js'
import { type Scratch, scratch, serverUrl } from '../support/postgres.js'
import { until } from '../support/until.js'

/** What has been mangled elsewhere: case, quotes, dots, key words, lengths, and what wants to be more than a name. */
const NAMES = [
  'MyApp',
  'myapp',
  'a"b',
  'a.b',
  '9lives',
  'select',
  "quo'te",
  'per%cent',
  ':schema',
  'back\\slash',
  '"; drop schema public; --',
  'ünï cödé',
  'x'.repeat(63),
]

test('B124: schemas of odd names in one database, made at once, each work and are their own', async () => {
  const database = await ownDatabase()
  const made = await Promise.allSettled(NAMES.map((schema) => scratch({ schema, url: database.url })))
  const stores = made.flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
  try {
    assert.deepEqual(
      made.filter(({ status }) => status === 'rejected'),
      [],
    )
    const jobs = await Promise.all(stores.map((store) => lived(store)))
    for (const [n, store] of stores.entries()) {
      const rows = await store.sql('select id, state from :s.job order by id')
      assert.deepEqual(rows, [
        { id: jobs[n]!.done, state: 'completed' },
        { id: jobs[n]!.waits, state: 'delayed' },
      ])
      const [tables] = await store.sql(
        'select count(*)::int as n from pg_class where relnamespace = $1::regnamespace',
        [store.quoted],
      )
      assert.ok((tables!.n as number) > 50, store.schema)
    }
  } finally {
    await Promise.all(stores.map((store) => store.drop()))
    await database.drop()
  }
})

/** A job with a key is enqueued twice, heard of, claimed, settled, pruned around; another one waits. */
async function lived(store: Scratch): Promise<{ done: string; waits: string }> {
  const heard: string[] = []
  const stop = await store.storage.wake.listen(['queue'], (queues) => heard.push(...queues))
  const worker = await TestWorker.registered(store.storage)
  await worker.claim()
  const job = newJob({ idempotency: { key: 'k', payloadHash: 'h', retentionMs: 1_000 } })
  assert.deepEqual(await store.storage.enqueue([job]), [{ status: 'created' }])
  assert.deepEqual(await store.storage.enqueue([{ ...job, id: realEnv.id() }]), [{ status: 'duplicate', id: job.id }])
  await until('the hint', () => heard.includes('queue'))
  await stop()
  const [lease] = (await worker.claim()).leases
  assert.deepEqual(await store.storage.settle([completed(lease!.fence)]), ['ok'])
  const waiting = newJob({ due: { delayMs: 60_000 } })
  await store.storage.enqueue([waiting])
  await store.storage.upkeep.prune({ completedMs: 86_400_000, deadMs: 86_400_000, limit: 100 })
  return { done: job.id, waits: waiting.id }
}

/** Tables and functions of the names of ours, for whoever looks without saying where. */
const IMPOSTORS = `create schema impostor;
  create table impostor.ready (id text); create table impostor.queue (id text); create table impostor.migration (version text);
  create table impostor.ended (id text); create function impostor.clock() returns bigint language sql as 'select 1/0::bigint';
  create function impostor.hint(int[], boolean) returns void language sql as 'select 1/0';
  create function impostor.ensure_days() returns void language sql as 'select 1/0'`

for (const path of ['impostor', 'impostor, pg_catalog', 'pg_temp, nowhere', '""'])
  test(`B124: the search_path ${path} leads nowhere else`, async () => {
    const database = await ownDatabase()
    await database.sql(IMPOSTORS)
    const url = new URL(database.url)
    url.searchParams.set('options', `-c search_path=${path.replaceAll(' ', '')}`)
    const store = await scratch({ url: url.href, schema: 'searched' })
    try {
      assert.deepEqual(await store.sql('show search_path'), [{ search_path: path.replaceAll(' ', '') }])
      const { done } = await lived(store)
      assert.equal((await store.storage.inspect.get([done]))[0]?.state, 'completed')
    } finally {
      await store.drop()
      await database.drop()
    }
  })

test('a schema name that cannot be is refused', () => {
  for (const schema of ['', 'x'.repeat(64), 'a$b'])
    assert.throws(
      () => openPostgres({ url: 'postgres://x', schema }),
      (error: unknown) => error instanceof QueueError && error.field === 'schema',
    )
})

test('check tells a missing schema from an old one', async () => {
  const url = serverUrl()
  const schema = `checked_${process.pid}`
  const storage = openPostgres({ url, schema })
  const code = (expected: string) => (error: unknown) => error instanceof QueueError && error.code === expected
  await assert.rejects(storage.setup.check(), code('SCHEMA_MISSING'))
  await assert.rejects(storage.enqueue([newJob()]), code('SCHEMA_MISSING'))
  await storage.setup.migrate()
  const client = new pg.Client(url)
  await client.connect()
  await client.query(`update ${schema}.migration set oldest_client = 99`)
  await assert.rejects(storage.setup.check(), code('SCHEMA_OUTDATED'))
  await client.query(`update ${schema}.migration set oldest_client = 1`)
  await storage.setup.check()
  await client.query(`update ${schema}.functions set revision = 0`)
  await assert.rejects(storage.setup.check(), code('SCHEMA_OUTDATED'))
  await client.query(`delete from ${schema}.migration`)
  await assert.rejects(storage.setup.check(), code('SCHEMA_MISSING'))
  await client.query(`drop schema ${schema} cascade`)
  await client.end()
  await storage.close()
})

/** As drafts before the first release left it: functions numbered among the migrations, and no record of them. */
const DRAFT = `create table :s.migration (version int primary key, name text not null, oldest_client int not null, applied_at timestamptz not null default clock_timestamp());
  insert into :s.migration select n, 'draft ' || n, 1 from generate_series(1, 5) n; create table :s.ready (id uuid)`

const STRANGERS: readonly [string, string][] = [
  ['a draft from before functions had a table of their own', DRAFT],
  [
    'such a draft where a later migrator has begun',
    `${DRAFT}; create table :s.functions (one boolean primary key default true check (one), revision int not null, digest text not null, applied_at timestamptz not null default clock_timestamp())`,
  ],
  ['a table "migration" of another tool', 'create table :s.migration (id text, ran_at timestamptz)'],
  ['both tables of another tool', 'create table :s.migration (id text); create table :s.functions (id text)'],
]

for (const [name, text] of STRANGERS)
  test(`a schema with ${name} is neither used nor migrated, and left as it is`, async () => {
    const schema = `strange_${process.pid}`
    const storage = openPostgres({ url: serverUrl(), schema })
    const client = new pg.Client(serverUrl())
    await client.connect()
    try {
      await client.query(`create schema ${schema}; ${text.replaceAll(':s', schema)}`)
      const tables = async () =>
        (await client.query('select relname from pg_class where relnamespace = $1::regnamespace order by 1', [schema]))
          .rows
      const before = await tables()
      const plainly = { code: 'SCHEMA_OUTDATED', message: /was made by no release.*take another schema/ }
      await assert.rejects(storage.setup.check(), plainly)
      await assert.rejects(storage.setup.drift(), plainly)
      await assert.rejects(storage.setup.migrate(), plainly)
      assert.deepEqual(await tables(), before)
    } finally {
      await client.query(`drop schema ${schema} cascade`)
      await client.end()
      await storage.close()
    }
  })
