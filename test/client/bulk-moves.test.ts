/** Bulk changes of jobs that move on between being found and being come to, and of stores whose answers are lost. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { QueueError } from '../../src/core/errors.js'
import { defineJob } from '../../src/core/kind.js'
import type { BulkProgress } from '../../src/index.js'
import type { Control, Storage } from '../../src/storage/storage.js'
import { TestWorker } from '../support/jobs.js'
import { inMemory } from './kit.js'
import { dead, die, kind, type World } from './letters.js'

const forgotten = defineJob<number>('forgotten', { queue: 'queue', keep: 'none' })

type Steering = 'cancel' | 'retry' | 'redrive' | 'discard'

/** Before each call of the operation, `first` happens. */
function meanwhile(storage: Storage, operation: Steering, first: (ids: readonly string[]) => Promise<unknown>): void {
  wrapped(storage, operation, async (ids, call) => {
    await first(ids)
    return call()
  })
}

/** The first call is done, and its answer never arrives. */
function losing(storage: Storage, operation: Steering, calls = 1): void {
  wrapped(storage, operation, async (_, call) => {
    const answer = await call()
    if (calls-- > 0) throw away()
    return answer
  })
}

function wrapped(
  storage: Storage,
  operation: Steering,
  around: (ids: readonly string[], call: () => Promise<unknown>) => Promise<unknown>,
): void {
  const control = storage.control as Control & Record<Steering, (...given: unknown[]) => Promise<unknown>>
  const call = control[operation].bind(control) as (...given: unknown[]) => Promise<unknown>
  Object.assign(control, {
    [operation]: (ids: readonly string[], ...more: unknown[]) => around(ids, () => call(ids, ...more)),
  })
}

function away(): QueueError {
  return new QueueError('STORE_UNAVAILABLE', 'the connection was lost')
}

async function waiting(world: World, count: number, more: object = {}): Promise<string[]> {
  const items = Array.from({ length: count }, (_, n) => kind.with(n, more))
  const results = await world.time.runUntil(world.queue.enqueueMany(items))
  await world.time.advance(1)
  return results.map((result) => (result.status === 'created' ? result.id : assert.fail(result.status)))
}

async function statesOf({ storage }: World, ids: readonly string[]): Promise<unknown[]> {
  return (await storage.inspect.get(ids)).map((view) => view?.state)
}

test('cancelAll of what is ready does not signal a job that starts before its turn', async () => {
  const world = inMemory()
  const { time, queue, storage, listen } = world
  const ids = await waiting(world, 3)
  const worker = await TestWorker.registered(storage)
  let fence = 0
  meanwhile(storage, 'cancel', async () => {
    fence = (await worker.claim({ limit: 1 })).leases[0]!.fence
  })
  const events = listen()
  const result = await time.runUntil(queue.cancelAll({ queue: 'queue', state: 'ready' }))
  assert.deepEqual([result.matched, result.done, result.answers], [3, 2, { 'moved on': 1, cancelled: 2 }])
  assert.deepEqual(await statesOf(world, ids), ['running', 'cancelled', 'cancelled'])
  assert.deepEqual((await worker.beat({ leases: [fence] })).cancel, [])
  assert.deepEqual(
    events.map(({ type }) => type),
    ['job.cancelled', 'job.cancelled'],
  )
})

test('cancelAll takes a job that has gone from one of the states that were named to another', async () => {
  const world = inMemory()
  const { time, queue, storage } = world
  await waiting(world, 1, { delay: '1h' })
  meanwhile(storage, 'cancel', async (ids) => storage.control.retry(ids))
  const result = await time.runUntil(queue.cancelAll({ queue: 'queue' }))
  assert.deepEqual(result.answers, { cancelled: 1 })
})

test('retryAll leaves a job alone that another one has started, and says what it met', async () => {
  const world = inMemory()
  const { time, queue, storage } = world
  const [first] = await waiting(world, 2, { delay: '1d' })
  meanwhile(storage, 'retry', async () => storage.control.cancel([first!]))
  const result = await time.runUntil(queue.retryAll({ queue: 'queue', state: 'delayed' }))
  assert.deepEqual([result.done, result.answers], [1, { ended: 1, ok: 1 }])
})

for (const operation of ['discard', 'redrive'] as const)
  test(`${operation}All leaves a letter alone that was redriven and died anew before its turn`, async () => {
    const world = await dead(3)
    const { time, queue, storage, ids } = world
    const { redrive } = storage.control
    meanwhile(storage, operation, async () => {
      await redrive([ids[1]!], { force: false })
      await die(world, 'queue', 'another fault', 1, async () => {})
    })
    const filter = { queue: 'queue' }
    const run = operation === 'discard' ? queue.discardAll(filter) : queue.redriveAll(filter)
    const { done, answers } = await time.runUntil<{ done: number; answers: Record<string, number> }>(run)
    assert.deepEqual([done, answers['moved on']], [2, 1])
    const view = await queue.get(ids[1]!)
    assert.deepEqual([view?.state, view?.history?.redrives], ['dead', 1])
    assert.equal(view?.history?.entries.at(-1)?.error?.message, 'another fault')
  })

test('a redrive whose answer was lost is counted as done and told of, as the histories show it', async () => {
  const world = await dead(20)
  const { time, queue, storage, ids, listen } = world
  const events = listen()
  losing(storage, 'redrive', 2)
  const result = await time.runUntil(queue.redriveAll({ queue: 'queue' }, { batch: 10 }))
  assert.deepEqual([result.matched, result.done, result.answers], [20, 20, { ok: 20 }])
  for (const view of await storage.inspect.get(ids)) assert.equal(view?.history?.redrives, 1)
  assert.deepEqual(events.map((event) => event.type === 'job.redriven' && event.jobId).sort(), [...ids].sort())
})

test('what others did to a job while an answer was lost is not counted as done', async () => {
  const world = inMemory()
  const { time, queue, storage } = world
  const [first] = await waiting(world, 2)
  const worker = await TestWorker.registered(storage)
  let calls = 0
  wrapped(storage, 'cancel', async (_, call) => {
    if (calls++ > 0) return call()
    // Never sent; meanwhile one of the two has run.
    const { leases } = await worker.claim({ limit: 1 })
    assert.equal(leases[0]!.jobs[0]!.id, first)
    await storage.settle([{ fence: leases[0]!.fence, ordinal: 0, to: 'completed', history: null, keep: true }])
    throw away()
  })
  const result = await time.runUntil(queue.cancelAll({ queue: 'queue' }))
  assert.deepEqual([result.done, result.answers], [1, { ended: 1, cancelled: 1 }])
})

test('a cancel whose answer was lost counts where a record shows it, and is unconfirmed where none is kept', async () => {
  const world = inMemory()
  const { time, queue, storage, listen } = world
  await waiting(world, 2)
  await time.runUntil(queue.enqueue(forgotten, 0))
  await time.advance(1)
  const events = listen()
  losing(storage, 'cancel')
  const result = await time.runUntil(queue.cancelAll({ queue: 'queue' }))
  assert.deepEqual([result.matched, result.done, result.answers], [3, 2, { cancelled: 2, unconfirmed: 1 }])
  assert.equal(events.length, 2)
})

test('a retry whose answer was lost counts also where the job runs already', async () => {
  const world = inMemory()
  const { time, queue, storage } = world
  await waiting(world, 3, { delay: '1d' })
  const worker = await TestWorker.registered(storage)
  losing(storage, 'retry')
  wrapped(storage, 'retry', async (_, call) => {
    try {
      return await call()
    } finally {
      await worker.claim({ limit: 1 })
    }
  })
  const result = await time.runUntil(queue.retryAll({ queue: 'queue', state: 'delayed' }))
  assert.deepEqual([result.done, result.answers], [3, { ok: 3 }])
})

test('a discard whose answer was lost leaves nothing that could confirm it', async () => {
  const world = await dead(3)
  const { time, queue, storage, ids, listen } = world
  const events = listen()
  losing(storage, 'discard')
  const result = await time.runUntil(queue.discardAll({ queue: 'queue' }, { batch: 2 }))
  assert.deepEqual([result.matched, result.done, result.answers], [3, 1, { unconfirmed: 2, discarded: 1 }])
  assert.deepEqual(await statesOf(world, ids), [undefined, undefined, undefined])
  assert.equal(events.length, 1)
})

test('a run that is stopped before a lost answer was asked for again says which jobs it does not know of', async () => {
  const { time, queue, storage } = await dead(30)
  const stop = new AbortController()
  let calls = 0
  wrapped(storage, 'redrive', async (_, call) => {
    calls += 1
    const answer = await call()
    if (calls < 2) return answer
    stop.abort()
    throw away()
  })
  const result = await time.runUntil(queue.redriveAll({ queue: 'queue' }, { batch: 10, signal: stop.signal }))
  assert.deepEqual([result.ended, result.done, result.answers], ['stopped', 10, { ok: 10, unconfirmed: 10 }])
})

test('a run that fails for good tells of what it does not know before it does', async () => {
  const { time, queue, storage } = await dead(30)
  const told: BulkProgress[] = []
  const onProgress = (so: BulkProgress): void => void told.push(so)
  let calls = 0
  wrapped(storage, 'redrive', async (_, call) => {
    calls += 1
    if (calls > 1) throw away()
    return call()
  })
  const run = queue.redriveAll({ queue: 'queue' }, { batch: 20, onProgress })
  await assert.rejects(time.runUntil(run), { code: 'STORE_UNAVAILABLE' })
  assert.deepEqual(told.at(-1), { matched: 30, done: 20, answers: { ok: 20, unconfirmed: 10 } })
})

test('what the store refused was not done, and nothing of it is in doubt', async () => {
  const { time, queue, storage } = await dead(3)
  const told: BulkProgress[] = []
  const onProgress = (so: BulkProgress): void => void told.push(so)
  wrapped(storage, 'redrive', async () => {
    throw new QueueError('STORE_REJECTED', 'no right to do this')
  })
  await assert.rejects(time.runUntil(queue.redriveAll({ queue: 'queue' }, { onProgress })), { code: 'STORE_REJECTED' })
  assert.deepEqual(told, [])
})
