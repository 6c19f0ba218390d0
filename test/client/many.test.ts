/** Many jobs at once: one result for each item in input order, few calls, bounded memory. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { z } from 'zod'
import type { EnqueueResult } from '../../src/client/outcome.js'
import { connect } from '../../src/connect.js'
import { QueueError } from '../../src/core/errors.js'
import { defineJob, type JobItem } from '../../src/core/kind.js'
import type { NewJob } from '../../src/storage/storage.js'
import { created, inMemory, stubbed, watch } from './kit.js'

const plain = defineJob<{ n: number }>('plain')
const other = defineJob<string>('other', { queue: 'elsewhere' })

function* items(count: number): Generator<JobItem> {
  for (let n = 0; n < count; n++) yield plain.with({ n })
}

const numberOf = (job: NewJob): number => JSON.parse(job.payload).n

test('B123: 1, 5,000 and 200,000 jobs in one call: all stored, ids in input order, few calls', async () => {
  for (const count of [0, 1, 5_000, 200_000]) {
    const { time, store, queue } = stubbed()
    store.auto = created
    const results = await time.runUntil(queue.enqueueMany(items(count)))
    assert.equal(results.length, count)
    assert.equal(store.calls.length, Math.ceil(count / 1_000))
    assert(store.calls.every((call) => call.jobs.length <= 1_000))
    assert(store.inFlightMax <= 2)
    const byId = new Map(store.jobs.map((job) => [job.id, numberOf(job)]))
    results.forEach((result, n) => {
      assert(result.status === 'created')
      assert.equal(byId.get(result.id), n)
    })
  }
})

test('arrays, sets, generators and async generators are taken', async () => {
  const { time, store, queue } = stubbed()
  store.auto = created
  async function* later(): AsyncGenerator<JobItem> {
    yield* items(3)
  }
  for (const source of [[...items(3)], new Set(items(3)), items(3), later()])
    assert.equal((await time.runUntil(queue.enqueueMany(source))).length, 3)
})

test('kinds are mixed, and each item has options of its own', async () => {
  const { time, store, queue } = stubbed()
  store.auto = created
  const batch = [
    plain.with({ n: 1 }),
    other.with('a', { delay: '1h', priority: 'low' }),
    other.with('b', { runAt: 2e12 }),
  ]
  await time.runUntil(queue.enqueueMany(batch, { delay: '1m', priority: 'high' }))
  assert.deepEqual(
    store.jobs.map(({ kind, queue: name, priority, due }) => [kind, name, priority, due]),
    [
      ['plain', 'default', 8, { delayMs: 60_000 }],
      ['other', 'elsewhere', 0, { delayMs: 3_600_000 }],
      ['other', 'elsewhere', 8, { atMs: 2e12 }],
    ],
  )
})

test('a bad item is refused in its place and sinks no other', async () => {
  const { time, store, queue } = stubbed()
  store.auto = created
  const checked = defineJob('checked', { payload: z.object({ n: z.number() }) })
  const batch = [
    plain.with({ n: 1 }),
    checked.with({ n: 'x' as never }),
    plain.with({ n: 5n as never }),
    plain.with({ n: 2 }, { dealy: 5 } as never),
    null as never,
    { n: 5 } as never,
    other.with('x'.repeat(2_000_000)),
    Object.defineProperty({ kind: plain, options: undefined }, 'payload', {
      get: () => {
        throw new Error('the caller’s own')
      },
    }) as never,
    plain.with({ n: 3 }),
  ]
  const results = await time.runUntil(queue.enqueueMany(batch))
  const codes = results.map((result) => (result.status === 'refused' ? result.error.code : result.status))
  assert.deepEqual(codes, [
    'created',
    'INVALID_PAYLOAD',
    'INVALID_PAYLOAD',
    'UNKNOWN_OPTION',
    'INVALID_OPTION',
    'INVALID_OPTION',
    'PAYLOAD_TOO_LARGE',
    'INVALID_PAYLOAD',
    'created',
  ])
  assert.equal(store.jobs.length, 2)
})

test('a batch of which all are bad sends nothing', async () => {
  const { time, store, queue } = stubbed()
  const bad = Array.from({ length: 2_500 }, () => plain.with({ n: Number.NaN }))
  const results = await time.runUntil(queue.enqueueMany(bad))
  assert.equal(results.filter((result) => result.status === 'refused').length, 2_500)
  assert.equal(store.calls.length, 0)
})

test('schemas that are asynchronous keep the order', async () => {
  const { time, store, queue } = stubbed()
  store.auto = created
  const slow = defineJob('slow', { payload: z.number().refine(async (n) => n % 3 !== 0) })
  const results = await time.runUntil(queue.enqueueMany(Array.from({ length: 30 }, (_, n) => slow.with(n))))
  assert.deepEqual(
    results.map((result) => result.status),
    results.map((_, n) => (n % 3 === 0 ? 'refused' : 'created')),
  )
  assert.deepEqual(
    store.jobs.map((job) => Number(job.payload)),
    Array.from({ length: 30 }, (_, n) => n).filter((n) => n % 3 !== 0),
  )
})

test('B87: duplicates, known before and inside the batch, are told in their places and spoil nothing', async () => {
  const { time, queue } = inMemory()
  const keyed = (n: number, key: string) => plain.with({ n }, { idempotencyKey: key })
  const before = await time.runUntil(queue.enqueueMany(Array.from({ length: 10 }, (_, n) => keyed(n, `k${n}`))))
  const batch = Array.from({ length: 1_000 }, (_, n) => keyed(n, `k${n < 990 ? n : n - 500}`))
  batch[995] = keyed(-1, 'k500')
  const results = await time.runUntil(queue.enqueueMany(batch))
  results.forEach((result, n) => {
    if (n < 10) assert.deepEqual(result, { status: 'duplicate', id: idOf(before[n]!) })
    else if (n >= 990) assert(result.status === 'refused' && result.error.code === 'IDEMPOTENCY_MISMATCH')
    else assert.equal(result.status, 'created')
  })
  assert.equal((await time.runUntil(queue.counts('default'))).ready.count, 990)
})

function idOf(result: EnqueueResult): string {
  assert('id' in result)
  return result.id
}

test('only busy items are sent again', async () => {
  const { time, store, queue } = stubbed()
  store.auto = (jobs, call) =>
    jobs.map((job) => (call === 1 && job.idempotency?.key === 'b' ? { status: 'busy' } : { status: 'created' }))
  const batch = ['a', 'b', 'c'].map((key) => other.with(key, { idempotencyKey: key }))
  const results = await time.runUntil(queue.enqueueMany(batch))
  assert.deepEqual(
    results.map((result) => result.status),
    ['created', 'created', 'created'],
  )
  assert.deepEqual(
    store.calls.map((call) => call.jobs.map((job) => job.idempotency?.key)),
    [['a', 'b', 'c'], ['b']],
  )
})

test('the first batch that the store does not take ends the call for the rest', async () => {
  for (const [code, status] of [
    ['STORE_UNAVAILABLE', 'refused'],
    ['OUTCOME_UNKNOWN', 'unknown'],
  ] as const) {
    const { time, store, queue } = stubbed()
    const results = watch(queue.enqueueMany(items(10_000)))
    await time.advance(0)
    store.calls[0]!.answer()
    await time.advance(0)
    store.calls[1]!.fail(new QueueError(code, 'cut'))
    await time.advance(0)
    store.calls[2]!.answer()
    await time.advance(0)
    const said = results.value!
    assert.equal(store.calls.length, 3)
    assert.equal(said[999]!.status, 'created')
    assert.equal(said[1_000]!.status, status)
    assert.equal(said[2_999]!.status, 'created', 'it was under way')
    for (const result of said.slice(3_000))
      assert(result.status === 'refused' && result.error.code === 'STORE_UNAVAILABLE')
  }
})

test('E11: a store that hangs ends the call in time', async () => {
  const { time, queue } = stubbed({ storeTimeoutMs: 5_000 })
  const results = watch(queue.enqueueMany(items(100_000)))
  await time.advance(5_000)
  const said = results.value!
  assert.equal(said.length, 100_000)
  assert.equal(said.filter((result) => result.status === 'unknown').length, 2_000)
  const unknown = said[0]!
  assert(unknown.status === 'unknown' && unknown.error.jobId === unknown.id)
})

test('in a transaction batches go one after another', async () => {
  const { time, store, queue, hints } = stubbed()
  const tx = { query: async () => ({ rows: [] }) }
  const results = watch(queue.enqueueMany(items(5_000), { tx }))
  for (let call = 0; call < 5; call++) {
    await time.advance(100)
    assert.equal(store.calls.length, call + 1)
    assert.equal(store.calls[call]!.tx, tx)
    store.calls[call]!.answer()
  }
  await time.advance(0)
  assert.equal(results.value!.length, 5_000)
  assert.deepEqual(hints, [])
})

test('E9: a spread places the jobs of a batch evenly, whatever their number', async () => {
  for (const count of [10, 1_000, 3_333]) {
    const { time, store, queue } = stubbed()
    store.auto = created
    await time.runUntil(queue.enqueueMany(items(count), { delay: '1h', spread: '10m' }))
    const delays = store.jobs
      .map((job) => ('delayMs' in job.due ? job.due.delayMs - 3_600_000 : Number.NaN))
      .sort((a, b) => a - b)
    assert(delays[0]! >= 0 && delays.at(-1)! < 600_000)
    const gaps = delays.slice(1).map((delay, i) => delay - delays[i]!)
    assert(Math.max(...gaps) < (600_000 / count) * 2.7, `${Math.max(...gaps)} ms between two of ${count}`)
  }
})

test('a stream gives results in input order, reads no further than what is being sent, and holds nothing else', async () => {
  const { time, store, queue } = stubbed()
  let read = 0
  async function* endless(): AsyncGenerator<JobItem> {
    for (;;) yield plain.with({ n: read++ })
  }
  const stream = queue.enqueueStream(endless())
  const first = watch(stream.next())
  await time.advance(1_000)
  assert.equal(store.calls.length, 2)
  assert.equal(read, 2_000)
  store.calls[0]!.answer()
  await time.advance(1_000)
  assert.deepEqual(first.value, { value: { status: 'created', id: store.jobs[0]!.id }, done: false })
  assert(read <= 3_001, 'one batch more at most was prepared')
  for (let n = 1; n < 1_000; n++) assert.equal(idOf((await stream.next()).value!), store.jobs[n]!.id)
  await time.advance(60_000)
  assert(read <= 3_001, 'nobody takes results, nothing is read')
  store.auto = created
  for (const call of store.calls) call.answer()
  await time.runUntil(stream.return(undefined))
})

test('what a slow source gave is sent at once, and told before the source goes on', async () => {
  const { time, store, queue } = stubbed()
  store.auto = created
  let wake = (): void => {}
  async function* slow(): AsyncGenerator<JobItem> {
    yield* items(3)
    await new Promise<void>((resolve) => {
      wake = resolve
    })
    yield plain.with({ n: 99 })
  }
  const stream = queue.enqueueStream(slow())
  for (let n = 0; n < 3; n++) assert.equal((await time.runUntil(stream.next(), 100)).value!.status, 'created')
  const fourth = watch(stream.next())
  await time.advance(3_600_000)
  assert.equal(fourth.settled, false)
  assert.equal(store.calls.length, 1)
  wake()
  await time.advance(10)
  assert.equal(fourth.settled, true)
  assert.deepEqual((await time.runUntil(stream.next())).done, true)
  assert.equal(time.pending, 0)
})

test('a stream goes on after a batch that failed', async () => {
  const { time, store, queue } = stubbed()
  const results: EnqueueResult[] = []
  const reading = (async () => {
    for await (const result of queue.enqueueStream(items(3_000))) results.push(result)
  })()
  await time.advance(0)
  store.calls[0]!.fail(new QueueError('STORE_UNAVAILABLE', 'down'))
  store.auto = created
  store.calls[1]!.answer()
  await time.runUntil(reading)
  const counts = (status: string): number => results.filter((result) => result.status === status).length
  assert.deepEqual([counts('refused'), counts('created')], [1_000, 2_000])
})

test('a source that throws: what it gave before is told, then its error', async () => {
  const { time, store, queue } = stubbed()
  store.auto = created
  const fault = new Error('the file ended early')
  function* broken(): Generator<JobItem> {
    yield* items(1_500)
    throw fault
  }
  const results: EnqueueResult[] = []
  const reading = (async () => {
    for await (const result of queue.enqueueStream(broken())) results.push(result)
  })()
  await assert.rejects(time.runUntil(reading), fault)
  assert.equal(results.length, 1_500)
  await assert.rejects(time.runUntil(queue.enqueueMany(broken())), fault)
})

test('a reader that leaves lets the source clean up', async () => {
  const { time, store, queue } = stubbed()
  store.auto = created
  let cleaned = false
  async function* source(): AsyncGenerator<JobItem> {
    try {
      for (;;) yield plain.with({ n: 1 })
    } finally {
      cleaned = true
    }
  }
  await time.runUntil(
    (async () => {
      for await (const _ of queue.enqueueStream(source())) break
    })(),
  )
  await time.advance(1_000)
  assert(cleaned)
  assert.equal(time.pending, 0)
})

test('what is no source, and options that are none, are refused before anything is read', async () => {
  const { time, queue } = stubbed()
  for (const bad of [plain, null, 5, 'text', {}])
    await assert.rejects(time.runUntil(queue.enqueueMany(bad as never)), { code: 'INVALID_OPTION' })
  await assert.rejects(queue.enqueueMany([], { idempotencyKey: 'k' } as never), { code: 'UNKNOWN_OPTION' })
  assert.throws(() => queue.enqueueStream([], { dealy: 5 } as never), { code: 'UNKNOWN_OPTION' })
})

test('no item of an asynchronous source is dropped, whatever its length and whoever is quicker', async () => {
  const queue = await connect('memory:')
  async function* later(count: number): AsyncGenerator<JobItem> {
    for (const item of items(count)) yield item
  }
  for (const count of [1, 999, 1_000, 1_001, 1_500, 2_000, 2_500, 4_100]) {
    const streamed: EnqueueResult[] = []
    for await (const result of queue.enqueueStream(later(count))) streamed.push(result)
    assert.equal(streamed.length, count)
    assert.equal((await queue.enqueueMany(later(count))).length, count)
  }
  await queue.close()
})

test('close waits for the batches that are under way, and refuses those that come later', async () => {
  const { time, store, queue } = stubbed()
  const many = watch(queue.enqueueMany(items(3_000)))
  const closed = watch(queue.close())
  await time.advance(0)
  assert.equal(store.calls.length, 2)
  assert.equal(closed.settled, false)
  for (const call of store.calls) call.answer()
  await time.advance(0)
  assert.equal(closed.settled, true)
  assert.equal(store.calls.length, 2)
  const results = many.value!
  assert.deepEqual([results.length, results.filter(({ status }) => status === 'created').length], [3_000, 2_000])
  const last = results.at(-1)!
  assert(last.status === 'refused')
  assert.equal(last.error.code, 'QUEUE_CLOSED')
})

test('close waits for what a stream has sent, and never for its reader', async () => {
  const { time, store, queue } = stubbed()
  const stream = queue.enqueueStream(items(5_000))
  const first = watch(stream.next())
  await time.advance(0)
  const closed = watch(queue.close())
  await time.advance(0)
  assert.equal(closed.settled, false)
  for (const call of store.calls) call.answer()
  await time.advance(0)
  assert.equal(closed.settled, true)
  assert.equal((first.value as IteratorResult<EnqueueResult>).value.status, 'created')
  const words: string[] = ['created']
  for await (const result of stream) words.push('error' in result ? result.error.code : result.status)
  assert.deepEqual([words.length, words.filter((word) => word === 'created').length], [5_000, 2_000])
  assert.equal(words.at(-1), 'QUEUE_CLOSED')
})
