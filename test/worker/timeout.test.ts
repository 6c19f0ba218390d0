/** Time limits, cancels, and handlers whose code does not end. */
import assert from 'node:assert/strict'
import test from 'node:test'
import type { HandlerContext } from '../../src/core/handler.js'
import { Gate, handler, virtualKit } from './kit.js'

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
}

test('B148: a handler that heeds its signal ends with it; the attempt timed out', async () => {
  const { time, kit } = virtualKit()
  const [id] = await kit.enqueue(1, { spec: { timeoutMs: 1_000 } })
  let reason: { code?: string } | undefined
  const worker = kit.worker([
    handler(async (_, { signal }) => {
      await aborted(signal).catch((error: { code?: string }) => {
        reason = error
        throw error
      })
    }),
  ])
  await worker.start()
  await time.advance(1_100)
  assert.equal(reason!.code, 'TIMEOUT')
  assert.equal(worker.health().running, 0)
  const view = await kit.view(id!)
  assert.deepEqual([view.state, view.history!.attempts], ['retrying', 1])
  assert.equal(view.history!.entries[0]!.outcome, 'timed out')
  assert.equal(kit.all('job.timed out')[0]!.timeoutMs, 1_000)
  assert.equal(kit.all('job.failed').length, 0)
  await time.runUntil(worker.stop())
})

test('B148: a handler that ignores it loses its attempt at once, keeps its slot, and its late return is refused', async () => {
  const { time, kit } = virtualKit()
  const [id] = await kit.enqueue(1, { spec: { timeoutMs: 1_000, attempts: 1 } })
  const worker = kit.worker([
    handler(async () => {
      await time.sleep(4_000)
      return 'late'
    }),
  ])
  await worker.start()
  await time.advance(1_100)
  assert.equal((await kit.view(id!)).state, 'dead')
  assert.equal(worker.health().running, 1)
  await time.advance(4_000)
  assert.equal(worker.health().running, 0)
  const view = await kit.view(id!)
  assert.deepEqual([view.state, view.result], ['dead', undefined])
  assert.equal(kit.all('job.completed').length, 0)
  await time.runUntil(worker.stop())
})

test('a late throw of a timed-out handler is nobody`s unhandled rejection', async () => {
  const { time, kit } = virtualKit()
  const unhandled: unknown[] = []
  const listener = (error: unknown): void => void unhandled.push(error)
  process.on('unhandledRejection', listener)
  await kit.enqueue(1, { spec: { timeoutMs: 1_000, attempts: 1 } })
  const worker = kit.worker([
    handler(async () => {
      await time.sleep(3_000)
      throw new Error('late')
    }),
  ])
  await worker.start()
  await time.advance(10_000)
  process.off('unhandledRejection', listener)
  assert.deepEqual(unhandled, [])
  await time.runUntil(worker.stop())
})

test('a retry does not start beside the code of the attempt before it', async () => {
  const { time, kit } = virtualKit()
  const backoff = { type: 'fixed', baseMs: 100, jitter: 0 } as const
  const [id] = await kit.enqueue(1, { spec: { timeoutMs: 1_000, attempts: 2, backoff } })
  let running = 0
  let most = 0
  const worker = kit.worker([
    handler(async () => {
      running += 1
      most = Math.max(most, running)
      await time.sleep(4_500)
      running -= 1
    }),
  ])
  await worker.start()
  await time.advance(15_000)
  assert.equal(most, 1)
  const { state, history } = await kit.view(id!)
  assert.deepEqual([state, history!.entries.map(({ outcome }) => outcome)], ['dead', ['timed out', 'timed out']])
  await time.runUntil(worker.stop())
})

test('timeouts of all lengths fire in time, with one timer', async () => {
  const { time, kit } = virtualKit()
  const lengths = [300_000, 50, 7_000, 1_000, 55, 60_000]
  for (const timeoutMs of lengths) await kit.enqueue(1, { spec: { timeoutMs, attempts: 1 } })
  const worker = kit.worker([handler((_, { signal }) => aborted(signal))])
  await worker.start()
  await time.advance(301_000)
  const lateness = kit.all('job.timed out').map(({ durationMs, timeoutMs }) => durationMs - timeoutMs)
  assert.equal(lateness.length, lengths.length)
  assert.ok(Math.max(...lateness) <= 10 && Math.min(...lateness) >= 0, lateness.join())
  await time.runUntil(worker.stop())
})

test('B152: a worker half of whose slots hang for good says so, drains, and run() rejects', async () => {
  const { time, kit } = virtualKit()
  const gate = new Gate()
  await kit.enqueue(2, { kind: 'hangs', spec: { timeoutMs: 1_000, attempts: 1 } })
  const good = await kit.enqueue(1, { kind: 'good' })
  const hangs = handler(() => gate.passed, { kind: 'hangs' })
  const worker = kit.worker([hangs, handler(() => time.sleep(8_000), { kind: 'good' })], { concurrency: 4 })
  const ran = worker.run()
  const rejected = assert.rejects(ran, { code: 'WORKER_STOPPED' })
  await time.advance(5_500)
  assert.equal(worker.health().running, 3)
  await time.runUntil(rejected)
  assert.equal(kit.all('worker.slot stuck').length, 2)
  assert.equal((await kit.view(good[0]!)).state, 'completed')
  assert.equal(worker.health().status, 'stopped')
  gate.open()
})

test('handlers that time out together and clean up for some seconds do not drain the worker', async () => {
  const { time, kit } = virtualKit()
  await kit.enqueue(10, { spec: { timeoutMs: 1_000, attempts: 1 } })
  const worker = kit.worker([
    handler(async (_, { signal }) => {
      await aborted(signal).catch(() => time.sleep(3_000))
    }),
  ])
  await worker.start()
  await time.advance(10_000)
  assert.equal(worker.health().status, 'ok')
  assert.equal(kit.all('worker.slot stuck').length, 0)
  await time.runUntil(worker.stop())
})

test('a cancel fires the signal at the next beat; a handler that heeds it ends cancelled', async () => {
  const { time, kit } = virtualKit()
  const [id] = await kit.enqueue()
  let reason: { code?: string } | undefined
  const worker = kit.worker([
    handler((_, { signal }) =>
      aborted(signal).catch((error: { code?: string }) => {
        reason = error
        throw error
      }),
    ),
  ])
  await worker.start()
  await time.advance(500)
  assert.deepEqual(await kit.storage.control!.cancel([id!]), ['signalled'])
  await time.advance(3_100)
  assert.equal(reason!.code, 'CANCELLED')
  assert.equal((await kit.view(id!)).state, 'cancelled')
  assert.equal(kit.all('job.cancelled').length, 1)
  await time.runUntil(worker.stop())
})

test('a cancel on the last attempt makes the job cancelled, not dead', async () => {
  const { time, kit } = virtualKit()
  const [id] = await kit.enqueue(1, { spec: { attempts: 1 } })
  const worker = kit.worker([handler((_, { signal }) => aborted(signal))])
  await worker.start()
  await time.advance(500)
  await kit.storage.control!.cancel([id!])
  await time.advance(3_100)
  assert.equal((await kit.view(id!)).state, 'cancelled')
  await time.runUntil(worker.stop())
})

test('a job that returns in spite of its cancel is completed; one that would be retried is cancelled', async () => {
  const { time, kit } = virtualKit()
  const [returns] = await kit.enqueue(1, { kind: 'returns' })
  const [fails] = await kit.enqueue(1, { kind: 'fails' })
  const worker = kit.worker([
    handler(() => time.sleep(6_000), { kind: 'returns' }),
    handler(
      async () => {
        await time.sleep(1_000)
        throw new Error('before it heard of the cancel')
      },
      { kind: 'fails' },
    ),
  ])
  await worker.start()
  await time.advance(500)
  await kit.storage.control!.cancel([returns!, fails!])
  await time.advance(7_000)
  assert.equal((await kit.view(returns!)).state, 'completed')
  assert.equal((await kit.view(fails!)).state, 'cancelled')
  assert.equal(kit.all('job.cancelled').length, 1)
  await time.runUntil(worker.stop())
})

test('a prefetched job that is cancelled never starts', async () => {
  const { time, kit } = virtualKit()
  const [first] = await kit.enqueue(1, { payload: '1' })
  const [second] = await kit.enqueue(1, { payload: '2' })
  const started: unknown[] = []
  const worker = kit.worker(
    [
      handler(async (payload) => {
        started.push(payload)
        await time.sleep(4_000)
      }),
    ],
    { concurrency: 1, beat: '1s', prefetchWindow: '10s' },
  )
  await worker.start()
  await time.advance(100)
  assert.equal(worker.health().prefetched, 1)
  await kit.storage.control!.cancel([second!])
  await time.advance(10_000)
  assert.deepEqual(started, [1])
  assert.equal((await kit.view(first!)).state, 'completed')
  assert.equal((await kit.view(second!)).state, 'cancelled')
  await time.runUntil(worker.stop())
})

test('B149: cancels at random moments around claim and finish: answer and end agree', async () => {
  const { time, kit } = virtualKit()
  const worker = kit.worker([handler(() => time.sleep(2 * time.random()))], { beat: '50ms', lease: '1s' })
  await worker.start()
  await time.advance(100)
  for (let round = 0; round < 400; round++) {
    const [id] = await kit.enqueue()
    await time.advance(4 * time.random())
    const [answer] = await kit.storage.control!.cancel([id!])
    await time.advance(200)
    const { state } = await kit.view(id!)
    if (answer === 'cancelled') assert.equal(state, 'cancelled')
    else if (answer === 'ended') assert.equal(state, 'completed')
    else assert.ok(answer === 'signalled' && (state === 'completed' || state === 'cancelled'), `${answer}, ${state}`)
  }
  await time.runUntil(worker.stop())
})

test('a context kept beyond its attempt does no harm', async () => {
  const { time, kit } = virtualKit()
  let kept: HandlerContext | undefined
  const [id] = await kit.enqueue()
  const worker = kit.worker([
    handler((_, context) => {
      kept = context
    }),
  ])
  await time.runUntil(worker.runUntilEmpty())
  kept!.progress(1)
  kept!.log('late')
  assert.equal(kept!.signal.aborted, false)
  assert.equal((await kit.view(id!)).history, null)
})
