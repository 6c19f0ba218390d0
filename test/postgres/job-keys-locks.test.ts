/** Locks of keys: who waits for a key holds nothing that those wait for who have it, and what a net finds is not always the same. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type JobSpec, SPEC_DEFAULTS } from '../../src/core/job.js'
import type { NewJob, Settlement } from '../../src/storage/storage.js'
import { held } from '../support/held.js'
import { completed, newJob, TestWorker } from '../support/jobs.js'
import { type Scratch, scratch } from '../support/postgres.js'
import { until } from '../support/until.js'

let store: Scratch
before(async () => {
  store = await scratch()
})
after(() => store.drop())

function keyed(queue: string, key: Partial<JobSpec>, more: Partial<NewJob> = {}): NewJob {
  return newJob({ queue, spec: { ...SPEC_DEFAULTS, ...key }, ...more })
}

function from(queue: string, limit = 100) {
  return { queues: [{ queue, share: limit }], limit }
}

/** The rows of a queue's keys, locked in a transaction of its own. */
function holding(queue: string, key: string) {
  return held(
    store,
    `select from :s.permit p where p.key = $2 and p.queue = (select q.id from :s.queue q where q.name = $1) for update`,
    [queue, key],
  )
}

/** Resolves when so many sessions wait for a lock in statements of this schema. */
function waiting(count: number): Promise<void> {
  return until(`${count} sessions that wait`, async () => {
    const [row] = await store.sql(
      `select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and query like '%' || $1 || '%'`,
      [store.schema],
    )
    return row!.n === count
  })
}

async function deadlocks<T>(calls: readonly Promise<T>[]): Promise<unknown[]> {
  const results = await Promise.allSettled(calls)
  return results.flatMap((each) => (each.status === 'rejected' ? [String(each.reason)] : []))
}

function returnedTo(to: 'ready', fence: number, suspect: boolean): Settlement {
  return {
    fence,
    ordinal: 0,
    to,
    suspect,
    history: { attempts: 1, crashes: 1, crashesAlone: 0, snoozes: 0, redrives: 0, entries: [] },
  }
}

test('a cancel of what waits and what runs of one key meets a settlement of what runs: no deadlock', async () => {
  const queue = 'cancel'
  const jobs = [keyed(queue, { orderKey: 'k' }), keyed(queue, { orderKey: 'k' })]
  await store.storage.enqueue(jobs)
  const worker = await TestWorker.registered(store.storage)
  const { leases } = await worker.claim(from(queue))
  assert.deepEqual(
    leases[0]!.jobs.map(({ id }) => id),
    [jobs[0]!.id],
  )
  const key = await holding(queue, 'ok')
  const canceller = await store.client()
  const cancel = canceller.query(`select id, answer from ${store.quoted}.cancel_in($1::uuid[], null) order by answer`, [
    jobs.map(({ id }) => id),
  ])
  await waiting(1)
  const settler = await store.client()
  const settle = settler.query(
    `select ${store.quoted}.settle($1::bigint[], '{0}', '{1}', '{t}', '{0}', '{1}', '{1}', '{null}', array[null::json], array[null::json]) as answers`,
    [[leases[0]!.fence]],
  )
  await waiting(2)
  await key.commit()
  assert.deepEqual(await deadlocks([cancel, settle]), [])
  assert.deepEqual((await settle).rows, [{ answers: [0] }])
})

test('a claim of a suspect meets a beat that gives back a job of its key: no deadlock', async () => {
  const queue = 'suspect'
  await store.storage.control.limit(queue, { perKey: { limit: 5, keys: {} } })
  await store.storage.enqueue([keyed(queue, { limitKey: 'k' })])
  const worker = await TestWorker.registered(store.storage)
  const first = await worker.claim(from(queue))
  await store.storage.settle([returnedTo('ready', first.leases[0]!.fence, true)])
  await store.storage.enqueue([keyed(queue, { limitKey: 'k' })])
  const lost = await worker.claim(from(queue))
  assert.equal(lost.leases.length, 1)
  const lease = await held(store, 'select from :s.lease where fence = $1 for update', [lost.leases[0]!.fence])
  // The beat names none of its leases: it never got the answer.
  const beat = worker.on(store.open())
  beat.beats = worker.beats
  beat.request = worker.request
  const beaten = beat.beat()
  await waiting(1)
  const claimed = worker.claim({ ...from(queue), suspects: true })
  await waiting(2)
  await lease.commit()
  assert.deepEqual(await deadlocks<unknown>([beaten, claimed]), [])
  assert.equal((await claimed).leases.length, 1)
})

test('a sweep that sets one key free and expires a job of another waits for none of them, and no settlement of both for it', async () => {
  const queue = 'sweep'
  await store.storage.control.limit(queue, { perKey: { limit: 1, keys: {} } })
  const [a, b, waits, late] = [
    keyed(queue, { limitKey: 'a' }),
    keyed(queue, { limitKey: 'b' }),
    keyed(queue, { limitKey: 'b' }),
    keyed(queue, { limitKey: 'a', expiresInMs: 1_000 }),
  ]
  await store.storage.enqueue([a!, b!])
  const worker = await TestWorker.registered(store.storage)
  const { leases } = await worker.claim(from(queue))
  await store.storage.enqueue([waits!, late!])
  assert.deepEqual((await worker.claim(from(queue))).leases, [])
  // As after a change of a limit whose second statement never came.
  await store.sql(
    `update :s.queue_limit set key_limits = '{"limit": 1, "keys": {"b": 2}}' where queue = (select id from :s.queue where name = $1)`,
    [queue],
  )
  await store.advance(2_000)
  const key = await holding(queue, 'lb')
  const sweeper = await store.client()
  // Somebody has the key in his hands, and the sweep ends all the same.
  await sweeper.query(`select ${store.quoted}.expire(10)`)
  const settler = await store.client()
  const settle = settler.query(
    `select ${store.quoted}.settle($1::bigint[], '{0,1}', '{1,1}', '{t,t}', '{0,0}', '{1,1}', '{1,1}', '{null,null}', array[null::json, null], array[null::json, null]) as answers`,
    [leases.flatMap(({ fence, jobs }) => jobs.map(() => fence))],
  )
  await waiting(1)
  await key.commit()
  assert.deepEqual(await deadlocks([settle]), [])
})

test('what a claim leaves for its bytes holds no permit of its key', async () => {
  const queue = 'bytes'
  await store.storage.control.limit(queue, { perKey: { limit: 3, keys: {} } })
  const payload = JSON.stringify('x'.repeat(5_000_000))
  const large = [1, 2, 3].map(() => keyed(queue, { limitKey: 'k' }, { payload }))
  for (const job of large) await store.storage.enqueue([job])
  const worker = await TestWorker.registered(store.storage)
  const { leases } = await worker.claim(from(queue))
  const running = leases.flatMap(({ jobs }) => jobs.map(({ id }) => id))
  assert.equal(running.length, 2)
  const [{ holders }] = (await store.sql(
    `select holders::text[] from :s.permit p where p.queue = (select q.id from :s.queue q where q.name = $1)`,
    [queue],
  )) as [{ holders: string[] }]
  assert.deepEqual(holders.toSorted(), running.toSorted())
  // Two run of three: one of a kind that another worker runs may start.
  const other = keyed(queue, { limitKey: 'k' }, { kind: 'other' })
  await store.storage.enqueue([other])
  const second = await TestWorker.registered(store.storage)
  const got = await second.claim({ ...from(queue), kinds: ['other'] })
  assert.deepEqual(
    got.leases.flatMap(({ jobs }) => jobs.map(({ id }) => id)),
    [other.id],
  )
})

test('the net finds a key beside 120 order keys whose first jobs nobody takes', async () => {
  const queue = 'net'
  const worker = await TestWorker.registered(store.storage)
  const heads = Array.from({ length: 120 }, (_, n) => keyed(queue, { orderKey: `${n}` }, { kind: 'nobody' }))
  await store.storage.enqueue(heads)
  await store.storage.enqueue(heads.map((_, n) => keyed(queue, { orderKey: `${n}` })))
  for (let more = true; more; ) ({ more } = await worker.claim(from(queue)))
  const later = 'net of a later queue'
  await store.storage.control.limit(later, { perKey: { limit: 1, keys: {} } })
  const [runs, waits] = [keyed(later, { limitKey: 'k' }), keyed(later, { limitKey: 'k' })]
  await store.storage.enqueue([runs, waits])
  const { leases } = await worker.claim(from(later))
  assert.equal(leases.length, 1)
  // As after a change of a limit whose second statement never came.
  await store.sql(
    `update :s.queue_limit set key_limits = '{"limit": 2, "keys": {}}' where queue = (select id from :s.queue where name = $1)`,
    [later],
  )
  await store.storage.upkeep.expire(10)
  const [view] = await store.storage.inspect.get([waits.id])
  assert.equal(view!.state, 'ready')
  await store.storage.settle([completed(leases[0]!.fence)])
})
