/** Faults that other queues were reported to have (docs/cases.md): delays, due times and numbers out of any range. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, mock, test } from 'node:test'
import { realEnv } from '../../src/core/env.js'
import { connect, defineJob, type Queue, worker } from '../../src/index.js'
import { openMemory } from '../../src/storage/memory/index.js'
import type { Storage } from '../../src/storage/storage.js'
import { VirtualTime } from '../../src/testing/virtual-time.js'
import { Deadlines } from '../../src/worker/deadlines.js'
import { Worker } from '../../src/worker/index.js'
import type { WorkerOptions } from '../../src/worker/options.js'
import { connectionTo } from '../client/kit.js'
import { newJob } from '../support/jobs.js'
import { type Scratch, scratch } from '../support/postgres.js'
import { changed, handler } from '../worker/kit.js'
import { kitOn, places, queueOn, until } from './kit.js'

let store: Scratch
beforeEach(async () => {
  store = await scratch()
})
afterEach(() => store.drop())

const kind = defineJob<{ n: number }>('kind', { queue: 'queue' })

/** A store whose calls are counted. */
function counting(storage: Storage): { storage: Storage; calls: { claim: number; promote: number } } {
  const calls = { claim: 0, promote: 0 }
  const upkeep = changed(
    storage.upkeep as unknown as Storage,
    {
      promote: (limit: number) => {
        calls.promote += 1
        return storage.upkeep.promote(limit)
      },
    } as unknown as Partial<Storage>,
  ) as unknown as Storage['upkeep']
  return {
    calls,
    storage: changed(storage, {
      upkeep,
      claim: (request) => {
        calls.claim += 1
        return storage.claim(request)
      },
    }),
  }
}

/** The clock of the store, with the days ahead that workers would have made on the way: nobody sees the one without the other. */
async function jump(ms: number): Promise<void> {
  await store.sql(`update :s.test_clock set us = us + ${Math.round(ms * 1_000)}; select :s.ensure_days()`)
}

const DAY_MS = 86_400_000
const LONG_MS = [2 ** 31 - 1, 2 ** 31, 30 * DAY_MS, 400 * DAY_MS]

test('B39: timers of more than 2^31 ms fire once, at their time, without a warning', async () => {
  const warnings: Error[] = []
  const listener = (warning: Error): void => void warnings.push(warning)
  process.on('warning', listener)
  const early: number[] = []
  const timers = LONG_MS.map((ms) => realEnv.timer(ms, () => early.push(ms)))
  // Too long for the platform they would all fire now.
  await new Promise((resolve) => setTimeout(resolve, 50))
  for (const timer of timers) timer.cancel()
  process.off('warning', listener)
  assert.deepEqual([early, warnings], [[], []])
  for (const ms of LONG_MS) assert.deepEqual(playedTimer(ms), { afterMs: ms, fired: 1 })
})

/** A timer of the real world on a clock that jumps: after how long it fired, and how often. */
function playedTimer(ms: number): { afterMs: number; fired: number } {
  const steps: { run: () => void; ms: number }[] = []
  const faked = mock.method(globalThis, 'setTimeout', (run: () => void, stepMs: number) =>
    steps.push({ run, ms: stepMs }),
  )
  const played = { afterMs: 0, fired: 0 }
  try {
    realEnv.timer(ms, () => {
      played.fired += 1
    })
    for (let step = steps.shift(); step !== undefined; step = steps.shift()) {
      assert.ok(step.ms < 2 ** 31, `the platform takes a timer of ${step.ms} ms for one of 1 ms`)
      played.afterMs += step.ms
      step.run()
    }
  } finally {
    faked.mock.restore()
  }
  return played
}

test('B39: a time-out of 30 days ends an attempt after 30 days, with one timer', async () => {
  const time = new VirtualTime()
  const due = 30 * DAY_MS
  const ended: number[] = []
  const deadlines = new Deadlines(time, (now) => {
    ended.push(now)
    return Number.POSITIVE_INFINITY
  })
  deadlines.watch(due, 0)
  await time.advance(due - 1)
  assert.deepEqual([ended, time.pending], [[], 1])
  await time.advance(1)
  assert.deepEqual(ended, [due])
})

test('B39: delays of 25 to 400 days: none runs early, each runs once, and the wait is quiet', async () => {
  const { storage, calls } = counting(store.storage)
  const kit = kitOn(storage)
  const running = kit.worker([handler()], { poll: '100ms' })
  await running.start()
  const queue = queueOn(kitOn(store.open()))
  const jobs = await Promise.all(
    LONG_MS.map((delay, n) => queue.enqueue(kind, { n }, { delay, timeout: '30d', retry: { attempts: 2 } })),
  )
  // Seconds before each due time, and then after it: the clock of the store is moved.
  let at = 0
  const started = Date.now()
  for (const [n, delay] of LONG_MS.entries()) {
    const before = delay - 20_000
    // The first two are a millisecond apart.
    if (before > at) {
      await jump(before - at)
      at = before
      const seen = calls.claim
      await until(async () => calls.claim >= seen + 3)
      const waiting = await Promise.all(jobs.slice(n).map((job) => job.get()))
      assert.deepEqual(new Set(waiting.map((view) => view!.state)), new Set(['delayed']), `before ${delay} ms`)
    }
    await jump(delay + 1 - at)
    at = delay + 1
    await until(async () => (await jobs[n]!.get())!.state === 'completed')
  }
  const seconds = (Date.now() - started) / 1_000
  await running.stop()
  assert.equal(kit.all('job.started').length, LONG_MS.length)
  // Ten polls a second were asked for; a loop would make hundreds.
  assert.ok(calls.claim < 50 * (seconds + 1), `${calls.claim} claims in ${seconds} s`)
  assert.ok(calls.promote < 20 * (seconds + 1), `${calls.promote} promotions in ${seconds} s`)
  assert.deepEqual(kit.all('store.unavailable'), [])
})

test('B41: a negative delay is refused by its field; a run-at of long ago is due now, runs once, and then all is quiet', async () => {
  const { storage, calls } = counting(store.storage)
  const kit = kitOn(storage)
  const queue = queueOn(kit)
  for (const delay of [-1, -DAY_MS, -Date.now() - DAY_MS, '-5s'])
    await assert.rejects(queue.enqueue(kind, { n: 1 }, { delay }), { code: 'INVALID_OPTION', field: 'delay' })
  assert.deepEqual(await places(store), {})
  const running = kit.worker([handler()])
  await running.start()
  const ids = await Promise.all(
    [new Date('0001-01-01T00:00:00Z'), new Date(-Date.now() - DAY_MS), '1969-12-31T23:59:59Z'].map(
      async (runAt, n) => (await queue.enqueue(kind, { n }, { runAt })).id,
    ),
  )
  await kit.next('job.completed', 3)
  await until(async () => (await places(store)).completed === 3)
  const before = { ...calls }
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  const made = calls.claim - before.claim + calls.promote - before.promote
  await running.stop()
  assert.ok(made < 20, `${made} calls in a second`)
  assert.equal(kit.all('job.started').length, 3)
  assert.deepEqual(new Set(kit.all('job.started').map(({ jobId }) => jobId)), new Set(ids))
})

/** Never a number that means something here, whatever the option. */
const NONSENSE = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1e20, 2 ** 53 + 2, -1, -0.5]
const WHOLE = [...NONSENSE, 1.5]
/** Where nothing at all is nonsense, too. */
const POSITIVE = [...WHOLE, 0, -0]

type Attempt = (value: never) => unknown

/** Every option that is a number or a duration: who takes it, its field, and what it may not be. */
function numericOptions(queue: Queue): [string, unknown[], Attempt][] {
  const enqueue =
    (option: (value: never) => object): Attempt =>
    (value) =>
      queue.enqueue(kind, { n: 1 }, option(value))
  const define =
    (option: (value: never) => object): Attempt =>
    (value) =>
      defineJob('other', option(value))
  const work =
    (option: string): Attempt =>
    (value) =>
      worker(queue, [kind.handle(() => {})], { [option]: value } as WorkerOptions)
  return [
    ['delay', NONSENSE, enqueue((delay) => ({ delay }))],
    ['spread', NONSENSE, enqueue((spread) => ({ spread }))],
    ['priority', [...WHOLE, 16], enqueue((priority) => ({ priority }))],
    ['timeout', [...NONSENSE, 0], enqueue((timeout) => ({ timeout }))],
    ['expiresIn', [...NONSENSE, 0], enqueue((expiresIn) => ({ expiresIn }))],
    ['retry.attempts', POSITIVE, enqueue((attempts) => ({ retry: { attempts } }))],
    ['retry.backoff.base', NONSENSE, enqueue((base) => ({ retry: { backoff: { base } } }))],
    ['retry.backoff.factor', [...NONSENSE, 0.5, 0], enqueue((factor) => ({ retry: { backoff: { factor } } }))],
    ['retry.backoff.cap', NONSENSE, enqueue((cap) => ({ retry: { backoff: { cap } } }))],
    ['retry.backoff.jitter', [...NONSENSE, 1.5], enqueue((jitter) => ({ retry: { backoff: { jitter } } }))],
    ['idempotencyRetention', NONSENSE, enqueue((idempotencyRetention) => ({ idempotencyRetention }))],
    ['runAt', [...WHOLE, new Date(Number.NaN), new Date(8.64e15 + 1)], enqueue((runAt) => ({ runAt }))],
    ['priority', [...WHOLE, 16], define((priority) => ({ priority }))],
    ['timeout', [...NONSENSE, 0], define((timeout) => ({ timeout }))],
    ['ageLimit', [...NONSENSE, 0], define((ageLimit) => ({ ageLimit }))],
    ['expiresIn', [...NONSENSE, 0], define((expiresIn) => ({ expiresIn }))],
    ['retry.attempts', POSITIVE, define((attempts) => ({ retry: { attempts } }))],
    ['retry.backoff.base', NONSENSE, define((base) => ({ retry: { backoff: { base } } }))],
    ['idempotencyRetention', NONSENSE, define((idempotencyRetention) => ({ idempotencyRetention }))],
    ['concurrency', POSITIVE, work('concurrency')],
    ['claimBatch', POSITIVE, work('claimBatch')],
    ['lease', [...NONSENSE, 0], work('lease')],
    ['beat', [...NONSENSE, 0], work('beat')],
    ['poll', [...NONSENSE, 0], work('poll')],
    ['shutdownGrace', NONSENSE, work('shutdownGrace')],
    ['prefetchWindow', NONSENSE, work('prefetchWindow')],
    ['completedRetention', NONSENSE, work('completedRetention')],
    ['deadRetention', NONSENSE, work('deadRetention')],
    ['limit', POSITIVE, (limit) => queue.list({ state: 'ready', limit })],
    ['timeout', NONSENSE, (timeout) => queue.drain('queue', { timeout })],
    ['connections', POSITIVE, (connections) => connect(store.url, { schema: store.schema, connections })],
    ['storeTimeout', [...NONSENSE, 0], (storeTimeout) => connect(store.url, { schema: store.schema, storeTimeout })],
  ]
}

test('B43: what is no number, infinite, huge, negative or a fraction is refused by its field, and nothing is written', async () => {
  const queue = queueOn(kitOn(store.storage))
  for (const [field, values, attempt] of numericOptions(queue))
    for (const value of values)
      await assert.rejects(
        async () => attempt(value as never),
        (error: { code: string; field: string; message: string }) => {
          assert.equal(error.code, 'INVALID_OPTION', `${field}: ${value}: ${error.message}`)
          assert.equal(error.field, field)
          return true
        },
        `${field}: ${value} was taken`,
      )
  // What no option takes for a duration, no text does either.
  for (const text of ['', 'NaN', 'Infinity', '-1s', '1e9s', '0x10s', '1.2.3s', '5 parsecs', '999999999d'])
    await assert.rejects(queue.enqueue(kind, { n: 1 }, { delay: text }), { code: 'INVALID_OPTION', field: 'delay' })
  assert.deepEqual(await places(store), {})
  assert.deepEqual(await queue.queues(), [])
})

test('B43: -0 is 0, and a fraction of a millisecond is rounded', async () => {
  const queue = queueOn(kitOn(store.storage))
  const job = await queue.enqueue(kind, { n: 1 }, { delay: -0, priority: -0, expiresIn: 1_000.4 })
  const view = (await job.get())!
  assert.deepEqual([view.state, Object.is(view.priority, 0), view.spec.expiresInMs], ['ready', true, 1_000])
})

/** Offsets in milliseconds from the moment at which the worker looks. */
const offsetOf = (round: number): number => (round % 11) - 5

/**
 * So many rounds of one job each, due within 5 ms of the moment at which a claim works out how long to wait; `race`
 * tells the round of the claim that is under way. Half of the jobs come before the claim has looked, half after it.
 */
function racing(storage: Storage, enqueue: (round: number) => Promise<unknown>) {
  let armed: number | undefined
  const claim: Storage['claim'] = async (request) => {
    const round = armed
    armed = undefined
    if (round !== undefined && round % 2 === 0) await enqueue(round)
    const answer = await storage.claim(request)
    if (round !== undefined && round % 2 === 1) await enqueue(round)
    return answer
  }
  return {
    storage: changed(storage, { claim }),
    arm: (round: number) => {
      armed = round
    },
  }
}

test('B44: ten thousand jobs, each due around the moment at which the idle worker goes to sleep, start within a second', async () => {
  const time = new VirtualTime()
  const memory = openMemory({ env: time })
  const spec = { ...newJob().spec, keep: 'none' } as const
  const race = racing(memory, (round) =>
    memory.enqueue([newJob({ id: time.id(), due: { atMs: time.now() + offsetOf(round) }, spec })]),
  )
  const connection = connectionTo(race.storage, time)
  let completed = 0
  let longestWaitMs = 0
  connection.events.on((event) => {
    if (event.type === 'job.completed') completed += 1
    if (event.type === 'job.started') longestWaitMs = Math.max(longestWaitMs, event.waitedMs)
  })
  const running = new Worker(connection, [handler()], { signals: false })
  await running.start()
  await time.advance(1_000)
  for (let round = 0; round < 10_000; round++) {
    race.arm(round)
    // The next poll is what looks; nothing else happens here.
    while (completed <= round) await time.advance(1_000)
  }
  await time.runUntil(running.stop())
  assert.equal(running.stats().started, 10_000)
  assert.ok(longestWaitMs <= 1_000, `${longestWaitMs} ms`)
})

test('B44: the same on a real store: no job needs another enqueue to be found', async () => {
  const other = store.open()
  const race = racing(store.storage, (round) =>
    other.enqueue([newJob({ due: { delayMs: Math.max(0, offsetOf(round)) } })]),
  )
  const kit = kitOn(race.storage)
  const running = kit.worker([handler()], { poll: '20ms' })
  await running.start()
  for (let round = 0; round < 44; round++) {
    race.arm(round)
    await kit.next('job.completed', round + 1)
  }
  await running.stop()
  const longestWaitMs = Math.max(...kit.all('job.started').map(({ waitedMs }) => waitedMs))
  // Found by the sweep for forgotten jobs it would have taken up to 20 seconds.
  assert.ok(longestWaitMs < 10_000, `${longestWaitMs} ms`)
})
