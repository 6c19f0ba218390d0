/** Single enqueues: what is sent, how calls are shared, what callers, workers and listeners are told. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { z } from 'zod'
import type { QueueError } from '../../src/core/errors.js'
import { newJobId } from '../../src/core/id.js'
import { defineJob } from '../../src/core/kind.js'
import { created, inMemory, stubbed, watch } from './kit.js'

const mail = defineJob<{ to: string }>('mail.send', { queue: 'mail', priority: 'high', expiresIn: '2d' })
const plain = defineJob<{ n: number } | null>('plain')
const UUID7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

test('a job is sent with all that its kind says, and told only after the store has answered', async () => {
  const { time, store, queue } = stubbed()
  const job = watch(queue.enqueue(mail, { to: 'ada' }))
  await time.advance(1_000)
  assert.equal(job.settled, false)
  const [sent] = store.jobs
  assert.deepEqual(
    { ...sent, id: undefined },
    {
      id: undefined,
      kind: 'mail.send',
      queue: 'mail',
      priority: 8,
      payload: '{"to":"ada"}',
      spec: mail.spec,
      due: { delayMs: 0 },
    },
  )
  assert.match(sent!.id, UUID7)
  assert.equal(sent!.spec, mail.spec, 'the very object of the kind')
  store.calls[0]!.answer()
  await time.advance(0)
  assert.equal(job.value!.id, sent!.id)
  assert.equal(job.value!.duplicate, false)
  assert.equal(job.value!.kind, 'mail.send')
  assert.equal(job.value!.queue, 'mail')
})

test('options of the call go before those of the kind', async () => {
  const { time, store, queue } = stubbed()
  const id = newJobId()
  void queue.enqueue(
    mail,
    { to: 'a' },
    {
      id: id.toUpperCase(),
      delay: '15m',
      queue: 'bulk',
      priority: 0,
      timeout: '1s',
      expiresIn: '1h',
      retry: { attempts: 2, backoff: { type: 'fixed', base: 5, jitter: 0 } },
      idempotencyKey: 'k',
      idempotencyRetention: '2d',
    },
  )
  await time.advance(0)
  const [sent] = store.jobs
  assert.equal(sent!.id, id)
  assert.equal(sent!.chosen, true)
  assert.deepEqual(sent!.due, { delayMs: 900_000 })
  assert.equal(sent!.queue, 'bulk')
  assert.equal(sent!.priority, 0)
  assert.deepEqual(sent!.spec, {
    ...mail.spec,
    timeoutMs: 1_000,
    expiresInMs: 3_600_000,
    attempts: 2,
    backoff: { type: 'fixed', baseMs: 5, jitter: 0 },
    idempotencyKey: 'k',
  })
  assert.equal(sent!.idempotency!.key, 'k')
  assert.equal(sent!.idempotency!.retentionMs, 172_800_000)
})

test('a job that overrides a part of its kind’s retry keeps the rest', async () => {
  const { time, store, queue } = stubbed()
  const backoff = { type: 'fixed', baseMs: 7, jitter: 0 } as const
  const kind = defineJob('kind', { retry: { attempts: 9, backoff: { type: 'fixed', base: 7, jitter: 0 } } })
  void queue.enqueue(kind, null, { retry: { attempts: 2 } })
  void queue.enqueue(kind, null, { retry: { backoff: { type: 'fixed', base: 8, jitter: 0 } } })
  await time.advance(0)
  assert.deepEqual(
    store.jobs.map(({ spec }) => [spec.attempts, spec.backoff]),
    [
      [2, backoff],
      [9, { ...backoff, baseMs: 8 }],
    ],
  )
})

test('B74: a run-at is an instant, however it is written', async () => {
  const { time, store, queue } = stubbed()
  const at = Date.parse('2030-01-31T08:00:00Z')
  for (const runAt of [new Date(at), '2030-01-31T13:30:00+05:30', at]) void queue.enqueue(plain, null, { runAt })
  await time.advance(0)
  assert.deepEqual(
    store.jobs.map((job) => job.due),
    [{ atMs: at }, { atMs: at }, { atMs: at }],
  )
  await assert.rejects(queue.enqueue(plain, null, { runAt: '2030-01-31T08:00:00' }), {
    code: 'INVALID_OPTION',
    field: 'runAt',
  })
})

test('a spread adds a random delay below it', async () => {
  const { time, store, queue } = stubbed()
  for (let i = 0; i < 200; i++) void queue.enqueue(plain, { n: i }, { delay: 1_000, spread: 10_000 })
  await time.advance(0)
  const delays = store.jobs.map((job) => ('delayMs' in job.due ? job.due.delayMs : Number.NaN))
  assert(delays.every((delay) => delay >= 1_000 && delay < 11_000))
  assert(new Set(delays).size > 150)
})

test('B43, B103: what is wrong is refused by field before anything is sent', async () => {
  const { time, store, queue } = stubbed()
  const cases: [object, string, string][] = [
    [{ delay: Number.NaN }, 'INVALID_OPTION', 'delay'],
    [{ delay: -1 }, 'INVALID_OPTION', 'delay'],
    [{ delay: 1e20 }, 'INVALID_OPTION', 'delay'],
    [{ runAt: new Date(Number.NaN) }, 'INVALID_OPTION', 'runAt'],
    [{ priority: 99 }, 'INVALID_OPTION', 'priority'],
    [{ dealy: 5 }, 'UNKNOWN_OPTION', 'dealy'],
    [{ delay: 5, runAt: new Date() }, 'INVALID_OPTION', 'runAt'],
    [{ delay: '2h', expiresIn: '1h' }, 'INVALID_OPTION', 'expiresIn'],
    [{ spread: '2h', expiresIn: '1h' }, 'INVALID_OPTION', 'expiresIn'],
    [{ id: 'x' }, 'INVALID_OPTION', 'id'],
    [{ id: '6f9619ff-8b86-4011-b42d-00c04fc964ff' }, 'INVALID_OPTION', 'id'],
    [{ idempotencyKey: '' }, 'INVALID_OPTION', 'idempotencyKey'],
    [{ idempotencyKey: 'ä'.repeat(600) }, 'INVALID_OPTION', 'idempotencyKey'],
    [{ retry: { backoff: () => 5 } }, 'INVALID_OPTION', 'retry.backoff'],
    [{ queue: 'a b' }, 'INVALID_NAME', 'queue'],
    [{ tx: 5 }, 'INVALID_OPTION', 'tx'],
  ]
  for (const [options, code, field] of cases)
    await assert.rejects(queue.enqueue(plain, null, options as never), { code, field }, field)
  await assert.rejects(queue.enqueue(plain, { n: 5n } as never), { code: 'INVALID_PAYLOAD', field: 'payload.n' })
  await assert.rejects(queue.enqueue({ name: 'plain' } as never), { code: 'INVALID_OPTION' })
  await assert.rejects(
    queue.enqueue(mail, { to: 'a' }, { delay: '3d' }),
    { field: 'expiresIn' },
    'the kind expires too',
  )
  await time.advance(60_000)
  assert.equal(store.calls.length, 0)
})

test('the payload is validated by its schema, and what was given is stored', async () => {
  const { time, store, queue } = stubbed()
  store.auto = created
  const kind = defineJob('kind', { payload: z.object({ at: z.iso.datetime().transform((text) => new Date(text)) }) })
  await time.runUntil(queue.enqueue(kind, { at: '2030-01-31T08:00:00Z' }))
  assert.equal(store.jobs[0]!.payload, '{"at":"2030-01-31T08:00:00Z"}')
  await assert.rejects(queue.enqueue(kind, { at: 'soon' }), { code: 'INVALID_PAYLOAD', field: 'payload.at' })
})

test('what the caller does to the payload after the call is not stored', async () => {
  const { time, store, queue } = stubbed()
  store.auto = created
  const slow = defineJob('slow', { payload: z.object({ n: z.number() }).refine(async () => true) })
  const payload = { n: 1 }
  const job = queue.enqueue(slow, payload)
  payload.n = 2
  await time.runUntil(job)
  assert.equal(store.jobs[0]!.payload, '{"n":1}')
})

test('enqueues of one turn share a call, and each gets its own answer', async () => {
  const { time, store, queue } = stubbed()
  const jobs = Array.from({ length: 64 }, (_, n) => watch(queue.enqueue(plain, { n })))
  await time.advance(0)
  assert.equal(store.calls.length, 1)
  assert.deepEqual(
    store.jobs.map((job) => JSON.parse(job.payload).n),
    Array.from({ length: 64 }, (_, n) => n),
  )
  store.calls[0]!.answer(store.jobs.map((_, i) => (i === 7 ? { status: 'draining' } : { status: 'created' })))
  await time.advance(0)
  jobs.forEach((job, i) => {
    if (i === 7) assert.equal((job.error as QueueError).code, 'QUEUE_DRAINING')
    else assert.equal(job.value!.id, store.jobs[i]!.id)
  })
})

test('calls are bounded in size and number, and what waits goes with the next', async () => {
  const { time, store, queue } = stubbed()
  const jobs = Array.from({ length: 6_500 }, (_, n) => watch(queue.enqueue(plain, { n })))
  await time.advance(0)
  assert.deepEqual(
    store.calls.map((call) => call.jobs.length),
    [1_000, 1_000, 1_000, 1_000],
  )
  store.calls[2]!.answer()
  await time.advance(0)
  assert.equal(store.calls.length, 5)
  for (let next = 0; next < store.calls.length; next++) {
    store.calls[next]!.answer()
    await time.advance(0)
  }
  assert.deepEqual(
    store.calls.map((call) => call.jobs.length),
    [1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 500],
  )
  assert(jobs.every((job) => job.value !== undefined))
  assert(store.inFlightMax <= 4)
})

test('large payloads make small calls', async () => {
  const { time, store, queue } = stubbed()
  const big = defineJob<string>('big')
  for (let i = 0; i < 10; i++) void queue.enqueue(big, 'x'.repeat(1_000_000))
  await time.advance(0)
  assert.deepEqual(
    store.calls.map((call) => call.jobs.length),
    [4, 4, 2],
  )
})

test('a job with an idempotency key goes in a call of its own', async () => {
  const { time, store, queue } = stubbed()
  void queue.enqueue(plain, { n: 1 })
  void queue.enqueue(plain, { n: 2 }, { idempotencyKey: 'a' })
  void queue.enqueue(plain, { n: 3 }, { idempotencyKey: 'b' })
  void queue.enqueue(plain, { n: 4 })
  await time.advance(0)
  const shapes = store.calls.map((call) => call.jobs.map((job) => JSON.parse(job.payload).n))
  assert.deepEqual(shapes, [[1, 4], [2], [3]])
})

test('a duplicate has the id of the first job, another payload is a mismatch', async () => {
  const { time, queue } = inMemory()
  const key = { idempotencyKey: 'charge:1' }
  const first = await time.runUntil(queue.enqueue(plain, { n: 1 }, key))
  const second = await time.runUntil(queue.enqueue(plain, { n: 1 }, key))
  assert.equal(second.id, first.id)
  assert.deepEqual([first.duplicate, second.duplicate], [false, true])
  await assert.rejects(time.runUntil(queue.enqueue(plain, { n: 2 }, key)), {
    code: 'IDEMPOTENCY_MISMATCH',
    field: 'idempotencyKey',
    jobId: first.id,
  })
})

test('B82: of 50 at once with one fresh key, one is stored and all have its id', async () => {
  const { time, queue } = inMemory()
  const jobs = await time.runUntil(
    Promise.all(Array.from({ length: 50 }, () => queue.enqueue(plain, { n: 1 }, { idempotencyKey: 'k' }))),
  )
  assert.equal(new Set(jobs.map((job) => job.id)).size, 1)
  assert.equal(jobs.filter((job) => job.duplicate).length, 49)
})

test('B85: long keys are exact or refused', async () => {
  const { time, queue } = inMemory()
  const key = 'x'.repeat(1_023)
  const a = await time.runUntil(queue.enqueue(plain, null, { idempotencyKey: `${key}a` }))
  const b = await time.runUntil(queue.enqueue(plain, null, { idempotencyKey: `${key}b` }))
  assert.notEqual(a.id, b.id)
  await assert.rejects(queue.enqueue(plain, null, { idempotencyKey: 'x'.repeat(3_000) }), {
    field: 'idempotencyKey',
    message: /3,000 bytes/,
  })
})

test('in a transaction: sent at once, alone, on that client, without hint or event', async () => {
  const { time, store, queue, hints, listen } = stubbed()
  const events = listen()
  const tx = { query: async () => ({ rows: [] }) }
  const jobs = [watch(queue.enqueue(plain, { n: 1 }, { tx })), watch(queue.enqueue(plain, { n: 2 }, { tx }))]
  await time.advance(0)
  assert.deepEqual(
    store.calls.map((call) => [call.jobs.length, call.tx === tx]),
    [
      [1, true],
      [1, true],
    ],
  )
  for (const call of store.calls) call.answer()
  await time.advance(0)
  assert(jobs.every((job) => job.value !== undefined))
  assert.deepEqual([hints, events], [[], []])
  const hanging = watch(queue.enqueue(plain, { n: 3 }, { tx, storeTimeout: '2s' }))
  await time.advance(2_000)
  assert.equal((hanging.error as QueueError).code, 'OUTCOME_UNKNOWN')
})

test('a store without transactions says so', async () => {
  const { time, queue } = inMemory()
  const tx = { query: async () => ({ rows: [] }) }
  await assert.rejects(time.runUntil(queue.enqueue(plain, null, { tx })), { code: 'CAPABILITY_MISSING' })
})

test('workers of this process are told once for each queue with work that is ready, after the commit', async () => {
  const { time, store, queue, hints } = stubbed()
  void queue.enqueue(plain, { n: 1 })
  void queue.enqueue(plain, { n: 2 })
  void queue.enqueue(plain, { n: 3 }, { queue: 'late', delay: '1h' })
  void queue.enqueue(plain, { n: 4 }, { queue: 'now', runAt: time.now() - 1 })
  await time.advance(0)
  assert.deepEqual(hints, [])
  store.calls[0]!.answer()
  await time.advance(0)
  assert.deepEqual(hints, ['default', 'now'])
  store.auto = (jobs) => jobs.map(() => ({ status: 'draining' }))
  await assert.rejects(time.runUntil(queue.enqueue(plain, { n: 5 })))
  assert.deepEqual(hints, ['default', 'now'])
})

test('events tell what became of each job', async () => {
  const { time, store, queue, listen } = stubbed()
  const events = listen()
  store.auto = (jobs) =>
    jobs.map((job) =>
      job.payload === '1'
        ? { status: 'duplicate', id: 'first' }
        : job.payload === '2'
          ? { status: 'draining' }
          : { status: 'created' },
    )
  const kind = defineJob<number>('kind', { priority: 'low' })
  await time.runUntil(
    Promise.allSettled([
      queue.enqueue(kind, 0, { delay: '5s' }),
      queue.enqueue(kind, 1, { idempotencyKey: 'k' }),
      queue.enqueue(kind, 2),
    ]),
  )
  const told = events.map(({ type, ...facts }) => [
    type,
    'priority' in facts && facts.priority,
    'delayMs' in facts && facts.delayMs,
  ])
  assert.deepEqual(told, [
    ['job.enqueued', 0, 5_000],
    ['job.refused', false, false],
    ['job.duplicate', false, false],
  ])
})

test('close waits for what is under way, then everything is refused', async () => {
  const { time, store, queue } = stubbed()
  const job = watch(queue.enqueue(plain, null))
  const closed = watch(queue.close())
  await assert.rejects(queue.enqueue(plain, null), { code: 'QUEUE_CLOSED' })
  await time.advance(100)
  assert.equal(closed.settled, false)
  store.calls[0]!.answer()
  await time.advance(0)
  assert(job.value !== undefined && closed.settled)
  await queue.close()
  await assert.rejects(queue.get(newJobId()), { code: 'QUEUE_CLOSED' })
  assert.throws(() => queue.enqueueStream([]), { code: 'QUEUE_CLOSED' })
})

test('a pool is refused as tx: its statements go over any connection', async () => {
  const { queue } = stubbed()
  const query = async () => ({ rows: [] })
  const pool = { query, connect: async () => ({}), totalCount: 0, idleCount: 0 }
  const refused = { code: 'INVALID_OPTION', field: 'tx', message: /take a client: await pool\.connect\(\)/ }
  await assert.rejects(queue.enqueue(plain, null, { tx: pool }), refused)
  await assert.rejects(queue.enqueueMany([], { tx: pool }), refused)
  // A client of pg has `connect`, too.
  const results = await queue.enqueueMany([], { tx: { query, connect: async () => {} } as never })
  assert.deepEqual(results, [])
})
