/** Producers that are slowed instead of refused. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { slowDelayMs } from '../../src/client/adaptive.js'
import type { QueueSettings } from '../../src/client/queue.js'
import { defineJob } from '../../src/core/kind.js'
import { completed, INFO, TestWorker } from '../support/jobs.js'
import { inMemory, watch } from './kit.js'

const mail = defineJob<{ n: number }>('mail', { queue: 'mail' })

/** The queue "mail", of which at most `limit` jobs may wait, and somebody who takes and completes some. */
async function limited(limit: number, settings?: QueueSettings) {
  const kit = inMemory(settings)
  const { time, storage, queue, listen } = kit
  const events = listen()
  await time.runUntil(queue.limit('mail', { depth: limit }))
  const worker = new TestWorker(storage)
  await worker.beat({ info: { ...INFO, queues: ['mail'] } })
  const drain = async (count: number): Promise<void> => {
    const { leases } = await worker.claim({ queues: [{ queue: 'mail', share: count }], limit: count, kinds: ['mail'] })
    await storage.settle(leases.flatMap(({ fence, jobs }) => jobs.map((_, ordinal) => completed(fence, ordinal))))
  }
  const fill = (count: number) =>
    time.runUntil(Promise.all(Array.from({ length: count }, (_, n) => queue.enqueue(mail, { n }))))
  const waiting = async (): Promise<number> => (await storage.inspect.capacity('mail')).depth.count
  const refusals = (): unknown[] => events.filter((event) => event.type === 'job.refused')
  return { ...kit, drain, fill, waiting, refusals }
}

test('nobody is slowed up to a half, and then more and more', () => {
  assert.deepEqual(
    [0, 0.5, 0.55, 0.75, 1, 2].map((fullness) => slowDelayMs(fullness, 1_000)),
    [0, 0, 100, 500, 1_000, 1_000],
  )
})

test('an adaptive enqueue waits by how full the queue is, and is told when it is stored', async () => {
  const { time, queue, fill } = await limited(100)
  const took = async (): Promise<number> => {
    const began = time.monotonic()
    await time.runUntil(queue.enqueue(mail, { n: 0 }, { adaptive: true }))
    return time.monotonic() - began
  }
  await fill(40)
  assert.ok((await took()) < 20)
  await fill(34)
  await time.advance(1_000)
  const slowed = await took()
  assert.ok(slowed >= 500 && slowed < 520, `${slowed} ms`)
  const own = queue.enqueue(mail, { n: 0 }, { adaptive: { slowest: '100ms' } })
  const began = time.monotonic()
  await time.runUntil(own)
  assert.ok(time.monotonic() - began >= 50 && time.monotonic() - began < 70)
  await time.runUntil(queue.enqueue(mail, { n: 0 }))
})

test('a full queue is waited for, and no refusal is told that was not the last word', async () => {
  const { time, queue, fill, drain, waiting, refusals } = await limited(10)
  await fill(10)
  const job = watch(queue.enqueue(mail, { n: 11 }, { adaptive: true }))
  await time.advance(5_000)
  assert.equal(job.settled, false)
  await drain(1)
  await time.advance(2_000)
  assert.ok(job.value)
  assert.deepEqual([await waiting(), refusals()], [10, []])
})

test('after its time it is refused as it would have been at once', async () => {
  const { time, queue, fill, refusals } = await limited(10)
  await fill(10)
  const job = watch(queue.enqueue(mail, { n: 11 }, { adaptive: { upTo: '10s' } }))
  await time.advance(9_900)
  assert.equal(job.settled, false)
  await time.advance(200)
  assert.equal((job.error as { code: string }).code, 'QUEUE_FULL')
  assert.equal(refusals().length, 1)
})

test('a signal ends the wait with its reason, and the job is not sent', async () => {
  const { time, queue, fill, drain, waiting } = await limited(10)
  await fill(10)
  for (const afterMs of [500, 3_000]) {
    const stop = new AbortController()
    const job = watch(queue.enqueue(mail, { n: 11 }, { adaptive: true, signal: stop.signal }))
    await time.advance(afterMs)
    stop.abort(new Error(`after ${afterMs} ms`))
    await time.advance(1)
    assert.equal((job.error as Error).message, `after ${afterMs} ms`)
  }
  await drain(5)
  await time.advance(60_000)
  assert.equal(await waiting(), 5)
})

test('many jobs at once go as there is room for them, each once and in order', async () => {
  const { time, queue, drain, waiting, refusals, storage } = await limited(4)
  const items = Array.from({ length: 10 }, (_, n) => mail.with({ n }))
  const many = watch(queue.enqueueMany(items, { adaptive: true }))
  await time.advance(100)
  assert.equal(await waiting(), 4)
  const seen: unknown[] = []
  while (!many.settled) {
    const { jobs } = await storage.inspect.list({ state: 'ready', queue: 'mail', limit: 100 })
    assert.ok(jobs.length <= 4)
    if (jobs[0] !== undefined) seen.push((jobs[0].payload as { n: number }).n)
    await drain(1)
    await time.advance(2_000)
  }
  assert.deepEqual(
    many.value!.map(({ status }) => status),
    items.map(() => 'created'),
  )
  assert.deepEqual(seen, [...seen].sort())
  assert.deepEqual(refusals(), [])
})

test('an intake that is used up slows, too', async () => {
  const { time, queue, waiting } = await limited(1_000, { intake: { limit: 10, perMs: 1_000, burst: 1 } })
  const began = time.monotonic()
  await time.runUntil(
    queue.enqueueMany(
      [1, 2, 3, 4, 5].map((n) => mail.with({ n })),
      { adaptive: true },
    ),
  )
  assert.ok(time.monotonic() - began >= 400)
  assert.equal(await waiting(), 5)
})

test('whoever waits is refused when the queue is closed, and holds it open no longer', async () => {
  const { time, queue, fill } = await limited(10)
  await fill(10)
  const single = watch(queue.enqueue(mail, { n: 11 }, { adaptive: true }))
  const many = watch(queue.enqueueMany([mail.with({ n: 12 })], { adaptive: true }))
  await time.advance(100)
  await time.runUntil(queue.close())
  assert.equal((single.error as { code: string }).code, 'QUEUE_CLOSED')
  const [result] = many.value!
  assert.equal(result?.status === 'refused' && result.error.code, 'QUEUE_CLOSED')
})

test('it does not go with a transaction of the caller, and its options are checked', async () => {
  const { time, queue } = await limited(10)
  const tx = { query: async () => ({ rows: [] }) }
  const calls: (() => Promise<unknown>)[] = [
    () => queue.enqueue(mail, { n: 1 }, { adaptive: true, tx }),
    () => queue.enqueueMany([], { adaptive: true, tx }),
    () => queue.enqueue(mail, { n: 1 }, { adaptive: 1 as unknown as boolean }),
  ]
  for (const call of calls) await assert.rejects(time.runUntil(call()), { code: 'INVALID_OPTION', field: 'adaptive' })
  const slow = queue.enqueue(mail, { n: 1 }, { adaptive: { slowest: '2h' } })
  await assert.rejects(time.runUntil(slow), { code: 'INVALID_OPTION', field: 'adaptive.slowest' })
  await time.runUntil(queue.enqueue(mail, { n: 1 }, { adaptive: false, tx: undefined as never }))
})
