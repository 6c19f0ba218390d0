/** Races of idempotency keys and of ids that callers choose: who has them, who frees them, who wants them. Listed in docs/races.md. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { PostgresStorage } from '../../../src/storage/postgres/index.js'
import { completed, newJob } from '../../support/jobs.js'
import { stopped } from '../../support/points.js'
import type { Scratch } from '../../support/postgres.js'
import { deadScene, KEPT_MS, keyedJob, leasedScene, raceStore, readyScene, type Scene } from './scene.js'

let store: Scratch
before(async () => {
  store = await raceStore()
})
after(() => store.drop())

const KEPT = { completedMs: 86_400_000, deadMs: 86_400_000, limit: 100 }

/** How a key comes free: the job that has it, and what takes both away, or the key alone. */
const FREED: readonly {
  how: string
  scene: () => Promise<Scene>
  free: (storage: PostgresStorage, scene: Scene) => Promise<unknown>
}[] = [
  { how: 'a discard', scene: () => deadScene(store), free: (storage, { id }) => storage.control.discard([id]) },
  { how: 'a purge', scene: () => readyScene(store), free: (storage, { job }) => storage.control.purge(job.queue, 100) },
  { how: 'pruning', scene: endedLongAgo, free: (storage) => storage.upkeep.prune(KEPT) },
]

/** Of a job that has ended, and whose key is kept no longer; the instant is the sweep's alone. */
async function endedLongAgo(): Promise<Scene> {
  const scene = await leasedScene(store)
  await store.storage.settle([completed(scene.fence)])
  return scene
}

/** The key of a scene runs out, also under the eyes of somebody who has just looked. */
async function runOut(): Promise<void> {
  await store.sql('update :s.idempotency set expires = 0')
}

async function keysWithoutJob(): Promise<unknown> {
  const [row] =
    await store.sql(`select (select count(*)::int from :s.ready where spec ->> 'idempotencyKey' is not null) as jobs,
    (select count(*)::int from :s.idempotency) as keys`)
  return row
}

for (const { how, scene: begin, free } of FREED) {
  test(`key: freed by ${how} while an enqueue decides: the job is stored with its key, never without`, async () => {
    const scene = await begin()
    const entering = await stopped(store, 'inserted:idempotency', (storage) => storage.enqueue([keyedJob()]))
    if (how === 'pruning') await runOut()
    await free(store.storage, scene)
    assert.deepEqual(await entering.goOn(), [{ status: 'created' }])
    assert.deepEqual(await keysWithoutJob(), { jobs: 1, keys: 1 })
    assert.equal((await store.storage.enqueue([keyedJob()]))[0]!.status, 'duplicate')
  })

  test(`key: while ${how} holds it, it is busy; rolled back it is the first job’s still`, async () => {
    const scene = await begin()
    if (how === 'pruning') await runOut()
    const freeing = await stopped(store, 'commit:idempotency', (storage) => free(storage, scene))
    assert.deepEqual(await store.storage.enqueue([keyedJob()]), [{ status: 'busy' }])
    await freeing.fail()
    const [again] = await store.storage.enqueue([keyedJob()])
    assert.equal(again!.status, how === 'pruning' ? 'created' : 'duplicate')
  })
}

test('discard while its key is wanted: busy as long as it is open, free once it has committed', async () => {
  const scene = await deadScene(store)
  const discarding = await stopped(store, 'commit:idempotency', (storage) => storage.control.discard([scene.id]))
  assert.deepEqual(await store.storage.enqueue([keyedJob()]), [{ status: 'busy' }])
  await discarding.goOn()
  assert.deepEqual(await store.storage.enqueue([keyedJob()]), [{ status: 'created' }])
})

test('key: two first uses: the second is busy while the first is open, a duplicate once it has committed', async () => {
  await readyScene(store)
  const first = keyedJob({ idempotency: { key: 'two', payloadHash: 'h', retentionMs: KEPT_MS } })
  const second = { ...first, id: newJob().id }
  const entering = await stopped(store, 'commit:idempotency', (storage) => storage.enqueue([first]))
  assert.deepEqual(await store.storage.enqueue([second]), [{ status: 'busy' }])
  await entering.goOn()
  assert.deepEqual(await store.storage.enqueue([second]), [{ status: 'duplicate', id: first.id }])
})

test('key: of two first uses the first is rolled back: the second has it', async () => {
  await readyScene(store)
  const keyed = () => keyedJob({ idempotency: { key: 'rolled back', payloadHash: 'h', retentionMs: KEPT_MS } })
  const entering = await stopped(store, 'commit:idempotency', (storage) => storage.enqueue([keyed()]))
  await entering.fail()
  assert.equal((await entering.answer)[0]!.status, 'refused')
  assert.deepEqual(await store.storage.enqueue([keyed()]), [{ status: 'created' }])
})

test('idempotency key: in an open transaction of somebody else it is busy, and only it', async () => {
  const keyed = (key: string) => newJob({ queue: 'busy', idempotency: { key, payloadHash: 'h', retentionMs: KEPT_MS } })
  const caller = await store.client()
  await caller.query('begin')
  await store.storage.enqueue([keyed('open')], { tx: caller })
  const batch = Array.from({ length: 20 }, (_, n) => keyed(n === 13 ? 'open' : `free-${n}`))
  const outcomes = await store.storage.enqueue(batch)
  assert.deepEqual(
    outcomes.map((outcome) => outcome.status),
    batch.map((_, n) => (n === 13 ? 'busy' : 'created')),
  )
  await caller.query('rollback')
  assert.deepEqual(await store.storage.enqueue([keyed('open')]), [{ status: 'created' }])
})

test('idempotency key: 50 at once make one job, and all hear its id (B82)', async () => {
  const jobs = Array.from({ length: 50 }, () =>
    newJob({ queue: 'fifty', idempotency: { key: 'same', payloadHash: 'h', retentionMs: KEPT_MS } }),
  )
  const outcomes = (await Promise.all(jobs.map((job) => store.storage.enqueue([job])))).flat()
  const created = outcomes.filter((outcome) => outcome.status === 'created')
  assert.equal(created.length, 1)
  const first = jobs[outcomes.indexOf(created[0]!)]!.id
  for (const outcome of outcomes)
    if (outcome.status !== 'created') assert.deepEqual(outcome, { status: 'duplicate', id: first })
})

test('key: pruning while its job is brought back: the key stays', async () => {
  const scene = await deadScene(store)
  await runOut()
  const redriving = await stopped(store, 'commit:ready', (storage) =>
    storage.control.redrive([scene.id], { force: false }),
  )
  await store.storage.upkeep.prune(KEPT)
  await redriving.goOn()
  assert.deepEqual(await store.storage.enqueue([keyedJob()]), [{ status: 'duplicate', id: scene.id }])
})

test('key: it runs out while its job moves from place to place: no second job', async () => {
  const scene = await readyScene(store)
  await runOut()
  const claiming = await stopped(store, 'commit:lease', (storage) => scene.claim(storage))
  assert.deepEqual(await store.storage.enqueue([keyedJob()]), [{ status: 'duplicate', id: scene.id }])
  await claiming.goOn()
  assert.deepEqual(await store.storage.enqueue([keyedJob()]), [{ status: 'duplicate', id: scene.id }])
})

test('chosen id: two with one id: the second is busy while the first is open, refused once it has committed', async () => {
  const job = newJob({ chosen: true })
  const entering = await stopped(store, 'commit:ready', (storage) => storage.enqueue([job]))
  assert.deepEqual(await store.storage.enqueue([job]), [{ status: 'busy' }])
  await entering.goOn()
  const [again] = await store.storage.enqueue([job])
  assert.ok(again?.status === 'refused' && again.code === 'DUPLICATE_ID')
})

test('chosen id: of two with one id the first is rolled back: the second is stored', async () => {
  const job = newJob({ chosen: true })
  const entering = await stopped(store, 'commit:ready', (storage) => storage.enqueue([job]))
  await entering.fail()
  assert.equal((await entering.answer)[0]!.status, 'refused')
  assert.deepEqual(await store.storage.enqueue([job]), [{ status: 'created' }])
})

test('chosen id: of a job that moves from place to place it is known', async () => {
  const scene = await readyScene(store)
  const again = newJob({ id: scene.id, chosen: true })
  const claiming = await stopped(store, 'commit:lease', (storage) => scene.claim(storage))
  const [during] = await store.storage.enqueue([again])
  await claiming.goOn()
  const [after] = await store.storage.enqueue([again])
  assert.deepEqual([during!.status, after!.status], ['refused', 'refused'])
})
