/** Looking at jobs and queues, and changing them from outside. */
import assert from 'node:assert/strict'
import test from 'node:test'
import type { QueueError } from '../../src/core/errors.js'
import { newJobId } from '../../src/core/id.js'
import { defineJob } from '../../src/core/kind.js'
import { completed, TestWorker } from '../support/jobs.js'
import { inMemory, stubbed, watch } from './kit.js'

const kind = defineJob<number>('kind', { queue: 'queue' })

async function filled(count: number) {
  const world = inMemory()
  const results = await world.time.runUntil(
    world.queue.enqueueMany(Array.from({ length: count }, (_, n) => kind.with(n))),
  )
  const ids = results.map((result) => {
    assert(result.status === 'created')
    return result.id
  })
  return { ...world, ids }
}

test('a job is seen with all there is to know; an unknown one is null', async () => {
  const { queue, ids } = await filled(1)
  const view = await queue.get(ids[0]!.toUpperCase())
  assert.equal(view!.state, 'ready')
  assert.equal(view!.payload, 0)
  assert.equal(await queue.get(newJobId()), null)
  assert.deepEqual(await queue.job(kind, ids[0]!).get(), view)
  await assert.rejects(queue.get('x'), { code: 'INVALID_OPTION', field: 'id' })
})

test('a job is explained: what goes before it, what holds it; an unknown one is null', async () => {
  const { queue, ids, storage } = await filled(12)
  assert.equal((await queue.explain(ids[0]!))!.clauses[0].code, 'no worker')
  await TestWorker.registered(storage)
  const [first, last] = [await queue.explain(ids[0]!.toUpperCase()), await queue.explain(ids[11]!)]
  assert.deepEqual([first!.verdict, last!.verdict], ['next', 'in line'])
  await queue.pause('queue')
  const { verdict, clauses } = (await queue.explain(ids[11]!))!
  assert.deepEqual([verdict, clauses[0].code], ['held', 'paused'])
  assert.equal(await queue.explain(newJobId()), null)
  await assert.rejects(queue.explain('x'), { code: 'INVALID_OPTION', field: 'id' })
})

test('a job in line has an estimated start where the store tells of a pace', async () => {
  const { queue, ids, storage } = await filled(30)
  await TestWorker.registered(storage)
  const startsIn = async () => {
    const [turn] = (await queue.explain(ids[29]!))!.clauses
    return turn.code === 'its turn' ? turn.startsIn : undefined
  }
  assert.equal(await startsIn(), undefined)
  const asked: string[] = []
  const pace = async (name: string) => {
    asked.push(name)
    return { oldestReadyMs: 0, completedMinute: count(60), completedHour: count(60) }
  }
  Object.assign(storage, { diagnose: { pace } })
  const basis = 'its rank and the 60 jobs completed in the last minute'
  assert.deepEqual(await startsIn(), { ms: 20_000, atLeast: false, basis })
  await queue.explain(ids[0]!)
  assert.deepEqual(asked, ['queue'], 'only where it says something')
})

function count(exactly: number) {
  return { count: exactly, exact: true }
}

test('jobs are listed by page, and all of them one after another', async () => {
  const { queue, ids } = await filled(250)
  const first = await queue.list({ state: 'ready', queue: 'queue', limit: 100 })
  assert.equal(first.jobs.length, 100)
  const second = await queue.list({ state: 'ready', queue: 'queue', limit: 100, after: first.next! })
  assert.equal(second.jobs[0]!.payload, 100)
  const all: string[] = []
  for await (const job of queue.jobs({ state: 'ready', limit: 60 })) all.push(job.id)
  assert.deepEqual(all, ids)
  await assert.rejects(queue.list({} as never), { code: 'INVALID_OPTION', field: 'state' })
  await assert.rejects(queue.list({ state: 'failed' } as never), { code: 'INVALID_OPTION', field: 'state' })
  await assert.rejects(queue.list({ state: 'ready', limit: 0 }), { code: 'INVALID_OPTION', field: 'limit' })
})

test('counts, queues and workers are shown', async () => {
  const { queue, storage } = await filled(3)
  const worker = await TestWorker.registered(storage)
  assert.equal((await queue.counts('queue')).ready.count, 3)
  assert.deepEqual(
    (await queue.queues()).map((one) => one.queue),
    ['queue'],
  )
  assert.deepEqual(
    (await queue.workers()).map((one) => one.id),
    [worker.id],
  )
})

test('one id gives one answer, many give many in order, in parts', async () => {
  const { time, queue, ids, storage, listen } = await filled(2_500)
  const events = listen()
  assert.equal(await queue.cancel(ids[0]!), 'cancelled')
  const answers = await queue.cancel([...ids, newJobId()])
  assert.deepEqual([answers.length, answers[0], answers[1], answers.at(-1)], [2_501, 'ended', 'cancelled', 'unknown'])
  assert.equal(events.filter((event) => event.type === 'job.cancelled').length, 2_500)
  assert.deepEqual(events[0], { type: 'job.cancelled', jobId: ids[0], kind: 'kind', queue: 'queue' })
  await assert.rejects(queue.cancel(['x']), { code: 'INVALID_OPTION', field: 'ids[0]' })
  await assert.rejects(queue.cancel(5 as never), { code: 'INVALID_OPTION', field: 'ids' })
  const running = await time.runUntil(queue.enqueue(kind, 1))
  await (await TestWorker.registered(storage)).claim()
  assert.equal(await queue.cancel(running.id), 'signalled')
  assert.equal(events.at(-1)!.type, 'job.cancel requested')
})

test('retry brings a delayed job forward, redrive a dead one back', async () => {
  const { time, queue, storage, listen } = await filled(0)
  const events = listen()
  const later = await time.runUntil(queue.enqueue(kind, 1, { delay: '1h' }))
  assert.equal(await queue.retry(later.id), 'ok')
  assert.equal((await later.get())!.state, 'ready')
  assert.equal(await queue.redrive(later.id), 'not dead')
  const worker = await TestWorker.registered(storage)
  const { leases } = await worker.claim()
  const history = { attempts: 1, crashes: 0, crashesAlone: 0, snoozes: 0, redrives: 0, entries: [] }
  await storage.settle([{ fence: leases[0]!.fence, ordinal: 0, to: 'dead', reason: 'failed', history }])
  assert.deepEqual(await queue.redrive([later.id], { force: false }), ['ok'])
  assert.equal((await later.get())!.state, 'ready')
  const told = events.map((event) => event.type)
  assert.deepEqual(told, ['job.enqueued', 'job.retried', 'job.redriven'])
  await assert.rejects(queue.redrive(later.id, { force: 'yes' } as never), { code: 'INVALID_OPTION', field: 'force' })
})

test('limits are checked, set and told; what is not given stays', async () => {
  const { queue, hints } = await filled(1)
  const limits = async () => (await queue.queues())[0]!.limits
  hints.length = 0
  await queue.limit('queue', { concurrency: 20, rate: { limit: 100 } })
  assert.deepEqual(await limits(), {
    concurrency: 20,
    rate: { limit: 100, perMs: 1_000, burst: 100 },
    depth: null,
    intake: null,
    perKey: null,
  })
  // What it held back may go on.
  assert.deepEqual(hints, ['queue'])
  await queue.limit('queue', { rate: { limit: 5, per: '15m', burst: 2 } })
  assert.deepEqual(await limits(), {
    concurrency: 20,
    rate: { limit: 5, perMs: 900_000, burst: 2 },
    depth: null,
    intake: null,
    perKey: null,
  })
  await queue.limit('queue', { concurrency: null })
  assert.deepEqual(await limits(), {
    concurrency: null,
    rate: { limit: 5, perMs: 900_000, burst: 2 },
    depth: null,
    intake: null,
    perKey: null,
  })
  const refused: [unknown, string, string][] = [
    [{ concurrency: 0 }, 'INVALID_OPTION', 'concurrency'],
    [{ concurrency: 1.5 }, 'INVALID_OPTION', 'concurrency'],
    [{ concurency: 1 }, 'UNKNOWN_OPTION', 'concurency'],
    [{ rate: 5 }, 'INVALID_OPTION', 'rate'],
    [{ rate: {} }, 'INVALID_OPTION', 'rate.limit'],
    [{ rate: { limit: 5, per: '0s' } }, 'INVALID_OPTION', 'rate.per'],
    [{ rate: { limit: 5, burst: -1 } }, 'INVALID_OPTION', 'rate.burst'],
    [{ rate: { limit: 5, every: '1s' } }, 'UNKNOWN_OPTION', 'rate.every'],
  ]
  for (const [options, code, field] of refused)
    await assert.rejects(queue.limit('queue', options as never), { code, field })
  await assert.rejects(queue.limit('no spaces', {}), { code: 'INVALID_NAME' })
})

test('pause, resume and order change the queue, and workers hear of a resume', async () => {
  const { queue, hints, listen } = await filled(1)
  const events = listen()
  hints.length = 0
  await queue.pause('queue')
  assert.equal((await queue.queues())[0]!.paused, true)
  assert.deepEqual(hints, [])
  await queue.resume('queue')
  assert.equal((await queue.queues())[0]!.paused, false)
  assert.deepEqual(hints, ['queue'])
  await queue.order('queue', 'strict')
  assert.equal((await queue.queues())[0]!.order, 'strict')
  assert.deepEqual(events, [
    { type: 'queue.paused', queue: 'queue' },
    { type: 'queue.resumed', queue: 'queue' },
  ])
  await assert.rejects(queue.order('queue', 'random' as never), { code: 'INVALID_OPTION', field: 'order' })
  await assert.rejects(queue.pause('no spaces'), { code: 'INVALID_NAME' })
})

test('a drain refuses new jobs and ends when nothing is left; it refuses until resumed', async () => {
  const { time, queue, storage } = await filled(1)
  const drained = watch(queue.drain('queue'))
  await time.advance(5_000)
  assert.equal(drained.settled, false)
  await assert.rejects(time.runUntil(queue.enqueue(kind, 2)), { code: 'QUEUE_DRAINING' })
  const worker = await TestWorker.registered(storage)
  const { leases } = await worker.claim()
  await time.advance(5_000)
  assert.equal(drained.settled, false, 'it runs')
  await storage.settle([completed(leases[0]!.fence)])
  await time.advance(2_000)
  assert(drained.settled && drained.error === undefined)
  await assert.rejects(time.runUntil(queue.enqueue(kind, 2)), { code: 'QUEUE_DRAINING' })
  await queue.resume('queue')
  await time.runUntil(queue.enqueue(kind, 2))
})

test('a drain has an end, and a signal ends it', async () => {
  const { time, queue } = await filled(1)
  const late = watch(queue.drain('queue', { timeout: '1m' }))
  const controller = new AbortController()
  const cut = watch(queue.drain('queue', { signal: controller.signal }))
  await time.advance(1_000)
  controller.abort(new Error('enough'))
  await time.advance(0)
  assert.equal((cut.error as Error).message, 'enough')
  await time.advance(60_000)
  assert.equal((late.error as QueueError).code, 'WAIT_TIMEOUT')
  assert.equal(time.pending, 0)
})

test('a purge deletes all that waits, in short steps, and says how many', async () => {
  const { time, queue, listen } = await filled(3_500)
  const events = listen()
  assert.equal(await time.runUntil(queue.purge('queue')), 3_500)
  assert.equal((await queue.counts('queue')).ready.count, 0)
  assert.deepEqual(events, [{ type: 'queue.purged', queue: 'queue', deleted: 3_500 }])
})

test('a purge waits ever longer while all that is left is in other hands, and ends with its signal', async () => {
  const { time, queue, storage } = await filled(3)
  const { control } = storage
  const purge = control.purge.bind(control)
  const askedAt: number[] = []
  control.purge = async (name, limit) => {
    askedAt.push(time.monotonic())
    return askedAt.length <= 5 ? { deleted: 0, more: true } : purge(name, limit)
  }
  assert.equal(await time.runUntil(queue.purge('queue')), 3)
  const pauses = askedAt.slice(1).map((at, i) => at - askedAt[i]!)
  assert.deepEqual(
    pauses.toSorted((a, b) => a - b),
    pauses,
  )
  assert.ok(pauses[0]! > 0 && pauses.at(-1)! > pauses[0]!)
  askedAt.length = 0
  const controller = new AbortController()
  const cut = queue.purge('queue', { signal: controller.signal })
  controller.abort()
  assert.equal(await time.runUntil(cut), 0)
})

test('a facet that the store lacks is named, with the store', async () => {
  const { queue } = stubbed()
  const id = newJobId()
  const calls: [Promise<unknown>, string][] = [
    [queue.cancel(id), 'control'],
    [queue.retry(id), 'control'],
    [queue.redrive(id), 'control'],
    [queue.pause('q'), 'control'],
    [queue.purge('q'), 'control'],
    [queue.drain('q'), 'control'],
    [queue.order('q', 'strict'), 'control'],
    [queue.limit('q', { concurrency: 1 }), 'control'],
    [queue.get(id), 'inspect'],
    [queue.list({ state: 'ready' }), 'inspect'],
    [queue.counts('q'), 'inspect'],
    [queue.queues(), 'inspect'],
    [queue.workers(), 'inspect'],
  ]
  for (const [call, facet] of calls)
    await assert.rejects(call, {
      code: 'CAPABILITY_MISSING',
      message: new RegExp(`stub store has no facet "${facet}"`),
    })
})
