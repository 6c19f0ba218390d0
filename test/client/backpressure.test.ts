/** What producers are told by a queue that has enough. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { QueueError } from '../../src/core/errors.js'
import { defineJob } from '../../src/core/kind.js'
import { inMemory } from './kit.js'

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
  await refused({ limit: 5, kinds: { 'mail.bulk': 0 } }, 'depth.kinds.mail.bulk', /from 1 to 10,000/)
  await refused({ limit: 5, kinds: { 'no kind': 1 } }, 'depth.kinds', /no kind/)
  await refused({ limit: 5, kinds: [1] }, 'depth.kinds', /an object of kinds/)
  const many = Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`kind${n}`, 1]))
  await refused({ limit: 5, kinds: many }, 'depth.kinds', /101 kinds; at most 100/)
  await time.runUntil(queue.limit('mail', { depth: { limit: 10_000, kinds: { 'mail.bulk': 10_000 } } }))
  await time.runUntil(queue.limit('mail', { depth: null }))
})
