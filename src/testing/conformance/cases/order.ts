/** Cases about who goes first. The rules are in core/priority.ts. */
import { strict as assert } from 'node:assert'
import type { ConformanceCase } from '../case.js'
import { HOUR_MS, type Kit } from '../kit.js'
import { givenBack, idsOf, threw } from '../worker.js'

export const ORDER: ConformanceCase[] = [
  {
    name: 'order: first come, first served inside a priority',
    promise: 'FIFO inside a priority, over any number of calls.',
    needs: [],
    async run(kit) {
      const ids: string[] = []
      for (const size of [1, 20, 3, 1, 30]) ids.push(...(await kit.enqueueMany(size)))
      const worker = await kit.worker()
      const taken: string[] = []
      for (let round = 0; round < 9; round++) taken.push(...idsOf(await worker.take(7)))
      assert.deepEqual(taken, ids)
    },
  },
  {
    name: 'order: kinds of one priority stand in one line',
    promise: 'FIFO inside a priority, whatever the kind.',
    needs: [],
    async run(kit) {
      const ids: string[] = []
      for (let i = 0; i < 30; i++) ids.push(await kit.enqueueOne({ kind: i % 3 === 0 ? 'other' : 'work' }))
      const worker = await kit.worker()
      assert.deepEqual([...idsOf(await worker.take(11)), ...idsOf(await worker.take(40))], ids)
    },
  },
  {
    name: 'order: what was delayed comes in the order of its due times, before what came in later',
    promise: 'FIFO inside a priority, by due time.',
    needs: [],
    async run(kit) {
      const ids = await kit.enqueue(...[30, 10, 20].map((s) => ({ due: { delayMs: s * 1_000 } })))
      await kit.advance(40_000)
      await kit.promote()
      await kit.advance(kit.marginMs)
      const late = await kit.enqueueOne()
      assert.deepEqual(idsOf(await (await kit.worker()).take(10)), [ids[1], ids[2], ids[0], late])
    },
  },
  {
    name: 'order: a retry after its backoff stands behind what came due before it',
    promise: 'Retries go by due time: a failing job does not hold the others up.',
    needs: [],
    async run(kit) {
      const worker = await kit.worker()
      const failing = await kit.enqueueOne()
      await worker.settle(threw(await worker.takeOne(), 30_000))
      const others = await kit.enqueueMany(3)
      await kit.advance(30_000 + kit.marginMs)
      await kit.promote()
      assert.deepEqual(idsOf(await worker.take(10)), [...others, failing])
    },
  },
  {
    name: 'order: of the same age the higher priority goes first',
    promise: 'A higher number goes first.',
    needs: [],
    async run(kit) {
      const levels = [4, 0, 15, 12, 4, 8, 1]
      const ids = await kit.enqueue(...levels.map((priority) => ({ priority })))
      const taken = await (await kit.worker()).take(10)
      assert.deepEqual(
        idsOf(taken),
        [2, 3, 5, 0, 4, 6, 1].map((i) => ids[i]),
      )
    },
  },
  {
    name: 'order: a minute of waiting counts as a level',
    promise: 'By default a low priority is never starved by a higher one.',
    needs: [],
    async run(kit) {
      const [low, mid] = await kit.enqueue({ priority: 4 }, { priority: 6 })
      await kit.advance(3 * 60_000)
      const [high, higher] = await kit.enqueue({ priority: 8 }, { priority: 6 }, { priority: 4 })
      const worker = await kit.worker()
      // By due time less a minute a level: mid -6, low -4, high 3 - 8 = -5, higher 3 - 6 = -3 minutes.
      assert.deepEqual(idsOf(await worker.take(4)), [mid, high, low, higher])
    },
  },
  {
    name: 'order: one start in sixteen goes to the oldest of the levels passed over',
    promise: 'A level that is passed over gets a start in sixteen, however many higher jobs keep coming.',
    needs: [],
    async run(kit) {
      const oldest = await kit.enqueueOne({ priority: 0 })
      await kit.advance(kit.marginMs)
      const next = await kit.enqueueOne({ priority: 4 })
      await kit.advance(kit.marginMs)
      await kit.enqueueMany(40, { priority: 12 })
      const worker = await kit.worker()
      const levels = async (turn: number): Promise<number> => (await worker.takeOne({ turn })).job.priority
      for (let turn = 0; turn < 15; turn++) assert.equal(await levels(turn), 12, `turn ${turn}`)
      assert.equal((await worker.takeOne({ turn: 15 })).job.id, oldest, 'the oldest, whatever its level')
      for (let turn = 16; turn < 31; turn++) assert.equal(await levels(turn), 12, `turn ${turn}`)
      assert.equal((await worker.takeOne({ turn: 31 })).job.id, next)
    },
  },
  {
    name: 'order: a larger claim reserves as many starts as its turns hold',
    promise: 'The share of levels passed over does not depend on how many jobs a claim takes.',
    needs: [],
    async run(kit) {
      await kit.enqueueMany(5, { priority: 0 })
      await kit.advance(kit.marginMs)
      await kit.enqueueMany(100, { priority: 12 })
      const worker = await kit.worker()
      for (const [turn, limit, low] of [
        [0, 15, 0],
        [0, 16, 1],
        [10, 22, 2],
        [7, 8, 0],
        [15, 1, 1],
        [31, 2, 1],
      ] as const) {
        const taken = await worker.take(limit, { turn })
        assert.equal(taken.length, limit)
        assert.equal(taken.filter(({ job }) => job.priority === 0).length, low, `turn ${turn}, limit ${limit}`)
      }
    },
  },
  {
    name: 'order: a reserve that nobody needs is not lost',
    promise: 'A claim is never smaller than it could be.',
    needs: [],
    async run(kit) {
      await kit.enqueueMany(20, { priority: 12 })
      await kit.enqueue({ priority: 0 })
      const taken = await (await kit.worker()).take(18, { turn: 15 })
      assert.deepEqual(
        taken.map(({ job }) => job.priority).sort((a, b) => a - b),
        [0, ...Array(17).fill(12)],
      )
    },
  },
  {
    name: 'order: strict goes by priority and by nothing else',
    promise: 'A strict queue never runs a lower one while a higher one waits.',
    needs: ['control'],
    async run(kit) {
      await kit.control.order('q', 'strict')
      const [old] = await kit.enqueue({ priority: 0 })
      await kit.advance(60 * 60_000)
      const [second, first, third] = await kit.enqueue({ priority: 1 }, { priority: 2 }, { priority: 1 })
      const worker = await kit.worker()
      assert.deepEqual(idsOf(await worker.take(2, { turn: 15 })), [first, second])
      assert.deepEqual(idsOf(await worker.take(9, { turn: 15 })), [third, old])
    },
  },
  {
    name: 'order: weighted tiers share fifteen starts eight, four, two, one',
    promise: 'Every tier gets its share, also in claims of one.',
    needs: ['control'],
    async run(kit) {
      await kit.control.order('q', 'weighted')
      for (const priority of [3, 15, 6, 10]) await kit.enqueueMany(40, { priority })
      const worker = await kit.worker()
      assert.deepEqual(tiers(await worker.take(15, { turn: 0 })), [8, 4, 2, 1])
      assert.deepEqual(tiers(await worker.take(30, { turn: 4 })), [16, 8, 4, 2])
      const singles = []
      for (let turn = 0; turn < 15; turn++) singles.push(await worker.takeOne({ turn }))
      assert.deepEqual(tiers(singles), [8, 4, 2, 1])
    },
  },
  {
    name: 'order: what a tier does not use is filled from the top',
    promise: 'A claim is never smaller than it could be; inside a tier the higher level goes first.',
    needs: ['control'],
    async run(kit) {
      await kit.control.order('q', 'weighted')
      await kit.enqueueMany(10, { priority: 4 })
      await kit.enqueueMany(3, { priority: 0 })
      await kit.enqueueMany(9, { priority: 7 })
      const worker = await kit.worker()
      const taken = (await worker.take(15)).map(({ job }) => job.priority)
      assert.deepEqual(
        [7, 4, 0].map((level) => taken.filter((priority) => priority === level).length),
        [9, 5, 1],
      )
    },
  },
  {
    name: 'order: a change takes effect with the next claim, and ageing can be had back',
    promise: 'The order of a queue is set while it runs.',
    needs: ['control'],
    async run(kit) {
      const old = await kit.enqueueMany(3, { priority: 0 })
      await kit.advance(60 * 60_000)
      const fresh = await kit.enqueueMany(3, { priority: 15 })
      const worker = await kit.worker(await kit.open())
      assert.deepEqual(idsOf(await worker.take(1)), [old[0]])
      await kit.control.order('q', 'strict')
      assert.deepEqual(idsOf(await worker.take(1)), [fresh[0]])
      await kit.control.order('q', 'ageing')
      assert.deepEqual(idsOf(await worker.take(1)), [old[1]])
    },
  },
  {
    name: 'order: what was given back goes ahead of the backlog that grew meanwhile',
    promise: 'A job that was there before does not start again at the end of the line.',
    needs: [],
    async run(kit) {
      const worker = await kit.worker()
      const before = await kit.enqueueMany(3)
      const held = await worker.take(3)
      await kit.advance(kit.marginMs)
      await backlog(kit)
      await worker.settle(...held.map(givenBack))
      assert.deepEqual(idsOf(await worker.take(3)), before)
    },
  },
  {
    name: 'order: what was given back overtakes nothing that was due before it',
    promise: 'FIFO inside a priority, by due time.',
    needs: [],
    async run(kit) {
      const worker = await kit.worker()
      const older = await kit.enqueueOne({ kind: 'other' })
      await kit.advance(kit.marginMs)
      const younger = await kit.enqueueOne()
      const held = await worker.takeOne({ kinds: ['work'] })
      assert.equal(held.job.id, younger)
      await worker.settle(givenBack(held))
      assert.deepEqual(idsOf(await worker.take(2)), [older, younger])
    },
  },
  {
    name: 'order: a job given back many times keeps its place among the priorities',
    promise: 'Giving back moves a job neither up nor down.',
    needs: [],
    async run(kit) {
      const ids: string[] = []
      for (const priority of [4, 8, 4, 8]) {
        ids.push(await kit.enqueueOne({ priority }))
        await kit.advance(1)
      }
      const worker = await kit.worker()
      for (let times = 0; times < 3; times++) {
        const held = await worker.take(3)
        assert.deepEqual(idsOf(held), [ids[1], ids[3], ids[0]])
        await worker.settle(...held.reverse().map(givenBack))
      }
    },
  },
  {
    name: 'order: jobs of one call stand in the order of the call, with keys and without',
    promise: 'FIFO inside a priority, whatever the jobs need.',
    needs: [],
    async run(kit) {
      const ids = await kit.enqueue({ key: 'a' }, {}, { spec: { expiresInMs: HOUR_MS } }, {}, { key: 'b' }, {})
      assert.deepEqual(idsOf(await (await kit.worker()).take(9)), ids)
    },
  },
]

async function backlog(kit: Kit): Promise<void> {
  await kit.enqueueMany(500)
}

function tiers(held: readonly { job: { priority: number } }[]): number[] {
  return [12, 8, 4, 0].map(
    (least) => held.filter(({ job }) => job.priority >= least && job.priority < least + 4).length,
  )
}
