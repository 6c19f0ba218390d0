/** Fair shares on a real server: commits that come late, many at once, and what an enqueue and a claim cost. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { TENANTS as FUNCTIONS_TENANTS } from '../../src/storage/postgres/functions/tenants.js'
import type { NewJob } from '../../src/storage/storage.js'
import { completed, newJob, TestWorker } from '../support/jobs.js'
import { type Scratch, scratch } from '../support/postgres.js'

let store: Scratch
before(async () => {
  store = await scratch()
})
after(() => store.drop())

function jobsOf(queue: string, tenant: string, count: number): NewJob[] {
  return Array.from({ length: count }, () => newJob({ queue, spec: { ...newJob().spec, tenant } }))
}

/** Claims and completes until nothing is left; the ids in the order in which they came. */
async function drained(worker: TestWorker, queue: string, limit: number): Promise<string[]> {
  const ids: string[] = []
  for (;;) {
    const { leases, more } = await worker.claim({ limit, queues: [{ queue, share: limit }] })
    if (leases.length === 0 && !more) return ids
    ids.push(...leases.flatMap(({ jobs }) => jobs.map(({ id }) => id)))
    await store.storage.settle(leases.flatMap(({ fence, jobs }) => jobs.map((_, ordinal) => completed(fence, ordinal))))
  }
}

test('what commits late, far behind what was served meanwhile, is found and taken whole', async () => {
  const queue = 'late'
  await store.storage.enqueue(jobsOf(queue, 'a', 1))
  const client = await store.client()
  await client.query('begin')
  const late = jobsOf(queue, 'b', 300)
  await store.storage.enqueue(late, { tx: client })
  const worker = await TestWorker.registered(store.storage)
  await store.storage.enqueue(jobsOf(queue, 'a', 2_000))
  assert.equal((await drained(worker, queue, 100)).length, 2_001)
  await client.query('commit')
  // The cursor lies far beyond: a sweep finds the first ones, and the others are not left to further sweeps.
  const found: string[] = []
  let rounds = 0
  while (found.length < late.length) {
    const more = await drained(worker, queue, 10)
    found.push(...more)
    if (more.length > 0) rounds += 1
  }
  assert.deepEqual(
    found,
    late.map(({ id }) => id),
  )
  assert.equal(rounds, 1)
})

test('an enqueue waits for no other one, whoever’s transaction is open', async () => {
  const queue = 'open'
  await store.storage.enqueue(jobsOf(queue, 'a', 3))
  const client = await store.client()
  await client.query('begin')
  const open = jobsOf(queue, 'a', 2)
  await store.storage.enqueue(open, { tx: client })
  const meanwhile = jobsOf(queue, 'a', 2)
  await store.storage.enqueue(meanwhile)
  const worker = await TestWorker.registered(store.storage)
  assert.equal((await drained(worker, queue, 2)).length, 5)
  await client.query('commit')
  assert.equal((await drained(worker, queue, 2)).length, 2)
})

test('eight workers and four producers at once: each job is taken once, and the tenants get their shares', async () => {
  const queue = 'many'
  await store.storage.enqueue(jobsOf(queue, 'flood', 4_000))
  const tenants = ['b', 'c', 'd', 'e']
  const others = tenants.map((tenant) => jobsOf(queue, tenant, 200))
  const handles = tenants.map(() => store.open({ connections: 2 }))
  const workers = await Promise.all([...handles, ...handles].map((handle) => TestWorker.registered(handle)))
  for (const [at, jobs] of others.entries()) await handles[at]!.enqueue(jobs.slice(0, 100))
  const order: string[] = []
  const enqueued = Promise.all(others.map((jobs, at) => handles[at]!.enqueue(jobs.slice(100))))
  const work = async (worker: TestWorker): Promise<void> => {
    for (let round = 0; round < 20; round++) {
      const { leases } = await worker.claim({ limit: 10, queues: [{ queue, share: 10 }] })
      order.push(...leases.flatMap(({ jobs }) => jobs.map(({ id }) => id)))
    }
  }
  await Promise.all([enqueued, ...workers.map(work)])
  assert.equal(new Set(order).size, order.length)
  assert.equal(order.length, 1_600)
  // Five tenants, 1,600 starts: 320 turns for each, and none of the four has more than 200 jobs.
  const small = new Set(others.flat().map(({ id }) => id))
  assert.equal(order.filter((id) => small.has(id)).length, 800)
})

test('what becomes ready costs a few pages, and so does a claim, whatever waits and however many tenants', async () => {
  const costOf = async (queue: string, tenants: number): Promise<number[]> => {
    const jobs = Array.from({ length: 20_000 }, (_, n) => jobsOf(queue, `tenant ${n % tenants}`, 1)[0]!)
    for (let from = 0; from < jobs.length; from += 5_000) await store.storage.enqueue(jobs.slice(from, from + 5_000))
    await store.sql('vacuum analyze :s.ready')
    const lane = `(select q.id * 64 + 4 from :s.queue q where q.name = '${queue}')`
    const positions = `:s.fair_positions(array[${lane}], array[gen_random_uuid()], array['{"tenant":"tenant 1"}'::json])`
    const heads = `:s.heads(array[${lane} + 48], array[0::bigint], 10, array['kind'])`
    const pages: number[] = []
    for (const call of [positions, heads]) {
      await store.sql(`select * from ${call}`)
      const [row] = await store.sql(`explain (analyze, buffers, format json) select * from ${call}`)
      pages.push(pagesOf(row!['QUERY PLAN']))
    }
    return pages
  }
  for (const pages of [await costOf('few', 2), await costOf('crowd', 5_000)])
    for (const count of pages) assert.ok(count > 0 && count < 60, `${count} pages`)
})

function pagesOf(plan: unknown): number {
  const { Plan } = (plan as { Plan: Record<string, number> }[])[0]!
  return Plan['Shared Hit Blocks']! + Plan['Shared Read Blocks']!
}

test('what waits in a fair list is seen by those who look after the queue', async () => {
  const queue = 'watched'
  await store.storage.enqueue(jobsOf(queue, 'a', 3))
  await store.advance(60_000)
  const { oldestReadyMs } = await store.storage.diagnose.pace(queue)
  assert.ok(oldestReadyMs! >= 60_000, `${oldestReadyMs}`)
  const waiting = await store.storage.diagnose.waiting([queue])
  assert.deepEqual(
    waiting.map(({ count }) => count.count),
    [3],
  )
})

test('rights that were granted before hold for queues with tenants, too', async () => {
  const old = await scratch()
  const [worker, producer] = [`old_worker_${process.pid}`, `old_producer_${process.pid}`]
  try {
    for (const role of [worker, producer]) await old.sql(`create role ${role} login`)
    await old.sql(`grant usage on schema :s to ${worker}, ${producer}`)
    await old.sql(`grant execute on function :s.enqueue_mixed to ${producer}`)
    await old.sql(`grant execute on function :s.promote to ${worker}`)
    const functions = FUNCTIONS_TENANTS.replaceAll(':schema_text', old.quoted).replaceAll(':schema', old.quoted)
    await old.sql(functions)
    for (const role of [worker, producer]) {
      const [row] = await old.sql(
        `select has_function_privilege($1, '${old.quoted}.fair_positions(int[], uuid[], json[])', 'execute') as may`,
        [role],
      )
      assert.equal(row!.may, true, role)
    }
  } finally {
    for (const role of [worker, producer]) {
      await old.sql(`drop owned by ${role}`)
      await old.sql(`drop role ${role}`)
    }
    await old.drop()
  }
})
