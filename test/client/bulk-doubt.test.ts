/** Bulk changes whose answers are lost: each job is told once, whatever else fails; and what one run keeps in mind has a bound. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { KNOWN_MAX } from '../../src/client/bulk-run.js'
import { QueueError } from '../../src/core/errors.js'
import type { BulkProgress } from '../../src/index.js'
import type { MatchPage, MatchRequest } from '../../src/storage/storage.js'
import { inMemory } from './kit.js'
import { dead, type World } from './letters.js'

/** The first redrive is done for so many of the jobs it names, and its answer is lost. */
function losing({ storage }: World, done: number): void {
  const redrive = storage.control.redrive.bind(storage.control)
  let calls = 0
  storage.control.redrive = async (ids, options) => {
    calls += 1
    if (calls > 1) return redrive(ids, options)
    await redrive(ids.slice(0, done), options)
    throw new QueueError('STORE_UNAVAILABLE', 'cut after it was done')
  }
}

/** Looks fail as told. Answers how many there were. */
function looking({ storage }: World, failureOf: (look: number) => QueueError | undefined): { looks: number } {
  const get = storage.inspect.get.bind(storage.inspect)
  const counted = { looks: 0 }
  storage.inspect.get = async (ids) => {
    counted.looks += 1
    const failure = failureOf(counted.looks)
    if (failure !== undefined) throw failure
    return get(ids)
  }
  return counted
}

/** Notes what is told of a redrive of all. */
async function redriven({ time, queue, listen }: World) {
  const events = listen()
  const told: BulkProgress[] = []
  const run = queue.redriveAll({ queue: 'queue' }, { onProgress: (so) => void told.push(so) })
  const error = await time.runUntil(run).then(
    () => undefined,
    (thrown: QueueError) => thrown.code,
  )
  return { error, told, events: events.filter(({ type }) => type === 'job.redriven').length }
}

test('what onProgress throws after an answer was lost ends the run, and no job is told twice', async () => {
  const world = await dead(2)
  const { time, queue, listen } = world
  losing(world, 2)
  const events = listen()
  const told: BulkProgress[] = []
  const onProgress = (so: BulkProgress): void => {
    told.push(so)
    throw new Error('enough')
  }
  await assert.rejects(time.runUntil(queue.redriveAll({ queue: 'queue' }, { onProgress })), { message: 'enough' })
  assert.deepEqual(told, [{ matched: 2, done: 2, answers: { ok: 2 } }])
  assert.equal(events.length, 2)
})

test('a look that is refused leaves in doubt only the jobs that it asked for', async () => {
  const world = await dead(90)
  losing(world, 70)
  const refused = new QueueError('STORE_REJECTED', 'not readable')
  const counted = looking(world, (look) => (look === 1 ? refused : undefined))
  const { error, told, events } = await redriven(world)
  assert.equal(error, 'STORE_REJECTED')
  assert.deepEqual(told, [{ matched: 90, done: 40, answers: { unconfirmed: 50, ok: 40 } }])
  assert.deepEqual([counted.looks, events], [2, 40])
})

test('a store that goes away before the looks is waited for once, and what it had answered is told', async () => {
  const world = await dead(200)
  losing(world, 150)
  looking(world, () => new QueueError('STORE_UNAVAILABLE', 'away'))
  const begun = world.time.monotonic()
  const { error, told, events } = await redriven(world)
  assert.equal(error, 'STORE_UNAVAILABLE')
  assert.deepEqual(told, [{ matched: 200, done: 50, answers: { unconfirmed: 150, ok: 50 } }])
  assert.equal(events, 50)
  const waited = world.time.monotonic() - begun
  assert(waited <= 61_000, `${waited} ms`)
})

/** A store in which more jobs match than one run keeps in mind, each once. */
function endless(matching: number): World {
  const world = inMemory()
  const { control, inspect } = world.storage
  inspect.match = async ({ after = '0', limit }: MatchRequest): Promise<MatchPage> => {
    const from = Number(after)
    const count = Math.min(limit, matching - from)
    const jobs = Array.from({ length: count }, (_, n) => ({ id: String(from + n), kind: 'kind', queue: 'queue' }))
    return { jobs, next: from + count < matching ? String(from + count) : null, nowMs: 0 }
  }
  control.retry = async (ids) => ids.map(() => 'ok')
  control.cancel = async (ids) => ids.map(() => 'cancelled')
  return world
}

test('retryAll ends at as many jobs as it can keep in mind, as at a limit', async () => {
  const { time, queue } = endless(KNOWN_MAX + 1_000)
  const result = await time.runUntil(queue.retryAll({ queue: 'queue' }, { batch: 1_000 }))
  assert.deepEqual([result.ended, result.done], ['limit', KNOWN_MAX])
})

test('cancelAll of what waits keeps nothing in mind, and has no such end', async () => {
  const { time, queue } = endless(KNOWN_MAX + 1_000)
  const filter = { queue: 'queue', state: 'ready' } as const
  const result = await time.runUntil(queue.cancelAll(filter, { batch: 1_000 }))
  assert.deepEqual([result.ended, result.done], ['all', KNOWN_MAX + 1_000])
})

test('a rehearsal counts a job once that goes from state to state meanwhile', async () => {
  const { time, queue } = endless(10)
  const result = await time.runUntil(queue.cancelAll({ queue: 'queue' }, { dryRun: true }))
  assert.deepEqual(result.answers, { cancelled: 10 })
})
