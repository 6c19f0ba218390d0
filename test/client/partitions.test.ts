/** A queue over several memory stores: where jobs go, and what becomes of them when one store is away, hangs or is full. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { Queue } from '../../src/client/queue.js'
import { connect } from '../../src/connect.js'
import { QueueError } from '../../src/core/errors.js'
import type { Json } from '../../src/core/job.js'
import { defineJob } from '../../src/core/kind.js'
import { openMemory } from '../../src/storage/memory/index.js'
import type { Storage } from '../../src/storage/storage.js'
import { VirtualTime } from '../../src/testing/virtual-time.js'
import { worker } from '../../src/worker/index.js'
import { partitioned, type Sketch } from '../support/partitioned.js'
import { changed } from '../worker/kit.js'
import { connectionTo } from './kit.js'

const mail = defineJob<{ n?: number }, Json>('mail', { queue: 'mail' })
const frail = defineJob<{ n: number }, Json>('frail', { queue: 'mail', retry: { attempts: 1 } })

/** By these names `acme` lives in the store `two`, `wonka` in `one`. */
const OF = { one: 'wonka', two: 'acme' } as const

const TROUBLE = new QueueError('STORE_UNAVAILABLE', 'nobody listens there')

/** Two stores; the second one is away while `so.away` says how: it fails, or it never answers. */
function twoStores(more: Partial<Sketch> = {}) {
  const time = new VirtualTime()
  const so: { away: 'fails' | 'hangs' | undefined } = { away: undefined }
  const one = openMemory({ env: time })
  const two = openMemory({ env: time })
  const gone = guarded(two, () => {
    if (so.away === 'fails') throw TROUBLE
    return so.away === 'hangs' ? new Promise<never>(() => {}) : undefined
  })
  const storage = partitioned(
    [
      { name: 'one', storage: one },
      { name: 'two', storage: gone, ...more },
    ],
    'tenant',
    time,
  )
  const connection = connectionTo(storage, time)
  return { time, so, one, two, storage, connection, queue: new Queue(connection) }
}

/** Each call goes by `pass` first. */
function guarded<T extends object>(target: T, pass: () => Promise<never> | undefined): T {
  return new Proxy(target, {
    get: (_, key) => {
      const value = Reflect.get(target, key, target) as unknown
      if (typeof value === 'function')
        return async (...args: unknown[]) => {
          await pass()
          return value.apply(target, args)
        }
      return typeof value === 'object' && value !== null ? guarded(value, pass) : value
    },
  })
}

const of = (tenant: string, n = 0) => mail.with({ n }, { tenant })

test('jobs of a tenant are together, and results come in the order of the items', async () => {
  const { queue, one, two, time } = twoStores()
  const items = Array.from({ length: 40 }, (_, n) => of(n % 3 === 0 ? OF.one : OF.two, n))
  const results = await time.runUntil(queue.enqueueMany(items))
  const ids = results.map((result) => (result.status === 'created' ? result.id : ''))
  for (const [index, id] of ids.entries()) {
    const [there, elsewhere] = await Promise.all([one, two].map(async (store) => (await store.inspect.get([id]))[0]))
    const [home, other] = index % 3 === 0 ? [there, elsewhere] : [elsewhere, there]
    assert.deepEqual([home!.payload, other], [{ n: index }, null])
  }
  assert.deepEqual((await queue.get(ids[0]!))!.partition, 'one')
  assert.deepEqual((await queue.counts('mail')).ready, { count: 40, exact: true })
})

test('a repeat of a key meets the first one, wherever that is', async () => {
  const { queue, time } = twoStores()
  for (let n = 0; n < 20; n++) {
    const first = await time.runUntil(queue.enqueue(mail, {}, { idempotencyKey: `key ${n}` }))
    const again = await time.runUntil(queue.enqueue(mail, {}, { idempotencyKey: `key ${n}` }))
    assert.deepEqual([again.id, again.duplicate], [first.id, true])
  }
})

for (const how of ['fails', 'hangs'] as const) {
  test(`a store that ${how} costs its own jobs and no other`, async () => {
    const { queue, so, time } = twoStores()
    const [before] = await time.runUntil(queue.enqueueMany([of(OF.two)]))
    so.away = how
    const here = queue.enqueue(mail, {}, { tenant: OF.one })
    const there = queue.enqueue(mail, {}, { tenant: OF.two, storeTimeout: '5s' })
    there.catch(() => {})
    const startedMs = time.monotonic()
    const { id } = await time.runUntil(here)
    assert.ok(time.monotonic() - startedMs < 10, 'it waited for the other store')
    const code = how === 'fails' ? 'STORE_UNAVAILABLE' : 'OUTCOME_UNKNOWN'
    await assert.rejects(time.runUntil(there), { code })
    const results = await time.runUntil(
      queue.enqueueMany([of(OF.two), of(OF.one), of(OF.two), of(OF.one)], { storeTimeout: '5s' }),
    )
    assert.deepEqual(
      results.map(({ status }) => status),
      ['refused', 'created', 'refused', 'created'],
    )
    // Looks are of what answers, and say so; nothing is said not to be there that may be.
    assert.deepEqual((await time.runUntil(queue.counts('mail'))).ready, { count: 3, exact: false })
    const page = await time.runUntil(queue.list({ state: 'ready', limit: 2 }))
    assert.deepEqual([page.jobs.length, page.missing], [2, ['two']])
    assert.equal((await time.runUntil(queue.get(id)))!.partition, 'one')
    const gone = (before as { id: string }).id
    await assert.rejects(time.runUntil(queue.get(gone)), { code: 'STORE_UNAVAILABLE' })
    assert.equal(await time.runUntil(queue.cancel(id)), 'cancelled')
    await assert.rejects(time.runUntil(queue.cancel(gone)), /partition "two": /)
    so.away = undefined
    await time.advance(5_000)
    assert.deepEqual((await time.runUntil(queue.counts('mail'))).ready.exact, false)
    await time.advance(10)
    assert.deepEqual((await time.runUntil(queue.counts('mail'))).ready, { count: 3, exact: true })
    assert.equal((await time.runUntil(queue.enqueue(mail, {}, { tenant: OF.two }))).duplicate, false)
  })
}

test('the result of a job is heard also while one of another store is waited for that hangs', async () => {
  const { queue, so, time, connection } = twoStores()
  const here = await time.runUntil(queue.enqueue(mail, {}, { tenant: OF.one }))
  const there = await time.runUntil(queue.enqueue(mail, {}, { tenant: OF.two }))
  so.away = 'hangs'
  const never = there.result({ timeout: '30s' })
  never.catch(() => {})
  const runs = worker({ connection }, [mail.handle(() => ({ done: true }))], { signals: false })
  await runs.start()
  assert.deepEqual(await time.runUntil(here.result({ timeout: '20s' })), { done: true })
  await assert.rejects(time.runUntil(never), { code: 'WAIT_TIMEOUT' })
  await time.runUntil(runs.stop({ grace: 0 }))
})

test('a store that is full refuses its own jobs', async () => {
  const { queue, time } = twoStores()
  await queue.limit('mail', { depth: 3 })
  const results = await time.runUntil(queue.enqueueMany(Array.from({ length: 10 }, (_, n) => of(OF.two, n))))
  assert.deepEqual(
    results.map((result) => (result.status === 'refused' ? result.error.code : result.status)),
    [...new Array(3).fill('created'), ...new Array(7).fill('QUEUE_FULL')],
  )
  await time.runUntil(queue.enqueue(mail, {}, { tenant: OF.one }))
  const { depthLimit, depth } = await queue.capacity('mail')
  assert.deepEqual([depthLimit, depth], [6, { count: 4, exact: true }])
})

test('an expected wait is that of the store the job goes to', async () => {
  const { queue, time, connection } = twoStores()
  const slow = worker(
    { connection },
    [
      mail.handle(async () => {
        await time.sleep(1_000)
        return null
      }),
    ],
    {
      concurrency: 2,
      signals: false,
    },
  )
  await slow.start()
  await time.runUntil(queue.enqueueMany(Array.from({ length: 100 }, (_, n) => of(OF.two, n))))
  await time.advance(10_000)
  await assert.rejects(time.runUntil(queue.enqueue(mail, {}, { tenant: OF.two, maxWait: '10s' })), {
    code: 'WAIT_TOO_LONG',
  })
  await time.runUntil(queue.enqueue(mail, {}, { tenant: OF.one, maxWait: '10s' }))
  await time.runUntil(slow.stop({ grace: 0 }))
})

test('what is draining gets nothing new, is worked off, and its tenants go to their next choice', async () => {
  const { queue, one, two, time, connection } = twoStores({ draining: true })
  await two.enqueue([{ ...(await jobOf(connection.storage)), id: '01890a5d-ac96-774b-bcce-b302099a8057' }])
  for (let n = 0; n < 50; n++) await time.runUntil(queue.enqueue(mail, {}, { tenant: `tenant ${n}` }))
  assert.equal((await one.inspect.counts('mail')).ready.count, 50)
  assert.equal((await two.inspect.counts('mail')).ready.count, 1)
  const all = worker({ connection }, [mail.handle(() => null)], { signals: false })
  const stats = await time.runUntil(all.runUntilEmpty())
  assert.equal(stats.completed, 51)
})

/** A job as the client makes it. */
async function jobOf(storage: Storage) {
  let made: Parameters<Storage['enqueue']>[0][0] | undefined
  const seen = changed(storage, {
    enqueue: async (jobs) => {
      made = jobs[0]
      return [{ status: 'created' }]
    },
  })
  const time = new VirtualTime()
  await time.runUntil(new Queue(connectionTo(seen, time)).enqueue(mail, {}))
  return made!
}

test('lists are one list: each job once, in order, page by page', async () => {
  const { queue, time } = twoStores()
  const ids: string[] = []
  for (let n = 0; n < 50; n++) {
    const job = await time.runUntil(queue.enqueue(mail, {}, { tenant: `tenant ${n}`, delay: 60_000 + n * 10 }))
    ids.push(job.id)
    await time.advance(1)
  }
  for (const limit of [1, 7, 50, 100]) {
    const seen: string[] = []
    for await (const job of queue.jobs({ state: 'delayed', limit })) seen.push(job.id)
    assert.deepEqual(seen, ids, `pages of ${limit}`)
  }
  await assert.rejects(queue.list({ state: 'delayed', after: 'nonsense' }), { code: 'INVALID_OPTION', field: 'after' })
})

test('dead letters are grouped, redriven and discarded over all stores; what dies again is not taken again', async () => {
  const { queue, time, connection } = twoStores()
  const items = Array.from({ length: 60 }, (_, n) => frail.with({ n }, { tenant: `tenant ${n}` }))
  await time.runUntil(queue.enqueueMany(items))
  const failing = worker(
    { connection },
    [
      frail.handle(() => {
        throw new Error('no such user')
      }),
    ],
    { signals: false },
  )
  await time.runUntil(failing.runUntilEmpty())
  const { groups, complete } = await queue.deadGroups()
  assert.deepEqual([groups.length, groups[0]!.count, complete], [1, { count: 60, exact: true }, true])
  const fingerprint = groups[0]!.fingerprint
  const dry = await time.runUntil(queue.redriveAll({ fingerprint }, { dryRun: true }))
  assert.deepEqual([dry.expected, dry.ended], [60, 'all'])
  await failing.start()
  const redriven = await time.runUntil(queue.redriveAll({ fingerprint }, { rate: 100, batch: 5 }))
  assert.deepEqual([redriven.done, redriven.ended], [60, 'all'])
  await time.advance(5_000)
  await time.runUntil(failing.stop())
  assert.equal((await queue.counts('mail')).dead.count, 60)
  assert.equal((await time.runUntil(queue.discardAll({ all: true }, { limit: 45 }))).done, 45)
  assert.equal((await time.runUntil(queue.discardAll({ all: true }))).done, 15)
})

test('a bulk run does what it can in the stores that answer, then waits for the others, then says who is away', async () => {
  const { queue, so, one, time } = twoStores()
  await time.runUntil(queue.enqueueMany([of(OF.one), of(OF.two)]))
  await time.advance(5)
  so.away = 'fails'
  await time.runUntil(queue.counts('mail'))
  const run = queue.cancelAll({ queue: 'mail' })
  run.catch(() => {})
  await time.advance(100)
  assert.equal((await one.inspect.counts('mail')).cancelled.count, 1)
  await assert.rejects(time.runUntil(run), { code: 'STORE_UNAVAILABLE' })
})

test('a queue is paused, resumed, purged and drained everywhere, and a store that is away is told', async () => {
  const { queue, so, one, two, time } = twoStores()
  await time.runUntil(queue.enqueueMany([of(OF.one), of(OF.two)]))
  await queue.pause('mail')
  assert.deepEqual(
    [...(await one.inspect.queues()), ...(await two.inspect.queues())].map(({ paused }) => paused),
    [true, true],
  )
  await two.control.resume('mail')
  const [view] = await queue.queues()
  assert.equal(view!.paused, false)
  assert.deepEqual([view!.partitions!.one!.paused, view!.partitions!.two!.paused], [true, false])
  await queue.resume('mail')
  assert.equal((await queue.queues())[0]!.partitions, undefined)
  so.away = 'fails'
  await assert.rejects(queue.pause('mail'), { code: 'STORE_UNAVAILABLE' })
  assert.equal((await one.inspect.queues())[0]!.paused, true)
  so.away = undefined
  await time.advance(3_000)
  await assert.rejects(queue.resume('mail'))
  await time.advance(10)
  await queue.resume('mail')
  assert.equal(await time.runUntil(queue.purge('mail')), 2)
  await time.runUntil(queue.drain('mail'))
})

test('facets that one of the stores lacks are missing, and named', async () => {
  const storage = partitioned([{ name: 'a', storage: openMemory() }], 'kind')
  await assert.rejects(storage.takeOver(), { code: 'CAPABILITY_MISSING' })
  assert.equal(storage.diagnose, undefined)
  const queue = new Queue(connectionTo(storage, new VirtualTime()))
  const tx = { query: async () => ({ rows: [] }) }
  await assert.rejects(queue.enqueue(mail, {}, { tx }), { code: 'CAPABILITY_MISSING' })
})

test('connect() takes a list of stores, or a line of text that says the same', async () => {
  await using object = await connect({
    by: 'tenant',
    partitions: [
      { name: 'a', url: 'memory:' },
      { name: 'b', url: 'memory:' },
    ],
  })
  await using line = await connect('by=tenant,a=memory:,b=memory:')
  for (const queue of [object, line]) {
    for (let n = 0; n < 30; n++) await queue.enqueue(mail, {}, { tenant: `tenant ${n}` })
    const homes = new Set<string | undefined>()
    for await (const job of queue.jobs({ state: 'ready' })) homes.add(job.partition)
    assert.deepEqual([...homes].sort(), ['a', 'b'])
  }
  await assert.rejects(connect('by=kind,a=memory:,b=mysql://x'), { code: 'UNKNOWN_STORE' })
})
