/** What only the memory store promises; all else is in the conformance suite. */
import { strict as assert } from 'node:assert'
import { test } from 'node:test'
import fc from 'fast-check'
import { QueueError } from '../../src/core/errors.js'
import { SPEC_DEFAULTS } from '../../src/core/job.js'
import { SortedList } from '../../src/storage/memory/sorted-list.js'
import type { NewJob } from '../../src/storage/storage.js'
import { openMemory, VirtualTime } from '../../src/testing/index.js'

type Item = { key: [number, number] }

test('a sorted list is always in order and loses nothing', () => {
  const act = fc.record({ add: fc.boolean(), key: fc.tuple(fc.integer({ min: -50, max: 50 }), fc.nat(40)) })
  fc.assert(
    fc.property(fc.array(act, { maxLength: 3_000 }), (acts) => {
      const list = new SortedList<Item>(({ key }) => key)
      const model = new Map<string, Item>()
      for (const { add, key } of acts) {
        const known = model.get(String(key))
        if (add && known === undefined) {
          const item = { key }
          list.add(item)
          model.set(String(key), item)
        }
        if (!add) {
          assert.equal(list.delete(known ?? { key }), known !== undefined)
          model.delete(String(key))
        }
      }
      const expected = [...model.values()].sort((a, b) => a.key[0] - b.key[0] || a.key[1] - b.key[1])
      assert.deepEqual([...list.items()], expected)
      assert.deepEqual([list.size, list.first()], [expected.length, expected[0]])
      const middle = expected[expected.length >> 1]
      if (middle !== undefined)
        assert.deepEqual([...list.items(middle.key)], expected.slice((expected.length >> 1) + 1))
    }),
    { numRuns: 40 },
  )
})

test('a sorted list of many splits and joins on', () => {
  const list = new SortedList<Item>(({ key }) => key)
  const items = Array.from({ length: 5_000 }, (_, i): Item => ({ key: [(i * 7_919) % 5_000, 0] }))
  for (const item of items) list.add(item)
  assert.deepEqual(
    list.take(3).map(({ key }) => key[0]),
    [0, 1, 2],
  )
  for (const item of items.filter((_, i) => i % 3 > 0)) assert(list.delete(item))
  assert.deepEqual([...list.items()].length, Math.ceil(5_000 / 3))
  assert.deepEqual(
    list.take(9, ({ key }) => key[0] < 0),
    [],
  )
  assert.deepEqual(list.take(0), [])
})

test('it has no transactions, and says so', async () => {
  await assert.rejects(
    openMemory().enqueue([], { tx: {} }),
    (error) => error instanceof QueueError && error.code === 'CAPABILITY_MISSING',
  )
})

test('a wall clock that jumps changes nothing', async () => {
  const time = new VirtualTime()
  let jumpMs = 0
  const store = openMemory({
    env: {
      now: () => time.now() + jumpMs,
      monotonic: () => time.monotonic(),
      random: () => time.random(),
      id: () => time.id(),
      timer: (ms, run) => time.timer(ms, run),
      sleep: (ms, signal) => time.sleep(ms, signal),
      soon: (run) => time.soon(run),
    },
  })
  await store.enqueue([job(time, { delayMs: 1_000 })])
  for (jumpMs of [86_400_000, -86_400_000]) assert.deepEqual((await store.upkeep.promote(9)).moved, [])
  await time.advance(1_000)
  assert.equal((await store.upkeep.promote(9)).moved.length, 1)
})

test('a cursor that is none is refused', async () => {
  await assert.rejects(
    openMemory().inspect.list({ state: 'ready', limit: 1, after: 'nonsense' }),
    (error) => error instanceof QueueError && error.field === 'after',
  )
})

test('a late settlement hears `lost` for an hour, and is never done', async () => {
  const time = new VirtualTime()
  const store = openMemory({ env: time })
  const worker = time.id()
  const info = { name: '', queues: ['q'], concurrency: 1, leaseMs: 10_000, beatMs: 3_000 }
  const beat = { worker, known: 0, leases: [], started: [], mainLagMs: 0, info }
  await store.beat({ ...beat, n: 1 })
  await store.enqueue([job(time, { delayMs: 0 })])
  const queues = [{ queue: 'q', share: 1, turn: 0 }]
  const request = { worker, request: 1, queues, limit: 1, kinds: ['work'], apart: [], pollMs: 5_000, suspects: false }
  const { leases } = await store.claim(request)
  await store.beat({ ...beat, n: 2, known: 1 })
  const late = { fence: leases[0]!.fence, ordinal: 0, to: 'completed', keep: true, history: null } as const
  assert.deepEqual(await store.settle([late]), ['lost'])
  await time.advance(3_600_001)
  await store.upkeep.prune({ completedMs: 1, deadMs: 1, limit: 9 })
  assert.deepEqual(await store.settle([late]), ['already'])
  assert.equal((await store.inspect.counts('q')).ready.count, 1)
})

function job(time: VirtualTime, due: NewJob['due']): NewJob {
  return { id: time.id(), kind: 'work', queue: 'q', priority: 4, payload: 'null', spec: SPEC_DEFAULTS, due }
}
