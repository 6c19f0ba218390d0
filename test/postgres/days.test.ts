/** Days that are dropped with the owner's rights, for workers that own nothing: nobody waits, and nobody is kept waiting. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { held } from '../support/held.js'
import { completed, newJob, TestWorker } from '../support/jobs.js'
import { type Scratch, scratch } from '../support/postgres.js'

let store: Scratch
let day: string
let age = 40

before(async () => {
  store = await scratch()
})
after(() => store.drop())
/** A day of its own for each test, long ago, with a record in it. */
beforeEach(async () => {
  age -= 1
  const [row] = await store.sql('select current_date - $1::int as day', [age])
  const date = row!.day as Date
  day = `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, '0')}-${String(date.getDate()).padStart(2, '0')}`
  await store.sql('select :s.ensure_day($1)', [day])
  await store.sql(
    `insert into :s.ended (id, queue, state, level, kind, enqueued, ended, payload)
      select gen_random_uuid(), 1, 1, 4, 'kind', $1::timestamptz, $1::timestamptz, '1'`,
    [`${day}T12:00:00Z`],
  )
})

async function dropped(): Promise<unknown> {
  return (await store.sql('select :s.drop_day($1) as what', [day]))[0]!.what
}

function table(): string {
  return `ended_${day.replaceAll('-', '')}`
}

async function records(): Promise<number | null> {
  const [made] = await store.sql(`select to_regclass($1) is not null as made`, [`${store.quoted}.${table()}`])
  if (made!.made !== true) return null
  return (await store.sql(`select count(*)::int as n from :s.${table()}`))[0]!.n as number
}

/** What a settlement needs of the records: it must not wait. */
async function settles(): Promise<void> {
  await store.storage.enqueue([newJob()])
  const worker = await TestWorker.registered(store.storage)
  const [lease] = (await worker.claim({ limit: 1 })).leases
  assert.deepEqual(await store.storage.settle([completed(lease!.fence)]), ['ok'])
}

test('a day that is over is dropped', async () => {
  assert.equal(await dropped(), 'dropped')
  assert.equal(await records(), null)
  assert.equal(await dropped(), 'dropped')
})

test('today and what is to come are kept, whoever asks', async () => {
  for (const ahead of [0, 1, 5]) {
    const [row] = await store.sql(`select :s.drop_day(((now() at time zone 'UTC')::date + $1::int)) as what`, [ahead])
    assert.equal(row!.what, 'kept')
  }
})

test('beside a settlement that does not commit a day is emptied, and the next time dropped', async () => {
  const writer = await held(
    store,
    `insert into :s.ended (id, queue, state, level, kind, enqueued, ended, payload)
      select gen_random_uuid(), 1, 1, 4, 'kind', now(), now(), '1'`,
  )
  assert.equal(await dropped(), 'emptied')
  assert.equal(await records(), 0)
  await settles()
  await writer.commit()
  assert.equal(await dropped(), 'dropped')
})

test('a reader of all records keeps his days, and holds up neither the dropping nor a settlement', async () => {
  const reader = await held(store, 'select count(*) from :s.ended')
  assert.equal(await dropped(), 'kept')
  await settles()
  assert.equal(await records(), 1)
  await reader.commit()
  assert.equal(await dropped(), 'dropped')
})

test('a reader of the day by its own name keeps it', async () => {
  const reader = await held(store, `select count(*) from :s.${table()}`)
  assert.equal(await dropped(), 'kept')
  await settles()
  await reader.commit()
  assert.equal(await dropped(), 'dropped')
})

test('a detach that an owner began and did not finish is no obstacle', async () => {
  const reader = await held(store, 'select count(*) from :s.ended')
  const owner = await store.client()
  await owner.query(`set statement_timeout = '1s'`)
  await assert.rejects(
    owner.query(`alter table ${store.quoted}.ended detach partition ${store.quoted}.${table()} concurrently`),
    { code: '57014' },
  )
  await reader.commit()
  const [pending] = await store.sql(
    `select inhdetachpending as pending from pg_inherits where inhrelid = $1::regclass`,
    [`${store.quoted}.${table()}`],
  )
  assert.equal(pending!.pending, true)
  assert.equal(await dropped(), 'dropped')
})

test('several who drop the same day at once all hear that it is gone', async () => {
  const clients = await Promise.all([1, 2, 3, 4].map(() => store.client()))
  const answers = await Promise.all(
    clients.map((client) => client.query(`select ${store.quoted}.drop_day($1) as what`, [day])),
  )
  assert.deepEqual(
    answers.map(({ rows }) => rows[0].what),
    ['dropped', 'dropped', 'dropped', 'dropped'],
  )
})
