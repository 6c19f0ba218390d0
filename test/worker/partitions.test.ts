/** A worker of a queue over several stores: one of each, with its share of the slots, in one process. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { QueueError } from '../../src/core/errors.js'
import { openMemory } from '../../src/storage/memory/index.js'
import type { Storage } from '../../src/storage/storage.js'
import { VirtualTime } from '../../src/testing/virtual-time.js'
import { partitioned, type Sketch } from '../support/partitioned.js'
import { changed, Gate, handler, Kit } from './kit.js'
import { makeSuspect, QUICK } from './process.js'

/** Two memory stores, each with a kit of its own, and one over both. */
function twoStores(
  wrap: (storage: Storage, index: number) => Storage = (storage) => storage,
  more: Partial<Sketch> = {},
) {
  const time = new VirtualTime()
  const stores = [0, 1].map((index) => wrap(openMemory({ env: time }), index))
  const [one, two] = stores.map((storage) => new Kit(time, storage)) as [Kit, Kit]
  const sketches = stores.map((storage, index) => ({ name: ['one', 'two'][index]!, storage }))
  const both = new Kit(time, partitioned([sketches[0]!, { ...sketches[1]!, ...more }], 'tenant', time))
  return { time, one, two, both }
}

test('it works on all stores, and what it was given by one it says to that one alone', async () => {
  const given: Set<number>[] = [new Set(), new Set()]
  const strange: number[] = []
  const { time, one, two, both } = twoStores((storage, index) =>
    changed(storage, {
      claim: async (request) => {
        const claim = await storage.claim(request)
        for (const { fence } of claim.leases) given[index]!.add(fence)
        strange.push(...(request.finished ?? []).map(({ fence }) => fence).filter((fence) => !given[index]!.has(fence)))
        return claim
      },
      settle: async (settlements) => {
        strange.push(...settlements.map(({ fence }) => fence).filter((fence) => !given[index]!.has(fence)))
        return storage.settle(settlements)
      },
      beat: async (beat) => {
        strange.push(...beat.leases.filter((fence) => !given[index]!.has(fence)))
        return storage.beat(beat)
      },
    }),
  )
  // Other numbers of jobs, so that the fences differ.
  const ids = [...(await one.enqueue(30)), ...(await two.enqueue(170))]
  const worker = both.worker([handler(async () => void (await time.sleep(5)))], { concurrency: 3, ...QUICK })
  const stats = await time.runUntil(worker.runUntilEmpty())
  assert.equal(stats.completed, 200)
  assert.deepEqual(new Set((await both.views(ids)).map((view) => view!.state)), new Set(['completed']))
  assert.deepEqual(strange, [])
  assert.ok(given.every((fences) => fences.size > 0))
})

test('its slots are shared out, each store has one at least', async () => {
  const { time, one, two, both } = twoStores()
  assert.throws(() => both.worker([handler()], { concurrency: 1 }), { code: 'INVALID_OPTION', field: 'concurrency' })
  const gate = new Gate()
  await one.enqueue(10)
  await two.enqueue(10)
  let running = 0
  const worker = both.worker(
    [
      handler(() => {
        running += 1
        return gate.passed
      }),
    ],
    { concurrency: 5 },
  )
  await worker.start()
  await time.advance(1_000)
  assert.equal(running, 5)
  const { concurrency, running: busy, partitions } = worker.health()
  assert.deepEqual([concurrency, busy], [5, 5])
  assert.deepEqual([partitions!.one!.running, partitions!.two!.running], [3, 2])
  gate.open()
  await time.runUntil(worker.stop())
})

test('a store that is away is waited for, and holds up none of the others', async () => {
  let isAway = true
  const open = async (): Promise<void> => {
    if (isAway) throw new QueueError('STORE_UNAVAILABLE', 'nobody listens there')
  }
  const { time, one, two, both } = twoStores(undefined, { open })
  const [here] = await one.enqueue(1)
  const [there] = await two.enqueue(1)
  const worker = both.worker([handler()], QUICK)
  await worker.start()
  await time.advance(5_000)
  assert.equal((await one.view(here!)).state, 'completed')
  assert.equal((await two.view(there!)).state, 'ready')
  const health = worker.health()
  assert.deepEqual([health.status, health.failing], ['degraded', ['open']])
  assert.equal(health.partitions!.one!.status, 'ok')
  isAway = false
  await time.advance(10_000)
  assert.equal((await two.view(there!)).state, 'completed')
  assert.equal(worker.health().status, 'ok')
  await time.runUntil(worker.stop())
  assert.equal(worker.health().status, 'stopped')
})

test('it stops also while a store is waited for', async () => {
  const open = (): Promise<void> => new Promise(() => {})
  const { time, both } = twoStores(undefined, { open })
  const worker = both.worker([handler()], QUICK)
  await worker.start()
  await time.advance(100)
  await time.runUntil(worker.stop())
  assert.equal(worker.health().status, 'stopped')
})

test('empty is what all stores are at once: a job of one may enqueue one for another', async () => {
  const { time, one, two, both } = twoStores()
  await one.enqueue(1, { kind: 'first' })
  let last: string[] = []
  const first = handler(
    async () => {
      await time.sleep(3_000)
      last = await two.enqueue(1)
    },
    { kind: 'first' },
  )
  await time.runUntil(both.worker([first, handler()]).runUntilEmpty())
  assert.equal((await two.view(last[0]!)).state, 'completed')
})

test('a suspect of one store runs alone in the whole process: the others end first, claim nothing, and then go on', async () => {
  const { time, one, two, both } = twoStores()
  const suspect = await makeSuspect(one, time, 20_000)
  await one.enqueue(500)
  await two.enqueue(2_000)
  const beside: number[] = []
  let running = 0
  const alone = handler(
    async () => {
      const look = (): void => {
        const { unconfirmed, prefetched } = worker.health()
        beside.push(running, unconfirmed, prefetched)
      }
      // Its own start is being told.
      beside.push(running)
      for (let second = 0; second < 4; second++) {
        await time.sleep(500)
        look()
      }
    },
    { kind: 'suspect' },
  )
  const normal = handler(async () => {
    running += 1
    await time.sleep(80)
    running -= 1
  })
  const worker = both.worker([alone, normal])
  await worker.start()
  await time.advance(120_000)
  assert.equal((await one.view(suspect)).state, 'completed')
  assert.deepEqual(beside, new Array(13).fill(0))
  assert.equal(both.all('job.completed').length, 2_501)
  await time.runUntil(worker.stop())
})

test('two suspects of two stores run one after the other', async () => {
  const { time, one, two, both } = twoStores()
  const suspects = [await makeSuspect(one, time, 20_000), await makeSuspect(two, time, 1_000)]
  await time.advance(20_000)
  let running = 0
  const beside: number[] = []
  const alone = handler(
    async () => {
      beside.push(running++)
      await time.sleep(1_000)
      running -= 1
    },
    { kind: 'suspect' },
  )
  const worker = both.worker([alone])
  await worker.start()
  await time.advance(120_000)
  assert.deepEqual(beside, [0, 0])
  for (const view of await both.views(suspects)) assert.equal(view!.state, 'completed')
  await time.runUntil(worker.stop())
})
