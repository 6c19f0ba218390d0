/** Waiting for results: every wait ends, and however many there are they share one poller. */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import test from 'node:test'
import { Queue } from '../../src/client/queue.js'
import { QueueError } from '../../src/core/errors.js'
import { newJobId } from '../../src/core/id.js'
import { defineJob } from '../../src/core/kind.js'
import type { Inspect, JobView, Storage } from '../../src/storage/storage.js'
import { VirtualTime } from '../../src/testing/virtual-time.js'
import { TestWorker } from '../support/jobs.js'
import { connectionTo, inMemory, StubStore, watch } from './kit.js'

const kind = defineJob<null, number>('kind', { queue: 'queue' })

/** A store of which a test says how its jobs are, counting look-ups. */
function looked() {
  const time = new VirtualTime()
  const store = new StubStore() as StubStore & { inspect: Pick<Inspect, 'get'> }
  const views = new Map<string, Partial<JobView>>()
  const lookUps: number[] = []
  let answer = (ids: readonly string[]): Promise<(JobView | null)[]> =>
    Promise.resolve(ids.map((id) => (views.has(id) ? ({ id, ...views.get(id) } as JobView) : null)))
  store.inspect = {
    get: (ids) => {
      lookUps.push(ids.length)
      return answer(ids)
    },
  }
  const connection = connectionTo(store as unknown as Storage, time)
  const queue = new Queue(connection)
  const ids = (count: number, state: JobView['state']): string[] =>
    Array.from({ length: count }, () => {
      const id = newJobId()
      views.set(id, { state })
      return id
    })
  const setAnswer = (next: typeof answer): void => {
    answer = next
  }
  return { time, queue, connection, views, lookUps, ids, setAnswer }
}

test('a job that ended long ago is told at once', async () => {
  const { time, queue, views, lookUps } = looked()
  const id = newJobId()
  views.set(id, { state: 'completed', result: 5 })
  assert.equal(await time.runUntil(queue.job(kind, id).result(), 10), 5)
  assert.deepEqual(lookUps, [1])
  assert.equal(time.pending, 0)
})

test('B154: 10,000 waits begun before, just after and long after the end all settle with the right result', async () => {
  const { time, queue, storage } = inMemory()
  const worker = await TestWorker.registered(storage)
  const jobs = (await time.runUntil(queue.enqueueMany(Array.from({ length: 10_000 }, () => kind.with(null))))).map(
    (result) => {
      assert(result.status === 'created')
      return queue.job(kind, result.id)
    },
  )
  const before = jobs.slice(0, 4_000).map((job) => job.result())
  let done = 0
  while (done < 10_000) {
    const claim = await worker.claim({ limit: 500 })
    const settlements = claim.leases.flatMap((lease) =>
      lease.jobs.map((job, ordinal) => ({
        fence: lease.fence,
        ordinal,
        to: 'completed' as const,
        history: null,
        keep: true,
        result: JSON.stringify(job.id),
      })),
    )
    await storage.settle(settlements)
    done += settlements.length
  }
  const after = jobs.slice(4_000, 7_000).map((job) => job.result())
  await time.advance(10_000)
  const late = jobs.slice(7_000).map((job) => job.result())
  const results = await time.runUntil(Promise.all([...before, ...after, ...late]))
  assert.deepEqual(
    results,
    jobs.map((job) => job.id),
  )
  assert.equal(time.pending, 0)
})

test('B157: 10,000 waits share one listener, one timer and few look-ups, and leave nothing', async (context) => {
  const warnings = context.mock.method(process, 'emitWarning', () => {})
  const { time, queue, connection, views, lookUps, ids } = looked()
  const running = ids(10_000, 'running')
  const controller = new AbortController()
  const waits = running.map((id) => watch(queue.job(kind, id).result({ signal: controller.signal })))
  assert.equal(getEventListeners(controller.signal, 'abort').length, 1)
  await time.advance(60_000)
  assert(time.pending <= 1)
  assert(lookUps.every((size) => size <= 500))
  assert(lookUps.length < 20 * 90, `${lookUps.length} look-ups in a minute`)
  for (const id of running) views.set(id, { state: 'completed', result: 1 })
  await time.advance(1_000)
  assert(waits.every((wait) => wait.value === 1))
  assert.equal(time.pending, 0)
  assert.equal(connection.events.active, false)
  for (let round = 0; round < 1_000; round++)
    await time.runUntil(queue.job(kind, running[round]!).result({ signal: controller.signal }))
  assert.equal(time.pending, 0)
  assert.equal(connection.events.active, false)
  assert.equal(getEventListeners(controller.signal, 'abort').length, 0)
  assert.equal(warnings.mock.callCount(), 0)
})

test('look-ups of a job start at once, grow rarer and stay rare', async () => {
  const { time, queue, lookUps, ids } = looked()
  const wait = watch(queue.job(kind, ids(1, 'ready')[0]!).result({ timeout: '1h' }))
  await time.advance(100)
  assert(lookUps.length >= 3 && lookUps.length <= 6, String(lookUps.length))
  await time.advance(60_000)
  assert(lookUps.length < 75, String(lookUps.length))
  assert.equal(wait.settled, false)
})

test('an end that this process heard of is looked up at once', async () => {
  const { time, queue, connection, views, ids } = looked()
  const [id] = ids(1, 'running')
  const wait = watch(queue.job(kind, id!).result())
  await time.advance(30_000)
  views.set(id!, { state: 'completed', result: 7 })
  connection.events.emit({
    type: 'job.completed',
    jobId: id!,
    kind: 'kind',
    queue: 'queue',
    durationMs: 1,
    waitedMs: 1,
  })
  await time.advance(1)
  assert.equal(wait.value, 7)
})

test('an end that is told while a look-up is under way is not missed', async () => {
  const { time, queue, connection, views, ids, setAnswer } = looked()
  const [id] = ids(1, 'running')
  let release = (): void => {}
  setAnswer((asked) => {
    const seen = asked.map((one) => ({ id: one, ...views.get(one) }) as JobView)
    return new Promise((resolve) => {
      release = () => resolve(seen)
    })
  })
  const wait = watch(queue.job(kind, id!).result())
  await time.advance(10)
  views.set(id!, { state: 'completed', result: 7 })
  connection.events.emit({
    type: 'job.completed',
    jobId: id!,
    kind: 'kind',
    queue: 'queue',
    durationMs: 1,
    waitedMs: 1,
  })
  release()
  await time.advance(1)
  release()
  await time.advance(1)
  assert.equal(wait.value, 7)
})

test('a job that is left and waited for anew during a look-up is not forgotten', async () => {
  const { time, queue, views, ids, setAnswer } = looked()
  const [id] = ids(1, 'running')
  const releases: (() => void)[] = []
  setAnswer((asked) => {
    const seen = asked.map((one) => ({ id: one, ...views.get(one) }) as JobView)
    return new Promise((resolve) => releases.push(() => resolve(seen)))
  })
  views.set(id!, { state: 'completed', result: 7 })
  const controller = new AbortController()
  const first = watch(queue.job(kind, id!).result({ signal: controller.signal }))
  await time.advance(10)
  controller.abort()
  const second = watch(queue.job(kind, id!).result())
  releases[0]!()
  await time.advance(10)
  releases[1]!()
  await time.advance(10)
  assert(first.error !== undefined)
  assert.equal(second.value, 7)
})

test('a wait has an end, also while the store hangs or is away', async () => {
  const { time, queue, ids, setAnswer } = looked()
  const [id] = ids(1, 'running')
  const timely = watch(queue.job(kind, id!).result({ timeout: '3s' }))
  await time.advance(3_000)
  assert.equal((timely.error as QueueError).code, 'WAIT_TIMEOUT')
  const away = new QueueError('STORE_UNAVAILABLE', 'down')
  setAnswer(() => Promise.reject(away))
  const failing = watch(queue.job(kind, id!).result({ timeout: '3s' }))
  await time.advance(3_000)
  assert.equal((failing.error as QueueError).code, 'WAIT_TIMEOUT')
  assert.equal((failing.error as QueueError).cause, away)
  setAnswer(() => new Promise(() => {}))
  const hanging = watch(queue.job(kind, id!).result({ timeout: '3s' }))
  await time.advance(3_000)
  assert.equal((hanging.error as QueueError).code, 'WAIT_TIMEOUT')
})

test('a signal ends its own wait, at once, and no other', async () => {
  const { time, queue, ids } = looked()
  const [id] = ids(1, 'running')
  const controller = new AbortController()
  const mine = watch(queue.job(kind, id!).result({ signal: controller.signal }))
  const yours = watch(queue.job(kind, id!).result())
  await time.advance(50)
  const reason = new Error('the request was cut')
  controller.abort(reason)
  await time.advance(0)
  assert.equal(mine.error, reason)
  assert.equal(yours.settled, false)
  await assert.rejects(queue.job(kind, id!).result({ signal: controller.signal }), reason)
})

test('a job that ended badly is told with the last error of its handler', async () => {
  const { time, queue, views } = looked()
  const id = newJobId()
  const error = { name: 'TypeError', message: 'no such user', stack: 'TypeError: no such user\n    at handler' }
  const entry = { at: 1, attempt: 1, outcome: 'failed' as const, error }
  const history = { attempts: 1, crashes: 0, crashesAlone: 0, snoozes: 0, redrives: 0, entries: [entry] }
  views.set(id, { state: 'dead', reason: 'failed', history })
  await assert.rejects(time.runUntil(queue.job(kind, id).result()), (thrown: QueueError) => {
    assert.equal(thrown.code, 'JOB_ENDED_BADLY')
    assert.match(thrown.message, /is dead \(failed\): no such user/)
    const cause = thrown.cause as Error
    assert.deepEqual([cause.name, cause.message, cause.stack], Object.values(error))
    return true
  })
  views.set(id, { state: 'cancelled', history: null })
  await assert.rejects(time.runUntil(queue.job(kind, id).result()), {
    code: 'JOB_ENDED_BADLY',
    message: /was cancelled/,
  })
})

test('a job without a record is told as such', async () => {
  const { time, queue } = looked()
  const id = newJobId()
  await assert.rejects(time.runUntil(queue.job(kind, id).result()), { code: 'JOB_NOT_FOUND', jobId: id })
})

test('close ends all waits', async () => {
  const { time, queue, ids } = looked()
  const wait = watch(queue.job(kind, ids(1, 'running')[0]!).result())
  await time.advance(10)
  await queue.close()
  await time.advance(0)
  assert.equal((wait.error as QueueError).code, 'QUEUE_CLOSED')
  assert.equal(time.pending, 0)
})

test('B106: a handler that returned nothing, null, 0 or "" has that result', async () => {
  const { time, queue, views } = looked()
  const id = newJobId()
  for (const result of [undefined, null, 0, '', false]) {
    views.set(id, { state: 'completed', ...(result === undefined ? {} : { result }) })
    assert.equal(await time.runUntil(queue.job(kind, id).result()), result)
  }
})

test('options are checked', async () => {
  const { queue, ids } = looked()
  const job = queue.job(kind, ids(1, 'running')[0]!)
  await assert.rejects(job.result({ timeout: -1 }), { code: 'INVALID_OPTION', field: 'timeout' })
  await assert.rejects(job.result({ timout: 5 } as never), { code: 'UNKNOWN_OPTION' })
  assert.throws(() => queue.job(kind, 'x'), { code: 'INVALID_OPTION', field: 'id' })
})

test('a store that cannot look says so', async () => {
  const time = new VirtualTime()
  const queue = new Queue(connectionTo(new StubStore() as unknown as Storage, time))
  await assert.rejects(queue.job(kind, newJobId()).result(), { code: 'CAPABILITY_MISSING', message: /stub.*inspect/ })
})
