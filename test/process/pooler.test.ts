/**
 * Behind a transaction pooler: every statement may go to another session. Real worker processes, a real PgBouncer with
 * two connections to the server.
 */
import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import pg from 'pg'
import { connect, type QueueEvent, worker } from '../../src/index.js'
import { openPostgres } from '../../src/storage/postgres/index.js'
import { Children } from '../support/children.js'
import { newJob, TestWorker } from '../support/jobs.js'
import { type Pooler, startPooler } from '../support/pgbouncer.js'
import { type Scratch, scratch } from '../support/postgres.js'
import { TcpProxy } from '../support/proxy.js'
import { until } from '../support/until.js'
import { pause } from './worker-child.js'

let store: Scratch
let pooler: Pooler
before(async () => {
  store = await scratch()
})
after(() => store.drop())
beforeEach(async () => {
  pooler = await startPooler(store.url, { settings: { server_lifetime: 2 } })
})
afterEach(() => pooler.stop())

/** Two for each poll that finds nothing: twelve seconds, and by doubled waits three minutes. */
const CLAIMS = 24
/** What no caller and no log of a worker may ever show. */
const SESSION_ERRORS = /prepared statement|cached plan|bind message|unnamed portal/i

test('B132, B133: workers behind a transaction pooler, one of them killed: each job ends, none is doubled, no error shows', async () => {
  const children = new Children({ url: pooler.url, schema: store.schema })
  const queue = await connect(pooler.url, { schema: store.schema })
  const quick = { lease: '2s', beat: '500ms', concurrency: 10 }
  try {
    const [doomed] = await Promise.all([children.start(quick), children.start(quick), children.start(quick)])
    const names = Array.from({ length: 400 }, (_, n) => `pooled-${n}-`)
    const jobs = await Promise.all(
      names.map((name, n) => queue.enqueue(pause, { name, ms: n % 40 === 0 ? 3_000 : 30 })),
    )
    await children.until('end pooled-', 100)
    await children.kill(doomed!)
    await children.start(quick)
    await until('all have ended', async () => (await queue.counts('process')).completed.count === jobs.length)
    for (const [n, { id }] of jobs.entries()) {
      const view = await queue.get(id)
      const crashes = view!.history?.entries.filter(({ outcome }) => outcome === 'crashed').length ?? 0
      const ends = children.lines(`end ${names[n]} `).length
      assert.ok(ends >= 1 && ends <= 1 + crashes, `${ends} ends, ${JSON.stringify(view!.history)}`)
    }
    const told = children.lines('event').filter((line) => SESSION_ERRORS.test(line))
    assert.deepEqual(told, [])
    assert.deepEqual(children.lines('event {"type":"store.unavailable"'), [])
    assert.deepEqual(children.lines('warning'), [])
  } finally {
    await children.end()
    await queue.close()
  }
})

test('B132: a schema is made, used and brought up to date through the pooler, by several processes at once', async () => {
  const schema = `${store.schema}_pooled`
  try {
    const queues = await Promise.all([0, 1, 2, 3].map(() => connect(pooler.url, { schema })))
    const job = await queues[0]!.enqueue(pause, { name: 'made', ms: 0 }, { idempotencyKey: 'once' })
    const again = await queues[1]!.enqueue(pause, { name: 'made', ms: 0 }, { idempotencyKey: 'once', delay: '1h' })
    assert.equal(again.id, job.id)
    await queues[2]!.cancel(job.id)
    assert.equal((await queues[3]!.get(job.id))!.state, 'cancelled')
    await Promise.all(queues.map((queue) => queue.close()))
  } finally {
    await store.sql(`drop schema if exists "${schema}" cascade`)
  }
})

test('B132: enqueue in a transaction of the caller goes through the pooler, and vanishes with it', async () => {
  const queue = await connect(pooler.url, { schema: store.schema })
  const client = new pg.Client(pooler.url)
  await client.connect()
  for (const end of ['rollback', 'commit']) {
    await client.query('begin')
    const { id } = await queue.enqueue(pause, { name: end, ms: 0 }, { tx: client, idempotencyKey: `tx ${end}` })
    await client.query(end)
    assert.equal((await queue.get(id)) !== null, end === 'commit')
  }
  await client.end()
  await queue.purge('process')
  await queue.close()
})

test('B133: concurrent calls that meet the pooler for the first time are all answered, each done once', async () => {
  const storage = openPostgres({ url: pooler.url, schema: store.schema })
  const jobs = Array.from({ length: 200 }, () => newJob())
  const answers = await Promise.all(jobs.map((job) => storage.enqueue([job])))
  assert.ok(answers.every(([answer]) => answer!.status === 'created'))
  const worker = await TestWorker.registered(storage)
  const ids: string[] = []
  for (;;) {
    const { leases } = await worker.claim({ limit: 50 })
    if (leases.length === 0) break
    ids.push(...leases.flatMap((lease) => lease.jobs.map(({ id }) => id)))
  }
  assert.deepEqual(ids.sort(), jobs.map(({ id }) => id).sort())
  await storage.close()
})

test('B132: that no hint comes is found as soon as the worker listens, and it polls each second', async () => {
  const proxy = await TcpProxy.to(pooler.url)
  const events: QueueEvent[] = []
  const queue = await connect(proxy.url, { schema: store.schema, log: (event) => void events.push(event) })
  const ran: string[] = []
  const running = worker(queue, [pause.handle(({ name }) => void ran.push(name))], { signals: false, poll: '1h' })
  await running.start()
  await until('it has given up listening', () => proxy.sent.some((text) => text.startsWith('unlisten *')))
  // Where hints are taken for granted each wait is twice as long as the one before, up to an hour.
  const claims = (): number => proxy.sent.filter((statement) => statement.includes('.claim_jobs(')).length
  const before = claims()
  await until('it goes on asking', () => claims() >= before + CLAIMS)
  // From somewhere else: this process would tell its own worker.
  const direct = await connect(store.url, { schema: store.schema })
  for (const name of ['one', 'two', 'three']) {
    const job = await direct.enqueue(pause, { name, ms: 0 })
    await job.result({ timeout: '30s' })
  }
  assert.deepEqual(ran, ['one', 'two', 'three'])
  assert.deepEqual(
    events.filter(({ type }) => type === 'store.unavailable'),
    [],
  )
  await running.stop()
  await direct.close()
  await queue.close()
  await proxy.close()
})

test('behind a pooler that keeps sessions hints come, and are heard', async () => {
  const keeping = await startPooler(store.url, { mode: 'session', servers: 20 })
  const storage = openPostgres({ url: keeping.url, schema: store.schema })
  const heard: string[][] = []
  const end = await storage.wake.listen(['queue'], (queues) => void heard.push(queues))
  await until('it is proven to hear', () => heard.length === 1)
  await store.sql(`select pg_notify($1, 'queue')`, [`leasehold_${store.schema}`])
  await until('the hint came', () => heard.length === 2)
  await end()
  await storage.close()
  await keeping.stop()
})

test('B132: nothing is left in the sessions that the pooler hands on: no setting, no lock', async () => {
  const keeping = await startPooler(store.url, { servers: 2 })
  const queue = await connect(keeping.url, { schema: store.schema })
  const running = worker(queue, [pause.handle(() => {})], { signals: false })
  await running.start()
  await (await queue.enqueue(pause, { name: 'left', ms: 0 }, { idempotencyKey: 'left' })).result({ timeout: '20s' })
  await queue.connection.storage.upkeep.prune({ completedMs: 1_000, deadMs: 1_000, limit: 10 })
  await running.stop()
  await queue.close()
  // Two transactions at once see both of the sessions.
  const clients = [new pg.Client(keeping.url), new pg.Client(keeping.url)]
  const pids = new Set<number>()
  for (const client of clients) {
    await client.connect()
    await client.query('begin')
    const { rows } = await client.query(`select pg_backend_pid() as pid,
      (select coalesce(json_agg(name), '[]') from pg_settings where source = 'session') as settings,
      (select count(*)::int from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()) as locks`)
    pids.add(rows[0].pid)
    // What the driver says of itself when it comes, and the pooler hands over.
    const own = ['application_name', 'client_encoding', 'DateStyle', 'TimeZone', 'standard_conforming_strings']
    assert.deepEqual(
      rows[0].settings.filter((name: string) => !own.includes(name)),
      [],
    )
    assert.equal(rows[0].locks, 0)
  }
  assert.equal(pids.size, 2)
  for (const client of clients) await client.end()
  await keeping.stop()
})
