/** Cases about what producers may know of a queue: who works on it, what waits, how fast it drains. */
import { strict as assert } from 'node:assert'
import type { CapacityFacts } from '../../../storage/storage.js'
import type { ConformanceCase } from '../case.js'
import { HOUR_MS, type Kit } from '../kit.js'
import { BEAT_MS, LEASE_MS, returned, threw } from '../worker.js'

const NOTHING: CapacityFacts = {
  workers: 0,
  slots: 0,
  busy: 0,
  paused: false,
  ready: { count: 0, exact: true },
  depth: { count: 0, exact: true },
  drained: { count: 0, sinceMs: 0 },
  ranMs: null,
  limits: { concurrency: null, rate: null, depth: null, intake: null, perKey: null },
}

/** What a worker of the kit says of itself. */
const INFO = { name: 'host:1', queues: ['q'], concurrency: 10, leaseMs: LEASE_MS, beatMs: BEAT_MS }

export const CAPACITY_CASES: ConformanceCase[] = [
  {
    name: 'capacity: of a queue that nobody has seen it is nothing, and none is made',
    promise: 'Asking changes nothing.',
    needs: ['inspect'],
    async run(kit) {
      assert.deepEqual(await kit.inspect.capacity('nowhere'), NOTHING)
      assert.deepEqual(await kit.inspect.queues(), [])
    },
  },
  {
    name: 'capacity: slots are those of the workers that are alive and serve the queue',
    promise: 'A producer knows how many slots there are for its jobs, and how many are taken.',
    needs: ['inspect'],
    async run(kit) {
      const slots = async (queue: string) => {
        const { workers, slots: all, busy } = await kit.inspect.capacity(queue)
        return [workers, all, busy]
      }
      const [silent, telling] = [await kit.worker(), await kit.worker(await kit.open())]
      await telling.beat({ info: { ...INFO, concurrency: 7, busy: 4, queues: ['q', 'other'] } })
      await kit.enqueueMany(3)
      // Of one that does not tell, what it holds is what it has taken.
      await silent.take(2)
      assert.deepEqual(await slots('q'), [2, INFO.concurrency + 7, 2 + 4])
      assert.deepEqual(await slots('other'), [1, 7, 4])
      await kit.advance(LEASE_MS - kit.marginMs)
      await telling.beat({ info: { ...INFO, concurrency: 7, busy: 0, queues: ['q'] } })
      await kit.advance(2 * kit.marginMs)
      assert.deepEqual(await slots('q'), [1, 7, 0])
      assert.deepEqual(await slots('other'), [0, 0, 0])
    },
  },
  {
    name: 'capacity: what waits is counted, ready jobs for themselves',
    promise: 'Depth is what a limit of depth counts; what is ready is what a new job waits for.',
    needs: ['inspect', 'control'],
    async run(kit) {
      const worker = await kit.worker()
      await kit.enqueue({}, {}, {}, {}, { due: { delayMs: HOUR_MS } }, { queue: 'other' })
      const [first, second] = await worker.take(2)
      await worker.settle(threw(first!, HOUR_MS), returned(second!))
      await worker.take(1)
      const { ready, depth } = await kit.inspect.capacity('q')
      assert.deepEqual(
        [ready, depth],
        [
          { count: 1, exact: true },
          { count: 3, exact: true },
        ],
      )
      await kit.control.pause('q')
      await kit.control.limit('q', { concurrency: 3, depth: { limit: 5, perTenant: null, kinds: { other: 2 } } })
      const { paused, limits } = await kit.inspect.capacity('q')
      assert.deepEqual(
        [paused, limits],
        [
          true,
          {
            concurrency: 3,
            rate: null,
            depth: { limit: 5, perTenant: null, kinds: { other: 2 } },
            intake: null,
            perKey: null,
          },
        ],
      )
    },
  },
  {
    name: 'capacity: the pace is that of the newest jobs that were completed within a minute',
    promise: 'How fast a queue drains follows what it does now.',
    needs: ['inspect'],
    async run(kit) {
      const worker = await kit.worker()
      const complete = async (count: number): Promise<void> => {
        await kit.enqueueMany(count)
        await worker.settle(...(await worker.take(count)).map((one) => returned(one)))
      }
      await complete(3)
      await kit.pass(40_000, worker)
      await complete(2)
      await kit.enqueueOne({ spec: { keep: 'none' } })
      await worker.settle(returned(await worker.takeOne()))
      await assertDrained(kit, 5, 40_000)
      assert.equal((await kit.inspect.capacity('q')).ranMs, 5)
      await kit.pass(20_000 + kit.marginMs, worker)
      await assertDrained(kit, 2, 20_000)
      // However many there were: 200 are enough.
      await complete(150)
      await kit.pass(5_000, worker)
      await complete(150)
      await assertDrained(kit, 200, 5_000)
      await kit.pass(60_000 + kit.marginMs, worker)
      const { drained, ranMs } = await kit.inspect.capacity('q')
      assert.deepEqual([drained, ranMs], [{ count: 0, sinceMs: 0 }, null])
    },
  },
]

async function assertDrained(kit: Kit, count: number, sinceMs: number): Promise<void> {
  const { drained } = await kit.inspect.capacity('q')
  assert.equal(drained.count, count)
  const about = drained.sinceMs >= sinceMs && drained.sinceMs <= sinceMs + 2 * kit.marginMs
  assert(about, `${drained.sinceMs} ms, and not ${sinceMs}`)
}
