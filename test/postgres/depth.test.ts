/** Limits of what may wait, on a real server: many producers at once, callers' transactions, roles and clients of before. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { DEPTH_LIMITS } from '../../src/storage/postgres/migrations/0007-depth-limits.js'
import { schemaName, withSchema } from '../../src/storage/postgres/schema-name.js'
import type { EnqueueOutcome, NewJob, Storage } from '../../src/storage/storage.js'
import { completed, newJob, TestWorker } from '../support/jobs.js'
import { type Scratch, scratch } from '../support/postgres.js'

let store: Scratch
before(async () => {
  store = await scratch()
})
after(() => store.drop())

const jobs = (queue: string, count: number) => Array.from({ length: count }, () => newJob({ queue }))

const LATER: Partial<NewJob> = { due: { delayMs: 3_600_000 } }

const stored = (outcomes: readonly EnqueueOutcome[]): number =>
  outcomes.filter(({ status }) => status === 'created').length

async function limit(queue: string, depth: number, perTenant: number | null = null): Promise<void> {
  await store.storage.control.limit(queue, { depth: { limit: depth, perTenant, kinds: {} } })
}

async function waiting(queue: string): Promise<number> {
  const [row] = await store.sql(
    'select count(*)::int as n from :s.ready r join :s.queue q on q.id = r.lane / 64 where q.name = $1',
    [queue],
  )
  return row!.n as number
}

test('16 producers against a limit of 1,000: never above it and what was under way, and the queue recovers by itself', async () => {
  const [most, producers, batch] = [1_000, 16, 20]
  await limit('many', most)
  const handles = Array.from({ length: producers }, () => store.open({ connections: 1 }))
  let created = 0
  let highest = 0
  const fill = async (handle: Storage): Promise<void> => {
    for (let refused = 0; refused < 3; ) {
      const outcomes = await handle.enqueue(jobs('many', batch))
      created += stored(outcomes)
      if (stored(outcomes) < batch) refused += 1
      highest = Math.max(highest, await waiting('many'))
    }
  }
  await Promise.all(handles.map(fill))
  assert.ok(highest >= most && highest <= most + (producers - 1) * batch, `${highest} waited`)
  assert.equal(await waiting('many'), created)

  const worker = await TestWorker.registered(store.storage)
  const take = async (count: number): Promise<void> => {
    const { leases } = await worker.claim({ queues: [{ queue: 'many', share: count }], limit: count })
    const done = leases.flatMap(({ fence, jobs: held }) => held.map((_, ordinal) => completed(fence, ordinal)))
    assert.equal(done.length, count)
    await store.storage.settle(done)
    created -= count
  }
  // It drains under the producers, and fills again; nobody has to be told.
  for (let round = 0; round < 3; round++) {
    const full = await waiting('many')
    await Promise.all([take(500), ...handles.map(fill)])
    // They may all have been refused before anything was taken.
    await Promise.all(handles.map(fill))
    assert.ok((await waiting('many')) >= Math.min(full, most), 'full again')
  }
  assert.ok(highest <= most + (producers - 1) * batch, `${highest} waited`)
  assert.equal(await waiting('many'), created, 'what was told as stored is there, and nothing else')
})

test('one caller after another comes to the limit exactly, and every refusal says so', async () => {
  await limit('exact', 100)
  assert.equal(stored(await store.storage.enqueue(jobs('exact', 70))), 70)
  const outcomes = await store.storage.enqueue(jobs('exact', 70))
  assert.equal(stored(outcomes), 30)
  assert.deepEqual(outcomes[30], { status: 'full', scope: 'queue', depth: 100, limit: 100, retryAfterMs: 1_000 })
  await limit('exact', 50)
  const [over] = await store.storage.enqueue(jobs('exact', 1))
  assert.ok(over?.status === 'full' && over.depth > 50 && over.depth <= 100)
})

test('a full tenant is refused to the job under producers of many, and holds up none of the others', async () => {
  await limit('shared', 2_000, 50)
  const tenants = Array.from({ length: 20 }, (_, n) => `tenant ${n}`)
  const of = (tenant: string, more: Partial<NewJob> = {}) =>
    newJob({ queue: 'shared', spec: { ...newJob().spec, tenant }, ...more })
  // One after another it is exact, ready and delayed ones together, in calls that mix tenants.
  const call = (count: number) =>
    tenants.flatMap((tenant) => Array.from({ length: count }, (_, n) => of(tenant, n % 2 === 0 ? {} : LATER)))
  assert.equal(stored(await store.storage.enqueue(call(30))), 600)
  const outcomes = await store.storage.enqueue(call(30))
  assert.equal(stored(outcomes), 400)
  const perTenant = { limit: 50, depth: 50, scope: 'tenant', retryAfterMs: 1_000 }
  assert.deepEqual(outcomes[29], { status: 'full', ...perTenant })
  // Then each tenant's jobs go, and eight producers fill it again at once: over by no more than was under way.
  await store.storage.control.purge('shared', 2_000)
  const handles = Array.from({ length: 8 }, () => store.open({ connections: 1 }))
  await Promise.all(
    handles.map(async (handle) => {
      for (let round = 0; round < 12; round++)
        await handle.enqueue(tenants.slice(0, 4).flatMap((tenant) => [of(tenant), of(tenant, LATER)]))
    }),
  )
  const counts =
    await store.sql(`select count(*)::int as n from (select lane, spec from :s.ready union all select lane, spec from :s.delayed) w
    where w.lane / 64 = (select id from :s.queue where name = 'shared') group by spec ->> 'tenant'`)
  assert.equal(counts.length, 4)
  for (const { n } of counts) assert.ok((n as number) >= 50 && (n as number) <= 50 + 7 * 2, `${n} wait of one tenant`)
})

test('in a caller’s transaction a tenant is counted with what the transaction has put in', async () => {
  await limit('tenants in tx', 9, 2)
  const of = (tenant: string | undefined, more: Partial<NewJob> = {}) =>
    newJob({ queue: 'tenants in tx', spec: { ...newJob().spec, ...(tenant === undefined ? {} : { tenant }) }, ...more })
  const client = await store.client()
  await client.query('begin')
  const words = async (...jobs: NewJob[]) =>
    (await store.storage.enqueue(jobs, { tx: client })).map(({ status }) => status)
  assert.deepEqual(await words(of('a'), of('a', LATER), of('a'), of('b')), ['created', 'created', 'full', 'created'])
  assert.deepEqual(await words(of('a'), of('b'), of('b', LATER)), ['full', 'created', 'full'])
  assert.deepEqual(await words(of(undefined), of(undefined), of(undefined)), ['created', 'created', 'full'])
  await client.query('rollback')
  assert.deepEqual(
    (await store.storage.enqueue([of('a'), of('a')])).map(({ status }) => status),
    ['created', 'created'],
  )
})

test('a caller’s transaction counts what is committed and its own, and holds nobody else up', async () => {
  await limit('tx', 4)
  const client = await store.client()
  await client.query('begin')
  const tx = { tx: client }
  assert.equal(stored(await store.storage.enqueue(jobs('tx', 3), tx)), 3)
  // Neither seen by the others nor waited for: that is the part by which a limit may be passed.
  assert.equal(stored(await store.storage.enqueue(jobs('tx', 2))), 2)
  const delayed = newJob({ queue: 'tx', due: { delayMs: 60_000 } })
  assert.deepEqual(
    [...(await store.storage.enqueue(jobs('tx', 1), tx)), ...(await store.storage.enqueue([delayed], tx))].map(
      ({ status }) => status,
    ),
    ['full', 'full'],
  )
  await client.query('commit')
  assert.equal(await waiting('tx'), 5)
  await client.query('begin')
  assert.equal(stored(await store.storage.enqueue(jobs('elsewhere', 1), tx)), 1, 'a refusal ends no transaction')
  await client.query('commit')
})

test('a limit is looked at in the statement that stores: no queue without one asks anything more', async () => {
  const asked: string[] = []
  const client = await store.client()
  const tx = {
    query: (text: string, values?: unknown[]) => {
      asked.push(text)
      return client.query(text, values)
    },
  }
  await store.storage.enqueue(jobs('free', 1))
  await limit('bounded', 10)
  await store.storage.enqueue(jobs('bounded', 1))
  await client.query('begin')
  for (const queue of ['free', 'bounded']) await store.storage.enqueue(jobs(queue, 1), { tx })
  await client.query('commit')
  assert.equal(asked.length, 2)
})

test('producers of an older version are told that the store refuses what does not fit', async () => {
  await limit('older', 2)
  const id = (await store.sql(`select id from :s.queue where name = 'older'`))[0]!.id as number
  const call = (count: number) =>
    store.sql(
      `select :s.enqueue_ready($1::uuid[], $2::json, null, $3::int[], '{kind}', '{NULL}', null, false) as draining`,
      [jobs('older', count).map((job) => job.id), JSON.stringify(new Array(count).fill({})), [id * 64 + 4]],
    )
  await assert.rejects(call(3), { code: 'P0001', message: 'the queue is full' })
  assert.deepEqual(await call(2), [{ draining: null }])
  await store.storage.control.refuse('older')
  assert.deepEqual(await call(1), [{ draining: [id] }])
})

test('whoever was allowed to look at queues column by column before the migration can go on enqueuing', async () => {
  const own = await scratch()
  const role = `"producer of ${own.schema}"`
  try {
    await own.sql('alter table :s.queue drop column bounded')
    await own.sql('alter table :s.queue_limit drop column depth, drop column depth_kinds')
    await own.sql(`create role ${role}`)
    await own.sql(`grant select (id, draining) on :s.queue to ${role}`)
    await own.sql(withSchema(DEPTH_LIMITS, schemaName(own.schema)))
    const may = `select has_column_privilege('${role.slice(1, -1)}', '${own.quoted}.queue', $1, 'select') as may`
    assert.deepEqual(await own.sql(may, ['bounded']), [{ may: true }])
    assert.deepEqual(await own.sql(may, ['paused']), [{ may: false }])
  } finally {
    await own.sql(`drop owned by ${role}`)
    await own.sql(`drop role ${role}`)
    await own.drop()
  }
})
