/** Changing all jobs that match a filter: what is taken, in what order and pace, and how a run ends and goes on. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { QueueError } from '../../src/core/errors.js'
import { emptyHistory } from '../../src/core/job.js'
import type { BulkProgress } from '../../src/index.js'
import type { Storage } from '../../src/storage/storage.js'
import { TestWorker } from '../support/jobs.js'
import { inMemory, stubbed, watch } from './kit.js'
import { dead, die, kind, letters, lost, other, type World } from './letters.js'

/** Notes each call to redrive, and when it came. */
function noted({ storage, time }: World) {
  const calls: { at: number; ids: readonly string[] }[] = []
  const redrive = storage.control.redrive.bind(storage.control)
  storage.control.redrive = async (ids, options) => {
    calls.push({ at: time.monotonic(), ids })
    return redrive(ids, options)
  }
  return calls
}

test('redriveAll takes all that match, the oldest first, and tells of each', async () => {
  const world = await dead(1_200)
  const { time, queue, ids, listen } = world
  const elsewhere = await letters(world, 3, 'it broke', other)
  const calls = noted(world)
  const events = listen()
  const progress: BulkProgress[] = []
  const onProgress = (so: BulkProgress): void => void progress.push(so)
  const result = await time.runUntil(queue.redriveAll({ queue: 'queue' }, { onProgress }))
  const sample = ids.slice(0, 10).map((id) => ({ id, kind: 'kind', queue: 'queue' }))
  const answers = { ok: 1_200 }
  assert.deepEqual(result, { matched: 1_200, done: 1_200, answers, ended: 'all', dryRun: false, sample })
  assert.deepEqual(
    calls.map((call) => call.ids.length),
    [500, 500, 200],
  )
  assert.deepEqual(
    calls.flatMap((call) => call.ids),
    ids,
  )
  assert.deepEqual(
    progress.map(({ done }) => done),
    [500, 1_000, 1_200],
  )
  const told = events.filter(({ type }) => type === 'job.redriven')
  assert.equal(told.length, 1_200)
  assert.deepEqual(told[0], { type: 'job.redriven', jobId: ids[0], kind: 'kind', queue: 'queue' })
  assert.equal((await queue.get(elsewhere[0]!))!.state, 'dead')
})

test('one failure of many is redriven by its fingerprint, as the groups tell it', async () => {
  const world = await dead(3)
  const { time, queue } = world
  const full = await letters(world, 2, 'the disk is full')
  const { groups } = await queue.deadGroups({ queue: 'queue' })
  assert.deepEqual(
    groups.map(({ count, sample }) => [count.count, sample.error?.message]),
    [
      [2, 'the disk is full'],
      [3, 'it broke'],
    ],
  )
  const { fingerprint } = groups[0]!
  const none = await time.runUntil(queue.redriveAll({ fingerprint: null, queue: 'queue' }))
  assert.equal(none.matched, 0)
  const result = await time.runUntil(queue.redriveAll({ fingerprint }))
  assert.deepEqual([result.done, result.sample.map(({ id }) => id)], [2, full])
  assert.deepEqual((await queue.deadGroups({ limit: 1 })).groups[0]?.sample.error?.message, 'it broke')
  const page = await queue.list({ state: 'dead', fingerprint, queue: 'queue' })
  assert.deepEqual(page.jobs, [])
})

test('a dry run changes nothing, and says what would be answered', async () => {
  const world = await dead(1_500)
  const { time, queue, listen } = world
  await lost(world)
  const events = listen()
  const calls = noted(world)
  const result = await time.runUntil(queue.redriveAll({ queue: 'queue' }, { dryRun: true, rate: 1 }))
  const { sample, ...told } = result
  const answers = { ok: 1_500, 'needs force': 1 }
  assert.deepEqual(told, { matched: 1_501, done: 0, expected: 1_500, answers, ended: 'all', dryRun: true })
  assert.equal(sample.length, 10)
  assert.deepEqual([calls, events], [[], []])
  assert.equal((await queue.counts('queue')).dead.count, 1_501)
  const forced = await time.runUntil(queue.redriveAll({ queue: 'queue' }, { dryRun: true, force: true }))
  assert.deepEqual(forced.answers, { ok: 1_501 })
  const some = await time.runUntil(queue.redriveAll({ queue: 'queue' }, { dryRun: true, limit: 7 }))
  assert.deepEqual([some.expected, some.done, some.ended], [7, 0, 'limit'])
})

test('what needs force is counted and passed by, however often the run is repeated', async () => {
  const world = inMemory()
  const { time, queue } = world
  const before = await letters(world, 2)
  const kept = [await lost(world), await lost(world), await lost(world)]
  const after = await letters(world, 2)
  const calls = noted(world)
  const run = () => time.runUntil(queue.redriveAll({ queue: 'queue' }, { batch: 2 }))
  assert.deepEqual((await run()).answers, { ok: 4, 'needs force': 3 })
  assert.deepEqual(calls.flatMap((call) => call.ids).sort(), [...before, ...after].sort())
  assert.deepEqual((await run()).answers, { 'needs force': 3 })
  const forced = await time.runUntil(queue.redriveAll({ reason: 'lost' }, { force: true }))
  assert.deepEqual([forced.answers, forced.sample.map(({ id }) => id)], [{ ok: 3 }, kept])
})

test('a rate is held evenly, and a pause is not made up for in a burst', async () => {
  const world = await dead(500)
  const { time, queue, storage } = world
  const redrive = storage.control.redrive.bind(storage.control)
  storage.control.redrive = async (ids, options) => {
    // The store is slow once, for three seconds.
    if (time.monotonic() - begun > 4_000 && !slow) {
      slow = true
      await time.sleep(3_000)
    }
    return redrive(ids, options)
  }
  const calls = noted(world)
  let slow = false
  const begun = time.monotonic()
  const result = await time.runUntil(queue.redriveAll({ queue: 'queue' }, { rate: 50 }))
  assert.equal(result.done, 500)
  const took = time.monotonic() - begun
  assert(took >= 12_000 && took <= 13_100, `${took} ms`)
  for (const { at, ids } of calls) {
    assert(ids.length <= 13, `${ids.length} at once`)
    const within = calls.filter((call) => call.at >= at && call.at < at + 1_000)
    const jobs = within.reduce((sum, call) => sum + call.ids.length, 0)
    assert(jobs <= 50 + ids.length, `${jobs} in the second after ${at - begun} ms`)
  }
})

test('a rate below one a second', async () => {
  const { time, queue } = await dead(3)
  const begun = time.monotonic()
  await time.runUntil(queue.redriveAll({ queue: 'queue' }, { rate: 0.1 }))
  assert.equal(time.monotonic() - begun, 20_000)
})

test('what dies again during the run is not redriven twice by it', async () => {
  const world = await dead(60)
  const { time, queue, ids, storage } = world
  const redrive = storage.control.redrive.bind(storage.control)
  const calls: string[] = []
  storage.control.redrive = async (asked, options) => {
    const answers = await redrive(asked, options)
    calls.push(...asked)
    // The fault is still there: each dies as soon as it is let go.
    await die(world, 'queue', 'it broke', 1_000, async () => {})
    return answers
  }
  const result = await time.runUntil(queue.redriveAll({ queue: 'queue' }, { batch: 7, rate: 10 }))
  assert.equal(result.done, 60)
  assert.deepEqual(calls, ids)
  assert.equal((await queue.counts('queue')).dead.count, 60)
  await time.advance(1)
  const again = await time.runUntil(queue.redriveAll({ queue: 'queue' }, { dryRun: true }))
  assert.equal(again.expected, 60, 'the next run takes them')
})

test('a signal ends the run between two batches, and the next run goes on with the rest', async () => {
  const world = await dead(1_000)
  const { time, queue, ids } = world
  const calls = noted(world)
  const stop = new AbortController()
  const onProgress = ({ done }: BulkProgress): void => {
    if (done >= 300) stop.abort()
  }
  const first = await time.runUntil(
    queue.redriveAll({ queue: 'queue' }, { batch: 100, rate: 1_000, signal: stop.signal, onProgress }),
  )
  assert.deepEqual([first.ended, first.done], ['stopped', 300])
  const second = await time.runUntil(queue.redriveAll({ queue: 'queue' }))
  assert.deepEqual([second.ended, second.done], ['all', 700])
  assert.deepEqual(
    calls.flatMap((call) => call.ids),
    ids,
  )
  const never = await time.runUntil(queue.redriveAll({ queue: 'queue' }, { signal: AbortSignal.abort() }))
  assert.deepEqual([never.ended, never.matched], ['stopped', 0])
})

test('a signal ends a long wait for the rate at once', async () => {
  const { time, queue } = await dead(3)
  const stop = new AbortController()
  const running = watch(queue.redriveAll({ queue: 'queue' }, { rate: 0.01, signal: stop.signal }))
  await time.advance(1_000)
  assert.equal(running.settled, false)
  stop.abort()
  await time.advance(0)
  assert.deepEqual([running.value?.ended, running.value?.done], ['stopped', 1])
  assert.equal(time.pending, 0)
})

test('what onProgress throws ends the run; what was done is done', async () => {
  const { time, queue } = await dead(30)
  const onProgress = (): void => {
    throw new Error('enough')
  }
  const run = queue.redriveAll({ queue: 'queue' }, { batch: 10, onProgress })
  await assert.rejects(time.runUntil(run), { message: 'enough' })
  assert.equal((await queue.counts('queue')).dead.count, 20)
})

test('a limit is kept to the job', async () => {
  const { time, queue } = await dead(30)
  const result = await time.runUntil(queue.discardAll({ queue: 'queue' }, { limit: 25, batch: 10 }))
  assert.deepEqual([result.done, result.ended], [25, 'limit'])
  assert.equal((await queue.counts('queue')).dead.count, 5)
})

test('a store that is away for a while is waited for, one that stays away is told of', async () => {
  const { time, queue, storage } = await dead(1_000)
  const away = new QueueError('STORE_UNAVAILABLE', 'away')
  const begun = time.monotonic()
  failing(storage, 'redrive', () => (time.monotonic() - begun < 20_000 ? away : undefined))
  const result = await time.runUntil(queue.redriveAll({ queue: 'queue' }, { limit: 900 }))
  assert.equal(result.done, 900)
  failing(storage, 'redrive', () => away)
  const since = time.monotonic()
  await assert.rejects(time.runUntil(queue.redriveAll({ queue: 'queue' })), { code: 'STORE_UNAVAILABLE' })
  const waited = time.monotonic() - since
  assert(waited > 50_000 && waited <= 60_000, `${waited} ms`)
  failing(storage, 'redrive', () => new QueueError('STORE_REJECTED', 'never'))
  await assert.rejects(time.runUntil(queue.redriveAll({ queue: 'queue' })), { code: 'STORE_REJECTED' })
})

test('an answer that was lost is asked for again, and nothing is done twice', async () => {
  const { time, queue, storage, ids } = await dead(20)
  const redrive = storage.control.redrive.bind(storage.control)
  let calls = 0
  storage.control.redrive = async (asked, options) => {
    const answers = await redrive(asked, options)
    calls += 1
    if (calls === 1) throw new QueueError('STORE_UNAVAILABLE', 'cut after it was done')
    return answers
  }
  const result = await time.runUntil(queue.redriveAll({ queue: 'queue' }, { batch: 10 }))
  assert.deepEqual([result.answers, result.done], [{ ok: 20 }, 20])
  for (const id of ids) assert.equal((await queue.get(id))!.history!.redrives, 1)
})

function failing(storage: Storage, operation: 'redrive', fault: () => QueueError | undefined): void {
  const control = storage.control!
  const call = control[operation].bind(control)
  control[operation] = async (ids, options) => {
    const error = fault()
    if (error !== undefined) throw error
    return call(ids, options)
  }
}

test('ages are by the clock of the store, since the death or the enqueue', async () => {
  const world = await dead(2)
  const { time, queue } = world
  await time.advance(3_600_000)
  await letters(world, 3)
  const count = async (filter: object) =>
    (await time.runUntil(queue.discardAll({ queue: 'queue', ...filter }, { dryRun: true }))).expected
  assert.equal(await count({ olderThan: '30m' }), 2)
  assert.equal(await count({ newerThan: '30m' }), 3)
  assert.equal(await count({ olderThan: '2h' }), 0)
  assert.equal(await count({ newerThan: '2h' }), 5)
  await time.runUntil(queue.enqueue(kind, 1, { delay: '1d' }))
  await time.advance(60_000)
  const waiting = async (olderThan: string) =>
    (await time.runUntil(queue.cancelAll({ queue: 'queue', olderThan }, { dryRun: true }))).expected
  assert.deepEqual([await waiting('30s'), await waiting('2m')], [1, 0])
})

test('discardAll deletes what matches, frees the keys and tells of it', async () => {
  const world = inMemory()
  const { time, queue, listen } = world
  const job = await time.runUntil(queue.enqueue(kind, 1, { idempotencyKey: 'k' }))
  await die(world, 'queue', 'it broke')
  const events = listen()
  const result = await time.runUntil(queue.discardAll({ kind: 'kind' }))
  assert.deepEqual(result.answers, { discarded: 1 })
  assert.deepEqual(events, [{ type: 'job.discarded', jobId: job.id, kind: 'kind', queue: 'queue' }])
  assert.equal(await queue.get(job.id), null)
  const again = await time.runUntil(queue.enqueue(kind, 2, { idempotencyKey: 'k' }))
  assert.equal(again.duplicate, false)
})

test('discard of one or many answers for each, and tells what it was', async () => {
  const { queue, ids, listen } = await dead(3)
  const events = listen()
  assert.equal(await queue.discard(ids[0]!), 'discarded')
  assert.deepEqual(await queue.discard(ids), ['unknown', 'discarded', 'discarded'])
  assert.deepEqual(
    events,
    ids.map((jobId) => ({ type: 'job.discarded', jobId, kind: 'kind', queue: 'queue' })),
  )
})

test('cancelAll ends what waits, and signals what runs only where the filter says so', async () => {
  const world = inMemory()
  const { time, queue, storage, listen } = world
  await time.runUntil(queue.enqueueMany([kind.with(1), kind.with(2), kind.with(3, { delay: '1h' }), other.with(4)]))
  const worker = await TestWorker.registered(storage)
  await worker.claim({ limit: 1 })
  await time.advance(1)
  const events = listen()
  const waiting = await time.runUntil(queue.cancelAll({ queue: 'queue' }))
  assert.deepEqual(waiting.answers, { cancelled: 2 })
  const dry = await time.runUntil(queue.cancelAll({ kind: 'kind', state: 'running' }, { dryRun: true }))
  assert.deepEqual([dry.answers, events.length], [{ signalled: 1 }, 2])
  const all = await time.runUntil(queue.cancelAll({ all: true, state: ['running', 'ready'] }))
  assert.deepEqual(all.answers, { cancelled: 1, signalled: 1 })
  assert.deepEqual(events.map(({ type }) => type).sort(), [
    'job.cancel requested',
    'job.cancelled',
    'job.cancelled',
    'job.cancelled',
  ])
})

test('retryAll starts what waits for its next attempt, and delayed jobs only where the filter says so', async () => {
  const world = inMemory()
  const { time, queue, storage } = world
  await time.runUntil(queue.enqueueMany([kind.with(1), kind.with(2), kind.with(3, { delay: '1d' })]))
  const worker = await TestWorker.registered(storage)
  const { leases } = await worker.claim()
  const history = { ...emptyHistory(), attempts: 1 }
  const retry = { to: 'delayed', delayMs: 3_600_000, suspect: false, history } as const
  await storage.settle([0, 1].map((ordinal) => ({ fence: leases[0]!.fence, ordinal, ...retry })))
  await time.advance(1)
  assert.deepEqual((await time.runUntil(queue.retryAll({ queue: 'queue' }))).answers, { ok: 2 })
  assert.equal((await queue.counts('queue')).delayed.count, 1)
  const delayed = await time.runUntil(queue.retryAll({ queue: 'queue', state: ['delayed', 'retrying'] }))
  assert.deepEqual(delayed.answers, { ok: 1 })
  assert.equal((await queue.counts('queue')).ready.count, 3)
})

test('retryAll takes a job once a run, also one that fails again meanwhile', async () => {
  const world = inMemory()
  const { time, queue, storage } = world
  await time.runUntil(queue.enqueueMany([kind.with(1), kind.with(2), kind.with(3)]))
  const worker = await TestWorker.registered(storage)
  const history = { ...emptyHistory(), attempts: 1 }
  const retry = { to: 'delayed', delayMs: 3_600_000, suspect: false, history } as const
  const failAll = async (): Promise<void> => {
    for (const { fence, jobs } of (await worker.claim()).leases)
      await storage.settle(jobs.map((_, ordinal) => ({ fence, ordinal, ...retry })))
  }
  await failAll()
  await time.advance(1)
  const failures: Promise<void>[] = []
  const onProgress = (): void => void failures.push(failAll())
  const result = await time.runUntil(queue.retryAll({ queue: 'queue' }, { rate: 1, onProgress }))
  await Promise.all(failures)
  assert.deepEqual([result.matched, result.answers], [3, { ok: 3 }])
})

test('a filter that names nothing has to say that it means all', async () => {
  const { time, queue } = await dead(1)
  const empty = [{}, { olderThan: '1h' }, { all: false }, undefined]
  for (const filter of empty) {
    await assert.rejects(queue.redriveAll(filter as never), { code: 'INVALID_OPTION', field: 'filter' })
    await assert.rejects(queue.discardAll(filter as never), { code: 'INVALID_OPTION', field: 'filter' })
    await assert.rejects(queue.cancelAll(filter as never), { code: 'INVALID_OPTION', field: 'filter' })
    await assert.rejects(queue.retryAll(filter as never), { code: 'INVALID_OPTION', field: 'filter' })
  }
  await assert.rejects(queue.cancelAll({ state: 'ready' }), /name a queue or kind, or say \{ all: true \}/)
  assert.equal((await time.runUntil(queue.redriveAll({ all: true }))).done, 1)
})

test('filters and options are checked before anything is looked at', async () => {
  const { queue } = await dead(1)
  const refused: [Promise<unknown>, string, string][] = [
    [queue.redriveAll({ queu: 'queue' } as never), 'UNKNOWN_OPTION', 'filter.queu'],
    [queue.redriveAll({ reason: 'fail' } as never), 'INVALID_OPTION', 'filter.reason'],
    [queue.redriveAll({ fingerprint: 'xyz' }), 'INVALID_OPTION', 'filter.fingerprint'],
    [queue.redriveAll({ queue: 'q', olderThan: '2h', newerThan: '1h' }), 'INVALID_OPTION', 'filter.newerThan'],
    [queue.redriveAll({ state: 'dead' } as never), 'UNKNOWN_OPTION', 'filter.state'],
    [queue.cancelAll({ queue: 'q', state: [] }), 'INVALID_OPTION', 'filter.state'],
    [queue.cancelAll({ queue: 'q', state: ['dead'] } as never), 'INVALID_OPTION', 'filter.state[0]'],
    [queue.retryAll({ queue: 'q', state: 'ready' } as never), 'INVALID_OPTION', 'filter.state'],
    [queue.redriveAll({ queue: 'q' }, { rate: 0 }), 'INVALID_OPTION', 'rate'],
    [queue.redriveAll({ queue: 'q' }, { batch: 1_001 }), 'INVALID_OPTION', 'batch'],
    [queue.discardAll({ queue: 'q' }, { force: true } as never), 'UNKNOWN_OPTION', 'force'],
    [queue.deadGroups({ limit: 0 }), 'INVALID_OPTION', 'limit'],
    [queue.list({ state: 'ready', reason: 'failed' }), 'INVALID_OPTION', 'reason'],
    [queue.list({ state: 'delayed', endedBefore: new Date(0) }), 'INVALID_OPTION', 'endedBefore'],
    [queue.list({ state: 'completed', fingerprint: 'none' }), 'INVALID_OPTION', 'fingerprint'],
  ]
  for (const [call, code, field] of refused) await assert.rejects(call, { code, field })
})

test('a facet that the store lacks is named', async () => {
  const { queue } = stubbed()
  for (const call of [queue.redriveAll({ all: true }), queue.cancelAll({ all: true }), queue.discard('0'.repeat(8))])
    await assert.rejects(call, { code: 'CAPABILITY_MISSING' })
  await assert.rejects(queue.deadGroups(), { code: 'CAPABILITY_MISSING', message: /facet "inspect"/ })
})
