/** Faults that other queues were reported to have (docs/cases.md): who goes first, who starves, who is recovered to which rank. On a real store. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Claim } from '../../src/storage/storage.js'
import { completed, newJob, TestWorker } from '../support/jobs.js'
import { type Scratch, scratch } from '../support/postgres.js'
import { judge, settleCrashes, writtenOff } from './kit.js'

let store: Scratch
before(async () => {
  store = await scratch()
})
after(() => store.drop())

const [URGENT, LOW] = [12, 0]

function jobsOf({ leases }: Claim) {
  return leases.flatMap(({ fence, jobs }) => jobs.map((job, ordinal) => ({ ...job, fence, ordinal })))
}

for (const batch of [1, 16])
  test(`B134: under urgent jobs without end, claimed by ${batch}, one start in sixteen is a low one’s, and the urgent ones go on`, async () => {
    const queue = `starving-${batch}`
    const worker = await TestWorker.registered(store.storage)
    const lows = Array.from({ length: 10 }, () => newJob({ queue, priority: LOW }))
    const urgent = (count: number) =>
      store.storage.enqueue(Array.from({ length: count }, () => newJob({ queue, priority: URGENT })))
    await store.storage.enqueue(lows)
    await urgent(100)
    const order: number[] = []
    let turn = 0
    while (order.filter((priority) => priority === LOW).length < lows.length) {
      const claim = await worker.claim({ queues: [{ queue, share: batch, turn }], limit: batch })
      const jobs = jobsOf(claim)
      turn += jobs.length
      order.push(...jobs.map(({ priority }) => priority))
      // They never run out: as many come as go.
      await Promise.all([
        store.storage.settle(jobs.map(({ fence, ordinal }) => completed(fence, ordinal))),
        urgent(jobs.length),
      ])
      assert.ok(order.length <= 16 * (lows.length + 1), 'a low one waits for more than its share')
    }
    const starts = order.flatMap((priority, at) => (priority === LOW ? [at] : []))
    starts.forEach((at, n) => {
      assert.ok(at < 16 * (n + 1) + batch, `the low job ${n} is start ${at}`)
    })
    assert.ok(order.filter((priority) => priority === URGENT).length >= 15 * (lows.length - 1), 'the urgent ones wait')
    await store.storage.control.purge(queue, 1_000)
  })

test('B135: an urgent job of a killed worker goes before a thousand low ones, as it did before', async () => {
  const queue = 'rank'
  const worker = await TestWorker.registered(store.storage)
  const urgent = newJob({ queue, priority: URGENT })
  await store.storage.enqueue([urgent])
  const queues = [{ queue, share: 1 }]
  assert.equal(jobsOf(await worker.claim({ queues, limit: 1 }))[0]!.id, urgent.id)
  await store.storage.enqueue(Array.from({ length: 1_000 }, () => newJob({ queue, priority: LOW })))
  const heir = await judge(store)
  const leases = await writtenOff(store, heir, worker.id)
  assert.equal(leases.length, 1)
  await settleCrashes(store, heir, leases)
  // A crash that nobody saw the start of costs no delay.
  assert.equal(jobsOf(await heir.claim({ queues, limit: 1 }))[0]!.id, urgent.id)
})
