/** The plans of the hot statements, those inside of functions too: probes of indexes, whatever the backlog. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { realEnv } from '../../src/core/env.js'
import { Beats } from '../../src/storage/postgres/beat.js'
import { Database } from '../../src/storage/postgres/database.js'
import { openPostgres, type PostgresStorage } from '../../src/storage/postgres/index.js'
import { Settle } from '../../src/storage/postgres/settle.js'
import type { DepthLimit } from '../../src/storage/storage.js'
import { completed, newJob, TestWorker } from '../support/jobs.js'
import { type Scratch, scratch, withYesterday } from '../support/postgres.js'

/** Tables that grow with the backlog or with time; a day without records is empty and may be read whole. */
const LARGE = /Seq Scan on "?(ready|delayed|dead|idempotency|revoked)\b/

let store: Scratch
let storage: PostgresStorage
let pool: pg.Pool
let plans: string[] = []

before(async () => {
  store = await scratch()
  await fill()
  pool = new pg.Pool({ connectionString: store.url, max: 1 })
  pool.on('connect', (client) => {
    client.on('notice', (notice) => plans.push(notice.message ?? ''))
    void client.query(`load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_nested_statements = on;
      set auto_explain.log_analyze = on; set auto_explain.log_timing = off; set client_min_messages = log`)
  })
  storage = openPostgres({ pool, schema: store.schema })
})
after(async () => {
  await storage.close()
  await pool.end()
  await store.drop()
})

/** 30,000 jobs ready in ten levels of two queues, as many delayed, ended and dead ones; statistics up to date. */
async function fill(): Promise<void> {
  for (const queue of ['queue', 'other'])
    await store.sql('select :s.ensure_queue($1, n) from generate_series(0, 9) n', [queue])
  await store.sql(`insert into :s.ready (lane, bytes, pos, id, kind, payload)
    select (1 + n % 2) * 64 + n % 10, 2, :s.clock() - 30000000 + n, gen_random_uuid(), 'kind', '{}' from generate_series(1, 30000) n`)
  await store.sql(`insert into :s.delayed (lane, bytes, due, id, kind, payload, enqueued)
    select (1 + n % 2) * 64 + n % 10, 2, :s.clock() + (n - 500) * 1000000::bigint, gen_random_uuid(), 'kind', '{}', :s.clock() from generate_series(1, 30000) n`)
  await withYesterday(store)
  await store.sql(`insert into :s.ended (id, queue, state, level, kind, enqueued, ended, payload)
    select gen_random_uuid(), 1 + n % 2, 1, 4, 'kind', now(), now() - n * interval '1 ms', '{}' from generate_series(1, 30000) n`)
  // Fifty failures, each of 600 letters.
  await store.sql(`insert into :s.dead (id, queue, level, kind, reason, fingerprint, enqueued, ended, payload, history)
    select gen_random_uuid(), 1 + n % 2, 4, 'kind', 'failed', substr(md5((n % 50)::text), 1, 12), now(), now() - n * interval '1 ms', '{}', '{}'
    from generate_series(1, 30000) n`)
  await store.sql(`insert into :s.idempotency (kind, key, id, payload_hash, expires)
    select 'kind', 'key ' || n, gen_random_uuid(), 'h', :s.clock() + n * 1000000::bigint from generate_series(1, 30000) n`)
  await store.sql(
    `insert into :s.revoked (fence, open, at) select n, B'1', :s.clock() from generate_series(1, 30000) n`,
  )
  for (const table of ['ready', 'delayed', 'ended', 'dead', 'idempotency', 'revoked'])
    await store.sql(`analyze :s.${table}`)
}

/** Runs it three times (plans of functions settle by then) and looks at the last time's plans. */
async function plansOf(run: () => Promise<unknown>): Promise<string[]> {
  for (let n = 0; n < 3; n++) {
    plans = []
    await run()
  }
  assert.ok(plans.length > 0, 'auto_explain told nothing')
  return plans
}

function assertProbes(found: string[], rowsMax: number): void {
  for (const plan of found) {
    assert.doesNotMatch(plan, LARGE, plan)
    for (const [, rows] of plan.matchAll(/Rows Removed by Filter: (\d+)/g)) assert.ok(Number(rows) <= 100, plan)
    for (const [, rows] of plan.matchAll(/actual (?:time=\S+ )?rows=(\d+)/g))
      assert.ok(Number(rows) <= rowsMax, `a node gave ${rows} rows:\n${plan}`)
  }
}

test('claim merges ten levels of a backlog by probes', async () => {
  const worker = await TestWorker.registered(storage)
  assertProbes(
    await plansOf(() => worker.claim({ limit: 20, queues: ['queue', 'other'].map((queue) => ({ queue, share: 10 })) })),
    400,
  )
})

test('claim in the other orders', async () => {
  const worker = await TestWorker.registered(storage)
  for (const order of ['strict', 'weighted', 'ageing'] as const) {
    await storage.control.order('queue', order)
    assertProbes(await plansOf(() => worker.claim({ limit: 20 })), 400)
  }
})

test('a claim with nothing to take is a few probes', async () => {
  const worker = await TestWorker.registered(storage)
  assertProbes(await plansOf(() => worker.claim({ queues: [{ queue: 'empty', share: 10 }] })), 64)
})

test('settle reads its leases, and looks dead fences up', async () => {
  const worker = await TestWorker.registered(storage)
  assertProbes(
    await plansOf(async () => {
      const { leases } = await worker.claim({ limit: 10 })
      const { fence } = leases[0]!
      plans = []
      await storage.settle([completed(fence), completed(fence, 1), completed(77)])
    }),
    200,
  )
})

test('beat and take-over look at what the workers hold', async () => {
  const worker = await TestWorker.registered(storage)
  const { leases } = await worker.claim({ limit: 10 })
  const fences = leases.map((lease) => lease.fence)
  // The store beats on a connection of its own; here it has to be the one that tells its plans.
  const database = new Database({ client: {}, connections: 1, callTimeoutMs: 30_000, pool, env: realEnv })
  const beats = new Beats(database, new Settle(database, store.quoted), store.quoted)
  const beating = new TestWorker(Object.assign(Object.create(storage), { beat: beats.beat.bind(beats) }))
  Object.assign(beating, { id: worker.id, beats: worker.beats, request: worker.request })
  assertProbes(await plansOf(() => beating.beat({ leases: fences })), 200)
  assertProbes(await plansOf(() => storage.takeOver({ worker: worker.id, limit: 10 })), 200)
})

test('enqueue, with keys and without', async () => {
  assertProbes(await plansOf(() => storage.enqueue([newJob(), newJob({ priority: 9 })])), 200)
  const keyed = () =>
    newJob({
      idempotency: { key: `k${Math.random()}`, payloadHash: 'h', retentionMs: 1_000 },
      due: { delayMs: 60_000 },
    })
  assertProbes(await plansOf(() => storage.enqueue([keyed(), keyed()])), 200)
})

test('a full queue is counted to its limit and no further, plain and with kinds', async () => {
  const keyed = () => newJob({ idempotency: { key: `k${Math.random()}`, payloadHash: 'h', retentionMs: 1_000 } })
  try {
    const parts: Omit<DepthLimit, 'limit'>[] = [
      { perTenant: null, kinds: {} },
      { perTenant: null, kinds: { kind: 40 } },
      { perTenant: 20, kinds: {} },
    ]
    for (const part of parts) {
      await storage.control.limit('queue', { depth: { limit: 50, ...part } })
      for (const enqueue of [
        () => storage.enqueue([newJob(), newJob({ priority: 9 })]),
        () => storage.enqueue([keyed()]),
      ])
        assertProbes(await plansOf(async () => assert.equal((await enqueue())[0]!.status, 'full')), 250)
    }
  } finally {
    await storage.control.limit('queue', { depth: null })
  }
})

test('what waits of a tenant is counted with its queue, ready and delayed, and no further', async () => {
  await storage.control.limit('shared', { depth: { limit: 80, perTenant: 30, kinds: {} } })
  const of = (tenant: string, delayMs = 0) =>
    newJob({ queue: 'shared', spec: { ...newJob().spec, tenant }, due: { delayMs } })
  for (const tenant of ['a', 'b'])
    await storage.enqueue(Array.from({ length: 30 }, (_, n) => of(tenant, n % 2 === 0 ? 0 : 3_600_000)))
  for (const sent of [() => [of('a'), of('b', 60_000)], () => [of('a'), newJob({ queue: 'shared', chosen: true })]])
    assertProbes(await plansOf(async () => assert.equal((await storage.enqueue(sent()))[0]!.status, 'full')), 250)
})

test('promote and expire take the earliest', async () => {
  assertProbes(await plansOf(() => storage.upkeep.promote(20)), 400)
  assertProbes(await plansOf(() => storage.upkeep.expire(20)), 200)
})

test('pruning by age and by count reads what it deletes, and the boundary from an index', async () => {
  const prune = (more: object) =>
    storage.upkeep.prune({ completedMs: 30 * 86_400_000, deadMs: 60 * 86_400_000, limit: 20, ...more })
  for (const more of [{ completedMs: 20_000 }, { completedMax: 10_000 }, { deadMax: 10_000 }])
    for (const plan of await plansOf(() => prune(more))) {
      assert.doesNotMatch(plan, LARGE, plan)
      // The days ahead are empty, and never looked at.
      assert.doesNotMatch(plan, /Seq Scan on "?ended[^\n]*actual rows=[1-9]/, plan)
    }
})

test('one job by its id, over all places, is one statement of probes', async () => {
  const job = newJob()
  await storage.enqueue([job])
  const found = await plansOf(() => storage.inspect.get([job.id]))
  assert.equal(found.length, 1)
  assertProbes(found, 50)
})

test('what holds a job is one statement of probes: of each list its first thousand', async () => {
  const worker = await TestWorker.registered(storage)
  const [front, delayed] = [newJob(), newJob({ due: { delayMs: 3_600_000 } })]
  await storage.enqueue([front, delayed])
  const { leases } = await worker.claim({ limit: 5 })
  const [{ id: last }] = (await store.sql('select id from :s.ready where lane = 64 + 4 order by pos desc limit 1')) as [
    { id: string },
  ]
  for (const id of [last, front.id, delayed.id, leases[0]!.jobs[0]!.id]) {
    const found = await plansOf(() => storage.inspect.facts(id))
    // The clock of the tests is a statement of its own.
    assert.equal(found.filter((plan) => plan.includes('.ready r')).length, 1)
    // Of each level a list is read, up to one more than is looked at.
    assertProbes(found, 1_002)
  }
  const told = await storage.inspect.facts(last)
  assert.deepEqual([told!.lists.length, told!.lists.every(({ entries }) => entries.length <= 1_001)], [5, true])
})

test('a page of each state, for one queue, is read from an index', async () => {
  for (const state of ['ready', 'delayed', 'retrying', 'completed', 'cancelled', 'dead'] as const)
    for (const plan of await plansOf(() => storage.inspect.list({ state, queue: 'queue', limit: 10 })))
      assert.doesNotMatch(plan, LARGE, plan)
})

test('pages of what is retrying read nothing else, where all but a few wait for the first time', async () => {
  assertProbes(await plansOf(() => storage.inspect.list({ state: 'retrying', limit: 10 })), 400)
  assertProbes(await plansOf(() => storage.inspect.match({ state: 'retrying', limit: 10 })), 400)
  const [counting] = await plansOf(() => storage.inspect.counts('queue'))
  assert.match(counting!, /Index Only Scan using delayed_retrying/)
})

test('dead letters are grouped by skipping from one group to the next', async () => {
  const { groups, complete } = await storage.inspect.deadGroups({ limit: 100 })
  assert.deepEqual([groups.length, complete], [50, true])
  assertProbes(await plansOf(() => storage.inspect.deadGroups({ limit: 20 })), 600)
})

test('dead letters of one failure are found in its index, for lists and for filters', async () => {
  const { groups } = await storage.inspect.deadGroups({ limit: 1 })
  const fingerprint = groups[0]!.fingerprint!
  assertProbes(await plansOf(() => storage.inspect.list({ state: 'dead', fingerprint, limit: 10 })), 100)
  assertProbes(await plansOf(() => storage.inspect.match({ state: 'dead', fingerprint, limit: 10 })), 1_000)
})

for (const mode of ['auto', 'force_generic_plan'])
  test(`the fiftieth page costs what the first one does (${mode})`, async () => {
    await pool.query(`set plan_cache_mode = ${mode}`)
    for (const state of ['ready', 'delayed', 'completed', 'dead'] as const) {
      const list = (after?: string) =>
        storage.inspect.list({ state, queue: 'queue', limit: 20, ...(after === undefined ? {} : { after }) })
      assertProbes(await plansOf(fiftieth(list)), 400)
    }
    for (const state of ['ready', 'delayed', 'dead'] as const) {
      const match = (after?: string) =>
        storage.inspect.match({ state, queue: 'queue', limit: 20, ...(after === undefined ? {} : { after }) })
      assertProbes(await plansOf(fiftieth(match)), 400)
    }
    await pool.query('set plan_cache_mode = auto')
  })

/** Goes to the fiftieth page, then asks for it again and again. */
function fiftieth(ask: (after?: string) => Promise<{ next: string | null }>): () => Promise<unknown> {
  let after: string | undefined
  return async () => {
    if (after === undefined) for (let page = 1; page < 50; page++) after = (await ask(after)).next!
    plans = []
    return ask(after)
  }
}
