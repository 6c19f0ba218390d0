/** What a handler returns, throws or does becomes the end of its job, through a whole worker. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { QueueError } from '../../src/core/errors.js'
import { type BoundHandler, dead, type HandlerContext, retryAfter, snooze } from '../../src/core/handler.js'
import type { JobSpec, Json } from '../../src/core/job.js'
import type { JobView } from '../../src/storage/storage.js'
import { handler, type Kit, virtualKit } from './kit.js'

/** Runs one job on a worker of its own until the worker finds nothing more; what the store then knows of it. */
async function runOne(
  run: BoundHandler['run'],
  more: { handler?: Partial<BoundHandler>; spec?: Partial<JobSpec>; payload?: Json } = {},
): Promise<{ view: JobView; kit: Kit }> {
  const { time, kit } = virtualKit()
  const payload = more.payload === undefined ? {} : { payload: JSON.stringify(more.payload) }
  const [id] = await kit.enqueue(1, { ...payload, ...(more.spec ? { spec: more.spec } : {}) })
  await time.runUntil(kit.worker([handler(run, more.handler)]).runUntilEmpty())
  return { view: await kit.view(id!), kit }
}

test('a return completes the job and keeps its result', async () => {
  const { view, kit } = await runOne((payload) => ({ got: payload as Json }), { payload: { a: 1 } })
  assert.equal(view.state, 'completed')
  assert.deepEqual(view.result, { got: { a: 1 } })
  assert.equal(kit.all('job.completed').length, 1)
})

test('async handlers and thenables are awaited', async () => {
  const thenable = {
    // biome-ignore lint/suspicious/noThenProperty: a thenable that calls back twice is what this is about
    then: (resolve: (value: number) => void) => {
      resolve(5)
      resolve(6)
    },
  }
  assert.equal((await runOne(async () => 4)).view.result, 4)
  assert.equal((await runOne(() => thenable)).view.result, 5)
})

test('a throw fails the attempt and is retried by the policy in the job', async () => {
  const { view, kit } = await runOne(() => {
    throw new TypeError('bad luck')
  })
  assert.equal(view.state, 'retrying')
  assert.equal(view.history!.attempts, 1)
  assert.deepEqual(view.history!.entries[0]!.error!.message, 'bad luck')
  const [failed] = kit.all('job.failed')
  assert.ok(failed!.retryInMs! >= 1_500 && failed!.retryInMs! <= 2_500)
})

test('the last attempt that fails makes the job dead, with one event for it', async () => {
  const { view, kit } = await runOne(async () => Promise.reject(new Error('no')), { spec: { attempts: 1 } })
  assert.equal(view.state, 'dead')
  assert.equal(view.reason, 'failed')
  assert.deepEqual(
    kit.all('job.dead').map(({ reason }) => reason),
    ['failed'],
  )
  assert.equal(kit.all('job.failed')[0]!.retryInMs, undefined)
})

test('anything may be thrown', async () => {
  for (const thrown of [undefined, null, 'text', 5, {}, Object.create(null), Symbol('s')]) {
    const { view } = await runOne(() => {
      throw thrown
    })
    assert.equal(view.state, 'retrying')
  }
})

test('verdicts: retryAfter uses an attempt and its own delay, snooze none, dead ends it', async () => {
  const retried = await runOne(() => retryAfter('1h', 'rate limited'))
  assert.equal(retried.view.history!.attempts, 1)
  assert.equal(retried.kit.all('job.failed')[0]!.retryInMs, 3_600_000)
  assert.equal(retried.kit.all('job.failed')[0]!.error.message, 'rate limited')

  const snoozed = await runOne(async () => snooze('10m'))
  assert.equal(snoozed.view.history!.snoozes, 1)
  assert.equal(snoozed.view.history!.attempts, 0)
  assert.equal(snoozed.kit.all('job.snoozed')[0]!.delayMs, 600_000)

  const rejected = await runOne(() => dead('no such user'))
  assert.equal(rejected.view.state, 'dead')
  assert.equal(rejected.view.reason, 'rejected')
  assert.equal(rejected.kit.all('job.dead')[0]!.error!.message, 'no such user')
})

test('a result that is not plain JSON, or too large, fails the attempt', async () => {
  for (const value of [10n, { at: new Map() }, 'x'.repeat(70_000)]) {
    const { view } = await runOne(() => value)
    assert.equal(view.state, 'retrying')
    assert.equal(view.history!.entries[0]!.error!.name, 'QueueError')
  }
})

test('a payload that fails its schema fails the attempt only: a deploy may mend it', async () => {
  let runs = 0
  const parse = (): never => {
    throw new QueueError('INVALID_PAYLOAD', 'payload.email is missing', { field: 'payload.email' })
  }
  const { view } = await runOne(() => void runs++, { handler: { parse } })
  assert.equal(view.state, 'retrying')
  assert.match(view.history!.entries[0]!.error!.message, /payload.email/)
  assert.equal(runs, 0)
})

test('a schema may be async', async () => {
  const parse = async (payload: Json): Promise<unknown> => ({ parsed: payload })
  assert.deepEqual((await runOne((payload) => payload as Json, { handler: { parse }, payload: 1 })).view.result, {
    parsed: 1,
  })
})

test('own backoff of a kind decides; one that throws or answers nonsense is passed over', async () => {
  const fail = (): never => {
    throw new Error('x')
  }
  const retryIn = async (retryDelay: BoundHandler['retryDelay']): Promise<number> =>
    (await runOne(fail, { handler: { retryDelay } })).kit.all('job.failed')[0]!.retryInMs!
  assert.equal(await retryIn((attempt, error) => attempt * 7 + (error as Error).message.length), 8)
  for (const odd of [() => Number.NaN, () => -1, fail] as (() => number)[]) assert.ok((await retryIn(odd)) >= 1_500)
  assert.ok(Number.isFinite(await retryIn(() => Number.POSITIVE_INFINITY)))
})

test('the context tells what the job is', async () => {
  let seen: HandlerContext | undefined
  const { view } = await runOne(
    (_, context) => {
      seen = context
    },
    { spec: { attempts: 1, idempotencyKey: 'k' } },
  )
  assert.equal(seen!.id, view.id)
  assert.deepEqual(
    [seen!.kind, seen!.queue, seen!.priority, seen!.attempt, seen!.lastAttempt, seen!.idempotencyKey],
    ['kind', 'queue', 4, 1, true, 'k'],
  )
  assert.ok(Number.isSafeInteger(seen!.fence))
  assert.equal(seen!.enqueuedAt.getTime(), view.enqueuedAt)
  assert.equal(seen!.signal.aborted, false)
})

test('progress and log: told at once, the last progress kept; both may be taken out of the context', async () => {
  const { view, kit } = await runOne((_, { progress, log }) => {
    progress({ done: 1 })
    progress({ done: 2 })
    log('half way', { row: 5 })
  })
  assert.deepEqual(view.history!.progress, { done: 2 })
  assert.equal(kit.all('job.progressed').length, 2)
  assert.deepEqual(kit.all('job.log')[0]!.fields, { row: 5 })
})

test('progress that cannot be kept is refused where it is given', async () => {
  const { view } = await runOne((_, { progress }) => progress('x'.repeat(5_000)))
  assert.match(view.history!.entries[0]!.error!.message, /progress/)
})

test('a job that is claimed after its expiry never runs', async () => {
  let runs = 0
  const { time, kit } = virtualKit()
  const [id] = await kit.enqueue(1, { spec: { expiresInMs: 1_000 } })
  await time.advance(2_000)
  await time.runUntil(kit.worker([handler(() => void runs++)], { upkeep: false }).runUntilEmpty())
  const view = await kit.view(id!)
  assert.deepEqual([runs, view.state, view.reason], [0, 'dead', 'expired'])
  assert.equal(kit.all('job.dead').length, 1)
})

test('a listener that throws or rejects harms nobody', async () => {
  const { time, kit } = virtualKit()
  kit.connection.events.on(() => {
    throw new Error('a bad listener')
  })
  kit.connection.events.on((async () => Promise.reject(new Error('a worse one'))) as () => void)
  const [id] = await kit.enqueue()
  await time.runUntil(kit.worker([handler()]).runUntilEmpty())
  assert.equal((await kit.view(id!)).state, 'completed')
})

test('each job tells its life once: claimed, started, completed, in this order', async () => {
  const { time, kit } = virtualKit()
  await kit.enqueue(50)
  await time.runUntil(kit.worker([handler()]).runUntilEmpty())
  for (const type of ['job.claimed', 'job.started', 'job.completed'] as const) assert.equal(kit.all(type).length, 50)
  const types = kit.events.map(({ type }) => type).filter((type) => type.startsWith('worker'))
  assert.deepEqual(types, ['worker.started', 'worker.draining', 'worker.stopped'])
})
