/** Ids that callers choose, clocks that step back, repeats after a lease died: promises that odd input puts to the test. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { SPEC_DEFAULTS } from '../../src/core/job.js'
import { connect, defineJob, newJobId, type Queue } from '../../src/index.js'
import { openMemory } from '../../src/storage/memory/index.js'
import { completed, newJob, TestWorker } from '../support/jobs.js'
import { type Scratch, scratch } from '../support/postgres.js'

let store: Scratch
let queue: Queue
beforeEach(async () => {
  store = await scratch()
  queue = await connect(store.url, { schema: store.schema })
})
afterEach(async () => {
  await queue.close()
  await store.drop()
})

const kind = defineJob<{ n: number }>('kind', { queue: 'queue' })

async function places(): Promise<Record<string, number>> {
  const rows = await store.sql('select state, count(*)::int as n from :s.job group by 1')
  return Object.fromEntries(rows.map((row) => [row.state, row.n]))
}

test('a chosen id is that of one job: twice in one batch, now and later, the second one is refused (invariant 1)', async () => {
  const id = newJobId()
  const results = await queue.enqueueMany([kind.with({ n: 1 }, { id, delay: '1h' }), kind.with({ n: 2 }, { id })])
  const places_ = await places()
  assert.deepEqual(results.map((result) => result.status).sort(), ['created', 'refused'], `${JSON.stringify(places_)}`)
})

test('one bad record never stops a sweep: promotion goes on past an id that is ready already (invariant 11)', async () => {
  const id = newJobId()
  await queue.enqueueMany([kind.with({ n: 1 }, { id, delay: '50ms' }), kind.with({ n: 2 }, { id })])
  await queue.enqueue(kind, { n: 3 }, { delay: '50ms', queue: 'other' })
  await store.advance(1_000)
  const moved = await store.storage.upkeep.promote(100).catch((error: Error) => error)
  assert.ok(!(moved instanceof Error), String(moved))
})

test('a chosen id is that of one job: two concurrent callers, one now and one later', async () => {
  let doubled = 0
  const other = store.open()
  for (let i = 0; i < 50; i++) {
    const id = newJobId()
    const [a, b] = await Promise.all([
      store.storage.enqueue([newJob({ id, chosen: true })]),
      other.enqueue([newJob({ id, chosen: true, due: { delayMs: 3_600_000 } })]),
    ])
    if (a[0]!.status === 'created' && b[0]!.status === 'created') doubled += 1
  }
  assert.equal(doubled, 0)
})

test('a clock that steps back by an hour does not end take-over for an hour', async () => {
  await store.storage.enqueue([newJob()])
  const dead = await TestWorker.registered(store.storage)
  const sweeper = await TestWorker.registered(store.storage)
  await dead.claim({ limit: 1 })
  await store.advance(-3_600_000)
  // A minute in which only the sweeper beats.
  let taken = 0
  for (let i = 0; i < 20; i++) {
    await store.advance(3_000)
    await sweeper.beat()
    const { leases } = await store.storage.takeOver({ worker: sweeper.id, limit: 10 })
    taken += leases.length
    if (taken > 0) break
  }
  assert.equal(taken, 1, 'a dead worker keeps its job until the clock has caught up')
})

test('a job brought back from the dead does not expire again', async () => {
  const spec = { ...SPEC_DEFAULTS, expiresInMs: 60_000 }
  for (const storage of [openMemory({}), store.storage]) {
    const job = newJob({ spec })
    await storage.enqueue([job])
    const one = await TestWorker.registered(storage)
    const { leases } = await one.claim({ limit: 1 })
    const history = {
      attempts: 1,
      crashes: 0,
      crashesAlone: 0,
      snoozes: 0,
      redrives: 0,
      firstStartedAt: Date.now(),
      entries: [],
    }
    await storage.settle([
      { fence: leases[0]!.fence, ordinal: 0, to: 'dead', reason: 'failed', history, startedAfterMs: 1, ranMs: 1 },
    ])
    assert.deepEqual(await storage.control!.redrive([job.id], { force: false }), ['ok'])
    if (storage.name === 'postgres') await store.advance(120_000)
    const expired = await storage.upkeep.expire(10)
    assert.equal(expired.length, 0, storage.name)
    assert.equal((await storage.inspect!.get([job.id]))[0]!.state, 'ready', storage.name)
  }
})

test('a repeated settlement hears `already`, also after the rest of its lease was taken over', async () => {
  for (const storage of [store.storage]) {
    await storage.enqueue([newJob(), newJob()])
    const one = await TestWorker.registered(storage)
    const { leases } = await one.claim({ limit: 2 })
    const fence = leases[0]!.fence
    assert.deepEqual(await storage.settle([completed(fence, 0)]), ['ok'])
    await one.beat({ leases: [] })
    assert.deepEqual(await storage.settle([completed(fence, 0)]), ['already'])
  }
})
