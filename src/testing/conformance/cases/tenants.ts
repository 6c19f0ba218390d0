/** Cases about fair shares of tenants. The rules are in core/tenants.ts. */
import { strict as assert } from 'node:assert'
import type { ConformanceCase } from '../case.js'
import { HOUR_MS, type JobSketch, type Kit } from '../kit.js'
import { givenBack, idsOf, returned, type TestWorker, threw } from '../worker.js'

function of(tenant: string, weight?: number): JobSketch {
  return { spec: { tenant, ...(weight === undefined ? {} : { weight }) } }
}

/** How many of the next jobs are of which of these. They are completed. */
async function sharesOf(worker: TestWorker, count: number, ...groups: readonly string[][]): Promise<number[]> {
  const taken = new Set(idsOf(await worker.take(count)))
  assert.equal(taken.size, count)
  return groups.map((ids) => ids.filter((id) => taken.has(id)).length)
}

export const TENANT_CASES: ConformanceCase[] = [
  {
    name: 'tenants: who floods a queue does not delay the others',
    promise: 'However many jobs of one tenant wait, the next job of another one is among the next two that start.',
    needs: [],
    async run(kit) {
      await kit.enqueueMany(200, of('flood'))
      const worker = await kit.worker()
      await worker.take(40)
      const other = await kit.enqueueOne(of('other'))
      assert(idsOf(await worker.take(2)).includes(other))
      const [third] = await kit.enqueueMany(2, of('third'))
      const next = idsOf(await worker.take(2))
      assert(next.includes(third!))
    },
  },
  {
    name: 'tenants: each one gets its turn',
    promise: 'Tenants with jobs waiting take turns: of 30 starts three tenants get ten each.',
    needs: [],
    async run(kit) {
      const groups: string[][] = []
      for (const tenant of ['a', 'b', 'c']) groups.push(await kit.enqueueMany(tenant === 'b' ? 60 : 20, of(tenant)))
      const worker = await kit.worker()
      assert.deepEqual(await sharesOf(worker, 30, ...groups), [10, 10, 10])
      assert.deepEqual(await sharesOf(worker, 30, ...groups), [10, 10, 10])
      assert.deepEqual(await sharesOf(worker, 40, ...groups), [0, 40, 0])
    },
  },
  {
    name: 'tenants: shares go by weight',
    promise: 'A tenant of weight 3 gets three starts for each one of a tenant of weight 1, one of a half the half.',
    needs: [],
    async run(kit) {
      const heavy = await kit.enqueueMany(90, of('heavy', 3))
      const usual = await kit.enqueueMany(90, of('usual'))
      const light = await kit.enqueueMany(90, of('light', 0.5))
      const shares = await sharesOf(await kit.worker(), 90, heavy, usual, light)
      for (const [at, expected] of [60, 20, 10].entries())
        assert(Math.abs(shares[at]! - expected) <= 1, `shares of 3 : 1 : 0.5 in 90 starts were ${shares.join(' : ')}`)
    },
  },
  {
    name: 'tenants: inside of one it is first come, first served',
    promise: 'FIFO inside a tenant, over any number of calls and whatever the kind.',
    needs: [],
    async run(kit) {
      const ids: string[] = []
      for (let i = 0; i < 12; i++) {
        ids.push(...(await kit.enqueueMany(1 + (i % 3), { ...of('a'), kind: i % 2 === 0 ? 'work' : 'other' })))
        await kit.enqueueMany(2, of('b'))
      }
      const worker = await kit.worker()
      const taken: string[] = []
      for (let round = 0; round < 10; round++) taken.push(...idsOf(await worker.take(7)))
      assert.deepEqual(
        taken.filter((id) => ids.includes(id)),
        ids,
      )
    },
  },
  {
    name: 'tenants: nobody saves anything up',
    promise:
      'A tenant that was away while another one was served has no claim on what it missed: from now on they take turns.',
    needs: [],
    async run(kit) {
      const busy = await kit.enqueueMany(400, of('busy'))
      const worker = await kit.worker()
      await worker.take(200)
      const back = await kit.enqueueMany(200, of('back'))
      const [ofBusy, ofBack] = await sharesOf(worker, 200, busy, back)
      assert.deepEqual([ofBusy, ofBack], [100, 100])
    },
  },
  {
    name: 'tenants: who has less waiting than it had starts there',
    promise: 'A tenant of whom nothing waits any more starts afresh: what was cancelled does not count against it.',
    needs: ['control'],
    async run(kit) {
      const cancelled = await kit.enqueueMany(100, of('a'))
      await kit.enqueueMany(100, of('b'))
      await kit.control.cancel(cancelled)
      const afresh = await kit.enqueueOne(of('a'))
      assert(idsOf(await (await kit.worker()).take(2)).includes(afresh))
    },
  },
  {
    name: 'tenants: a purged tenant starts afresh',
    promise: 'What a purge deleted does not count against its tenant: its next job is among the next two that start.',
    needs: ['control'],
    async run(kit) {
      await kit.enqueueMany(100, of('a'))
      await (await kit.worker()).take(10)
      assert.deepEqual(await kit.control.purge('q', 1_000), { deleted: 90, more: false })
      await kit.enqueueMany(100, of('b'))
      const afresh = await kit.enqueueOne(of('a'))
      assert(idsOf(await (await kit.worker()).take(2)).includes(afresh))
    },
  },
  {
    name: 'tenants: jobs for tomorrow delay nobody today',
    promise: 'A delayed job takes its share when it becomes due, not before.',
    needs: [],
    async run(kit) {
      const later = await kit.enqueueMany(50, { ...of('a'), due: { delayMs: HOUR_MS } })
      await kit.enqueueMany(50, of('b'))
      const today = await kit.enqueueOne(of('a'))
      const worker = await kit.worker()
      assert(idsOf(await worker.take(2)).includes(today))
      await kit.pass(HOUR_MS + kit.marginMs, worker)
      await kit.promote()
      assert.deepEqual(await sharesOf(worker, 40, later), [20])
    },
  },
  {
    name: 'tenants: a retry takes its share anew, what is given back does not',
    promise: 'A retry stands behind what waits of its tenant; a job that never ran goes ahead of it.',
    needs: [],
    async run(kit) {
      const worker = await kit.worker()
      const failing = await kit.enqueueOne(of('a'))
      await worker.settle(threw(await worker.takeOne(), 1_000))
      const ids = await kit.enqueueMany(2, of('a'))
      await kit.advance(1_000 + kit.marginMs)
      await kit.promote()
      const first = await worker.takeOne()
      assert.equal(first.job.id, ids[0])
      await worker.settle(givenBack(first))
      assert.deepEqual(idsOf(await worker.take(3)), [...ids, failing])
    },
  },
  {
    name: 'tenants: jobs without one are one together',
    promise: 'Where some jobs have tenants, those that have none share as one tenant of weight 1.',
    needs: [],
    async run(kit) {
      await kit.enqueueOne(of('first'))
      const without = await kit.enqueueMany(60)
      const ofTenant = await kit.enqueueMany(60, of('a'))
      const worker = await kit.worker()
      await worker.take(2)
      const [plain, shared] = await sharesOf(worker, 40, without, ofTenant)
      assert(Math.abs(plain! - shared!) <= 2, `shares were ${plain} : ${shared}`)
    },
  },
  {
    name: 'tenants: priority stands above shares',
    promise: 'Shares are inside a priority: a higher one of the same age goes first, whoever it is of.',
    needs: [],
    async run(kit) {
      await kit.enqueueMany(5, of('a'))
      await kit.enqueueMany(5, of('b'))
      const high = await kit.enqueueMany(4, { ...of('a'), priority: 8 })
      const urgent = await kit.enqueueOne({ priority: 12 })
      assert.deepEqual(idsOf(await (await kit.worker()).take(5)), [urgent, ...high])
    },
  },
  {
    name: 'tenants: who comes in one by one does not keep a backlog waiting',
    promise:
      'Tenants that enqueue their next job as each one ends pass nobody who waits: a backlog beside them gets its turns.',
    needs: [],
    async run(kit) {
      const backlog = await kit.enqueueMany(60, of('backlog'))
      const worker = await kit.worker()
      let [ofBacklog, starts] = [0, 0]
      await kit.enqueueOne(of('chain'))
      for (; starts < 40; starts++) {
        const held = await worker.takeOne()
        await worker.settle(returned(held))
        if (backlog.includes(held.job.id)) ofBacklog += 1
        else await kit.enqueueOne(of('chain'))
      }
      assert(Math.abs(ofBacklog - starts / 2) <= 2, `${ofBacklog} of ${starts} starts were of the backlog`)
    },
  },
  {
    name: 'tenants: they are of one queue',
    promise: 'What a tenant has waiting in one queue does not count in another one.',
    needs: [],
    async run(kit) {
      await kit.enqueueMany(50, { ...of('a'), queue: 'other' })
      await kit.enqueueMany(50, of('b'))
      const ids = await kit.enqueueMany(5, of('a'))
      assert.deepEqual(await sharesOf(await kit.worker(), 10, ids), [5])
    },
  },
  {
    name: 'tenants: what waits is listed in the order of its turns',
    promise: 'A list of what is ready shows the shares of tenants: the order in which claims come to them.',
    needs: ['inspect'],
    async run(kit) {
      await kit.enqueueMany(6, of('a'))
      await kit.enqueueMany(3, of('b'))
      const listed = await listOf(kit)
      assert.deepEqual(idsOf(await (await kit.worker()).take(9)), listed)
    },
  },
]

async function listOf(kit: Kit): Promise<string[]> {
  const ids: string[] = []
  let after: string | undefined
  do {
    const page = await kit.inspect.list({ state: 'ready', limit: 4, ...(after === undefined ? {} : { after }) })
    ids.push(...page.jobs.map(({ id }) => id))
    after = page.next ?? undefined
  } while (after !== undefined)
  return ids
}
