/** Connections that are lost, half open or held up: what is told of a call, and what becomes of the others. */
import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import pg from 'pg'
import { connect } from '../../src/connect.js'
import { realEnv } from '../../src/core/env.js'
import { Database } from '../../src/storage/postgres/database.js'
import { failureKind } from '../../src/storage/postgres/failures.js'
import { held } from '../support/held.js'
import { newJob, TestWorker } from '../support/jobs.js'
import { type Scratch, scratch } from '../support/postgres.js'
import { TcpProxy } from '../support/proxy.js'
import { until } from '../support/until.js'

let store: Scratch
let proxy: TcpProxy
before(async () => {
  store = await scratch()
})
after(() => store.drop())
beforeEach(async () => {
  proxy = await TcpProxy.to(store.url)
})
afterEach(() => proxy.close())

const ONE = { name: 'one', text: 'select 1 as one' }
const SLEEP = { name: '', text: 'select pg_sleep($1)' }

function database(more: Partial<ConstructorParameters<typeof Database>[0]> = {}): Database {
  const client = { connectionString: proxy.url }
  return new Database({ client, connections: 4, callTimeoutMs: 5_000, env: realEnv, ...more })
}

/** Four connections that are up and idle. */
async function warm(over: Database): Promise<void> {
  await Promise.all([0, 0, 0, 0].map(() => over.run(SLEEP, [0.1])))
}

test('one call that is not answered tells of all older connections: the next call makes a new one', async () => {
  const over = database({ callTimeoutMs: 500 })
  await warm(over)
  proxy.swallow = true
  const before = proxy.open
  await assert.rejects(over.run(ONE, []), (error) => failureKind(error) === 'unknown')
  proxy.swallow = false
  assert.deepEqual(await over.run(ONE, []), [{ one: 1 }])
  assert.ok(before >= 4)
  await over.close()
})

test('a call ends by its time-out also while it waits for a connection, and says so', async () => {
  const over = database({ connections: 1 })
  const holding = over.run(SLEEP, [1])
  await assert.rejects(over.run(ONE, [], 200), /none of the 1 connections of the pool came free within 200 ms/)
  await holding
  assert.deepEqual(await over.run(ONE, []), [{ one: 1 }])
  await over.close()
})

test('close() ends calls that wait for a connection', async () => {
  const over = database({ connections: 1 })
  const calls = [over.run(SLEEP, [60]), over.run(ONE, [])].map((call) => call.then(() => 'answered', String))
  await until('the first one is sent', () => proxy.sent.length > 0)
  await over.close()
  const [busy, waiting] = await Promise.all(calls)
  assert.match(busy!, /terminated/)
  assert.match(waiting!, /the connection to the store was closed/)
})

test('B133: a plan that a change of the schema has made stale is made anew; its error reaches no caller', async () => {
  const over = database()
  await store.sql('create table :s.changing (a int)')
  await store.sql('insert into :s.changing values (1)')
  const look = { name: 'look', text: `select a, pg_sleep(0.05)::text from ${store.quoted}.changing` }
  const all = (): Promise<unknown[]> =>
    Promise.all([0, 0, 0, 0].map(async () => (await over.run(look, [])).map(({ a }) => a)))
  assert.deepEqual(await all(), [[1], [1], [1], [1]])
  await store.sql('alter table :s.changing alter a type text')
  assert.deepEqual(await all(), [['1'], ['1'], ['1'], ['1']])
  await over.close()
})

test('B133: where a pooler keeps stale plans and gives them to new connections, statements are not prepared any more', async () => {
  const stale = Object.assign(new Error('cached plan must not change result type'), { code: '0A000' })
  class Keeping extends pg.Client {
    override query(...given: unknown[]): never {
      const prepared = (given[0] as { name?: string }).name !== undefined
      return (prepared ? Promise.reject(stale) : Reflect.apply(super.query, this, given)) as never
    }
  }
  const pool = new pg.Pool({ connectionString: store.url, max: 2, Client: Keeping })
  const over = database({ pool })
  assert.deepEqual(await over.run(ONE, []), [{ one: 1 }])
  await over.close()
  await pool.end()
})

test('statements that a lock holds up do not pile up on the server, whatever the number of calls given up', async () => {
  const name = `piling_${store.schema}`
  const url = proxy.urlFor((url) => url.searchParams.set('application_name', name))
  const storage = store.open({ url, callTimeoutMs: 60 })
  const locked = await held(store, 'lock table :s.ready in access exclusive mode')
  const waiting = async (): Promise<number> => {
    const [row] = await store.sql(
      `select count(*)::int as n from pg_stat_activity where application_name = $1 and state = 'active'`,
      [name],
    )
    return row!.n as number
  }
  // Enough to be told apart from a pile, and fewer than the server has connections.
  let most = 0
  for (let n = 0; n < 60; n++) {
    await assert.rejects(storage.enqueue([newJob()]), { code: /OUTCOME_UNKNOWN|STORE_UNAVAILABLE/ })
    most = Math.max(most, await waiting())
  }
  assert.ok(most >= 4, `only ${most} were held up at a time`)
  assert.ok(most <= 16, `${most} were held up at a time`)
  await locked.commit()
  await until('those that were left are done', async () => (await waiting()) === 0)
})

test('a lost connection may mean another server: numbers of queues are asked for again', async () => {
  const storage = store.open({ url: proxy.url })
  await storage.enqueue([newJob({ queue: 'early' })])
  // What a server that took over does not know: that number is given to another queue now.
  await store.sql(`delete from :s.ready`)
  await store.sql(`update :s.queue set name = 'later' where name = 'early'`)
  proxy.cut()
  await until('the pool has seen it', async () => {
    const [answer] = await storage.enqueue([newJob({ queue: 'early' })]).catch(() => [])
    return answer?.status === 'created'
  })
  const rows = await store.sql(`select distinct queue from :s.job`)
  assert.deepEqual(rows, [{ queue: 'early' }])
  const worker = await TestWorker.registered(storage)
  const { leases } = await worker.claim({ queues: [{ queue: 'early', share: 10 }] })
  assert.equal(leases[0]!.jobs[0]!.queue, 'early')
})

test('B35: a demoted server that finds nothing to do is no empty queue, and a worker that it does not know is not gone', async () => {
  const pool = new pg.Pool({ connectionString: store.url, max: 1 })
  const storage = store.open({ pool })
  const registered = await TestWorker.registered(storage)
  await registered.claim()
  const demote = async (): Promise<void> => {
    const client = await pool.connect()
    await client.query('set default_transaction_read_only = on')
    client.release()
  }
  const refused = { code: 'STORE_UNAVAILABLE', message: /read-only/ }
  await demote()
  await assert.rejects(new TestWorker(storage).claim(), refused)
  await demote()
  await assert.rejects(registered.claim(), refused)
  await demote()
  await assert.rejects(storage.takeOver({ worker: registered.id, limit: 10 }), refused)
  assert.equal((await registered.claim()).status, 'ok')
  await storage.close()
  await pool.end()
})

test('an address with several meanings that all refuse is told with its reason', async () => {
  await assert.rejects(connect('postgres://ada@localhost:1/db'), /ECONNREFUSED/)
})
