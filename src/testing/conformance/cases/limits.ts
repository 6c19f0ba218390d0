/** Cases about limits of queues: concurrency over all workers, and rates of starts. */
import { strict as assert } from 'node:assert'
import type { ConformanceCase } from '../case.js'
import { HOUR_MS, type Kit } from '../kit.js'
import { afterCrash, givenBack, type Held, idsOf, LEASE_MS, returned, type TestWorker, threw } from '../worker.js'

const SUSPECTS = { suspects: true } as const
/** Slow enough for a store whose clock goes on by itself: no token comes of it within a case. */
const HOURLY = { limit: 4, perMs: 4 * HOUR_MS, burst: 2 } as const

export const LIMIT_CASES: ConformanceCase[] = [
  {
    name: 'limits: concurrency counts the jobs in leases of all workers',
    promise: 'A queue limited to 3 never has 4 jobs in the hands of its workers.',
    needs: ['control'],
    async run(kit) {
      await kit.control.limit('q', { concurrency: 3 })
      const ids = await kit.enqueueMany(8)
      const [one, two] = [await kit.worker(), await kit.worker(await kit.open())]
      assert.deepEqual(idsOf(await one.take(2)), ids.slice(0, 2))
      assert.deepEqual(idsOf(await two.take(5)), ids.slice(2, 3))
      assert.deepEqual(await one.take(5), [])
    },
  },
  {
    name: 'limits: whatever ends a lease of a job frees its permit',
    promise: 'A permit never leaks: completed, failed, given back or written off, the next job may start.',
    needs: ['control'],
    async run(kit) {
      await kit.control.limit('q', { concurrency: 1 })
      await kit.enqueueMany(9)
      const worker = await kit.worker()
      const next = async (): Promise<Held> => {
        const [held, ...more] = await worker.take(9)
        assert(held && more.length === 0, `one at a time, and one was free: ${1 + more.length}`)
        return held
      }
      await worker.settle(returned(await next()))
      await worker.settle(threw(await next()))
      await worker.settle(givenBack(await next()))
      await next()
      // The beat does not name the lease: its answer was lost, and the store gives it back.
      worker.holding = []
      await worker.beat()
      const claim = await worker.claim({ finished: [returned(await next())], limit: 9 })
      assert.equal(claim.leases.flatMap(({ jobs }) => jobs).length, 1)
    },
  },
  {
    name: 'limits: what a dead worker held counts until its heir has settled it',
    promise: 'A crash does not let one more run than the limit says, and loses no permit.',
    needs: ['control'],
    async run(kit) {
      await kit.control.limit('q', { concurrency: 2 })
      await kit.enqueueMany(5)
      const { heir } = await kit.death(2, 'started')
      assert.deepEqual(await heir.take(5), [])
      const adopted = await heir.takeOver()
      assert.deepEqual(await heir.take(5), [])
      await heir.settle(...adopted.map((one) => returned(one)))
      assert.equal((await heir.take(5)).length, 2)
    },
  },
  {
    name: 'limits: a changed limit holds from the next claim on',
    promise: 'Limits are changed while the queue runs; what is held beyond a lower one goes on.',
    needs: ['control', 'inspect'],
    async run(kit) {
      await kit.enqueueMany(9)
      const worker = await kit.worker(await kit.open())
      const held = await worker.take(4)
      await kit.control.limit('q', { concurrency: 2 })
      assert.deepEqual(await worker.take(5), [])
      await worker.settle(...held.slice(0, 2).map((one) => returned(one)))
      assert.deepEqual(await worker.take(5), [])
      await worker.settle(returned(held[2]!))
      assert.equal((await worker.take(5)).length, 1)
      await kit.control.limit('q', { concurrency: 4 })
      assert.equal((await worker.take(5)).length, 2)
      await kit.control.limit('q', { concurrency: null })
      assert.equal((await worker.take(5)).length, 2)
    },
  },
  {
    name: 'limits: they are of one queue, and hold no other one up',
    promise: 'A queue at its limit never delays another one that the same worker serves.',
    needs: ['control'],
    async run(kit) {
      await kit.control.limit('q', { concurrency: 1, rate: HOURLY })
      await kit.enqueueMany(5)
      const others = await kit.enqueueMany(5, { queue: 'other' })
      const worker = await kit.worker()
      const queues = [
        { queue: 'q', share: 5 },
        { queue: 'other', share: 2 },
      ]
      const taken = await worker.take(9, { queues })
      assert.deepEqual(queuesOf(taken), { q: 1, other: 5 })
      assert.deepEqual(idsOf(taken).filter((id) => others.includes(id)).length, 5)
      const claim = await worker.claim({ queues, limit: 9 })
      assert.deepEqual([claim.leases, claim.more, claim.limited], [[], false, ['q']])
    },
  },
  {
    name: 'limits: a full queue has nothing more to give, until a permit is free',
    promise: 'A worker does not ask again and again for what a limit holds back.',
    needs: ['control'],
    async run(kit) {
      await kit.control.limit('q', { concurrency: 2 })
      await kit.enqueueMany(5)
      const worker = await kit.worker()
      const { leases, more, limited, nextTokenMs } = await worker.claim({ limit: 9 })
      assert.deepEqual([leases.flatMap(({ jobs }) => jobs).length, more, limited, nextTokenMs], [2, false, ['q'], null])
    },
  },
  {
    name: 'limits: what was held back goes before what came later, also for the worker that met the limit',
    promise: 'A job that a limit held back keeps its place in line.',
    needs: ['control'],
    async run(kit) {
      await kit.control.limit('q', { concurrency: 2 })
      const ids = await kit.enqueueMany(4)
      const worker = await kit.worker()
      const first = await worker.take(9)
      // Longer than a store that reads from a cursor on lags behind with it.
      await kit.pass(1_000, worker)
      assert.deepEqual(await worker.take(9), [])
      await kit.pass(1_000, worker)
      const late = await kit.enqueueOne()
      await worker.settle(...first.map((one) => returned(one)))
      const second = await worker.take(9)
      assert.deepEqual(idsOf(second), ids.slice(2))
      await kit.pass(1_000, worker)
      assert.deepEqual(await worker.take(9), [])
      await worker.settle(...second.map((one) => returned(one)))
      assert.deepEqual(idsOf(await worker.take(9)), [late])
    },
  },
  {
    name: 'limits: a suspect needs a permit like any other',
    promise: 'Running alone is no way around a limit.',
    needs: ['control'],
    async run(kit) {
      const worker = await kit.worker()
      const suspect = await suspectOf(kit, worker)
      await kit.enqueueMany(2)
      await kit.control.limit('q', { concurrency: 1 })
      const [plain] = await worker.take(1)
      assert.deepEqual(await worker.take(9, SUSPECTS), [])
      await worker.settle(returned(plain!))
      assert.deepEqual(idsOf(await worker.take(9, SUSPECTS)), [suspect])
      assert.deepEqual(await worker.take(9), [])
    },
  },
  {
    name: 'limits: a rate lets its burst go, and then a job for each token',
    promise: 'Over all workers no more jobs start than the rate of their queue allows.',
    needs: ['control'],
    async run(kit) {
      await kit.control.limit('q', { rate: HOURLY })
      await kit.enqueueMany(9)
      const [one, two] = [await kit.worker(), await kit.worker(await kit.open())]
      assert.equal((await one.take(5)).length, 2)
      const { leases, more, limited, nextDueMs, nextTokenMs } = await two.claim({ limit: 5 })
      assert.deepEqual([leases, more, limited, nextDueMs], [[], false, ['q'], null])
      assert(
        nextTokenMs !== null && nextTokenMs > HOUR_MS - 60_000 && nextTokenMs <= HOUR_MS,
        `next token in ${nextTokenMs} ms`,
      )
      await kit.pass(HOUR_MS - 60_000, one, two)
      assert.equal((await two.take(5)).length, 0)
      await kit.pass(61_000, one, two)
      assert.equal((await two.take(5)).length, 1)
      // However long nobody asks, no more than a burst is kept.
      await kit.pass(9 * HOUR_MS, one, two)
      assert.equal((await two.take(5)).length, 2)
      assert.equal((await one.take(5)).length, 0)
    },
  },
  {
    name: 'limits: a changed rate begins with a full bucket, and none lets all go',
    promise: 'Whoever changes a rate need not wait for what the old one owes.',
    needs: ['control'],
    async run(kit) {
      await kit.control.limit('q', { rate: HOURLY })
      await kit.enqueueMany(9)
      const worker = await kit.worker()
      assert.equal((await worker.take(5)).length, 2)
      // The same again, as each process may set it at its start, is no change.
      await kit.control.limit('q', { rate: { ...HOURLY } })
      assert.deepEqual(await worker.take(5), [])
      await kit.control.limit('q', { rate: { ...HOURLY, burst: 3 } })
      assert.equal((await worker.take(5)).length, 3)
      await kit.control.limit('q', { rate: null })
      assert.equal((await worker.take(5)).length, 4)
    },
  },
  {
    name: 'limits: what is held back by both waits for both',
    promise: 'A token is no permit: a queue at its concurrency names no token to wait for.',
    needs: ['control'],
    async run(kit) {
      await kit.control.limit('q', { concurrency: 2, rate: HOURLY })
      await kit.enqueueMany(5)
      const worker = await kit.worker()
      const held = await worker.take(5)
      assert.equal(held.length, 2)
      assert.equal((await worker.claim()).nextTokenMs, null)
      await worker.settle(...held.map((one) => returned(one)))
      const { leases, nextTokenMs } = await worker.claim()
      assert.deepEqual([leases, nextTokenMs === null], [[], false])
      await kit.pass(HOUR_MS + 1_000, worker)
      assert.equal((await worker.take(5)).length, 1)
    },
  },
  {
    name: 'limits: they are told with the queue, and those not given stay',
    promise: 'Operators see what a queue is limited to.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const limits = async () => (await kit.inspect.queues()).map((view) => [view.queue, view.limits])
      await kit.control.limit('a', { concurrency: 7 })
      await kit.control.limit('a', { rate: { limit: 100, perMs: 1_000, burst: 20 } })
      await kit.control.pause('b')
      const rate = { limit: 100, perMs: 1_000, burst: 20 }
      assert.deepEqual(await limits(), [
        ['a', { concurrency: 7, rate, depth: null, intake: null, perKey: null }],
        ['b', { concurrency: null, rate: null, depth: null, intake: null, perKey: null }],
      ])
      await kit.control.limit('a', { concurrency: null })
      assert.deepEqual((await limits())[0], ['a', { concurrency: null, rate, depth: null, intake: null, perKey: null }])
    },
  },
]

function queuesOf(held: readonly Held[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { job } of held) counts[job.queue] = (counts[job.queue] ?? 0) + 1
  return counts
}

/** A job that two workers died of. */
async function suspectOf(kit: Kit, heir: TestWorker): Promise<string> {
  const id = await kit.enqueueOne()
  for (let crashes = 0; crashes < 2; crashes++) {
    const dead = await kit.worker()
    const [held] = await dead.take(1)
    assert.equal(held?.job.id, id)
    await kit.pass(LEASE_MS + kit.marginMs, heir)
    for (const adopted of await heir.takeOver()) await heir.settle(afterCrash(adopted))
    await kit.pass(HOUR_MS, heir)
    await kit.promote()
  }
  return id
}
