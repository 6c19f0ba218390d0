/** What producers are told by a queue that has enough. */
import assert from 'node:assert/strict'
import test from 'node:test'
import type { QueueSettings } from '../../src/client/queue.js'
import { connect } from '../../src/connect.js'
import { QueueError } from '../../src/core/errors.js'
import { defineJob } from '../../src/core/kind.js'
import type { Settlement } from '../../src/storage/storage.js'
import { completed, INFO, TestWorker } from '../support/jobs.js'
import { inMemory, watch } from './kit.js'

const mail = defineJob<{ n: number }>('mail', { queue: 'mail' })
const bulk = defineJob<{ n: number }>('mail.bulk', { queue: 'mail' })

async function refusalOf(enqueued: Promise<unknown>): Promise<QueueError> {
  try {
    await enqueued
  } catch (error) {
    assert(error instanceof QueueError)
    return error
  }
  assert.fail('it was not refused')
}

test('a full queue refuses with depth, limit and when to try again', async () => {
  const { time, queue, listen } = inMemory()
  const events = listen()
  await time.runUntil(queue.limit('mail', { depth: 2 }))
  await time.runUntil(Promise.all([queue.enqueue(mail, { n: 1 }), queue.enqueue(mail, { n: 2 })]))
  const error = await time.runUntil(refusalOf(queue.enqueue(mail, { n: 3 })))
  const { code, depth, limit, retryAfterMs } = error
  assert.deepEqual(
    { code, depth, limit, retryAfterMs },
    { code: 'QUEUE_FULL', depth: 2, limit: 2, retryAfterMs: 1_000 },
  )
  assert.equal(error.message, 'queue "mail" is full: 2 jobs wait, 2 may; try again in 1s')
  const refusals = events.filter((event) => event.type === 'job.refused')
  assert.deepEqual(
    refusals.map((event) => 'reason' in event && event.reason),
    ['full'],
  )
})

test('of many jobs those that fit are stored, and the others are refused one by one', async () => {
  const { time, queue } = inMemory()
  await time.runUntil(queue.limit('mail', { depth: { limit: 4, kinds: { 'mail.bulk': 1 } } }))
  const items = [bulk, bulk, mail, mail, mail, mail].map((kind, n) => kind.with({ n }))
  const results = await time.runUntil(queue.enqueueMany(items))
  assert.deepEqual(
    results.map((result) => ('error' in result ? result.error.code : result.status)),
    ['created', 'QUEUE_FULL', 'created', 'created', 'created', 'QUEUE_FULL'],
  )
  const [kindFull, queueFull] = results.flatMap((result) => ('error' in result ? [result.error] : []))
  assert.match(kindFull!.message, /^kind "mail\.bulk" in queue "mail" is full: 1 jobs wait, 1 may;/)
  assert.deepEqual([kindFull!.limit, queueFull!.limit], [1, 4])
})

test('a tenant that has its part waiting is refused by name, and the others are not', async () => {
  const { time, queue } = inMemory()
  await time.runUntil(queue.limit('mail', { depth: { limit: 9, perTenant: 1 } }))
  const of = (tenant: string | undefined) => mail.with({ n: 1 }, tenant === undefined ? {} : { tenant })
  const results = await time.runUntil(queue.enqueueMany([of('a'), of('a'), of('b'), of(undefined), of(undefined)]))
  const errors = results.map((result) => ('error' in result ? result.error : undefined))
  assert.deepEqual(
    errors.map((error) => error?.full),
    [undefined, 'tenant', undefined, undefined, 'tenant'],
  )
  assert.match(errors[1]!.message, /^queue "mail" is full for tenant "a": 1 jobs wait, 1 may; try again in 1s$/)
  assert.match(errors[4]!.message, /^queue "mail" is full for jobs without a tenant: 1 jobs wait, 1 may;/)
  assert.deepEqual([errors[1]!.code, errors[1]!.depth, errors[1]!.limit], ['QUEUE_FULL', 1, 1])
  await time.runUntil(queue.limit('mail', { depth: { limit: 9, perTenant: null } }))
  await time.runUntil(queue.enqueue(mail, { n: 1 }, { tenant: 'a' }))
})

test('the intake of a queue refuses with its limit and when to try again, and an adaptive enqueue waits for it', async () => {
  const { time, queue, listen } = inMemory()
  const events = listen()
  await time.runUntil(queue.limit('mail', { intake: { limit: 1, per: '10s' } }))
  await time.runUntil(queue.enqueue(mail, { n: 1 }))
  const { code, limit, retryAfterMs, message } = await time.runUntil(refusalOf(queue.enqueue(mail, { n: 2 })))
  assert.deepEqual({ code, limit, retryAfterMs }, { code: 'RATE_LIMITED', limit: 1, retryAfterMs: 10_000 })
  assert.equal(message, 'queue "mail" takes no more than 1 jobs in 10s; try again in 10s')
  assert.deepEqual(
    events.flatMap((event) => (event.type === 'job.refused' ? [event.reason] : [])),
    ['early'],
  )
  const began = time.monotonic()
  await time.runUntil(queue.enqueue(mail, { n: 3 }, { adaptive: true }))
  // And then a little, so that those who were told the same do not all come at once.
  const waited = time.monotonic() - began
  assert.ok(waited >= 10_000 && waited < 20_000, `${waited} ms`)
  await time.runUntil(queue.limit('mail', { intake: null }))
  await time.runUntil(queue.enqueue(mail, { n: 4 }))
})

test('limits of depth are checked, field by field', async () => {
  const { time, queue } = inMemory()
  const refused = async (depth: unknown, field: string, message: RegExp): Promise<void> => {
    await assert.rejects(time.runUntil(queue.limit('mail', { depth: depth as number })), (error: QueueError) => {
      assert.deepEqual([error.code, error.field], [field === 'depth.kind' ? 'UNKNOWN_OPTION' : error.code, field])
      assert.match(error.message, message)
      return true
    })
  }
  await refused(0, 'depth', /from 1 to 10,000/)
  await refused(10_001, 'depth', /from 1 to 10,000/)
  await refused({}, 'depth.limit', /is missing; give how many jobs of the queue may wait/)
  await refused({ limit: 5, kind: {} }, 'depth.kind', /did you mean "kinds"/)
  await refused({ perTenant: 5 }, 'depth.limit', /is missing/)
  await refused({ limit: 5, perTenant: 0 }, 'depth.perTenant', /from 1 to 10,000/)
  await refused({ limit: 5, kinds: { 'mail.bulk': 0 } }, 'depth.kinds.mail.bulk', /from 1 to 10,000/)
  await refused({ limit: 5, kinds: { 'no kind': 1 } }, 'depth.kinds', /no kind/)
  await refused({ limit: 5, kinds: [1] }, 'depth.kinds', /an object of kinds/)
  const many = Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`kind${n}`, 1]))
  await refused({ limit: 5, kinds: many }, 'depth.kinds', /101 kinds; at most 100/)
  await time.runUntil(queue.limit('mail', { depth: { limit: 10_000, kinds: { 'mail.bulk': 10_000 } } }))
  await time.runUntil(queue.limit('mail', { depth: null }))
})

/** The queue "mail" with a worker of two slots, both taken, that completes one job in each second; `ready` jobs wait. */
async function busyQueue(ready: number, settings?: QueueSettings) {
  const kit = inMemory(settings)
  const { time, storage, queue } = kit
  const worker = new TestWorker(storage)
  const info = { ...INFO, queues: ['mail'], concurrency: 2, busy: 2 }
  await worker.beat({ info })
  const take = async (count: number): Promise<Settlement[]> => {
    const { leases } = await worker.claim({ queues: [{ queue: 'mail', share: count }], limit: count, kinds: ['mail'] })
    return leases.flatMap(({ fence, jobs }) => jobs.map((_, ordinal) => completed(fence, ordinal)))
  }
  for (let second = 0; second < 10; second++) {
    await time.runUntil(queue.enqueue(mail, { n: 0 }))
    await storage.settle(await take(1))
    await time.advance(1_000)
    await worker.beat({ info, leases: [] })
  }
  await time.runUntil(Promise.all(Array.from({ length: ready }, (_, n) => queue.enqueue(mail, { n }))))
  return { ...kit, worker, take }
}

test('the capacity of a queue tells its workers, what waits and how long a new job would wait', async () => {
  const { time, queue } = await busyQueue(30)
  await time.runUntil(queue.limit('mail', { depth: 40 }))
  await time.runUntil(queue.enqueue(mail, { n: 0 }, { delay: '1h' }))
  assert.deepEqual(await time.runUntil(queue.capacity('mail')), {
    queue: 'mail',
    workers: 1,
    slots: 2,
    busy: 2,
    ready: { count: 30, exact: true },
    depth: { count: 31, exact: true },
    depthLimit: 40,
    drainPerSecond: 1,
    expectedWaitMs: 30_000,
  })
  const unknown = await time.runUntil(queue.capacity('nowhere'))
  assert.deepEqual([unknown.workers, unknown.drainPerSecond, unknown.expectedWaitMs], [0, null, null])
})

test('a job that would wait for too long is refused, by its own choice or that of its kind', async () => {
  const { time, queue, storage } = await busyQueue(30)
  const hasty = defineJob<{ n: number }>('hasty', { queue: 'mail', maxWait: '20s' })
  const error = await time.runUntil(refusalOf(queue.enqueue(hasty, { n: 1 })))
  const { code, expectedWaitMs, retryAfterMs } = error
  assert.deepEqual(
    { code, expectedWaitMs, retryAfterMs },
    { code: 'WAIT_TOO_LONG', expectedWaitMs: 30_000, retryAfterMs: 10_000 },
  )
  assert.equal(error.message, 'a job would wait 30s in queue "mail", and may 20s; try again in 10s')
  assert.equal(
    (await time.runUntil(refusalOf(queue.enqueue(mail, { n: 1 }, { maxWait: '29s' })))).code,
    'WAIT_TOO_LONG',
  )
  await time.runUntil(queue.enqueue(hasty, { n: 1 }, { maxWait: '1m' }))
  await time.runUntil(queue.enqueue(hasty, { n: 1 }, { delay: '1h' }))
  // Where nobody works nobody knows, and nothing is refused.
  await time.runUntil(queue.enqueue(hasty, { n: 1 }, { queue: 'nowhere', maxWait: '1ms' }))
  assert.equal((await storage.inspect.counts('mail')).ready.count, 31)
})

test('of many jobs those that would wait for too long are refused one by one', async () => {
  const { time, queue } = await busyQueue(10)
  const items = Array.from({ length: 5 }, (_, n) => mail.with({ n }, n === 2 ? { maxWait: '1h' } : {}))
  const results = await time.runUntil(queue.enqueueMany(items, { maxWait: '11s' }))
  // Each that is sent makes the wait of the next one longer, before the store is asked again.
  assert.deepEqual(
    results.map((result) => ('error' in result ? result.error.code : result.status)),
    ['created', 'created', 'created', 'WAIT_TOO_LONG', 'WAIT_TOO_LONG'],
  )
})

test('the store is asked for the capacity once in a second, whatever is sent', async () => {
  const { time, queue, storage } = await busyQueue(3)
  let asked = 0
  const capacity = storage.inspect.capacity.bind(storage.inspect)
  storage.inspect.capacity = (name) => {
    asked += 1
    return capacity(name)
  }
  const send = () => time.runUntil(Promise.all([1, 2, 3].map((n) => queue.enqueue(mail, { n }, { maxWait: '1h' }))))
  await send()
  await send()
  assert.equal(asked, 1)
  await time.advance(1_000)
  await send()
  assert.equal(asked, 2)
  await time.runUntil(queue.enqueue(mail, { n: 1 }))
  await time.advance(1_000)
  await time.runUntil(queue.enqueue(mail, { n: 1 }))
  assert.equal(asked, 2)
})

test('where the capacity is not answered, nothing is known and nothing is refused', async () => {
  const { time, queue, storage } = await busyQueue(30)
  storage.inspect.capacity = () => Promise.reject(new Error('away'))
  await time.runUntil(queue.enqueue(mail, { n: 1 }, { maxWait: '1ms' }))
  await time.advance(1_000)
  storage.inspect.capacity = () => new Promise(() => {})
  const job = watch(queue.enqueue(mail, { n: 1 }, { maxWait: '1ms' }))
  await time.advance(1_900)
  assert.equal(job.settled, false)
  await time.advance(200)
  assert.ok(job.value)
})

test('a process that enqueues faster than its intake is refused until there are tokens', async () => {
  const { time, queue, storage } = inMemory({ intake: { limit: 10, perMs: 1_000, burst: 3 } })
  const results = await time.runUntil(queue.enqueueMany([1, 2, 3, 4].map((n) => mail.with({ n }))))
  assert.deepEqual(
    results.map((result) => ('error' in result ? result.error.code : result.status)),
    ['created', 'created', 'created', 'RATE_LIMITED'],
  )
  const error = await time.runUntil(refusalOf(queue.enqueue(bulk, { n: 5 })))
  assert.deepEqual([error.code, error.limit, error.retryAfterMs], ['RATE_LIMITED', 10, 100])
  assert.match(error.message, /this process enqueues faster than its intake allows; try again in 100ms/)
  await time.advance(100)
  await time.runUntil(queue.enqueue(mail, { n: 6 }))
  assert.equal((await time.runUntil(refusalOf(queue.enqueue(mail, { n: 7 })))).code, 'RATE_LIMITED')
  assert.equal((await storage.inspect.counts('mail')).ready.count, 4)
})

test('the intake of a process is an option of connect', async () => {
  const queue = await connect('memory:', { intake: { limit: 1, per: '1h' } })
  await queue.enqueue(mail, { n: 1 })
  await assert.rejects(queue.enqueue(mail, { n: 2 }), { code: 'RATE_LIMITED' })
  await queue.close()
  await assert.rejects(connect('memory:', { intake: { limit: 0 } }), { code: 'INVALID_OPTION', field: 'intake.limit' })
  await assert.rejects(connect('memory:', { intake: {} as { limit: number } }), { field: 'intake.limit' })
})
