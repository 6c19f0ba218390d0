/** Races about queues and days: made by two at once, closed while somebody enqueues, purged while jobs move. Listed in docs/races.md. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { emptyHistory } from '../../../src/core/job.js'
import { held } from '../../support/held.js'
import { completed, newJob, TestWorker } from '../../support/jobs.js'
import { stopped } from '../../support/points.js'
import type { Scratch } from '../../support/postgres.js'
import { leasedScene, raceStore } from './scene.js'

let store: Scratch
before(async () => {
  store = await raceStore()
})
after(() => store.drop())

async function leasedIn(queue: string, jobs = 1): Promise<number> {
  const worker = await TestWorker.registered(store.storage)
  await store.storage.enqueue(Array.from({ length: jobs }, () => newJob({ queue })))
  return (await worker.claim({ queues: [{ queue, share: 100 }] })).leases[0]!.fence
}

test('queue: made by two at once it is one, and both jobs are in it', async () => {
  const [one, other] = [newJob({ queue: 'made-twice' }), newJob({ queue: 'made-twice' })]
  const making = await stopped(store, 'commit:queue', (storage) => storage.enqueue([one]))
  const second = store.open().enqueue([other])
  await making.waitedFor()
  await making.goOn()
  assert.deepEqual(await second, [{ status: 'created' }])
  assert.equal((await store.sql(`select from :s.queue where name = 'made-twice'`)).length, 1)
  assert.equal((await store.storage.inspect.counts('made-twice')).ready.count, 2)
})

test('queue: two that are made at once have numbers of their own', async () => {
  const making = await stopped(store, 'commit:queue', (storage) => storage.enqueue([newJob({ queue: 'number-one' })]))
  const second = store.open().enqueue([newJob({ queue: 'number-two' })])
  await making.waitedFor()
  await making.goOn()
  await second
  const rows = await store.sql(`select id from :s.queue where name like 'number-%'`)
  assert.equal(new Set(rows.map(({ id }) => id)).size, 2)
})

test('queue: when its maker is rolled back the other one makes it', async () => {
  const making = await stopped(store, 'commit:queue', (storage) => storage.enqueue([newJob({ queue: 'unmade' })]))
  const second = store.open().enqueue([newJob({ queue: 'unmade' })])
  await making.waitedFor()
  await making.fail()
  await assert.rejects(making.answer)
  assert.deepEqual(await second, [{ status: 'created' }])
})

test('queue: a level that two use for the first time at once is noted once, and both jobs are found', async () => {
  await store.storage.enqueue([newJob({ queue: 'level' })])
  const high = () => newJob({ queue: 'level', priority: 12 })
  const making = await stopped(store, 'commit:queue', (storage) => storage.enqueue([high()]))
  const second = store.open().enqueue([high()])
  await making.waitedFor()
  await making.goOn()
  await second
  const worker = await TestWorker.registered(store.storage)
  const { leases } = await worker.claim({ queues: [{ queue: 'level', share: 100 }] })
  assert.equal(leases.flatMap(({ jobs }) => jobs).length, 3)
})

test('drain: an enqueue that began before it may still come in, one that begins after it is refused', async () => {
  await store.storage.enqueue([newJob({ queue: 'draining' })])
  const entering = await stopped(store, 'commit:ready', (storage) => storage.enqueue([newJob({ queue: 'draining' })]))
  await store.storage.control.refuse('draining')
  assert.deepEqual(await store.storage.enqueue([newJob({ queue: 'draining' })]), [{ status: 'draining' }])
  assert.deepEqual(await entering.goOn(), [{ status: 'created' }])
})

test('purge: what is on its way from one waiting place to the other is not overlooked, however often it says more', async () => {
  const jobs = Array.from({ length: 3 }, () => newJob({ queue: 'purged', due: { delayMs: 60_000 } }))
  await store.storage.enqueue(jobs)
  const moving = await stopped(store, 'commit:ready', (storage) => storage.control.retry([jobs[0]!.id]))
  const first = await store.storage.control.purge('purged', 100)
  assert.deepEqual(first, { deleted: 2, more: true })
  await moving.goOn()
  assert.deepEqual(await store.storage.control.purge('purged', 100), { deleted: 1, more: false })
})

test('purge: what is enqueued while it runs does not make it go on for ever', async () => {
  await store.storage.enqueue([newJob({ queue: 'flowing' })])
  const purging = await stopped(store, 'commit:ready', (storage) => storage.control.purge('flowing', 100))
  await store.storage.enqueue([newJob({ queue: 'flowing' })])
  assert.deepEqual(await purging.goOn(), { deleted: 1, more: false })
})

test('a settlement that finds no table for the day makes it', async () => {
  const fence = await leasedIn('no-day')
  await store.advance(20 * 86_400_000)
  assert.deepEqual(await store.storage.settle([completed(fence)]), ['ok'])
})

test('a day that two make at once: the second waits, finds it made, and its settlement is stored as it is', async () => {
  const fence = await leasedIn('two-make-a-day')
  await store.advance(400 * 86_400_000)
  const first = await held(store, 'select :s.ensure_days()')
  const settling = store.storage.settle([completed(fence)])
  await first.waitedFor()
  await first.commit()
  assert.deepEqual(await settling, ['ok'])
})

test('a reader of the records holds up neither a settlement nor the making of a day', async () => {
  const fence = await leasedIn('reader', 2)
  const reader = await held(store, 'select count(*) from :s.ended')
  assert.deepEqual(await store.storage.settle([completed(fence)]), ['ok'])
  await store.advance(40 * 86_400_000)
  assert.deepEqual(await store.storage.settle([completed(fence, 1)]), ['ok'])
  await reader.commit()
})

test('pruning of records by two at once deletes each once, and neither waits', async () => {
  const scene = await leasedScene(store)
  await store.storage.settle([completed(scene.fence)])
  await store.advance(5_000)
  const over = { completedMs: 1_000, deadMs: 86_400_000_000, limit: 100 }
  const reader = await held(store, 'select from :s.ended where id = $1 for update', [scene.id])
  await store.storage.upkeep.prune(over)
  assert.equal(await scene.state(), 'completed')
  await reader.commit()
  await store.storage.upkeep.prune(over)
  assert.equal(await scene.state(), 'gone')
})

test('dead letters: one that is being written is in no list before its commit, and is redriven after it', async () => {
  const scene = await leasedScene(store)
  const settlement = { fence: scene.fence, ordinal: 0, to: 'dead', reason: 'failed', history: emptyHistory() } as const
  const dying = await stopped(store, 'commit:dead', (storage) => storage.settle([settlement]))
  assert.deepEqual(await store.storage.control.redrive([scene.id], { force: false }), ['not dead'])
  assert.deepEqual(await dying.goOn(), ['ok'])
  assert.deepEqual(await store.storage.control.redrive([scene.id], { force: false }), ['ok'])
  assert.equal(await scene.state(), 'ready')
})
