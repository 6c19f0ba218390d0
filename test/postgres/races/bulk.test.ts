/**
 * Bulk changes whose jobs move on between being found and being come to: played with another connection held in
 * between. Listed in docs/races.md.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Queue } from '../../../src/client/queue.js'
import { realEnv } from '../../../src/core/env.js'
import { QueueError } from '../../../src/core/errors.js'
import { emptyHistory, type HistoryEntry, type JobHistory } from '../../../src/core/job.js'
import { EventBus } from '../../../src/observe/events.js'
import { LocalHints } from '../../../src/storage/connection.js'
import type { Control, Settlement, Storage } from '../../../src/storage/storage.js'
import { newJob, TestWorker } from '../../support/jobs.js'
import { stopped, withPoints } from '../../support/points.js'
import { type Scratch, scratch } from '../../support/postgres.js'

let store: Scratch
before(async () => {
  store = await scratch()
  await withPoints(store)
})
after(() => store.drop())

type Steering = 'cancel' | 'retry' | 'redrive' | 'discard'

/** Closing it is the business of the scratch. */
function queueOver(storage: Storage): Queue {
  return new Queue({ storage, env: realEnv, events: new EventBus(), hints: new LocalHints() })
}

/** The same store, on which `around` decides when the operation is called, and whether its answer arrives. */
function steered(operation: Steering, around: (call: () => Promise<unknown>) => Promise<unknown>): Storage {
  const { storage } = store
  const control = Object.create(storage.control) as Control
  const call = storage.control[operation].bind(storage.control) as (...given: unknown[]) => Promise<unknown>
  Object.assign(control, { [operation]: (...given: unknown[]) => around(() => call(...given)) })
  return Object.create(storage, { control: { value: control } }) as Storage
}

async function waiting(queue: string, count = 1, more: Parameters<typeof newJob>[0] = {}): Promise<string[]> {
  const jobs = Array.from({ length: count }, () => newJob({ queue, ...more }))
  await store.storage.enqueue(jobs)
  await store.advance(10)
  return jobs.map(({ id }) => id)
}

/** The one job that is ready dies, of this message. */
async function die(queue: string, message: string): Promise<string> {
  const worker = await TestWorker.registered(store.storage)
  const { leases } = await worker.claim({ queues: [{ queue, share: 1 }], limit: 1 })
  const [{ fence, jobs }] = leases as [(typeof leases)[0]]
  const { entries, ...rest } = jobs[0]!.history ?? emptyHistory()
  const failure: HistoryEntry = { at: 0, attempt: 1, outcome: 'rejected', error: { name: 'Error', message } }
  const history: JobHistory = { ...rest, entries: [...entries, failure] }
  const settlement: Settlement = { fence, ordinal: 0, to: 'dead', reason: 'rejected', history }
  assert.deepEqual(await store.storage.settle([settlement]), ['ok'])
  await store.advance(10)
  return jobs[0]!.id
}

async function letter(queue: string): Promise<string> {
  await waiting(queue)
  return die(queue, 'the first fault')
}

async function stateOf(id: string): Promise<string | undefined> {
  return (await store.storage.inspect.get([id]))[0]?.state
}

function claimOf(worker: TestWorker, queue: string) {
  return stopped(store, 'commit:lease', (storage) => {
    worker.request += 1
    return worker.on(storage).claim({ request: worker.request, queues: [{ queue, share: 100 }] })
  })
}

test('cancelAll of what is ready waits for a claim that has the job, and does not signal it', async () => {
  const [id] = await waiting('claimed')
  const worker = await TestWorker.registered(store.storage)
  const claim = await claimOf(worker, 'claimed')
  const run = queueOver(store.storage).cancelAll({ queue: 'claimed', state: 'ready' })
  await claim.waitedFor()
  const { leases } = await claim.goOn()
  const { done, answers } = await run
  assert.deepEqual([done, answers], [0, { 'moved on': 1 }])
  assert.equal(await stateOf(id!), 'running')
  const beat = await worker.beat({ leases: leases.map(({ fence }) => fence) })
  assert.deepEqual([beat.lost, beat.cancel], [[], []])
})

test('cancelAll of what is ready, with a claim that is rolled back: it is cancelled', async () => {
  const [id] = await waiting('unclaimed')
  const claim = await claimOf(await TestWorker.registered(store.storage), 'unclaimed')
  const run = queueOver(store.storage).cancelAll({ queue: 'unclaimed', state: 'ready' })
  await claim.waitedFor()
  await claim.fail()
  await assert.rejects(claim.answer)
  assert.deepEqual((await run).answers, { cancelled: 1 })
  assert.equal(await stateOf(id!), 'cancelled')
})

test('cancelAll of all that waits takes a job that was promoted before its turn', async () => {
  const [id] = await waiting('promoted', 1, { due: { delayMs: 3_600_000 } })
  const storage = steered('cancel', async (call) => {
    await store.storage.control.retry([id!])
    return call()
  })
  assert.deepEqual((await queueOver(storage).cancelAll({ queue: 'promoted' })).answers, { cancelled: 1 })
})

test('retryAll of delayed jobs leaves one that ran and failed meanwhile to its backoff', async () => {
  const [id] = await waiting('failed', 1, { due: { delayMs: 3_600_000 } })
  const storage = steered('retry', async (call) => {
    await store.storage.control.retry([id!])
    const worker = await TestWorker.registered(store.storage)
    const { leases } = await worker.claim({ queues: [{ queue: 'failed', share: 1 }] })
    const history = { ...emptyHistory(), attempts: 1 }
    const retry = { to: 'delayed', delayMs: 60_000, suspect: false, history } as const
    await store.storage.settle([{ fence: leases[0]!.fence, ordinal: 0, ...retry }])
    return call()
  })
  const result = await queueOver(storage).retryAll({ queue: 'failed', state: 'delayed' })
  assert.deepEqual([result.done, result.answers, await stateOf(id!)], [0, { 'moved on': 1 }, 'retrying'])
})

for (const operation of ['redrive', 'discard'] as const)
  test(`${operation}All leaves alone a letter that somebody redrove and that died anew before its turn`, async () => {
    const queue = `anew-${operation}`
    const id = await letter(queue)
    const { control } = store.storage
    const storage = steered(operation, async (call) => {
      assert.deepEqual(await control.redrive([id], { force: false }), ['ok'])
      assert.equal(await die(queue, 'another fault'), id)
      return call()
    })
    const bulk = queueOver(storage)
    const { done, answers } = await (operation === 'redrive' ? bulk.redriveAll({ queue }) : bulk.discardAll({ queue }))
    assert.deepEqual([done, answers], [0, { 'moved on': 1 }])
    const [view] = await store.storage.inspect.get([id])
    assert.deepEqual([view?.state, view?.history?.redrives], ['dead', 1])
    assert.equal(view?.history?.entries.at(-1)?.error?.message, 'another fault')
  })

test('discardAll waits for a redrive that has the letter; it is no letter any more, or it is discarded', async () => {
  for (const commits of ['committed', 'rolled back']) {
    const queue = `redriven, ${commits}`.replaceAll(/\W+/g, '-')
    const id = await letter(queue)
    const redrive = await stopped(store, 'commit:ready', (storage) => storage.control.redrive([id], { force: false }))
    const run = queueOver(store.storage).discardAll({ queue })
    await redrive.waitedFor()
    if (commits === 'committed') await redrive.goOn()
    else await redrive.fail()
    await redrive.answer.catch(() => {})
    const committed = [{ 'not dead': 1 }, 'ready']
    assert.deepEqual(
      [(await run).answers, await stateOf(id)],
      commits === 'committed' ? committed : [{ discarded: 1 }, undefined],
    )
  }
})

test('two redrives of one filter, one held: each letter comes back once, and is counted once', async () => {
  const queue = 'twice'
  const ids = [await letter(queue), await letter(queue), await letter(queue)]
  const first = await stopped(store, 'commit:ready', (storage) => queueOver(storage).redriveAll({ queue }))
  const second = queueOver(store.storage).redriveAll({ queue })
  await first.waitedFor()
  assert.deepEqual((await first.goOn()).answers, { ok: 3 })
  assert.deepEqual([(await second).done, (await second).answers], [0, { 'not dead': 3 }])
  for (const view of await store.storage.inspect.get(ids)) assert.equal(view?.history?.redrives, 1)
})

/** The first call is done, and its answer is lost. */
function losing(operation: Steering): Storage {
  let calls = 0
  return steered(operation, async (call) => {
    const answer = await call()
    if (calls++ === 0) throw new QueueError('STORE_UNAVAILABLE', 'cut after it was done')
    return answer
  })
}

test('an answer that is lost is made up for by what the histories show; a discard leaves none', async () => {
  const queue = 'lost-answers'
  await letter(queue)
  assert.deepEqual((await queueOver(losing('redrive')).redriveAll({ queue })).answers, { ok: 1 })
  await die(queue, 'again')
  assert.deepEqual((await queueOver(losing('discard')).discardAll({ queue })).answers, { unconfirmed: 1 })
  await waiting(queue, 1, { due: { delayMs: 60_000 } })
  const retried = await queueOver(losing('retry')).retryAll({ queue, state: 'delayed' })
  assert.deepEqual([retried.done, retried.answers], [1, { ok: 1 }])
  const cancelled = await queueOver(losing('cancel')).cancelAll({ queue })
  assert.deepEqual([cancelled.done, cancelled.answers], [1, { cancelled: 1 }])
})
