/** Retention on PostgreSQL: days that are dropped beside readers, and pruners beside everybody else. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { grantSql } from '../../src/storage/postgres/index.js'
import type { Retention } from '../../src/storage/storage.js'
import { ownDatabase } from '../support/database.js'
import { held } from '../support/held.js'
import { completed, newJob, TestWorker } from '../support/jobs.js'
import { PageCounter } from '../support/page-counter.js'
import { type Scratch, scratch, withYesterday } from '../support/postgres.js'
import { quoted, Roles } from '../support/roles.js'

const DAY_MS = 86_400_000
const RETENTION: Retention & { limit: number } = { completedMs: DAY_MS, deadMs: 30 * DAY_MS, limit: 100 }

let store: Scratch

before(async () => {
  store = await scratch()
})
after(() => store.drop())

async function days(): Promise<string[]> {
  const rows = await store.sql(
    `select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = $1 and c.relkind = 'r' and c.relname ~ '^ended_[0-9]{8}$' order by 1`,
    [store.schema],
  )
  return rows.map(({ relname }) => relname as string)
}

async function leaseOf(queue: string, jobs: number): Promise<number> {
  await store.storage.enqueue(Array.from({ length: jobs }, () => newJob({ queue })))
  const worker = await TestWorker.registered(store.storage)
  return (await worker.claim({ limit: jobs, queues: [{ queue, share: jobs }] })).leases[0]!.fence
}

test('a day that is over outlives its reader, who holds up no settlement, no new day and no pruning', async () => {
  const fence = await leaseOf('read', 4)
  assert.deepEqual(await store.storage.settle([completed(fence)]), ['ok'])
  const [today] = await days()
  // Reads the day and keeps its snapshot, as a long report does.
  const reader = await held(store, `select count(*) from :s."${today}"`)
  await store.advance(3 * DAY_MS)
  await store.storage.upkeep.prune(RETENTION)
  assert.ok((await days()).includes(today!), 'its reader keeps the day')
  assert.deepEqual(await store.storage.settle([completed(fence, 1)]), ['ok'])
  // Far beyond the days made ahead: this one has to be made while the other is being detached.
  await store.advance(30 * DAY_MS)
  assert.deepEqual(await store.storage.settle([completed(fence, 2)]), ['ok'])
  await store.storage.upkeep.prune(RETENTION)
  assert.deepEqual(await store.storage.settle([completed(fence, 3)]), ['ok'])
  await reader.commit()
  await store.storage.upkeep.prune(RETENTION)
  assert.ok(!(await days()).includes(today!), 'without a reader the next prune drops it')
})

test('a reader of all records by the view holds up no settlement while days are dropped', async () => {
  const fence = await leaseOf('viewed', 2)
  await store.advance(3 * DAY_MS)
  const reader = await held(store, 'select count(*) from :s.job')
  const pruned = store.storage.upkeep.prune(RETENTION)
  assert.deepEqual(await store.storage.settle([completed(fence)]), ['ok'])
  await pruned
  assert.deepEqual(await store.storage.settle([completed(fence, 1)]), ['ok'])
  await reader.commit()
})

test('pruners by count at the same time delete each record once and keep what they should', async () => {
  const fence = await leaseOf('counted', 100)
  await store.storage.settle(Array.from({ length: 100 }, (_, ordinal) => completed(fence, ordinal)))
  const other = store.open()
  const prune = async (storage = store.storage): Promise<number> => {
    let deleted = 0
    for (;;) {
      const step = await storage.upkeep.prune({ ...RETENTION, completedMax: 30, limit: 7 })
      deleted += step.deleted
      if (!step.more) return deleted
    }
  }
  await Promise.all([prune(), prune(other), prune(), prune(other)])
  // Who was passed over while somebody else held it is found by the last one.
  await prune()
  const counts = await store.storage.inspect.counts('counted')
  assert.deepEqual(counts.completed, { count: 30, exact: true })
})

/** Records of so many days ago, in tables of their days. */
async function recordsOf(own: Scratch, ...agos: number[]): Promise<string[]> {
  for (const ago of agos) {
    await own.sql(`select :s.ensure_day((now() at time zone 'UTC')::date - $1::int)`, [ago])
    await own.sql(
      `insert into :s.ended (id, queue, state, level, kind, enqueued, ended, payload)
        select gen_random_uuid(), 1, 1, 4, 'kind', t, t, '1' from (select now() - $1::int * interval '1 day' as t) t`,
      [ago],
    )
  }
  const names = await own.sql(
    `select 'ended_' || to_char((now() at time zone 'UTC')::date - n, 'YYYYMMDD') as name from unnest($1::int[]) n`,
    [agos],
  )
  return names.map(({ name }) => name as string)
}

async function hasTable(own: Scratch, name: string): Promise<boolean> {
  return (await own.sql('select to_regclass($1) is not null as made', [`${own.quoted}.${name}`]))[0]!.made as boolean
}

test('a day that cannot be dropped is told of by its name, and keeps neither other days nor other records', async () => {
  const own = await scratch()
  try {
    const [first, held, last] = await recordsOf(own, 20, 15, 10)
    await own.sql(`create view :s.report as select * from :s.${held}`)
    await own.sql(`insert into :s.dead (id, queue, level, kind, reason, enqueued, ended, payload, history)
      select gen_random_uuid(), 1, 4, 'kind', 'failed', t, t, '1', '{}' from (select now() - interval '90 days' as t) t, generate_series(1, 250)`)
    const lasting = { code: 'STORE_REJECTED', message: new RegExp(`records of ${held} cannot be dropped: .*depend`) }
    // There is more to delete for two steps; then what could not be done is told.
    for (const deleted of [102, 100])
      assert.deepEqual(await own.storage.upkeep.prune(RETENTION), { deleted, more: true })
    await assert.rejects(own.storage.upkeep.prune(RETENTION), lasting)
    assert.deepEqual(await Promise.all([first!, held!, last!].map((name) => hasTable(own, name))), [false, true, false])
    assert.equal((await own.sql('select count(*)::int as n from :s.dead'))[0]!.n, 0)
    await own.sql('drop view :s.report')
    assert.deepEqual(await own.storage.upkeep.prune(RETENTION), { deleted: 1, more: false })
    assert.equal(await hasTable(own, held!), false)
  } finally {
    await own.drop()
  }
})

test('a role that lacks a right for one part of pruning is told so, and prunes the rest', async () => {
  const database = await ownDatabase()
  const own = await scratch({ url: database.url, schema: 'pruned' })
  const roles = new Roles(database)
  try {
    const role = await roles.make('pruner')
    await own.sql(grantSql({ schema: 'pruned', role: 'worker', to: role.name }))
    await own.sql('grant select on :s.test_clock to public')
    await own.sql(`revoke execute on function :s.drop_day(date) from ${quoted(role.name)}`)
    const [day] = await recordsOf(own, 10)
    await own.sql(
      `insert into :s.idempotency (kind, key, id, payload_hash, expires) values ('kind', 'over', gen_random_uuid(), 'h', 1)`,
    )
    const storage = own.open({ url: role.url })
    await assert.rejects(storage.upkeep.prune(RETENTION), {
      code: 'STORE_REJECTED',
      message: new RegExp(`records of ${day} cannot be dropped: .*permission denied`),
    })
    assert.equal((await own.sql('select count(*)::int as n from :s.idempotency'))[0]!.n, 0)
    await own.sql(`grant execute on function :s.drop_day(date) to ${quoted(role.name)}`)
    assert.deepEqual(await storage.upkeep.prune(RETENTION), { deleted: 1, more: false })
  } finally {
    await own.drop()
    await database.drop()
    await roles.drop((text) => store.sql(text))
  }
})

/** Records of one queue, one each second, some of them at one instant. */
async function manyRecords(own: Scratch, from: number, to: number): Promise<void> {
  await own.sql('select :s.ensure_queue($1, 4)', ['many'])
  await withYesterday(own)
  await own.sql(
    `insert into :s.ended (id, queue, state, level, kind, enqueued, ended, payload)
      select gen_random_uuid(), 1, 1, 4, 'kind', t, t, '1' from (select now() - (n / 3) * interval '1 ms' as t from generate_series($1::int, $2::int) n) t`,
    [from, to],
  )
  await own.sql('vacuum analyze :s.ended')
}

test('pruning by count costs what it deletes in each step, however many are kept and were deleted before', async () => {
  const own = await scratch()
  const counter = new PageCounter(own)
  try {
    await manyRecords(own, 1, 3_000)
    const step = (completedMax: number) => () => counter.storage.upkeep.prune({ ...RETENTION, limit: 10, completedMax })
    // All else that a step looks at, such as the catalog, which is long where many schemas came and went.
    const others = () => counter.of(() => counter.storage.upkeep.prune({ ...RETENTION, limit: 10 }))
    await counter.once(step(1_000))
    const few = (await counter.of(step(1_000))) - (await others())
    await manyRecords(own, 3_001, 40_000)
    // As a report that was begun before: what is deleted from now on stays in the index.
    const reader = await held(own, 'set transaction isolation level repeatable read; select count(*) from :s.queue')
    const aside = await others()
    const finding = (await counter.once(step(30_000))) - aside
    await counter.storage.upkeep.prune({ ...RETENTION, limit: 8_000, completedMax: 30_000 })
    const many = (await counter.of(step(30_000))) - (await others())
    assert.ok(finding > 2 * many, `it finds where the kept ones end: ${finding}, then ${many} pages`)
    assert.ok(many <= 1.5 * few, `${few} pages with 1,000 kept, ${many} with 30,000`)
    for (let more = true; more; )
      more = (await counter.storage.upkeep.prune({ ...RETENTION, completedMax: 30_000 })).more
    assert.equal((await own.sql('select count(*)::int as n from :s.ended'))[0]!.n, 30_000)
    await reader.commit()
  } finally {
    await counter.close()
    await own.drop()
  }
})

/** Expired keys of dead letters, each of which stays until its letter goes. */
async function keysOfTheDead(own: Scratch, from: number, to: number): Promise<void> {
  await own.sql(
    `with k as (insert into :s.idempotency (kind, key, id, payload_hash, expires)
        select 'kind', 'dead ' || n, gen_random_uuid(), 'h', n / 100 from generate_series($1::int, $2::int) n returning id, key)
      insert into :s.dead (id, queue, level, kind, reason, enqueued, ended, payload, spec, history)
        select id, 1, 4, 'kind', 'failed', now(), now(), '1', json_build_object('idempotencyKey', key), '{}' from k`,
    [from, to],
  )
  for (const table of ['idempotency', 'dead']) await own.sql(`vacuum analyze :s.${table}`)
}

async function inTurn<T>(times: number, run: () => Promise<T>): Promise<T[]> {
  const all: T[] = []
  for (let n = 0; n < times; n++) all.push(await run())
  return all
}

test('expired keys that dead letters keep are gone through in bounded steps, and go with their letters', async () => {
  const own = await scratch()
  const counter = new PageCounter(own)
  const keys = async () => (await own.sql('select count(*)::int as n from :s.idempotency'))[0]!.n
  try {
    const step = () => counter.storage.upkeep.prune(RETENTION)
    await keysOfTheDead(own, 1, 6_000)
    // In a round some steps find less than they may look at.
    const dearest = async () => Math.max(...(await inTurn(8, () => counter.once(step))))
    const few = await dearest()
    await keysOfTheDead(own, 6_001, 24_000)
    const many = await dearest()
    assert.ok(many <= 2 * few, `${few} pages with 6,000 keys, ${many} with 24,000`)
    await own.sql(`insert into :s.idempotency (kind, key, id, payload_hash, expires)
      select 'kind', 'free ' || n, gen_random_uuid(), 'h', 1000 from generate_series(1, 10) n`)
    // From wherever it has come to it comes past them within one round.
    for (let steps = 0; (await keys()) !== 24_000; steps++) {
      assert.ok(steps < 6, 'it comes round')
      await step()
    }
    await own.advance(31 * DAY_MS)
    for (let more = true; more; ) more = (await own.storage.upkeep.prune({ ...RETENTION, limit: 5_000 })).more
    assert.equal(await keys(), 0)
  } finally {
    await counter.close()
    await own.drop()
  }
})

test('B119: whatever jobs ended as, with keys, expiry, fences and requests, no row of them is left when retention is over', async () => {
  const own = await scratch()
  try {
    const { storage } = own
    const history = { attempts: 1, crashes: 0, crashesAlone: 0, snoozes: 0, redrives: 0, entries: [] }
    const ends = [
      { to: 'completed', history: null, keep: true, startedAfterMs: 1, ranMs: 1 },
      { to: 'cancelled', history },
      ...(['failed', 'poison', 'rejected', 'lost'] as const).map((reason) => ({
        to: 'dead' as const,
        reason,
        history,
      })),
    ] as const
    const count = ends.length * 50
    const idempotency = (n: number) => ({ key: `key ${n}`, payloadHash: 'h', retentionMs: DAY_MS })
    await storage.enqueue(Array.from({ length: count }, (_, n) => newJob({ idempotency: idempotency(n) })))
    await storage.enqueue(Array.from({ length: 50 }, () => newJob({ spec: { ...newJob().spec, expiresInMs: 1_000 } })))
    const worker = await TestWorker.registered(storage)
    const { leases } = await worker.claim({ limit: count })
    const held = leases.flatMap(({ fence, jobs }) => jobs.map((_, ordinal) => ({ fence, ordinal })))
    const answers = await storage.settle(held.map((place, n) => ({ ...place, ...ends[n % ends.length]! })))
    assert.ok(answers.every((answer) => answer === 'ok'))
    await own.advance(60_000)
    assert.equal((await storage.upkeep.expire(100)).length, 50)
    // A worker that died with a job in hand leaves a dead fence.
    const doomed = await TestWorker.registered(storage)
    await storage.enqueue([newJob()])
    await doomed.claim({ limit: 1 })
    await storage.unregister(worker.id)
    await own.advance(40 * DAY_MS)
    const heir = await TestWorker.registered(storage)
    for (let beats = 0; beats < 6; beats++) {
      await own.advance(2_500)
      await heir.beat()
    }
    const [taken] = (await storage.takeOver({ worker: heir.id, limit: 10 })).leases
    assert.deepEqual(await storage.settle([completed(taken!.fence)]), ['ok'])
    await storage.unregister(heir.id)
    await own.advance(40 * DAY_MS)
    for (let more = true; more; ) more = (await storage.upkeep.prune(RETENTION)).more
    const tables = [
      'ready',
      'delayed',
      'lease',
      'ended',
      'dead',
      'idempotency',
      'expiry',
      'revoked',
      'claim_request',
      'worker',
      'idle',
    ]
    const left = await Promise.all(
      tables.map(async (table) => [table, (await own.sql(`select count(*)::int as n from :s.${table}`))[0]!.n]),
    )
    assert.deepEqual(
      left.filter(([, n]) => n !== 0),
      [],
    )
  } finally {
    await own.drop()
  }
})
