/** The client on a real PostgreSQL: what only a server can show of enqueue, keys, transactions and payloads. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import test, { after, before } from 'node:test'
import type { EnqueueResult } from '../../src/client/outcome.js'
import { Queue } from '../../src/client/queue.js'
import { realEnv } from '../../src/core/env.js'
import { PAYLOAD_BYTES_MAX } from '../../src/core/job.js'
import { defineJob } from '../../src/core/kind.js'
import { EventBus } from '../../src/observe/events.js'
import { LocalHints } from '../../src/storage/connection.js'
import { held } from '../support/held.js'
import { newJob } from '../support/jobs.js'
import { type Scratch, scratch } from '../support/postgres.js'
import { until } from '../support/until.js'

const any = defineJob<unknown>('any')

let store: Scratch
let queue: Queue

before(async () => {
  store = await scratch()
  queue = new Queue({ storage: store.storage, env: realEnv, events: new EventBus(), hints: new LocalHints() })
})

after(() => store.drop())

const items = (count: number) => Array.from({ length: count }, (_, n) => any.with(n, { queue: `many${count}` }))

test('B103, B104, B106: payloads come back as they were given', async () => {
  const values = [
    null,
    0,
    '',
    false,
    [],
    {},
    JSON.parse('{"__proto__":{"a":1},"constructor":"x","toString":1}'),
    { lone: '\ud800', pair: '😀', quote: '"\\', line: 'a\nb', 'key é': 1e-300, big: Number.MAX_SAFE_INTEGER },
  ]
  for (const value of values) {
    const job = await queue.enqueue(any, value)
    assert.deepEqual((await job.get())!.payload, value)
  }
})

test('B100: NUL in values and keys of a payload has one outcome', async () => {
  const value = { 'a\0': 'b\0c' }
  assert.deepEqual((await (await queue.enqueue(any, value)).get())!.payload, value)
})

test('B109: a payload at the limit is stored and read, in one byte and in three', async () => {
  for (const letter of ['x', '€']) {
    const room = PAYLOAD_BYTES_MAX - 2
    const bytes = Buffer.byteLength(letter)
    const text = letter.repeat(Math.floor(room / bytes)) + 'x'.repeat(room % bytes)
    assert.equal((await (await queue.enqueue(any, text)).get())!.payload, text)
    await assert.rejects(queue.enqueue(any, `${text}x`), { code: 'PAYLOAD_TOO_LARGE' })
  }
})

test('B123: 1, 5,000 and 70,000 jobs in one call, without and with a transaction', async () => {
  for (const count of [1, 5_000, 70_000]) {
    const results = await queue.enqueueMany(items(count))
    assert(results.every((result) => result.status === 'created'))
    assert.equal(new Set(results.map((result) => 'id' in result && result.id)).size, count)
    const client = await store.client()
    await client.query('begin')
    assert((await queue.enqueueMany(items(count), { tx: client })).every((result) => result.status === 'created'))
    await client.query('rollback')
    let seen = 0
    for await (const _ of queue.jobs({ state: 'ready', queue: `many${count}`, limit: 1_000 })) seen++
    assert.equal(seen, count, 'what was rolled back is nowhere')
    assert.equal(await queue.purge(`many${count}`), count)
  }
})

test('a job enqueued in a transaction is there with its commit', async () => {
  const client = await store.client()
  await client.query('begin')
  const job = await queue.enqueue(any, 1, { tx: client })
  assert.equal(await job.get(), null)
  await client.query('commit')
  assert.equal((await job.get())!.state, 'ready')
})

test('a bad item or a mismatch does not end the caller’s transaction', async () => {
  const client = await store.client()
  const first = await queue.enqueue(any, 'first', { idempotencyKey: 'taken' })
  await client.query('begin')
  await assert.rejects(queue.enqueue(any, 'other', { tx: client, idempotencyKey: 'taken' }), {
    code: 'IDEMPOTENCY_MISMATCH',
  })
  await assert.rejects(queue.enqueue(any, 1, { tx: client, id: first.id }), { code: 'DUPLICATE_ID' })
  const job = await queue.enqueue(any, 1, { tx: client })
  await client.query('commit')
  assert.equal((await job.get())!.state, 'ready')
})

test('B82: of 50 at once with one fresh key one is stored, and all have its id', async () => {
  const jobs = await Promise.all(
    Array.from({ length: 50 }, () => queue.enqueue(any, 'same', { idempotencyKey: 'fresh' })),
  )
  assert.equal(new Set(jobs.map((job) => job.id)).size, 1)
  assert.equal(jobs.filter((job) => job.duplicate).length, 49)
})

test('E2: a key in a stranger’s open transaction is busy, and holds nobody else up', async () => {
  const client = await store.client()
  await client.query('begin')
  const held = await queue.enqueue(any, 1, { tx: client, idempotencyKey: 'open' })
  const began = performance.now()
  const busy = assert.rejects(queue.enqueue(any, 1, { idempotencyKey: 'open' }), { code: 'IDEMPOTENCY_BUSY' })
  await Promise.all([queue.enqueue(any, 1), queue.enqueue(any, 1, { idempotencyKey: 'free' })])
  assert(performance.now() - began < 5_000)
  await busy
  await client.query('commit')
  const second = await queue.enqueue(any, 1, { idempotencyKey: 'open' })
  assert.deepEqual([second.id, second.duplicate], [held.id, true])
})

test('E2: a busy key in a batch that begins with a job without one is found, and stops nobody', async () => {
  const keyed = { key: 'in the middle', payloadHash: 'h', retentionMs: 60_000 }
  const client = await store.client()
  await client.query('begin')
  await store.storage.enqueue([newJob({ idempotency: keyed })], { tx: client })
  const later = { due: { delayMs: 60_000 } }
  const answers = await store.storage.enqueue([newJob(later), newJob(later), newJob({ idempotency: keyed }), newJob()])
  await client.query('rollback')
  assert.deepEqual(
    answers.map(({ status }) => status),
    ['created', 'created', 'busy', 'created'],
  )
})

test('a key or a chosen id is refused in a transaction that looks at an older snapshot; a plain job is stored', async () => {
  for (const level of ['repeatable read', 'serializable']) {
    const client = await store.client()
    await client.query(`begin isolation level ${level}`)
    const keyed = newJob({ idempotency: { key: level, payloadHash: 'h', retentionMs: 60_000 } })
    const [first, second, third] = await store.storage.enqueue([keyed, newJob({ chosen: true }), newJob()], {
      tx: client,
    })
    await client.query('commit')
    assert.deepEqual([first!.status, second!.status, third!.status], ['refused', 'refused', 'created'])
    assert.match(String((first as { cause: Error }).cause.message), /READ COMMITTED/)
    assert.deepEqual(await store.storage.enqueue([{ ...keyed }]), [{ status: 'created' }])
  }
})

test('of one id twice in a call the refused one takes no key along', async () => {
  const id = realEnv.id()
  const idempotency = { key: 'of the second', payloadHash: 'h', retentionMs: 60_000 }
  const answers = await store.storage.enqueue([newJob({ id, chosen: true }), newJob({ id, chosen: true, idempotency })])
  assert.deepEqual(
    answers.map(({ status }) => status),
    ['created', 'refused'],
  )
  assert.deepEqual(await store.storage.enqueue([newJob({ idempotency })]), [{ status: 'created' }])
})

test('B111: a job without a key waits for a lock of the server’s own, such as that of a table that grows, and is stored', async () => {
  const lock = await held(store, 'lock table :s.delayed in share mode')
  const delayed = { delayMs: 60_000 }
  const keyed = { key: 'locked', payloadHash: 'h', retentionMs: 60_000 }
  const batch = [newJob({ due: delayed }), newJob({ due: delayed, idempotency: keyed }), newJob({ due: delayed })]
  const answers = store.storage.enqueue(batch)
  // Longer than anybody waits for a key.
  await until('a statement waits for 200 ms', async () => {
    const [row] = await store.sql(
      `select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and query like '%' || $1 || '%'
        and clock_timestamp() - query_start > interval '200 ms'`,
      [store.schema],
    )
    return (row!.n as number) > 0
  })
  await lock.commit()
  const [first, second, third] = await answers
  assert.deepEqual([first, third], [{ status: 'created' }, { status: 'created' }])
  // It cannot tell this lock from that of its key.
  assert.match(second!.status, /^(created|busy)$/)
})

test('B85: keys of random text up to the limit are exact, also multi-byte ones', async () => {
  for (const key of [randomBytes(767).toString('base64url'), '€'.repeat(340)]) {
    const [a, b] = await Promise.all(
      [`${key}a`, `${key}b`].map((idempotencyKey) => queue.enqueue(any, 1, { idempotencyKey })),
    )
    assert.notEqual(a!.id, b!.id)
    assert.equal((await queue.enqueue(any, 1, { idempotencyKey: `${key}a` })).id, a!.id)
  }
})

test('B87: 10 known keys and 10 repeated ones in a batch of 1,000 are told in their places', async () => {
  const keyed = (key: number) => any.with(key, { idempotencyKey: `b87:${key}` })
  const known = await queue.enqueueMany(Array.from({ length: 10 }, (_, n) => keyed(n)))
  const results = await queue.enqueueMany(Array.from({ length: 1_000 }, (_, n) => keyed(n < 990 ? n : n - 500)))
  const idOf = (result: EnqueueResult | undefined) => result && 'id' in result && result.id
  results.forEach((result, n) => {
    if (n < 10) assert.deepEqual(result, { status: 'duplicate', id: idOf(known[n]) })
    else if (n < 990) assert.equal(result.status, 'created')
    else assert.deepEqual(result, { status: 'duplicate', id: idOf(results[n - 500]) })
  })
})

test('B74: an instant is the same one, however it is written and wherever the server is', async () => {
  const at = Date.parse('2040-03-31T02:30:00Z')
  await store.sql(`alter role current_user set timezone to 'Asia/Kolkata'`)
  try {
    for (const runAt of [new Date(at), at, '2040-03-31T02:30:00Z', '2040-03-30T21:30:00-05:00'])
      assert.equal((await (await queue.enqueue(any, 1, { runAt })).get())!.dueAt, at)
  } finally {
    await store.sql('alter role current_user reset timezone')
  }
})

test('B41: what was due long ago is due now', async () => {
  const job = await queue.enqueue(any, 1, { runAt: new Date('0001-01-01T00:00:00Z') })
  assert.equal((await job.get())!.state, 'ready')
})
