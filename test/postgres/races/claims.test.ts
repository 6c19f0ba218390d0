/** Races of claims: with their own repeats, with others for the same heads, with commits that come late, with a pause, over a suspect. Listed in docs/races.md. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { emptyHistory } from '../../../src/core/job.js'
import type { Claim } from '../../../src/storage/storage.js'
import { newJob, TestWorker } from '../../support/jobs.js'
import { stopped } from '../../support/points.js'
import type { Scratch } from '../../support/postgres.js'
import { READY } from './actors.js'
import { delayedScene, EXPIRES_MS, leasedScene, raceStore, readyScene } from './scene.js'

let store: Scratch
before(async () => {
  store = await raceStore()
})
after(() => store.drop())

/** A worker of the test's own, and jobs in a queue of its own. */
async function fresh(queue: string, jobs = 1) {
  const worker = await TestWorker.registered(store.storage)
  if (jobs > 0) await store.storage.enqueue(Array.from({ length: jobs }, () => newJob({ queue })))
  const asking = { queues: [{ queue, share: 100 }] }
  const claim = (more = {}): Promise<Claim> => worker.claim({ ...asking, ...more })
  /** Over a handle that stops, and by another worker unless the numbers are to be the same. */
  const held = (by = worker, more = {}) =>
    stopped(store, 'commit:lease', (storage) => by.on(storage).claim({ ...asking, request: by.request + 1, ...more }))
  return { worker, claim, held }
}

function jobsOf({ leases }: Claim) {
  return leases.flatMap((lease) => lease.jobs)
}

test('claim: the same request at the same time on another connection waits, and gets the same batch', async () => {
  const { claim, held } = await fresh('claim-twice', 5)
  const first = await held()
  const second = claim()
  await first.waitedFor()
  const { leases } = await first.goOn()
  assert.deepEqual((await second).leases, leases)
  assert.equal(leases[0]!.jobs.length, 5)
  assert.deepEqual((await claim({ request: 1 })).leases, leases)
  assert.equal((await claim()).leases.length, 0)
})

test('claim: when the first of two equal requests is rolled back, the second takes the jobs', async () => {
  const { claim, held } = await fresh('claim-rolled-back', 5)
  const first = await held()
  const second = claim()
  await first.waitedFor()
  await first.fail()
  // Its rows were locked while the second looked: it may have passed them over, but not lost them.
  assert.equal(jobsOf(await second).length + jobsOf(await claim()).length, 5)
})

test('claim: one that comes back short as others hold the heads is told so, and finds the rest when they let go', async () => {
  const { worker, claim, held } = await fresh('short', 40)
  const other = await TestWorker.registered(store.storage)
  // Let the cursor of this handle grow effective first.
  assert.equal(jobsOf(await claim({ limit: 5 })).length, 5)
  const holding = await held(other)
  const short = await claim({ limit: 20 })
  assert.deepEqual([short.leases.length, short.more], [0, true])
  await sleep(150)
  await holding.fail()
  // No sweep from the start is due: the cursor must not have passed what the others held.
  const rest = await claim({ limit: 50 })
  assert.deepEqual([jobsOf(rest).length, rest.more], [35, false])
  assert.equal(worker.request, 3)
})

test('enqueue: a job that commits long after its position was drawn is found behind the cursor', async () => {
  const { claim } = await fresh('late-commit', 3)
  const late = newJob({ queue: 'late-commit' })
  const entering = await stopped(store, 'commit:ready', (storage) => storage.enqueue([late]))
  assert.equal(jobsOf(await claim()).length, 3)
  // The cursor passes the open job's position and its lag goes by.
  await sleep(150)
  await store.storage.enqueue([newJob({ queue: 'late-commit' })])
  assert.equal(jobsOf(await claim()).length, 1)
  await sleep(150)
  await entering.goOn()
  // Sweeps are held to a share of the time, so the first claim may not be one.
  let found = await claim()
  while (found.leases.length === 0) found = await claim()
  assert.deepEqual(
    jobsOf(found).map(({ id }) => id),
    [late.id],
  )
})

test('front range: a job that comes back by a commit which is late is found behind the cursor', async () => {
  const { claim } = await fresh('late-front', 0)
  const [late, soon] = [
    newJob({ queue: 'late-front', due: { delayMs: 60_000 } }),
    newJob({ queue: 'late-front', due: { delayMs: 60_000 } }),
  ]
  await store.storage.enqueue([late, soon])
  const hurrying = await stopped(store, 'commit:ready', (storage) => storage.control.retry([late.id]))
  // Its position is the later one, and it is taken first.
  await store.storage.control.retry([soon.id])
  assert.deepEqual(
    jobsOf(await claim()).map(({ id }) => id),
    [soon.id],
  )
  await sleep(150)
  assert.equal(jobsOf(await claim()).length, 0)
  assert.deepEqual(await hurrying.goOn(), ['ok'])
  let found = await claim()
  while (found.leases.length === 0) found = await claim()
  assert.deepEqual(
    jobsOf(found).map(({ id }) => id),
    [late.id],
  )
})

test('claim first, pause second: the pause waits for nobody, and the next claim gets nothing', async () => {
  const { worker, claim, held } = await fresh('paused', 2)
  const claiming = await held(worker, { limit: 1 })
  await store.storage.control.pause('paused')
  assert.equal(jobsOf(await claiming.goOn()).length, 1)
  worker.request += 1
  const later = await claim()
  assert.deepEqual([later.leases.length, later.paused], [0, ['paused']])
})

test('pause first, claim second: while the pause has not resolved the claim may still take, afterwards none does', async () => {
  const { claim } = await fresh('pausing', 2)
  const pausing = await stopped(store, 'commit:queue', (storage) => storage.control.pause('pausing'))
  assert.equal(jobsOf(await claim({ limit: 1 })).length, 1)
  await pausing.goOn()
  assert.equal((await claim()).leases.length, 0)
})

/** A queue in which nothing waits but suspects. */
async function suspects(queue: string, count: number) {
  const one = await fresh(queue, count)
  const { leases } = await one.claim()
  const settlements = leases.flatMap(({ fence, jobs }) =>
    jobs.map((_, ordinal) => ({ fence, ordinal, to: 'ready' as const, suspect: true, history: emptyHistory() })),
  )
  await store.storage.settle(settlements)
  return one
}

test('suspect: two claims at once for suspects of a queue: one gets one, the other none until the first is rolled back', async () => {
  const { held } = await suspects('two-suspects', 2)
  const [one, other] = [await TestWorker.registered(store.storage), await TestWorker.registered(store.storage)]
  const asking = { queues: [{ queue: 'two-suspects', share: 100 }], suspects: true }
  const first = await held(one, { suspects: true })
  assert.equal((await other.claim(asking)).leases.length, 0)
  await first.fail()
  const { leases } = await other.claim(asking)
  assert.deepEqual([leases.length, leases[0]!.alone, leases[0]!.jobs.length], [1, true, 1])
})

test('suspect: while one is claimed nobody gets another, and none after the commit either', async () => {
  const { held } = await suspects('one-suspect', 2)
  const [one, other] = [await TestWorker.registered(store.storage), await TestWorker.registered(store.storage)]
  const asking = { queues: [{ queue: 'one-suspect', share: 100 }], suspects: true }
  const first = await held(one, { suspects: true })
  assert.equal((await other.claim(asking)).leases.length, 0)
  assert.equal(jobsOf(await first.goOn()).length, 1)
  assert.equal((await other.claim(asking)).leases.length, 0)
})

test('suspect: a claim that has looked finds the guard taken, and takes what else there is', async () => {
  const { held } = await suspects('guard', 1)
  await store.storage.enqueue([newJob({ queue: 'guard' })])
  const [one, other] = [await TestWorker.registered(store.storage), await TestWorker.registered(store.storage)]
  const first = await held(one, { suspects: true })
  const { leases } = await other.claim({ queues: [{ queue: 'guard', share: 100 }], suspects: true })
  assert.deepEqual(
    leases.map(({ alone }) => alone),
    [false],
  )
  await first.goOn()
})

test('give-back at its instant of expiry: a sweep that finds the job running leaves its entry to whoever gives it back', async () => {
  const scene = await leasedScene(store)
  await store.advance(2 * EXPIRES_MS)
  const giving = await stopped(store, 'commit:ready', (storage) => scene.beat(storage, { leases: [] }))
  assert.deepEqual(await store.storage.upkeep.expire(100), [])
  await giving.goOn()
  assert.equal((await store.storage.upkeep.expire(100)).length, 1)
  assert.equal(await scene.state(), 'dead')
})

test('the same, the sweep first: who gives the job back waits for the sweep, and the next one finds the job', async () => {
  const scene = await leasedScene(store)
  await store.advance(2 * EXPIRES_MS)
  const sweeping = await stopped(store, 'commit:expiry', (storage) => storage.upkeep.expire(100))
  const giving = scene.beat(store.storage, { leases: [] })
  await sweeping.waitedFor()
  assert.deepEqual(await sweeping.goOn(), [])
  await giving
  assert.equal((await store.storage.upkeep.expire(100)).length, 1)
  assert.equal(await scene.state(), 'dead')
})

test('cancel that has looked at what waits, a promotion before it looks at what runs: it looks again', async () => {
  const scene = await delayedScene(store)
  // The job is promoted and claimed between two looks of the cancel.
  const cancelling = await stopped(store, 'clock', (storage) => storage.control.cancel([scene.id]))
  await store.storage.upkeep.promote(100)
  await scene.claim(store.storage)
  assert.deepEqual(await cancelling.goOn(), ['signalled'])
  assert.equal(await scene.state(), 'running')
})

for (const { operation, before: prepare, act, alone } of READY)
  test(`claim that has looked and not taken: ${operation} comes in between, and one of the two has the job`, async () => {
    const scene = await readyScene(store)
    await prepare?.(scene)
    const claiming = await stopped(store, 'insert:claim_request', (storage) => scene.claim(storage))
    assert.equal(await act(store.storage, scene), alone[0])
    assert.equal(jobsOf(await claiming.goOn()).length, 0)
    assert.equal(await scene.state(), alone[1])
  })
