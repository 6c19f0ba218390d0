/** Single enqueues when things go wrong: busy keys, refusals, and what the caller is told at each cut. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { QueueError } from '../../src/core/errors.js'
import { newJobId } from '../../src/core/id.js'
import { defineJob } from '../../src/core/kind.js'
import { stubbed, watch } from './kit.js'

const plain = defineJob<{ n: number } | null>('plain')

test('a busy key is asked for again for half a second, then told', async () => {
  const { time, store, queue } = stubbed()
  store.auto = (jobs) => jobs.map(() => ({ status: 'busy' }))
  const job = watch(queue.enqueue(plain, null, { idempotencyKey: 'k' }))
  await time.advance(400)
  assert.equal(job.settled, false)
  await time.advance(800)
  assert.equal((job.error as QueueError).code, 'IDEMPOTENCY_BUSY')
  assert(store.calls.length > 3 && store.calls.length < 30)
  store.auto = (jobs, call) => jobs.map(() => (call % 3 === 0 ? { status: 'created' } : { status: 'busy' }))
  assert.equal((await time.runUntil(queue.enqueue(plain, null, { idempotencyKey: 'k' }))).duplicate, false)
})

test('keys that are busy hold no others up', async () => {
  const { time, store, queue } = stubbed()
  store.auto = (jobs) => jobs.map((job) => ({ status: job.idempotency?.key === 'busy' ? 'busy' : 'created' }))
  const busy = Array.from({ length: 100 }, () => watch(queue.enqueue(plain, null, { idempotencyKey: 'busy' })))
  const free = watch(queue.enqueue(plain, null, { idempotencyKey: 'free' }))
  await time.advance(10)
  assert(free.value !== undefined)
  await time.advance(2_000)
  assert(busy.every((job) => (job.error as QueueError).code === 'IDEMPOTENCY_BUSY'))
})

test('a job that is asked for again is told of once', async () => {
  const { time, store, queue, listen } = stubbed()
  const events = listen()
  store.auto = (jobs) => jobs.map(() => ({ status: 'busy' }))
  await assert.rejects(time.runUntil(queue.enqueue(plain, null, { idempotencyKey: 'k' })))
  assert.deepEqual(
    events.map((event) => [event.type, 'reason' in event && event.reason]),
    [['job.refused', 'busy']],
  )
  store.auto = (jobs, call) => jobs.map(() => ({ status: call % 3 === 0 ? 'created' : 'busy' }))
  await time.runUntil(queue.enqueue(plain, null, { idempotencyKey: 'k' }))
  assert.deepEqual(
    events.slice(1).map((event) => event.type),
    ['job.enqueued'],
  )
})

test('close waits for a job that is asked for again', async () => {
  const { time, store, queue } = stubbed()
  store.auto = (jobs) => jobs.map(() => ({ status: 'busy' }))
  const job = watch(queue.enqueue(plain, null, { idempotencyKey: 'k' }))
  await time.advance(100)
  await time.runUntil(queue.close())
  assert.equal((job.error as QueueError).code, 'IDEMPOTENCY_BUSY')
})

test('refusals of the store keep their code and cause', async () => {
  const { time, store, queue } = stubbed()
  const cause = new Error('value out of range')
  store.auto = (jobs) => jobs.map(() => ({ status: 'refused', code: 'STORE_REJECTED', cause }))
  await assert.rejects(time.runUntil(queue.enqueue(plain, null)), { code: 'STORE_REJECTED', cause })
  store.auto = (jobs) => jobs.map(() => ({ status: 'refused', code: 'DUPLICATE_ID', cause }))
  const id = newJobId()
  await assert.rejects(time.runUntil(queue.enqueue(plain, null, { id })), { code: 'DUPLICATE_ID', jobId: id })
})

test('an error that callers see has a stack that leads to their call', async () => {
  const { time, store, queue } = stubbed()
  store.auto = (jobs) => jobs.map(() => ({ status: 'draining' }))
  async function callingCode(): Promise<void> {
    await queue.enqueue(plain, null)
  }
  await assert.rejects(time.runUntil(callingCode()), (error: Error) => /callingCode/.test(error.stack!))
})

test('cut before the write: every job of the call is told that it is surely not stored', async () => {
  const { time, store, queue } = stubbed()
  const jobs = [1, 2, 3].map((n) => watch(queue.enqueue(plain, { n })))
  await time.advance(0)
  store.calls[0]!.fail(new QueueError('STORE_UNAVAILABLE', 'connection refused', { jobId: store.jobs[0]!.id }))
  await time.advance(0)
  jobs.forEach((job, i) => {
    const error = job.error as QueueError
    assert.deepEqual([error.code, error.jobId], ['STORE_UNAVAILABLE', store.jobs[i]!.id])
  })
  assert.equal(store.calls.length, 1, 'nobody sends it twice')
})

test('cut after the write: every job of the call is unknown, under its own id', async () => {
  const { time, store, queue } = stubbed()
  for (const fault of [
    new QueueError('OUTCOME_UNKNOWN', 'reset'),
    new Error('a fault of the adapter'),
    'text',
    undefined,
  ]) {
    const jobs = [1, 2, 3].map((n) => watch(queue.enqueue(plain, { n })))
    await time.advance(0)
    const call = store.calls.at(-1)!
    call.fail(fault)
    await time.advance(0)
    jobs.forEach((job, i) => {
      const error = job.error as QueueError
      assert.deepEqual([error.code, error.jobId], ['OUTCOME_UNKNOWN', call.jobs[i]!.id])
    })
  }
})

test('with a key an unknown outcome is asked again: stored the first time, it is created', async () => {
  const { time, store, queue } = stubbed()
  const job = watch(queue.enqueue(plain, null, { idempotencyKey: 'k' }))
  await time.advance(0)
  store.calls[0]!.fail(new QueueError('OUTCOME_UNKNOWN', 'reset'))
  await time.advance(100)
  assert.equal(store.calls.length, 2)
  assert.deepEqual(store.calls[1]!.jobs, store.calls[0]!.jobs)
  store.calls[1]!.answer({ status: 'duplicate', id: store.jobs[0]!.id })
  await time.advance(0)
  assert.equal(job.value!.id, store.jobs[0]!.id)
  assert.equal(job.value!.duplicate, false)
})

test('with a key an unknown outcome stays unknown while the store is away, never "not stored"', async () => {
  const { time, store, queue } = stubbed({ storeTimeoutMs: 5_000 })
  const job = watch(queue.enqueue(plain, null, { idempotencyKey: 'k' }))
  await time.advance(0)
  store.calls[0]!.fail(new QueueError('OUTCOME_UNKNOWN', 'reset'))
  for (let ms = 0; ms < 7_000; ms += 100) {
    for (const call of store.calls) call.fail(new QueueError('STORE_UNAVAILABLE', 'refused'))
    await time.advance(100)
  }
  assert.equal((job.error as QueueError).code, 'OUTCOME_UNKNOWN')
  const calls = store.calls.length
  await time.advance(60_000)
  assert.equal(store.calls.length, calls)
})

test('E11: a store that hangs: what was sent is unknown, what was not is surely not stored and never sent later', async () => {
  const { time, store, queue } = stubbed({ storeTimeoutMs: 5_000 })
  const sent = Array.from({ length: 4_000 }, (_, n) => watch(queue.enqueue(plain, { n })))
  await time.advance(0)
  const waiting = watch(queue.enqueue(plain, { n: 9_999 }))
  const short = watch(queue.enqueue(plain, { n: 9_998 }, { storeTimeout: '1s' }))
  await time.advance(1_000)
  assert.equal((short.error as QueueError).code, 'STORE_UNAVAILABLE')
  assert.equal(waiting.settled, false)
  await time.advance(4_000)
  assert(sent.every((job) => (job.error as QueueError).code === 'OUTCOME_UNKNOWN'))
  assert.equal((waiting.error as QueueError).code, 'STORE_UNAVAILABLE')
  for (const call of store.calls) call.answer()
  await time.advance(60_000)
  assert.equal(store.calls.length, 4)
  assert(!store.jobs.some((job) => /"n":999\d/.test(job.payload)))
  assert.equal(time.pending, 0, 'no timer is left')
})

test('a caller that never waits is refused at a bound, not kept in memory without one', async () => {
  const { time, queue } = stubbed({ storeTimeoutMs: 1_000 })
  const big = defineJob<string>('big')
  const codes = new Map<string, number>()
  const count = (code: string): void => void codes.set(code, (codes.get(code) ?? 0) + 1)
  const payload = 'x'.repeat(1_000_000)
  const jobs = Array.from({ length: 150 }, () =>
    queue.enqueue(big, payload).then(
      () => count('ok'),
      (error: QueueError) => count(error.code),
    ),
  )
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(codes.get('STORE_UNAVAILABLE'), 150 - 134)
  await time.advance(2_000)
  await Promise.all(jobs)
})

test('whoever was told at the deadline leaves no pause before another try behind', async () => {
  const { time, store, queue } = stubbed()
  store.auto = () => {
    throw new QueueError('OUTCOME_UNKNOWN', 'the connection was lost')
  }
  const items = [plain.with(null, { idempotencyKey: 'k' }), plain.with(null, { idempotencyKey: 'l' })]
  const results = await time.runUntil(queue.enqueueMany(items, { storeTimeout: 5_000 }))
  assert.deepEqual(
    results.map(({ status }) => status),
    ['unknown', 'unknown'],
  )
  const calls = store.calls.length
  await time.runUntil(queue.close())
  assert.equal(time.pending, 0)
  await time.advance(10_000)
  assert.equal(store.calls.length, calls)
})
