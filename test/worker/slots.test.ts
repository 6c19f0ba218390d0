/** Slots, prefetch, queues and their weights: how many jobs a worker takes, and when. */
import assert from 'node:assert/strict'
import test from 'node:test'
import type { ClaimRequest, Storage } from '../../src/storage/storage.js'
import type { VirtualTime } from '../../src/testing/virtual-time.js'
import { changed, Gate, handler, type Kit, virtualKit } from './kit.js'

/** A handler that takes `ms`, and what is seen of its slots. */
function busy(time: VirtualTime, ms: number | (() => number)): { run: () => Promise<void>; most: () => number } {
  let running = 0
  let most = 0
  return {
    most: () => most,
    run: async () => {
      running += 1
      most = Math.max(most, running)
      await time.sleep(typeof ms === 'number' ? ms : ms())
      running -= 1
    },
  }
}

/** Records claims with what they brought. */
function recorded(claims: { request: ClaimRequest; got: number; atMs: number }[], now: () => number) {
  return (storage: Storage): Storage =>
    changed(storage, {
      claim: async (request) => {
        const answer = await storage.claim(request)
        const got = answer.leases.reduce((sum, { jobs }) => sum + jobs.length, 0)
        claims.push({ request, got, atMs: now() })
        return answer
      },
    })
}

function recordingKit() {
  const claims: { request: ClaimRequest; got: number; atMs: number }[] = []
  let time: VirtualTime | undefined
  const made = virtualKit(recorded(claims, () => time?.monotonic() ?? 0))
  time = made.time
  return { ...made, claims }
}

for (const ms of [0, 3, 40, 150, 2_000]) {
  test(`slots are never exceeded and all are used: jobs of ${ms} ms`, async () => {
    const { time, kit } = virtualKit()
    await kit.enqueue(200)
    const seen = busy(time, ms)
    await time.runUntil(kit.worker([handler(seen.run)], { concurrency: 7 }).runUntilEmpty())
    assert.equal(seen.most(), 7)
    assert.equal(kit.all('job.completed').length, 200)
  })
}

test('the slots stay full: 10 slots run 100 jobs of 1 s in little more than 10 s', async () => {
  const { time, kit } = virtualKit()
  await kit.enqueue(100)
  const startedAt = time.monotonic()
  await time.runUntil(kit.worker([handler(busy(time, 1_000).run)]).runUntilEmpty())
  assert.ok(time.monotonic() - startedAt < 11_500)
})

test('a first drain of no-ops ramps up within a few claims', async () => {
  const { time, kit, claims } = recordingKit()
  await kit.enqueue(20_000)
  await time.runUntil(kit.worker([handler()]).runUntilEmpty())
  assert.ok(claims[0]!.request.limit <= 30)
  assert.ok(claims.slice(0, 5).some(({ got }) => got === 500))
  assert.ok(claims.length < 60, `${claims.length} claims`)
})

test('slow jobs are claimed for free slots only, never ahead', async () => {
  const { time, kit } = virtualKit()
  await kit.enqueue(100)
  const worker = kit.worker([handler(busy(time, 1_000).run)])
  await worker.start()
  await time.advance(5_000)
  // The first claim could not know; from then on what is held is what runs.
  const held = (
    await kit.views((await kit.storage.inspect!.list({ state: 'running', limit: 100 })).jobs.map(({ id }) => id))
  ).length
  assert.equal(held, 10)
  assert.equal(worker.health().prefetched, 0)
  await time.runUntil(worker.stop())
})

test('a job that waited too long for a slot is given back unharmed, and another worker takes it', async () => {
  const { time, kit } = virtualKit()
  const gate = new Gate()
  const first = kit.worker([handler(() => gate.passed)], { concurrency: 1 })
  const ids = await kit.enqueue(3)
  await first.start()
  await time.advance(100)
  assert.equal(first.health().prefetched, 2)
  const second = kit.worker([handler()], { concurrency: 1 })
  await second.start()
  await time.advance(2_000)
  const states = (await kit.views(ids)).map((view) => [view!.state, view!.history])
  assert.deepEqual(states.slice(1), [
    ['completed', null],
    ['completed', null],
  ])
  assert.equal(first.health().prefetched, 0)
  gate.open()
  await time.runUntil(Promise.all([first.stop(), second.stop()]))
})

test('a slot that one job holds for long is not prefetched for: no give-back and claim without end', async () => {
  const { time, kit, claims } = recordingKit()
  const gate = new Gate()
  let first = true
  const worker = kit.worker(
    [
      handler(() => {
        const hangs = first
        first = false
        return hangs ? gate.passed : undefined
      }),
    ],
    { concurrency: 1 },
  )
  await kit.enqueue(1_000)
  await worker.start()
  await time.advance(60_000)
  assert.ok(claims.length < 5, `${claims.length} claims while the only slot was taken`)
  gate.open()
  await time.advance(1_000)
  assert.equal(kit.all('job.completed').length, 1_000)
  await time.runUntil(worker.stop())
})

test('B146: one job of ten minutes does not slow the other nine slots', async () => {
  const { time, kit } = virtualKit()
  await kit.enqueue(1, { kind: 'long' })
  await kit.enqueue(900)
  const long = handler(() => time.sleep(290_000), { kind: 'long' })
  const worker = kit.worker([long, handler(busy(time, 100).run)])
  await worker.start()
  await time.advance(11_500)
  assert.ok(kit.all('job.completed').length > 880, `${kit.all('job.completed').length} in 11.5 s`)
  await time.runUntil(worker.stop({ grace: 0 }))
})

test('kinds known to be slow, and at-most-once ones, get leases of their own', async () => {
  const { time, kit, claims } = recordingKit()
  const once = handler(() => {}, { kind: 'once', delivery: 'at-most-once' })
  const worker = kit.worker([handler(busy(time, 500).run), once])
  await kit.enqueue(50)
  await time.runUntil(worker.runUntilEmpty())
  assert.deepEqual(claims[0]!.request.apart, ['once'])
  assert.deepEqual(claims.at(-1)!.request.apart.toSorted(), ['kind', 'once'])
})

test('weights between queues: 3 to 1 while both have work, all for one when the other is empty', async () => {
  const { time, kit } = virtualKit()
  await kit.enqueue(300, { queue: 'a' })
  await kit.enqueue(300, { queue: 'b' })
  const worker = kit.worker([handler(busy(time, 1_000).run)], {
    concurrency: 1,
    queues: { a: 3, b: 1 },
    prefetchWindow: 0,
  })
  await worker.start()
  await time.advance(100_000)
  const started = kit.all('job.started').map(({ queue }) => queue)
  const ofA = started.filter((queue) => queue === 'a').length
  assert.ok(Math.abs(ofA / started.length - 0.75) < 0.05, `${ofA} of ${started.length}`)
  await time.runUntil(worker.stop({ grace: 0 }))
})

test('after a pause nothing of the queue starts here, also nothing prefetched', async () => {
  const { time, kit } = virtualKit()
  const gates: Gate[] = []
  const worker = kit.worker(
    [
      handler(() => {
        const gate = new Gate()
        gates.push(gate)
        return gate.passed
      }),
    ],
    { concurrency: 2, beat: '1s', prefetchWindow: '10s' },
  )
  await kit.enqueue(6)
  await worker.start()
  await time.advance(50)
  assert.equal(worker.health().prefetched, 4)
  await kit.storage.control!.pause('queue')
  await time.advance(1_500)
  assert.equal(worker.health().prefetched, 0)
  for (const gate of gates) gate.open()
  await time.advance(10_000)
  assert.equal(kit.all('job.started').length, 2)
  await kit.storage.control!.resume('queue')
  await time.advance(6_000)
  for (const gate of gates) gate.open()
  assert.ok(kit.all('job.started').length > 2)
  await time.runUntil(worker.stop({ grace: 0 }))
})

test('a pause is heard from a claim too, before the next beat', async () => {
  const { time, kit } = virtualKit()
  const gates: Gate[] = []
  const run = (): Promise<void> => {
    const gate = new Gate()
    gates.push(gate)
    return gate.passed
  }
  const worker = kit.worker([handler(run)], { concurrency: 1, beat: '4s', prefetchWindow: '10s' })
  await kit.enqueue(3)
  await worker.start()
  await time.advance(50)
  assert.equal(worker.health().prefetched, 2)
  await kit.storage.control!.pause('queue')
  gates[0]!.open()
  await time.advance(50)
  assert.equal(worker.health().prefetched, 0)
  assert.equal(kit.all('job.started').length, 2)
  await time.runUntil(worker.stop({ grace: 0 }))
})

test('a hint makes an idle worker claim at once', async () => {
  const { time, kit } = virtualKit()
  const worker = kit.worker([handler()])
  await worker.start()
  await time.advance(60_000)
  await kit.enqueue()
  await time.advance(1)
  assert.equal(kit.all('job.started').length, 1)
  await time.runUntil(worker.stop())
})

test('a hint from this very process does too, without the help of the store', async () => {
  const { time, kit } = virtualKit((storage) => changed(storage, { wake: undefined } as Partial<Storage>))
  const worker = kit.worker([handler()], { queues: ['queue'] })
  await worker.start()
  await time.advance(60_000)
  await kit.enqueue()
  kit.connection.hints.tell('another')
  await time.advance(1)
  assert.equal(kit.all('job.started').length, 0)
  kit.connection.hints.tell('queue')
  await time.advance(1)
  assert.equal(kit.all('job.started').length, 1)
  await time.runUntil(worker.stop())
})

test('hints that stop coming are noticed: from then on polling is as frequent as without them', async () => {
  let deaf = false
  const { time, kit } = virtualKit((storage) =>
    changed(storage, {
      wake: {
        listen: (queues, listener) => storage.wake!.listen(queues, (told) => (deaf ? undefined : listener(told))),
      },
    }),
  )
  const worker = kit.worker([handler()])
  await worker.start()
  const startsWithin = async (ms: number): Promise<boolean> => {
    await time.advance(60_000)
    const before = kit.all('job.started').length
    await kit.enqueue()
    await time.advance(ms)
    return kit.all('job.started').length > before
  }
  assert.equal(await startsWithin(10), true)
  deaf = true
  assert.equal(await startsWithin(6_000), true)
  for (let i = 0; i < 5; i++) assert.equal(await startsWithin(1_200), true)
  deaf = false
  assert.equal(await startsWithin(10), true)
  await time.runUntil(worker.stop())
})

test('without hints a job starts within a second of its enqueue', async () => {
  const { time, kit } = virtualKit((storage) => changed(storage, { wake: undefined } as Partial<Storage>))
  const worker = kit.worker([handler()])
  await worker.start()
  await time.advance(60_000)
  await kit.enqueue()
  await time.advance(1_200)
  assert.equal(kit.all('job.started').length, 1)
  await time.runUntil(worker.stop())
})

test('a delayed job starts on time, not at the next poll', async () => {
  const { time, kit } = virtualKit()
  const worker = kit.worker([handler()])
  await worker.start()
  await time.advance(30_000)
  await kit.enqueue(1, { due: { delayMs: 7_000 } })
  await time.advance(6_990)
  assert.equal(kit.all('job.started').length, 0)
  await time.advance(50)
  assert.equal(kit.all('job.started').length, 1)
  assert.equal(kit.all('job.promoted').length, 1)
  await time.runUntil(worker.stop())
})

test('jobs of kinds without a handler here stay for others', async () => {
  const { time, kit } = virtualKit()
  const [other] = await kit.enqueue(1, { kind: 'unknown' })
  await kit.enqueue(5)
  await time.runUntil(kit.worker([handler()]).runUntilEmpty())
  assert.equal((await kit.view(other!)).state, 'ready')
  assert.equal(kit.all('job.completed').length, 5)
})

async function idleStatements(time: VirtualTime, kit: Kit, count: () => number, ms: number): Promise<number> {
  const worker = kit.worker([handler()])
  await worker.start()
  await time.advance(100)
  await kit.enqueue()
  await time.advance(60_000)
  const before = count()
  await time.advance(ms)
  await time.runUntil(worker.stop())
  return (count() - before) / (ms / 1_000)
}

for (const hints of ['with', 'without'] as const) {
  test(`an idle worker ${hints} hints makes at most two statements a second`, async () => {
    let calls = 0
    const counting = (storage: Storage): Storage =>
      new Proxy(storage, {
        get(target, key) {
          const value = Reflect.get(target, key, target) as unknown
          if (key === 'wake' && hints === 'without') return undefined
          if (key === 'upkeep') return counting(value as Storage)
          if (typeof value !== 'function') return value
          return (...args: unknown[]) => {
            calls += 1
            return value.apply(target, args)
          }
        },
      })
    const { time, kit } = virtualKit(counting)
    const perSecond = await idleStatements(time, kit, () => calls, 120_000)
    assert.ok(perSecond <= (hints === 'with' ? 1.3 : 2.05), `${perSecond} statements a second`)
  })
}

test('runUntilEmpty stops after maxMs, and leaves what waits', async () => {
  const { time, kit } = virtualKit()
  const ids = await kit.enqueue(100)
  const startedAt = time.monotonic()
  const worker = kit.worker([handler(busy(time, 1_000).run)], { concurrency: 2 })
  await time.runUntil(worker.runUntilEmpty({ maxMs: 3_000 }))
  assert.ok(time.monotonic() - startedAt < 4_500)
  const states = (await kit.views(ids)).map((view) => view!.state)
  assert.ok(states.every((state) => state === 'completed' || state === 'ready'))
  assert.ok(states.filter((state) => state === 'completed').length >= 6)
})

test('runUntilEmpty runs what its own jobs make ready', async () => {
  const { time, kit } = virtualKit()
  let left = 5
  await kit.enqueue()
  const worker = kit.worker([
    handler(async () => {
      if (left-- > 0) await kit.enqueue()
    }),
  ])
  await time.runUntil(worker.runUntilEmpty())
  assert.equal(kit.all('job.completed').length, 6)
  assert.equal(time.pending, 0)
})
