/** Start and stop, in every order and with every kind of store. */
import assert from 'node:assert/strict'
import test from 'node:test'
import type { Storage } from '../../src/storage/storage.js'
import type { Worker } from '../../src/worker/index.js'
import { changed, Gate, handler, realKit, virtualKit } from './kit.js'

function never(): Promise<never> {
  return new Promise(() => {})
}

/** A store whose every call fails, or is never answered, while the switch is on. */
class Outage {
  mode: 'none' | 'fails' | 'hangs' = 'none'
  calls = 0

  wrap = (storage: Storage): Storage =>
    new Proxy(storage, {
      get: (target, key) => {
        const value = Reflect.get(target, key, target) as unknown
        if (key === 'upkeep' || key === 'wake') return this.wrap(value as Storage)
        if (typeof value !== 'function' || key === 'listen')
          return typeof value === 'function' ? value.bind(target) : value
        return (...args: unknown[]) => {
          if (this.mode !== 'none') this.calls += 1
          if (this.mode === 'fails') return Promise.reject(new Error('connection refused'))
          if (this.mode === 'hangs') return never()
          return value.apply(target, args)
        }
      },
    })
}

test('B21: stop claims nothing more, lets running jobs finish, and leaves the rest untouched', async () => {
  const { time, kit } = virtualKit()
  const ids = await kit.enqueue(105)
  const worker = kit.worker([handler(() => time.sleep(3_000))], { concurrency: 5, shutdownGrace: '10s' })
  await worker.start()
  await time.advance(50)
  const startedAt = time.monotonic()
  const stopped = worker.stop()
  await time.runUntil(stopped)
  assert.ok(time.monotonic() - startedAt < 3_200)
  const views = await kit.views(ids)
  assert.equal(views.filter((view) => view!.state === 'completed').length, 5)
  assert.equal(views.filter((view) => view!.state === 'ready' && view!.history === null).length, 100)
  assert.equal(kit.all('job.started').length, 5)
})

test('B22: at the end of the grace the signal fires, and what goes on is given back without the cost of an attempt', async () => {
  const { time, kit } = virtualKit()
  const ids = await kit.enqueue(2)
  const reasons: string[] = []
  let heeds = true
  const worker = kit.worker(
    [
      handler((_, { signal }) => {
        const heeding = heeds
        heeds = false
        return new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            reasons.push((signal.reason as { code: string }).code)
            if (heeding) reject(signal.reason)
          })
        })
      }),
    ],
    { concurrency: 2 },
  )
  await worker.start()
  await time.advance(50)
  const startedAt = time.monotonic()
  await time.runUntil(worker.stop({ grace: '5s' }))
  assert.ok(time.monotonic() - startedAt <= 6_000)
  assert.deepEqual(reasons, ['SHUTDOWN', 'SHUTDOWN'])
  for (const view of await kit.views(ids)) {
    assert.equal(view!.state, 'ready')
    assert.equal(view!.history!.attempts, 0)
    assert.equal(view!.history!.entries[0]!.outcome, 'given back')
    assert.equal(view!.history!.entries[0]!.note, 'shutdown')
  }
  // Another worker starts them at once.
  await time.runUntil(kit.worker([handler()]).runUntilEmpty())
  assert.ok((await kit.views(ids)).every((view) => view!.state === 'completed'))
})

test('beats go on while running jobs finish: a grace longer than the lease loses nothing', async () => {
  const { time, kit } = virtualKit()
  const [id] = await kit.enqueue()
  const other = kit.worker([handler()], { lease: '1s', beat: '300ms' })
  const worker = kit.worker([handler(() => time.sleep(20_000))], { lease: '1s', beat: '300ms' })
  await worker.start()
  await time.advance(50)
  await other.start()
  await time.runUntil(worker.stop())
  assert.deepEqual([(await kit.view(id!)).state, kit.all('job.lost').length], ['completed', 0])
  await time.runUntil(other.stop())
})

test('an at-most-once job aborted at a shutdown is dead (lost), not given back', async () => {
  const { time, kit } = virtualKit()
  const [id] = await kit.enqueue(1, { spec: { delivery: 'at-most-once' } })
  const worker = kit.worker([handler(() => never(), { delivery: 'at-most-once' })])
  await worker.start()
  await time.advance(50)
  await time.runUntil(worker.stop({ grace: '1s' }))
  const view = await kit.view(id!)
  assert.deepEqual([view.state, view.reason], ['dead', 'lost'])
})

for (const mode of ['fails', 'hangs'] as const) {
  test(`B23: stop settles although the store never answered (${mode})`, async () => {
    const outage = new Outage()
    outage.mode = mode
    const { time, kit } = virtualKit(outage.wrap)
    const worker = kit.worker([handler()])
    await worker.start()
    await time.advance(300)
    const startedAt = time.monotonic()
    await time.runUntil(worker.stop({ grace: '2s' }))
    assert.ok(time.monotonic() - startedAt <= 3_000, `${time.monotonic() - startedAt} ms`)
    assert.equal(time.pending, 0)
  })

  test(`stop settles within grace and a second when the store goes away under running jobs (${mode})`, async () => {
    const outage = new Outage()
    const { time, kit } = virtualKit(outage.wrap)
    await kit.enqueue(30)
    const worker = kit.worker([handler(() => time.sleep(1_000))])
    await worker.start()
    await time.advance(500)
    outage.mode = mode
    await time.advance(3_000)
    const startedAt = time.monotonic()
    await time.runUntil(worker.stop({ grace: '4s' }))
    assert.ok(time.monotonic() - startedAt <= 5_000, `${time.monotonic() - startedAt} ms`)
    assert.equal(time.pending, 0)
  })
}

test('outcomes reached during an outage are settled once it is over, also during the grace', async () => {
  const outage = new Outage()
  const { time, kit } = virtualKit(outage.wrap)
  const [id] = await kit.enqueue()
  const worker = kit.worker([handler(() => time.sleep(1_000))])
  await worker.start()
  await time.advance(500)
  outage.mode = 'fails'
  await time.advance(2_000)
  const stopped = worker.stop()
  await time.advance(4_000)
  outage.mode = 'none'
  await time.runUntil(stopped)
  assert.equal((await kit.view(id!)).state, 'completed')
})

test('B25: twenty workers on one store stop all at once in no time', async () => {
  const { time, kit } = virtualKit()
  const workers = Array.from({ length: 20 }, () => kit.worker([handler()]))
  await Promise.all(workers.map((worker) => worker.start()))
  await time.advance(10_000)
  const startedAt = time.monotonic()
  await time.runUntil(Promise.all(workers.map((worker) => worker.stop())))
  assert.ok(time.monotonic() - startedAt < 100)
  assert.equal(time.pending, 0)
})

const ORDERS: [string, (worker: Worker) => Promise<unknown>, 'stopped' | 'ok'][] = [
  ['stop without start', (w) => w.stop(), 'stopped'],
  ['stop twice', (w) => Promise.all([w.start(), w.stop(), w.stop()]), 'stopped'],
  ['start twice', (w) => Promise.all([w.start(), w.start()]), 'ok'],
  ['start, stop, start', (w) => Promise.all([w.start(), w.stop(), w.start()]), 'ok'],
  ['start, stop, start, stop', (w) => Promise.all([w.start(), w.stop(), w.start(), w.stop()]), 'stopped'],
  ['stop, start', (w) => Promise.all([w.stop(), w.start()]), 'ok'],
  [
    'one after another',
    async (w) => {
      await w.start()
      await w.stop()
      await w.start()
      await w.stop()
      await w.start()
    },
    'ok',
  ],
]

for (const [name, order, end] of ORDERS) {
  test(`B27: ${name}: all promises settle, the last call wins, and it works afterwards`, async () => {
    const { time, kit } = virtualKit()
    const worker = kit.worker([handler()])
    await time.runUntil(Promise.resolve(order(worker)), 60_000)
    await time.advance(1_000)
    assert.equal(worker.health().status, end)
    await worker.start()
    await kit.enqueue(3)
    await time.advance(1_000)
    assert.equal(kit.all('job.completed').length, 3)
    await time.runUntil(worker.stop())
    assert.equal(time.pending, 0)
  })
}

test('a second stop with less grace hurries the first', async () => {
  const { time, kit } = virtualKit()
  await kit.enqueue()
  const worker = kit.worker([handler(() => never())])
  await worker.start()
  await time.advance(50)
  const slow = worker.stop({ grace: '1h' })
  await time.advance(1_000)
  const startedAt = time.monotonic()
  await time.runUntil(Promise.all([slow, worker.stop({ grace: 0 })]))
  assert.ok(time.monotonic() - startedAt <= 1_000)
})

test('run() drains at the first signal and ends at once at the second, without ending the process', async () => {
  const kit = realKit()
  const [id] = await kit.enqueue()
  const worker = kit.worker([handler(() => never())], { signals: true })
  const ran = worker.run()
  await kit.next('job.started')
  process.emit('SIGTERM', 'SIGTERM')
  assert.equal((await kit.next('worker.draining')).reason, 'SIGTERM')
  assert.equal(worker.health().draining, true)
  process.emit('SIGINT', 'SIGINT')
  await ran
  assert.equal((await kit.view(id!)).history!.entries[0]!.outcome, 'given back')
  assert.equal(process.listenerCount('SIGTERM'), 0)
})

test('run() without signals leaves them to the application', async () => {
  const kit = realKit()
  const worker = kit.worker([handler()])
  const ran = worker.run()
  assert.equal(process.listenerCount('SIGTERM'), 0)
  await worker.stop()
  await ran
})

test('runUntilEmpty on a running worker is refused', async () => {
  const { time, kit } = virtualKit()
  const worker = kit.worker([handler()])
  await worker.start()
  await assert.rejects(worker.runUntilEmpty(), { code: 'WORKER_STOPPED' })
  await time.runUntil(worker.stop())
})

test('B15: thousands of tiny jobs under beats each millisecond leave no lost lease, timer or rejection behind', async () => {
  const unhandled: unknown[] = []
  const listener = (error: unknown): void => void unhandled.push(error)
  process.on('unhandledRejection', listener)
  let slow: ((ms: number) => Promise<void>) | undefined
  const { time, kit } = virtualKit((storage) =>
    changed(storage, {
      beat: async (beat) => {
        await slow?.(50)
        const answer = await storage.beat(beat)
        await slow?.(50)
        return answer
      },
    }),
  )
  slow = (ms) => time.sleep(ms)
  await kit.enqueue(20_000, { spec: { keep: 'none' } })
  const worker = kit.worker([handler(() => time.sleep(3 * time.random()))], {
    beat: '1ms',
    lease: '1s',
    concurrency: 200,
  })
  await time.runUntil(worker.runUntilEmpty())
  process.off('unhandledRejection', listener)
  assert.equal(worker.stats().completed, 20_000)
  assert.equal(kit.all('job.lost').length, 0)
  assert.deepEqual(unhandled, [])
  // Late answers of beats that were given up are the store's own timers.
  await time.advance(200)
  assert.equal(time.pending, 0)
})

test('a claim that is answered only after the stop gives its jobs back', async () => {
  const gate = new Gate()
  let holding = false
  const { time, kit } = virtualKit((storage) =>
    changed(storage, {
      claim: async (request) => {
        const answer = await storage.claim(request)
        if (holding) await gate.passed
        return answer
      },
    }),
  )
  const worker = kit.worker([handler()])
  await worker.start()
  await time.advance(100)
  holding = true
  const ids = await kit.enqueue(5)
  await time.advance(20)
  assert.equal((await kit.view(ids[0]!)).state, 'running')
  const stopped = worker.stop()
  await time.advance(1_000)
  gate.open()
  await time.runUntil(stopped)
  assert.ok((await kit.views(ids)).every((view) => view!.state === 'ready' && view!.history === null))
})

test('outcomes that ride on a claim that is never answered are settled by a stop all the same', async () => {
  const { time, kit } = virtualKit((storage) =>
    changed(storage, {
      claim: (request) => (request.finished?.length ? never() : storage.claim(request)),
    }),
  )
  const ids = await kit.enqueue(10)
  const worker = kit.worker([handler(() => time.sleep(3))])
  await worker.start()
  await time.advance(4)
  kit.connection.hints.tell('queue')
  await time.advance(100)
  await time.runUntil(worker.stop({ grace: '3s' }))
  assert.ok((await kit.views(ids)).every((view) => view!.state === 'completed'))
})
