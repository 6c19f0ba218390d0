/** A backlog behind the cursor of a worker is drained batch by batch, once a sweep has found it; not by sweeps alone. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { completed, newJob, TestWorker } from '../support/jobs.js'
import { type Scratch, scratch } from '../support/postgres.js'

const BACKLOG = 3_000
/** Longer than the lag of the cursor. */
const LAG_MS = 150

let store: Scratch
before(async () => {
  store = await scratch()
})
after(() => store.drop())

/** A worker whose cursor has come up to now: it has taken something, and then found nothing. */
async function upToDate(queue: string) {
  const worker = await TestWorker.registered(store.storage)
  const claim = () => worker.claim({ limit: 500, queues: [{ queue, share: 500 }] })
  await store.storage.enqueue([newJob({ queue })])
  assert.equal((await claim()).leases.length, 1)
  await claim()
  await sleep(LAG_MS)
  await claim()
  return claim
}

function backlog(queue: string) {
  return Array.from({ length: BACKLOG }, () => newJob({ queue }))
}

/** From the first claim that finds something on, each has to. Answers how many jobs there were. */
async function drained(claim: Awaited<ReturnType<typeof upToDate>>): Promise<number> {
  let total = 0
  for (;;) {
    const { leases } = await claim()
    const got = leases.reduce((sum, lease) => sum + lease.jobs.length, 0)
    if (got === 0 && total > 0) return total
    total += got
    if (total === BACKLOG) return total
  }
}

test('what came while the queue was paused', async () => {
  const claim = await upToDate('paused')
  await store.storage.control.pause('paused')
  await store.storage.enqueue(backlog('paused'))
  await claim()
  await sleep(LAG_MS)
  await claim()
  await store.storage.control.resume('paused')
  assert.equal(await drained(claim), BACKLOG)
})

test('what a slow transaction commits late', async () => {
  const claim = await upToDate('late')
  const caller = await store.client()
  await caller.query('begin')
  await store.storage.enqueue(backlog('late'), { tx: caller })
  await sleep(LAG_MS)
  await store.storage.enqueue([newJob({ queue: 'late' })])
  assert.equal((await claim()).leases.length, 1)
  await claim()
  await sleep(LAG_MS)
  await caller.query('commit')
  assert.equal(await drained(claim), BACKLOG)
})

test('what comes after the clock of the server stepped back', async () => {
  const claim = await upToDate('clock')
  await store.advance(-3_600_000)
  await store.storage.enqueue(backlog('clock'))
  assert.equal(await drained(claim), BACKLOG)
})

test('what a limit held back, before what came later', async () => {
  const queue = 'limited'
  await store.storage.control.limit(queue, { concurrency: 2 })
  await upToDate(queue)
  const worker = await TestWorker.registered(store.storage)
  const claim = async () =>
    (await worker.claim({ limit: 9, queues: [{ queue, share: 9 }] })).leases.flatMap(({ fence, jobs }) =>
      jobs.map(({ id }, ordinal) => ({ id, settlement: completed(fence, ordinal) })),
    )
  const old = Array.from({ length: 4 }, () => newJob({ queue }))
  await store.storage.enqueue(old)
  // One permit is in other hands.
  const [first, ...none] = await claim()
  assert.deepEqual([first!.id, none], [old[0]!.id, []])
  await sleep(LAG_MS)
  const late = newJob({ queue })
  await store.storage.enqueue([late])
  await store.storage.settle([first!.settlement])
  const [second] = await claim()
  assert.equal(second!.id, old[1]!.id)
})
