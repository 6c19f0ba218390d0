/** Cases of pruning: what is kept, for how long and how much of it. */
import { strict as assert } from 'node:assert'
import type { Retention } from '../../../storage/storage.js'
import type { ConformanceCase } from '../case.js'
import { DAY_MS, HOUR_MS, type Kit } from '../kit.js'
import { givenBack, rejected, returned, type TestWorker, threw } from '../worker.js'

export const RETENTION: ConformanceCase[] = [
  {
    name: 'prune: records go when their retention is over, dead letters later, and nothing else',
    promise: 'Completed and dead are kept for as long as was said, each for its own time.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const ids = await kit.enqueueMany(5)
      const worker = await kit.worker()
      const held = await worker.take(3)
      await kit.control.cancel([ids[4]!])
      await worker.settle(returned(held[0]!), threw(held[1]!, 90 * DAY_MS), rejected(held[2]!))
      const known = async (): Promise<number[]> =>
        (await kit.inspect.get(ids)).flatMap((view, i) => (view === null ? [] : [i]))
      await kit.advance(DAY_MS - HOUR_MS)
      await prune(kit)
      assert.deepEqual(await known(), [0, 1, 2, 3, 4])
      await kit.advance(3 * DAY_MS)
      await prune(kit)
      assert.deepEqual(await known(), [1, 2, 3])
      await kit.advance(30 * DAY_MS)
      await prune(kit)
      assert.deepEqual(await known(), [1, 3])
    },
  },
  {
    name: 'prune: a step is bounded and says whether there is more',
    promise: 'Upkeep goes in small bounded steps.',
    needs: ['inspect'],
    async run(kit) {
      const worker = await kit.worker()
      await kit.enqueueMany(10, { spec: { attempts: 1 } })
      await worker.settle(...(await worker.take(10)).map((held) => threw(held)))
      await kit.advance(31 * DAY_MS)
      let steps = 0
      while ((await kit.store.upkeep.prune({ completedMs: DAY_MS, deadMs: 30 * DAY_MS, limit: 3 })).more) {
        assert((await kit.inspect.counts('q')).dead.count >= 10 - 3 * ++steps)
        assert(steps < 20)
      }
      assert.equal((await kit.inspect.counts('q')).dead.count, 0)
    },
  },
  {
    name: 'prune: a late settlement of what was pruned is no new job',
    promise: 'A repeat changes nothing, however late.',
    needs: ['inspect'],
    async run(kit) {
      const id = await kit.enqueueOne()
      const worker = await kit.worker()
      const held = await worker.takeOne()
      await worker.settle(returned(held))
      await kit.advance(4 * DAY_MS)
      await prune(kit)
      assert.deepEqual(await kit.store.settle([givenBack(held)]), ['already'])
      assert.deepEqual(await kit.inspect.get([id]), [null])
    },
  },
  {
    name: 'prune: of each queue the newest so many records stay, completed, cancelled and dead apart',
    promise: 'Retention by count, for completed and dead apart.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const worker = await kit.worker()
      const completed = {
        q: await completeOneByOne(kit, worker, 'q', 5),
        r: await completeOneByOne(kit, worker, 'r', 2),
      }
      const dead = await kit.enqueueMany(4, { spec: { attempts: 1 } })
      for (const held of await worker.take(4)) {
        await worker.settle(threw(held))
        await kit.pass(kit.marginMs + 1, worker)
      }
      const waiting = await kit.enqueueMany(3)
      for (const id of waiting) {
        await kit.control.cancel([id])
        await kit.pass(kit.marginMs + 1, worker)
      }
      const running = await kit.enqueueOne()
      await worker.takeOne()
      await prune(kit, { completedMax: 3, deadMax: 1 })
      const known = async (ids: string[]): Promise<string[]> =>
        (await kit.inspect.get(ids)).flatMap((view) => (view ? [view.id] : []))
      assert.deepEqual(await known(completed.q), completed.q.slice(2))
      assert.deepEqual(await known(completed.r), completed.r)
      assert.deepEqual(await known(waiting), waiting)
      assert.deepEqual(await known(dead), dead.slice(3))
      assert.equal((await kit.view(running)).state, 'running')
      await prune(kit, { completedMax: 0 })
      assert.deepEqual(await known([...completed.q, ...completed.r, ...waiting]), [])
      assert.deepEqual(await known(dead), dead.slice(3))
    },
  },
  {
    name: 'prune: by count no more goes than is over it, also of records that ended at one instant',
    promise: 'Retention by count keeps what it says.',
    needs: ['inspect'],
    async run(kit) {
      const worker = await kit.worker()
      await kit.enqueueMany(10)
      await worker.settle(...(await worker.take(10)).map((held) => returned(held)))
      await kit.enqueueMany(10, { spec: { attempts: 1 } })
      await worker.settle(...(await worker.take(10)).map((held) => threw(held)))
      await prune(kit, { completedMax: 4, deadMax: 6, limit: 3 })
      const counts = await kit.inspect.counts('q')
      assert.deepEqual([counts.completed.count, counts.dead.count], [4, 6])
    },
  },
  {
    name: 'prune: an age below a day is kept to, not to the day',
    promise: 'Retention by age: what was asked to go soon goes soon.',
    needs: ['inspect'],
    async run(kit) {
      const worker = await kit.worker()
      const [old] = await completeOneByOne(kit, worker, 'q', 1)
      await kit.pass(2 * HOUR_MS, worker)
      const [young] = await completeOneByOne(kit, worker, 'q', 1)
      await kit.pass(HOUR_MS / 2, worker)
      await prune(kit, { completedMs: HOUR_MS })
      assert.deepEqual(
        (await kit.inspect.get([old!, young!])).map((view) => view?.state ?? null),
        [null, 'completed'],
      )
    },
  },
]

async function prune(kit: Kit, given: Partial<Retention & { limit: number }> = {}): Promise<void> {
  const options = { completedMs: DAY_MS, deadMs: 30 * DAY_MS, limit: 1_000, ...given }
  for (let steps = 0; steps < 100; steps++) if (!(await kit.store.upkeep.prune(options)).more) return
  assert.fail('pruning never ends')
}

/** Jobs that end at different instants, in the order of their ids. */
async function completeOneByOne(kit: Kit, worker: TestWorker, queue: string, count: number): Promise<string[]> {
  const ids: string[] = []
  for (let n = 0; n < count; n++) {
    ids.push(await kit.enqueueOne({ queue }))
    const [held] = await worker.take(1, { queues: [{ queue, share: 1, turn: 0 }] })
    await worker.settle(returned(held!))
    await kit.pass(kit.marginMs + 1, worker)
  }
  return ids
}
