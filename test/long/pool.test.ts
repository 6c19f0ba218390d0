/** The application's own pool: used by the store, never ended by it, shared by several stores and by handlers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { Queue } from '../../src/client/queue.js'
import { realEnv } from '../../src/core/env.js'
import { defineJob, type QueueEvent, worker } from '../../src/index.js'
import { EventBus } from '../../src/observe/events.js'
import { LocalHints } from '../../src/storage/connection.js'
import { openPostgres } from '../../src/storage/postgres/index.js'
import { newJob, TestWorker } from '../support/jobs.js'
import { type Scratch, scratch } from '../support/postgres.js'
import { until } from '../support/until.js'

test('two schemas over one pool of one connection: each finds its own jobs, and the pool lives on', async () => {
  const stores = [await scratch(), await scratch()]
  const pool = new pg.Pool({ connectionString: stores[0]!.url, max: 1 })
  const ids: string[][] = []
  for (const { schema } of [...stores, ...stores]) {
    const storage = openPostgres({ pool, schema })
    const job = newJob()
    assert.deepEqual(await storage.enqueue([job]), [{ status: 'created' }])
    const worker = await TestWorker.registered(storage)
    ids.push((await worker.claim()).leases.flatMap((lease) => lease.jobs.map(({ id }) => id)))
    assert.deepEqual(ids.at(-1), [job.id])
    await storage.close()
  }
  assert.equal((await pool.query('select 1 as one')).rows[0].one, 1)
  await pool.end()
  for (const store of stores) await store.drop()
})

test('twenty stores over one pool leave one listener on it and on each of its connections', async () => {
  const store = await scratch()
  const pool = new pg.Pool({ connectionString: store.url, max: 1 })
  const storages = Array.from({ length: 20 }, () => openPostgres({ pool, schema: store.schema }))
  for (const storage of storages) await storage.enqueue([newJob()])
  assert.deepEqual([pool.listenerCount('error'), pool.listenerCount('connect')], [1, 1])
  const client = await pool.connect()
  assert.equal(client.listenerCount('error'), 1)
  client.release()
  for (const storage of storages) await storage.close()
  await pool.end()
  await store.drop()
})

test('a pool whose password is a function has no thread for its beats, as that could not know it', async () => {
  const pool = new pg.Pool({ host: 'localhost', password: () => 'secret' })
  const storage = openPostgres({ pool })
  assert.equal(storage.beatSource, undefined)
  await storage.close()
  await pool.end()
})

test('connections beside the pool get in as it does: its URL, and what it says of TLS beside that, keys too', async () => {
  const ssl = { ca: 'authority', cert: 'certificate', key: 'key', rejectUnauthorized: true }
  const pool = new pg.Pool({ connectionString: 'postgres://ada@host/app', ssl, max: 3, statement_timeout: 5 })
  const storage = openPostgres({ pool })
  const expected = {
    application_name: 'leasehold',
    connectionString: 'postgres://ada@host/app',
    ssl: { ...ssl, key: 'key' },
  }
  for (let n = 0; n < 2; n++) {
    const { client } = structuredClone(storage.beatSource!.data) as { client: unknown }
    assert.deepEqual(client, expected)
    // The driver hides the key of whatever it connects with.
    await storage.setup.check().catch(() => {})
  }
  await storage.close()
  await pool.end()
})

test('a connection that somebody gave back in the middle of a transaction is not used: what is enqueued is stored', async () => {
  const store = await scratch()
  const pool = new pg.Pool({ connectionString: store.url, max: 1 })
  const storage = openPostgres({ pool, schema: store.schema })
  const spoils: ((client: pg.PoolClient) => Promise<unknown>)[] = [
    (client) => client.query('begin'),
    (client) => client.query('begin; select 1/0'),
    // Not waited for: the driver does not know yet.
    async (client) => void client.query('begin'),
  ]
  for (const spoil of spoils) {
    const client = await pool.connect()
    await spoil(client).catch(() => {})
    client.release()
    const job = newJob()
    assert.deepEqual(await storage.enqueue([job]), [{ status: 'created' }])
    const [row] = await store.sql('select count(*)::int as n from :s.ready where id = $1', [job.id])
    assert.equal(row!.n, 1)
  }
  await storage.close()
  await pool.end()
  await store.drop()
})

test('calls that were given up leave no pile of requests in a pool whose connections are all held', async () => {
  const store = await scratch()
  const pool = new pg.Pool({ connectionString: store.url, max: 1 })
  const storage = openPostgres({ pool, schema: store.schema, callTimeoutMs: 50 })
  const client = await pool.connect()
  for (let n = 0; n < 10; n++)
    await assert.rejects(storage.enqueue([newJob()]), {
      code: 'STORE_UNAVAILABLE',
      message: /none of the 1 connections of the pool came free within 50 ms/,
    })
  assert.ok(pool.waitingCount <= 1, `${pool.waitingCount} wait`)
  client.release()
  assert.deepEqual(await storage.enqueue([newJob()]), [{ status: 'created' }])
  await storage.close()
  await pool.end()
  await store.drop()
})

const LEASE_MS = 1_000

/** A worker over the pool that its handlers take connections of, and one with a pool of its own that would take over. */
async function sharing(store: Scratch, settings: pg.PoolConfig) {
  const pool = new pg.Pool(settings)
  const events: QueueEvent[] = []
  const open = (storage: ReturnType<typeof openPostgres>): Queue => {
    const bus = new EventBus()
    bus.on((event) => void events.push(event))
    return new Queue({ storage, env: realEnv, events: bus, hints: new LocalHints() })
  }
  const queue = open(openPostgres({ pool, schema: store.schema }))
  const other = open(openPostgres({ url: store.url, schema: store.schema }))
  const holds = defineJob<{ n: number }>('holds', { queue: 'holds' })
  const starts: number[] = []
  const handler = holds.handle(async ({ n }) => {
    const client = await pool.connect()
    starts.push(n)
    await sleep(3 * LEASE_MS)
    client.release()
  })
  const quick = { lease: LEASE_MS, beat: 250, signals: false }
  const first = worker(queue, [handler], { ...quick, concurrency: 20 })
  const heir = worker(other, [defineJob('other').handle(() => {})], quick)
  return { pool, queue, other, holds, starts, events, first, heir }
}

for (const max of [2, 1])
  for (const beats of ['a thread', 'the main loop'] as const)
    test(`B37: handlers hold a shared pool of ${max} for three leases each, beats come from ${beats}: nothing is taken over or lost`, async () => {
      const store = await scratch()
      const { host, hostname, port, username, password, pathname } = new URL(store.url)
      assert.ok(host)
      const parts = { host: hostname, port: Number(port), user: username, database: pathname.slice(1), max }
      // A password that is a function cannot cross to a thread.
      const secret = beats === 'a thread' ? decodeURIComponent(password) : () => decodeURIComponent(password)
      const { pool, queue, other, holds, starts, events, first, heir } = await sharing(store, {
        ...parts,
        password: secret,
      })
      const jobs = await other.enqueueMany(Array.from({ length: 3 * max }, (_, n) => holds.with({ n })))
      await heir.start()
      await first.start()
      await until('all have run', async () => (await other.counts('holds')).completed.count === jobs.length)
      assert.deepEqual(starts.sort(), jobs.map((_, n) => n).sort())
      const bad = ['worker.took over', 'worker.written off', 'worker.leases lost', 'job.lost', 'job.failed']
      assert.deepEqual(
        events.filter(({ type }) => bad.includes(type)),
        [],
      )
      await first.stop({ grace: '1s' })
      await heir.stop()
      await queue.close()
      await other.close()
      await pool.end()
      await store.drop()
    })

test('B37: stop() goes through in time while handlers hold the whole pool, and their jobs go to another', async () => {
  const store = await scratch()
  const { pool, queue, other, holds, starts, first, heir } = await sharing(store, {
    connectionString: store.url,
    max: 2,
  })
  await other.enqueueMany(Array.from({ length: 2 }, (_, n) => holds.with({ n })))
  await heir.start()
  await first.start()
  await until('both run', () => starts.length === 2)
  const began = performance.now()
  await first.stop({ grace: 500 })
  // The grace and a second; the rest is for a busy machine.
  assert.ok(performance.now() - began < 5_000)
  await until('they wait for another', async () => (await other.counts('holds')).ready.count === 2)
  await heir.stop()
  await queue.close()
  await other.close()
  await pool.end()
  await store.drop()
})
