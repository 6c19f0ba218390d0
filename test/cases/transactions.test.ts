/** Faults that other queues were reported to have (docs/cases.md): jobs that are seen before their commit, or lost after it. On a real store. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineJob } from '../../src/index.js'
import { type Scratch, scratch } from '../support/postgres.js'
import { handler } from '../worker/kit.js'
import { kitOn, places, queueOn } from './kit.js'

const kind = defineJob<{ n: number }>('kind', { queue: 'queue' })

let store: Scratch
before(async () => {
  store = await scratch()
})
after(() => store.drop())

test('B181: before idle workers a job in a caller’s transaction starts only after the commit, and soon; after a rollback never', async () => {
  const kit = kitOn(store.storage)
  const queue = queueOn(kit)
  const workers = [kit.worker([handler()]), kit.worker([handler()])]
  for (const worker of workers) await worker.start()
  const [kept, dropped] = [await store.client(), await store.client()]
  await Promise.all([kept.query('begin'), dropped.query('begin')])
  const job = await queue.enqueue(kind, { n: 1 }, { tx: kept })
  const never = await queue.enqueue(kind, { n: 2 }, { tx: dropped })
  // Others come meanwhile, run, and bring wake-ups.
  for (let n = 0; n < 10; n++) {
    await queue.enqueue(kind, { n: 3 + n })
    await sleep(20)
  }
  await kit.next('job.completed', 10)
  assert.ok(!kit.all('job.started').some(({ jobId }) => jobId === job.id || jobId === never.id))
  await dropped.query('rollback')
  const committedAt = performance.now()
  await kept.query('commit')
  await kit.next('job.started', 11)
  const afterMs = performance.now() - committedAt
  await kit.next('job.completed', 11)
  assert.deepEqual((await job.get())!.state, 'completed')
  assert.equal(await never.get(), null)
  for (const worker of workers) await worker.stop()
  assert.ok(!kit.all('job.started').some(({ jobId }) => jobId === never.id))
  // By a hint, not by luck: without one the next poll is five seconds away at the most.
  assert.ok(afterMs < 5_000, `${afterMs} ms`)
})

test('B183: a producer that dies right after its commit has enqueued, one that dies right before it has not; nothing lies between', async () => {
  const queue = queueOn(kitOn(store.storage))
  await store.sql('create table :s.orders (id int primary key)')
  const before = (await places(store)).ready ?? 0
  for (const [n, commits] of [
    [1, true],
    [2, false],
  ] as const) {
    const client = await store.client()
    await client.query('begin')
    await client.query(`insert into ${store.quoted}.orders values ($1)`, [n])
    await queue.enqueue(kind, { n }, { tx: client, queue: 'orders' })
    const { rows } = await client.query('select pg_backend_pid() as pid')
    if (commits) await client.query('commit')
    await store.sql('select pg_terminate_backend($1, 10000)', [rows[0].pid])
  }
  assert.deepEqual(
    (await store.sql('select id from :s.orders')).map(({ id }) => id),
    [1],
  )
  assert.equal(((await places(store)).ready ?? 0) - before, 1)
  const jobs = []
  for await (const job of queue.jobs({ state: 'ready', queue: 'orders' })) jobs.push(job.payload)
  assert.deepEqual(jobs, [{ n: 1 }])
})
