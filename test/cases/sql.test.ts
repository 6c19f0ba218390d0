/** Faults that other queues were reported to have (docs/cases.md): what the store does inside PostgreSQL. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { NAME_BYTES_MAX } from '../../src/core/job.js'
import { defineJob, type Queue } from '../../src/index.js'
import type { PostgresStorage } from '../../src/storage/postgres/index.js'
import type { Settlement, Storage } from '../../src/storage/storage.js'
import { completed, newJob, TestWorker } from '../support/jobs.js'
import { PageCounter } from '../support/page-counter.js'
import { type Scratch, scratch } from '../support/postgres.js'
import { changed, handler } from '../worker/kit.js'
import { inlineBeats, kitOn, places, QUICK, queueOn, until } from './kit.js'

let store: Scratch
let queue: Queue
beforeEach(async () => {
  store = await scratch()
  queue = queueOn(kitOn(store.storage))
})
afterEach(() => store.drop())

const kind = defineJob<number>('kind', { queue: 'queue' })

/** So many more jobs that wait, that are delayed (half of them for a retry), and that ended, of two queues in two levels. */
async function fill(rows: number): Promise<void> {
  for (const name of ['queue', 'other'])
    await store.sql('select :s.ensure_queue($1, n) from (values (4), (9)) v(n)', [name])
  const lane = 'q.id * 64 + case n % 4 when 0 then 9 else 4 end'
  const each = `generate_series(1, ${rows / 2}) n, :s.queue q where q.name in ('queue', 'other')`
  await store.sql(`insert into :s.ready (lane, bytes, pos, id, kind, payload)
    select ${lane}, 2, :s.clock() - 3600000000 + n, gen_random_uuid(), 'kind', '{}' from ${each}`)
  await store.sql(`insert into :s.delayed (lane, bytes, due, id, kind, payload, enqueued, history)
    select ${lane}, 2, :s.clock() + n * 1000000::bigint, gen_random_uuid(), 'kind', '{}', :s.clock(),
      case when n % 2 = 0 then '{"attempts":1,"crashes":0,"crashesAlone":0,"snoozes":0,"redrives":0,"entries":[]}'::json end from ${each}`)
  await store.sql(`insert into :s.ended (id, queue, state, level, kind, enqueued, ended, payload)
    select gen_random_uuid(), q.id, 1, 4, 'kind', now(), :s.instant(:s.clock()), '{}' from ${each}`)
  for (const table of ['ready', 'delayed', 'ended']) await store.sql(`vacuum analyze :s.${table}`)
}

/** A hundred queues more, with a few jobs each. */
async function manyQueues(): Promise<void> {
  await queue.enqueueMany(Array.from({ length: 400 }, (_, n) => kind.with(n, { queue: `queue-${n % 200}` })))
}

async function pagesOf(counter: PageCounter): Promise<Record<string, number>> {
  const { storage } = counter
  const worker = await TestWorker.registered(storage)
  const both = ['queue', 'other'].map((name) => ({ queue: name, share: 10 }))
  const claim = async (): Promise<void> => {
    const { leases } = await worker.claim({ limit: 20, queues: both })
    await store.storage.settle(leases.flatMap(({ fence, jobs }) => jobs.map((_, n) => completed(fence, n))))
  }
  return {
    claim: await counter.of(claim),
    promote: await counter.of(() => storage.upkeep.promote(20)),
    expire: await counter.of(() => storage.upkeep.expire(20)),
    'next to run': await counter.of(() => storage.inspect.list({ state: 'ready', queue: 'queue', limit: 20 })),
    counts: await counter.of(() => storage.inspect.counts('queue')),
  }
}

test('B113, B117: claims, promotion, lists and counts touch no more pages with four times as much waiting, delayed and finished', async () => {
  const counter = new PageCounter(store)
  try {
    await manyQueues()
    // More than what is counted exactly, so that counts are at their bound from the beginning.
    await fill(24_000)
    const small = await pagesOf(counter)
    await fill(72_000)
    const large = await pagesOf(counter)
    for (const [operation, pages] of Object.entries(large))
      assert.ok(pages <= 2 * small[operation]!, `${operation}: ${small[operation]} pages, then ${pages}`)
  } finally {
    await counter.close()
  }
})

interface Session {
  state: string | null
  snapshot: boolean
  openMs: number
}

test('B116: under load no session of ours is idle in a transaction, or keeps a snapshot for more than a few seconds', async () => {
  const name = `b116_${store.schema}`
  const url = new URL(store.url)
  url.searchParams.set('application_name', name)
  const kit = kitOn(store.open({ url: url.href }))
  const own = queueOn(kit)
  // Handlers that last for longer than a statement may.
  const running = kit.worker([handler(() => new Promise((resolve) => setTimeout(resolve, 20)))], { concurrency: 50 })
  await running.start()
  let sent = 0
  const producing = (async () => {
    for (; sent < 5_000; sent += 500) {
      await own.enqueueMany(Array.from({ length: 500 }, (_, n) => kind.with(n, { delay: n % 10 === 0 ? 50 : 0 })))
      await own.enqueue(kind, sent, { idempotencyKey: `key ${sent}` })
    }
  })()
  const seen: Session[] = []
  await until(async () => {
    const rows = await store.sql(
      `select state, backend_xmin is not null as snapshot, coalesce(extract(epoch from clock_timestamp() - xact_start) * 1000, 0)::float8 as "openMs"
        from pg_stat_activity where application_name = $1`,
      [name],
    )
    seen.push(...(rows as unknown as Session[]))
    return kit.all('job.completed').length >= 5_000
  })
  await producing
  await running.stop()
  await kit.connection.storage.close()
  assert.ok(seen.length > 100 && seen.some(({ state }) => state === 'active'), `${seen.length} looks`)
  assert.deepEqual(
    seen.filter(({ state }) => state?.startsWith('idle in transaction')),
    [],
  )
  assert.ok(Math.max(...seen.map(({ openMs }) => openMs)) < 10_000)
})

async function sequences(): Promise<Record<string, number>> {
  const rows = await store.sql(
    'select sequencename as name, coalesce(last_value, 0)::float8 as value from pg_sequences where schemaname = $1',
    [store.schema],
  )
  return Object.fromEntries(rows.map((row) => [row.name, row.value]))
}

test('B120: enqueues, duplicates and start-ups use up no number of any sequence', async () => {
  await queue.enqueue(kind, 0)
  const before = await sequences()
  assert.ok(Object.keys(before).length >= 2)
  await Promise.all(Array.from({ length: 500 }, (_, n) => queue.enqueue(kind, n)))
  await queue.enqueueMany(Array.from({ length: 500 }, (_, n) => kind.with(n, { delay: n % 2 })))
  for (let n = 0; n < 20; n++) await queue.enqueue(kind, 1, { idempotencyKey: 'the same' })
  for (let n = 0; n < 10; n++) {
    const storage = store.open()
    await storage.setup.migrate()
    await storage.inspect.counts('queue')
    await TestWorker.registered(storage)
  }
  assert.deepEqual(await sequences(), before)
})

test('B120: claims, give-backs, take-over and settlements go on beyond 2^31', async () => {
  for (const name of Object.keys(await sequences()))
    await store.sql(`select setval($1, ${2 ** 31 - 3})`, [`${store.quoted}.${name}`])
  await store.storage.enqueue(Array.from({ length: 40 }, () => newJob()))
  const worker = await TestWorker.registered(store.storage)
  let last = 0
  for (let n = 0; n < 6; n++) {
    const { leases } = await worker.claim({ limit: 2 })
    const { fence } = leases[0]!
    assert.ok(fence > last, `${last}, then ${fence}`)
    last = fence
    const back = { fence, ordinal: 0, to: 'ready', suspect: false, history: null } as const
    assert.deepEqual(await store.storage.settle([back, completed(fence, 1)]), ['ok', 'ok'])
    assert.deepEqual(await store.storage.settle([completed(fence, 1)]), ['already'])
  }
  assert.ok(last > 2 ** 31)
  const { leases } = await worker.claim({ limit: 3 })
  const beat = await worker.beat({ leases: leases.map(({ fence }) => fence), started: [[leases[0]!.fence, 0]] })
  assert.deepEqual([beat.status, beat.lost], ['ok', []])
  const kit = kitOn(store.storage)
  await store.sql('update :s.worker set seen = 0, main_seen = 0')
  const running = kit.worker([handler()], { lease: '1s', beat: '250ms' })
  await running.start()
  await until(async () => (await places(store)).completed === 40)
  await running.stop()
  assert.equal(kit.all('job.crashed').filter(({ started }) => started).length, 1)
  for (const value of Object.values(await sequences())) assert.ok(value > 2 ** 31, `${value}`)
})

/** The last number that 32 bits can hold. */
const BORDER = 2 ** 31 - 1

/** As if its worker had claimed and beaten for months: what it counts from 0 stands so much higher in the store. */
function longLived(storage: PostgresStorage, by: number, requests: number[]): Storage {
  const claim: Storage['claim'] = (one) => {
    requests.push(one.request + by)
    return storage.claim({ ...one, request: one.request + by })
  }
  // The first one registers it.
  const beat: Storage['beat'] = (one) =>
    storage.beat({ ...one, n: one.n === 1 ? 1 : one.n + by, known: one.known + by })
  return changed(inlineBeats(storage), { claim, beat })
}

test('B120: a claim is answered, asked again, kept, given back, settled and taken over beyond 2^31 claims of a worker', async () => {
  await store.storage.enqueue(Array.from({ length: 40 }, () => newJob()))
  const worker = await TestWorker.registered(store.storage)
  worker.request = BORDER - 2
  await worker.beat()
  for (const beyond of [-1, 0, 1, 2, 3]) {
    const { leases } = await worker.claim({ limit: 3 })
    assert.equal(worker.request, BORDER + beyond)
    const repeated = await worker.claim({ limit: 3, request: worker.request })
    assert.deepEqual(repeated.leases, leases)
    assert.equal(leases[0]!.jobs.length, 3)
    const fence = leases[0]!.fence
    // Unknown to the beat a lease is kept, named it is; known and not named it is given back.
    assert.deepEqual((await worker.beat({ known: worker.request - 1 })).lost, [])
    assert.deepEqual((await worker.beat({ leases: [fence] })).lost, [])
    assert.deepEqual(await store.storage.settle([completed(fence)]), ['ok'])
    assert.deepEqual((await worker.beat()).lost, [])
    assert.deepEqual(await store.storage.settle([completed(fence, 1)]), ['lost'])
  }
  // Given up before it came: it takes nothing.
  await worker.beat({ known: worker.request + 1 })
  assert.deepEqual((await worker.claim()).leases, [])
  const [row] = await store.sql('select count(*)::int as n, max(request)::float8 as last from :s.claim_request')
  assert.ok((row!.n as number) <= 3 && (row!.last as number) > BORDER, JSON.stringify(row))
  assert.deepEqual(await places(store), { ready: 35, completed: 5 })
  assert.equal((await worker.claim({ limit: 2 })).leases[0]!.jobs.length, 2)
  await beyondWithSuspect(worker)
})

/** Dead with a job in hand: an heir of large numbers takes it over; what has crashed twice it takes alone. */
async function beyondWithSuspect(doomed: TestWorker): Promise<void> {
  const heir = new TestWorker(store.storage)
  heir.request = BORDER + 10
  await heir.beat()
  for (let beats = 0; beats < 6; beats++) {
    await store.advance(2_500)
    await heir.beat()
  }
  const { leases } = await store.storage.takeOver({ worker: heir.id, limit: 10 })
  assert.equal((await doomed.beat()).status, 'gone')
  const [fence, jobs] = [leases[0]!.fence, leases[0]!.jobs.length]
  assert.equal(jobs, 2)
  const suspect = { fence, ordinal: 0, to: 'ready', suspect: true, history: null } as const
  assert.deepEqual(await store.storage.settle([suspect, completed(fence, 1)]), ['ok', 'ok'])
  const alone = await heir.claim({ suspects: true })
  assert.deepEqual(
    alone.leases.map((lease) => [lease.alone, lease.jobs.length]),
    [[true, 1]],
  )
  assert.deepEqual((await heir.claim({ suspects: true, request: heir.request })).leases, alone.leases)
}

test('B120: a worker that has claimed for months goes on beyond its 2^31st claim and beat', async () => {
  const requests: number[] = []
  const kit = kitOn(longLived(store.storage, BORDER - 5, requests))
  const ids = await kit.enqueue(60)
  const running = kit.worker([handler()], { concurrency: 2, ...QUICK })
  await running.start()
  await until(async () => (await places(store)).completed === ids.length)
  // A beat tells of the last claim, and is heard.
  await until(async () => (await store.sql('select from :s.worker where n > $1 and known > $1', [BORDER]))[0])
  await running.stop()
  assert.equal(kit.all('job.completed').length, ids.length)
  assert.ok(requests.includes(BORDER) && requests.includes(BORDER + 1), requests.join())
  assert.deepEqual(
    kit.events.filter(({ type }) => type.startsWith('store.')),
    [],
  )
})

test('B120: an attempt that ran for longer than 2^31 ms is settled, and its record says how long at least', async () => {
  await store.storage.enqueue([newJob(), newJob()])
  const worker = await TestWorker.registered(store.storage)
  const [lease] = (await worker.claim()).leases
  const ranMs = 366 * 86_400_000
  const history = { attempts: 1, crashes: 0, crashesAlone: 0, snoozes: 0, redrives: 0, entries: [] }
  const dead = { fence: lease!.fence, ordinal: 1, to: 'dead', reason: 'failed', history, ranMs } as const
  const long = { ...completed(lease!.fence), ranMs } as Settlement
  assert.deepEqual(await store.storage.settle([long, dead]), ['ok', 'ok'])
  const rows = await store.sql('select ran_ms from :s.ended union all select ran_ms from :s.dead')
  assert.deepEqual(rows, [{ ran_ms: BORDER }, { ran_ms: BORDER }])
})

const GOOD_LENGTHS = [1, 47, 48, 57, 58, 63, 64, 80, NAME_BYTES_MAX]
const GOOD_NAMES = [
  ...GOOD_LENGTHS.map((length) => 'n'.repeat(length)),
  // These differ from others in their last character, or in its case.
  `${'n'.repeat(NAME_BYTES_MAX - 1)}m`,
  `${'n'.repeat(NAME_BYTES_MAX - 1)}N`,
  'Upper.Case',
  'upper.case',
  'a.b:c/d_e-f',
  '9lives',
  'select',
]
const BAD_NAMES = [
  '',
  'n'.repeat(NAME_BYTES_MAX + 1),
  'n'.repeat(255),
  'ä',
  '名前',
  'a b',
  "it's",
  'a"b',
  'a;b',
  'a,b',
  '.a',
  'a\u0000',
  '*',
]

test('B122: a name of a queue or kind works everywhere up to the limit, to the byte; others are refused with the rule', async () => {
  for (const name of BAD_NAMES) {
    const refused = { code: 'INVALID_NAME', message: new RegExp(`1 to ${NAME_BYTES_MAX} letters, digits or`) }
    assert.throws(() => defineJob(name), refused, name)
    await assert.rejects(queue.enqueue(kind, 1, { queue: name }), refused, name)
    await assert.rejects(async () => queue.pause(name), refused, name)
  }
  assert.deepEqual(await queue.queues(), [])
  const kit = kitOn(store.open())
  // Polling far more rarely than this test may last: what starts was hinted at.
  const handlers = GOOD_NAMES.map((name) => handler(undefined, { kind: name, queue: name }))
  const running = kit.worker(handlers, { poll: '1h' })
  await running.start()
  await until(async () => running.health().lastClaimAgoMs !== null)
  const ids = new Map<string, string>()
  for (const name of GOOD_NAMES) {
    ids.set(name, (await queue.enqueue(defineJob<number>(name, { queue: name }), 1)).id)
    await until(async () => kit.all('job.completed').length === ids.size)
  }
  const workers = await queue.workers()
  assert.deepEqual(workers[0]!.queues.toSorted(), GOOD_NAMES.toSorted())
  await running.stop()
  for (const name of GOOD_NAMES) {
    await queue.pause(name)
    await queue.order(name, 'strict')
    const { jobs } = await queue.list({ state: 'completed', queue: name, kind: name })
    assert.deepEqual(
      jobs.map((job) => [job.id, job.queue, job.kind]),
      [[ids.get(name), name, name]],
    )
    assert.equal((await queue.counts(name)).completed.count, 1)
  }
  const listed = await queue.queues()
  assert.deepEqual(listed.map((one) => one.queue).toSorted(), GOOD_NAMES.toSorted())
  assert.ok(listed.every(({ paused, order }) => paused && order === 'strict'))
})

test('B122: a call that gives work to more queues than one hint can name wakes their workers all the same', async () => {
  const long = Array.from({ length: 100 }, (_, n) => `${n}-`.padEnd(NAME_BYTES_MAX, 'n'))
  const kit = kitOn(store.open())
  const running = kit.worker([handler(undefined, { queue: long[99]! })], { poll: '1h' })
  await running.start()
  await until(async () => running.health().lastClaimAgoMs !== null)
  const results = await queue.enqueueMany(long.map((name, n) => kind.with(n, { queue: name })))
  assert.ok(results.every(({ status }) => status === 'created'))
  await kit.next('job.completed')
  await running.stop()
})

const MANY = 200_000

test('B123: 200,000 jobs in one call are stored with their ids in input order; in a transaction all of them or none', async () => {
  const items = function* () {
    for (let n = 0; n < MANY; n++) yield kind.with(n)
  }
  const client = await store.client()
  await client.query('begin')
  const undone = await queue.enqueueMany(items(), { tx: client })
  assert.equal(undone.filter(({ status }) => status === 'created').length, MANY)
  await client.query('rollback')
  assert.deepEqual(await places(store), {})
  const results = await queue.enqueueMany(items())
  const rows = await store.sql('select id, payload::text::int as n from :s.ready order by lane, pos')
  assert.equal(rows.length, MANY)
  for (const [n, row] of rows.entries()) {
    const result = results[row.n as number]!
    if (result.status !== 'created' || result.id !== row.id) assert.fail(`item ${row.n} was told another id`)
    // Batches commit one after another or two at a time; inside of each the order is that of the call.
    assert.ok(Math.abs((row.n as number) - n) <= 2_000, `item ${row.n} stands at ${n}`)
  }
})
