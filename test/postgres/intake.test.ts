/** Limits of what comes in, on a real server: many producers at once, callers' transactions, roles and clients of before. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { realEnv } from '../../src/core/env.js'
import type { EnqueueOutcome, NewJob, RateLimit } from '../../src/storage/storage.js'
import { completed, newJob, TestWorker } from '../support/jobs.js'
import { type Scratch, scratch } from '../support/postgres.js'

let store: Scratch
before(async () => {
  store = await scratch()
})
after(() => store.drop())

const HOUR_MS = 3_600_000
const LATER: Partial<NewJob> = { due: { delayMs: HOUR_MS } }

const jobs = (queue: string, count: number, sketch: Partial<NewJob> = {}) =>
  Array.from({ length: count }, () => newJob({ queue, ...sketch }))

const stored = (outcomes: readonly EnqueueOutcome[]): number =>
  outcomes.filter(({ status }) => status === 'created').length

async function intake(queue: string, limit: RateLimit): Promise<void> {
  await store.storage.control.limit(queue, { intake: limit })
}

/** So many tokens, and none comes while a test runs. */
const only = (burst: number): RateLimit => ({ limit: 1, perMs: HOUR_MS, burst })

async function nowUs(): Promise<number> {
  const [row] = await store.sql('select :s.clock()::float8 as us')
  return row!.us as number
}

async function idOf(queue: string): Promise<number> {
  const [row] = await store.sql('select id from :s.queue where name = $1', [queue])
  return row!.id as number
}

test('16 producers at once: never more than burst and rate together, and not for ever less', async () => {
  const limit = { limit: 100, perMs: 1_000, burst: 20 }
  const handles = Array.from({ length: 16 }, () => store.open({ connections: 1 }))
  // They know the queue and are connected.
  await Promise.all(handles.map((handle) => handle.enqueue(jobs('many', 1))))
  const before = await nowUs()
  await intake('many', limit)
  const end = realEnv.monotonic() + 2_000
  let created = 0
  let refused = 0
  const produce = async (handle: (typeof handles)[number], n: number): Promise<void> => {
    while (realEnv.monotonic() < end) {
      const outcomes = await handle.enqueue(jobs('many', 1 + (n % 5), n % 2 === 0 ? {} : LATER))
      created += stored(outcomes)
      refused += outcomes.length - stored(outcomes)
    }
  }
  await Promise.all(handles.map(produce))
  const seconds = ((await nowUs()) - before) / 1_000_000
  const most = limit.burst + limit.limit * seconds
  assert.ok(created <= most, `${created} came in, ${most} may`)
  assert.ok(refused > 0, 'somebody was refused')
  // How much of the rate they reach is the machine's: what nobody asks for beyond the burst is lost.
  assert.ok(created > 2 * limit.burst, `${created} came in within ${seconds} s`)
})

test('a caller’s transaction takes its tokens at once, and holds up no producer, claim or settlement', async () => {
  await intake('tx', only(5))
  const client = await store.client()
  await client.query('begin')
  const tx = { tx: client }
  assert.equal(stored(await store.storage.enqueue(jobs('tx', 2), tx)), 2)
  assert.equal(stored(await store.storage.enqueue([newJob({ queue: 'tx', ...LATER })], tx)), 1)
  // Neither lock of the session nor of the transaction is left but those on tables, which nobody's work meets.
  const held = await store.sql(
    `select locktype, mode from pg_locks where pid = $1 and locktype not in ('relation', 'virtualxid', 'transactionid')`,
    [((await client.query('select pg_backend_pid() as pid')).rows[0] as { pid: number }).pid],
  )
  assert.deepEqual(held, [])
  // Others see what it took while it is open, and wait for nothing: a wait would fail here.
  const impatient = store.open({ connections: 1, callTimeoutMs: 5_000 })
  const outcomes = await impatient.enqueue(jobs('tx', 4))
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['created', 'created', 'early', 'early'],
  )
  const worker = await TestWorker.registered(impatient)
  const { leases } = await worker.claim({ queues: [{ queue: 'tx', share: 5 }], limit: 5 })
  assert.equal(leases.flatMap((lease) => lease.jobs).length, 2)
  assert.deepEqual(await impatient.settle(leases.map(({ fence }) => completed(fence))), ['ok'])
  await impatient.control.limit('tx', { concurrency: 5 })
  // What is rolled back has used its tokens.
  await client.query('rollback')
  assert.equal(stored(await store.storage.enqueue(jobs('tx', 1))), 0)
})

test('a refusal ends no transaction, and what follows in it is stored', async () => {
  await intake('small', only(1))
  const client = await store.client()
  await client.query('begin')
  const words = async (...sent: NewJob[]) =>
    (await store.storage.enqueue(sent, { tx: client })).map(({ status }) => status)
  const key = { key: 'k', payloadHash: 'h', retentionMs: HOUR_MS }
  assert.deepEqual(await words(...jobs('small', 2)), ['created', 'early'])
  assert.deepEqual(await words(newJob({ queue: 'small', idempotency: key }), newJob({ queue: 'else' })), [
    'early',
    'created',
  ])
  await client.query('commit')
  assert.deepEqual(await store.sql(`select key from :s.idempotency where key = 'k'`), [])
})

test('a call cut off in the middle leaves no lock behind, and its tokens are used', async () => {
  await intake('cut', only(2))
  const id = await idOf('cut')
  const client = await store.client()
  // Whoever is cut off between taking and storing: here by an error that it raises itself.
  await assert.rejects(
    client.query(`select 1 / (granted - 1) from ${store.quoted}.take_intake(${id}, 1)`),
    /division by zero/,
  )
  const impatient = store.open({ connections: 1, callTimeoutMs: 5_000 })
  assert.equal(stored(await impatient.enqueue(jobs('cut', 2))), 1)
})

test('a bad job of a call takes no tokens from its neighbours: they are found before any is taken', async () => {
  await intake('bad', only(4))
  const bad = newJob({ queue: 'bad', payload: '{' })
  const outcomes = await store.storage.enqueue([...jobs('bad', 2), bad, ...jobs('bad', 2)])
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['created', 'created', 'refused', 'created', 'created'],
  )
  // Nor does one whose key somebody's open transaction decides on.
  await intake('busy', only(4))
  const client = await store.client()
  await client.query('begin')
  const keyed = () => newJob({ queue: 'busy', idempotency: { key: 'held', payloadHash: 'h', retentionMs: HOUR_MS } })
  assert.equal(stored(await store.storage.enqueue([keyed()], { tx: client })), 1)
  const meeting = await store.storage.enqueue([...jobs('busy', 2, LATER), keyed(), ...jobs('busy', 2)])
  assert.deepEqual(
    meeting.map(({ status }) => status),
    ['created', 'created', 'busy', 'created', 'early'],
  )
  await client.query('rollback')
})

test('producers of an older version are refused whole calls, and their tries use nothing up', async () => {
  await intake('older', only(2))
  const id = await idOf('older')
  const call = (count: number) =>
    store.sql(
      `select :s.enqueue_ready($1::uuid[], $2::json, null, $3::int[], '{kind}', '{NULL}', null, false) as draining`,
      [jobs('older', count).map((job) => job.id), JSON.stringify(new Array(count).fill({})), [id * 64 + 4]],
    )
  const mixed = (count: number) => {
    const all = <T>(value: T): T[] => new Array(count).fill(value)
    return store.sql(
      `select status from :s.enqueue_mixed($1::uuid[], $2::int[], $3::text[], $4::json[], $5::json[], $6::bigint[],
        $7::bigint[], $8::bigint[], null, null, null, null, false)`,
      [
        jobs('older', count).map((job) => job.id),
        all(id * 64 + 4),
        all('kind'),
        all('{}'),
        all(null),
        all(0),
        all(null),
        all(null),
      ],
    )
  }
  for (const refused of [call(3), mixed(3), call(3)])
    await assert.rejects(refused, { code: 'P0001', message: 'the queue takes no more at present' })
  assert.deepEqual(await call(1), [{ draining: null }])
  assert.deepEqual(await mixed(1), [{ status: 'created' }])
  await assert.rejects(call(1), /takes no more/)
  await assert.rejects(mixed(1), /takes no more/)
})

test('a bucket outlives its limit being taken away, set by many at once, and a clock that steps back', async () => {
  const handles = Array.from({ length: 6 }, () => store.open({ connections: 1 }))
  await Promise.all(handles.map((handle) => handle.control.limit('steps', { intake: only(2) })))
  assert.equal(stored(await store.storage.enqueue(jobs('steps', 3))), 2)
  await store.storage.control.limit('steps', { intake: null })
  assert.equal(stored(await store.storage.enqueue(jobs('steps', 3))), 3)
  await intake('steps', only(2))
  await store.advance(10 * HOUR_MS)
  assert.equal(stored(await store.storage.enqueue(jobs('steps', 3))), 2)
  await store.advance(-9 * HOUR_MS)
  // It has to wait for one token, and not for nine hours and one.
  const [early] = await store.storage.enqueue(jobs('steps', 1))
  assert.ok(early?.status === 'early' && early.retryAfterMs <= HOUR_MS, JSON.stringify(early))
  await store.advance(HOUR_MS)
  assert.equal(stored(await store.storage.enqueue(jobs('steps', 2))), 1)
})

test('a schema with intakes shows no drift', async () => {
  await intake('drifting', only(1))
  const found = (await store.storage.setup.drift()).map(({ about }) => about)
  assert.deepEqual(
    found.filter((about) => about.includes('intake')),
    [],
  )
})
