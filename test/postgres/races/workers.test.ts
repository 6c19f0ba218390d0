/** Races about a worker: who writes it off, what it still asks for, and what it says good-bye to. Listed in docs/races.md. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { completed, newJob, TestWorker } from '../../support/jobs.js'
import { stopped } from '../../support/points.js'
import type { Scratch } from '../../support/postgres.js'
import { leasedScene, newJudge, raceStore, readyScene, type Scene } from './scene.js'

let store: Scratch
before(async () => {
  store = await raceStore()
})
after(() => store.drop())

async function silent({ worker }: Scene): Promise<void> {
  await store.sql('update :s.worker set seen = 1 where id = $1', [worker.id])
}

async function takeOver(judge: TestWorker) {
  return (await store.storage.takeOver({ worker: judge.id, limit: 100 })).leases
}

test('a worker that is being written off claims nothing more', async () => {
  const scene = await readyScene(store)
  const judge = await newJudge(store)
  await silent(scene)
  const sweeping = await stopped(store, 'commit:worker', (storage) =>
    storage.takeOver({ worker: judge.id, limit: 100 }),
  )
  const claiming = scene.claim(store.storage)
  await sweeping.waitedFor()
  await sweeping.goOn()
  const { status, leases } = await claiming
  assert.deepEqual([status, leases], ['gone', []])
  assert.equal(await scene.state(), 'ready')
})

test('a sweep that would have written a worker off is rolled back: its claim, which waited, takes', async () => {
  const scene = await readyScene(store)
  const judge = await newJudge(store)
  await silent(scene)
  const sweeping = await stopped(store, 'commit:worker', (storage) =>
    storage.takeOver({ worker: judge.id, limit: 100 }),
  )
  const claiming = scene.claim(store.storage)
  await sweeping.waitedFor()
  await sweeping.fail()
  await assert.rejects(sweeping.answer)
  assert.equal((await claiming).leases.length, 1)
})

test('what a worker claims while it is being judged is taken over by the next sweep, not lost', async () => {
  const scene = await readyScene(store)
  const judge = await newJudge(store)
  await silent(scene)
  const claiming = await stopped(store, 'commit:lease', (storage) => scene.claim(storage))
  assert.deepEqual(await takeOver(judge), [])
  await claiming.goOn()
  assert.equal((await takeOver(judge)).length, 1)
})

test('a sweeper that is judged while it adopts is passed by, and what it adopts has an owner', async () => {
  const scene = await leasedScene(store)
  const [first, second] = [await newJudge(store), await newJudge(store)]
  await silent(scene)
  const adopting = await stopped(store, 'commit:lease', (storage) => storage.takeOver({ worker: first.id, limit: 100 }))
  // Of a worker that is locked nobody else learns how long it has been silent.
  assert.deepEqual(await takeOver(second), [])
  await adopting.goOn()
  await store.sql('update :s.worker set seen = 1 where id = $1', [first.id])
  const [lease] = await takeOver(second)
  assert.equal(lease!.jobs.length, 1)
})

test('a lease whose worker has no row is taken over all the same', async () => {
  const scene = await leasedScene(store)
  await store.sql('delete from :s.worker where id = $1', [scene.worker.id])
  assert.equal((await takeOver(await newJudge(store))).length, 1)
})

test('a lease whose worker has no row: of two sweeps at once one has it', async () => {
  const scene = await leasedScene(store)
  const [first, second] = [await newJudge(store), await newJudge(store)]
  await store.sql('delete from :s.worker where id = $1', [scene.worker.id])
  const adopting = await stopped(store, 'commit:lease', (storage) => storage.takeOver({ worker: first.id, limit: 100 }))
  assert.deepEqual(await takeOver(second), [])
  assert.equal((await adopting.goOn()).leases.length, 1)
  assert.deepEqual(await takeOver(second), [])
})

test('a lease whose worker has no row, held by a cancel: a sweep takes the others, and the next one has it', async () => {
  const { scene, other, ids } = await twoLeases()
  await store.sql('delete from :s.worker where id in ($1, $2)', [scene.worker.id, other.id])
  const judge = await newJudge(store)
  const cancelling = await stopped(store, 'update:lease', (storage) => storage.control.cancel(ids.slice(0, 1)))
  assert.deepEqual(
    (await takeOver(judge)).map(({ jobs }) => jobs[0]!.id),
    ids.slice(1),
  )
  assert.deepEqual(await cancelling.goOn(), ['signalled'])
  assert.equal((await takeOver(judge)).length, 2)
})

test('a sweep locks no more of the dead than it adopts: of two at once each has some', async () => {
  const { scene, other } = await twoLeases()
  await store.sql('update :s.worker set seen = case id when $1 then 1 else 2 end where id in ($1, $2)', [
    scene.worker.id,
    other.id,
  ])
  const [first, second] = [await newJudge(store), await newJudge(store)]
  const adopting = await stopped(store, 'commit:lease', (storage) => storage.takeOver({ worker: first.id, limit: 1 }))
  assert.equal((await takeOver(second)).length, 1)
  assert.equal((await adopting.goOn()).leases.length, 1)
  assert.deepEqual(await store.sql('select from :s.worker where id in ($1, $2)', [scene.worker.id, other.id]), [])
})

/** Two leases: the one with the lower fence has lost its owner's row, that of the other is there. */
async function twoLeases() {
  const scene = await leasedScene(store)
  const other = await TestWorker.registered(store.storage)
  const job = newJob()
  await store.storage.enqueue([job])
  await other.claim()
  return { scene, other, ids: [scene.id, job.id] }
}

test('cancel and take-over lock leases in one order, whoever held them', async () => {
  const { scene, other, ids } = await twoLeases()
  // The one with the higher fence falls silent first.
  await store.sql('update :s.worker set seen = case id when $1 then 1 else 2 end where id in ($1, $2)', [
    other.id,
    scene.worker.id,
  ])
  await bothGoOn(ids, await newJudge(store))
})

test('cancel and take-over lock leases in one order, also of those that have no owner', async () => {
  const { scene, other, ids } = await twoLeases()
  await store.sql('update :s.worker set seen = 1 where id = $1', [other.id])
  await store.sql('delete from :s.worker where id = $1', [scene.worker.id])
  await bothGoOn(ids, await newJudge(store))
})

/** The cancel has marked the first lease when the sweep comes; a ring of two that wait would be an error in one of them. */
async function bothGoOn(ids: string[], judge: TestWorker): Promise<void> {
  const cancelling = await stopped(store, 'update:lease', (storage) => storage.control.cancel(ids))
  const sweeping = takeOver(judge)
  await cancelling.waitedFor()
  assert.deepEqual(await cancelling.goOn(), ['signalled', 'signalled'])
  assert.equal((await sweeping).length, 2)
}

test('take-over that holds the leases, a cancel of all of them: the cancel waits, and marks them under their new fences', async () => {
  const { scene, other, ids } = await twoLeases()
  await store.sql('update :s.worker set seen = 1 where id in ($1, $2)', [scene.worker.id, other.id])
  const judge = await newJudge(store)
  const { fences, answers } = await cancelledMeanwhile(judge, ids)
  assert.deepEqual(answers, ['signalled', 'signalled'])
  const { cancel } = await judge.beat({ leases: fences })
  assert.deepEqual(cancel.map(([fence]) => fence).toSorted(), fences.toSorted())
})

test('take-over that holds a lease, a cancel that waits for it and has an ownerless one: the next sweep takes that', async () => {
  const { scene, other, ids } = await twoLeases()
  await store.sql('update :s.worker set seen = 1 where id = $1', [other.id])
  await store.sql('delete from :s.worker where id = $1', [scene.worker.id])
  const judge = await newJudge(store)
  const { fences, answers } = await cancelledMeanwhile(judge, ids)
  assert.deepEqual([fences.length, answers], [1, ['signalled', 'signalled']])
  const crashes = (await takeOver(judge)).flatMap((lease) => lease.crashes)
  assert.deepEqual(
    crashes.map((crash) => crash?.cancelled),
    [true, true],
  )
})

/** The sweep has locked what the dead held, and written nothing yet, when the cancel comes. */
async function cancelledMeanwhile(judge: TestWorker, ids: string[]) {
  const sweeping = await stopped(store, 'update:lease', (storage) => storage.takeOver({ worker: judge.id, limit: 100 }))
  const cancelling = store.storage.control.cancel(ids)
  await sweeping.waitedFor()
  const fences = (await sweeping.goOn()).leases.map(({ fence }) => fence)
  return { fences, answers: await cancelling }
}

test('beat: a claim in flight whose number was given up is waited for, and its jobs go back', async () => {
  const scene = await readyScene(store)
  const claiming = await stopped(store, 'commit:lease', (storage) => scene.claim(storage))
  const beating = scene.beat(store.storage, { known: 1 })
  await claiming.waitedFor()
  await claiming.goOn()
  assert.equal((await beating).status, 'ok')
  assert.equal(await scene.state(), 'ready')
})

test('beat: the same, and the claim is rolled back: nothing is there to go back', async () => {
  const scene = await readyScene(store)
  const claiming = await stopped(store, 'commit:lease', (storage) => scene.claim(storage))
  const beating = scene.beat(store.storage, { known: 1 })
  await claiming.waitedFor()
  await claiming.fail()
  await assert.rejects(claiming.answer)
  assert.equal((await beating).status, 'ok')
  assert.equal(await scene.state(), 'ready')
})

test('beat: a claim that runs after its number was given up takes nothing', async () => {
  const scene = await readyScene(store)
  const beating = await stopped(store, 'commit:worker', (storage) => scene.beat(storage, { known: 1 }))
  const claiming = scene.claim(store.storage)
  await beating.waitedFor()
  await beating.goOn()
  assert.equal((await claiming).leases.length, 0)
  assert.equal((await scene.claim(store.storage)).leases.length, 1)
})

test('good-bye: a claim that is under way is waited for, and what it took goes back', async () => {
  const scene = await readyScene(store)
  const claiming = await stopped(store, 'commit:lease', (storage) => scene.claim(storage))
  const leaving = store.storage.unregister(scene.worker.id)
  await claiming.waitedFor()
  await claiming.goOn()
  await leaving
  assert.equal(await scene.state(), 'ready')
  assert.deepEqual(await store.sql('select from :s.worker where id = $1', [scene.worker.id]), [])
})

test('good-bye: a claim that comes while the worker leaves gets nothing', async () => {
  const scene = await readyScene(store)
  const leaving = await stopped(store, 'commit:worker', (storage) => storage.unregister(scene.worker.id))
  const claiming = scene.claim(store.storage)
  await leaving.waitedFor()
  await leaving.goOn()
  const { status, leases } = await claiming
  assert.deepEqual([status, leases], ['gone', []])
})

test('good-bye of a worker that leaves an adopted lease behind: a claim that comes late takes nothing, the lease is swept', async () => {
  const scene = await leasedScene(store)
  const leaver = await newJudge(store)
  await silent(scene)
  assert.equal((await takeOver(leaver)).length, 1)
  await store.storage.enqueue([newJob()])
  await store.storage.unregister(leaver.id)
  assert.deepEqual((await leaver.claim()).leases, [])
  assert.equal((await takeOver(await newJudge(store))).length, 1)
})

test('good-bye of a worker whose adopted lease is being settled: a sweep passes it by, and nothing is left for the next', async () => {
  const scene = await leasedScene(store)
  const judge = await newJudge(store)
  await silent(scene)
  const [adopted] = await takeOver(judge)
  const settling = await stopped(store, 'commit:lease', (storage) => storage.settle([completed(adopted!.fence)]))
  await store.storage.unregister(judge.id)
  const next = await newJudge(store)
  assert.deepEqual(await takeOver(next), [])
  assert.deepEqual(await settling.goOn(), ['ok'])
  assert.deepEqual(await takeOver(next), [])
  assert.equal(await scene.state(), 'completed')
})

test('beats: of two at once the later one counts, whichever commits first', async () => {
  const scene = await leasedScene(store)
  const late = await stopped(store, 'commit:worker', (storage) => scene.beat(storage, { leases: [scene.fence] }))
  const next = scene.beat(store.storage, { leases: [scene.fence] })
  await late.waitedFor()
  assert.deepEqual([(await late.goOn()).status, (await next).status], ['ok', 'ok'])
  const older = await scene.worker.on(store.storage).beat({ n: 2, known: 1, leases: [] })
  assert.equal(older.status, 'stale')
  assert.equal(await scene.state(), 'running')
})
