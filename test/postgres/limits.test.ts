/** Limits of queues under many claims at once, on PostgreSQL: what is held is read from the store itself. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { SPEC_DEFAULTS } from '../../src/core/job.js'
import type { Lease, Settlement } from '../../src/storage/storage.js'
import { completed, newJob, TestWorker } from '../support/jobs.js'
import { type Scratch, scratch } from '../support/postgres.js'
import { until } from '../support/until.js'

let store: Scratch
before(async () => {
  store = await scratch()
})
after(() => store.drop())

const WORKERS = 16
const LIMITS = { seven: 7, one: 1 }
type Limited = keyof typeof LIMITS
const QUEUES = Object.keys(LIMITS) as Limited[]

/** A fixed series of numbers below `bound`; each worker has its own. */
function draws(seed: number): (bound: number) => number {
  let state = seed * 2_654_435_761 + 1
  return (bound) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 8) % bound
  }
}

/** Most are completed, some fail, some go back. */
function ended({ fence, jobs }: Lease, draw: (bound: number) => number): Settlement[] {
  return jobs.map((_, ordinal): Settlement => {
    const at = { fence, ordinal }
    switch (draw(8)) {
      case 0:
        return { ...at, to: 'ready', history: null, suspect: false }
      case 1:
        return { ...at, to: 'dead', reason: 'failed', history: { ...EMPTY, attempts: 1 } }
      default:
        return completed(fence, ordinal)
    }
  })
}
const EMPTY = { attempts: 0, crashes: 0, crashesAlone: 0, snoozes: 0, redrives: 0, entries: [] }

/** Claims both queues, in one order or the other, until both are empty; forgets a claim now and then. */
async function work(seed: number): Promise<void> {
  const draw = draws(seed)
  const worker = await TestWorker.registered(store.open({ connections: 2 }))
  const names = seed % 2 === 0 ? QUEUES : QUEUES.toReversed()
  let finished: Settlement[] = []
  for (;;) {
    const limit = 1 + draw(20)
    const queues = names.map((queue) => ({ queue, share: 1 + draw(limit) }))
    const { leases } = await worker.claim({ queues, limit, finished })
    // Its answer was lost: the next beat does not name it, and the store gives it back.
    if (draw(10) === 0) await worker.beat({ known: worker.request })
    finished = leases.flatMap((lease) => ended(lease, draw))
    if (draw(3) === 0) {
      await worker.storage.settle(finished)
      finished = []
    }
    if (leases.length === 0 && finished.length === 0 && (await left()) === 0) return
  }
}

async function left(): Promise<number> {
  const [row] = await store.sql('select count(*)::int as jobs from :s.job where state in ($1, $2)', [
    'ready',
    'running',
  ])
  return row!.jobs as number
}

async function idOf(queue: string): Promise<number> {
  const [row] = await store.sql('select id from :s.queue where name = $1', [queue])
  return row!.id as number
}

test('sixteen workers never hold more than the limits of two queues, whatever they do, and every permit comes back', async () => {
  for (const queue of QUEUES) {
    await store.storage.control.limit(queue, { concurrency: LIMITS[queue] })
    await store.storage.enqueue(Array.from({ length: 200 }, () => newJob({ queue })))
  }
  const client = await store.client()
  const running = { done: false }
  const most: Record<Limited, number> = { seven: 0, one: 0 }
  const sampled = (async () => {
    while (!running.done)
      for (const queue of QUEUES) {
        const { rows } = await client.query(`select ${store.quoted}.held($1) as held`, [await idOf(queue)])
        most[queue] = Math.max(most[queue], rows[0].held)
      }
  })()
  try {
    await Promise.all(Array.from({ length: WORKERS }, (_, seed) => work(seed)))
  } finally {
    running.done = true
    await sampled
  }
  for (const queue of QUEUES) {
    assert.ok(most[queue] <= LIMITS[queue], `${queue}: ${most[queue]} were held at once`)
    assert.ok(most[queue] > 0, 'nothing was seen')
    const { running: open, completed: done, dead } = await store.storage.inspect.counts(queue)
    assert.deepEqual([open.count, done.count + dead.count], [0, 200])
  }
})

test('a claim of a limited queue waits for nobody: it leaves the queue to the claim that is at it', async () => {
  const [full, other] = ['full', 'other']
  await store.storage.control.limit(full, { concurrency: 2 })
  await store.storage.enqueue([...Array.from({ length: 3 }, () => newJob({ queue: full })), newJob({ queue: other })])
  const worker = await TestWorker.registered(store.storage)
  const holder = await store.client()
  await holder.query('begin')
  await holder.query(`select * from ${store.quoted}.allowances(array[$1::int])`, [await idOf(full)])
  const queues = [full, other].map((queue) => ({ queue, share: 9 }))
  const { leases, more } = await worker.claim({ queues })
  assert.deepEqual([leases.flatMap(({ jobs }) => jobs.map(({ queue }) => queue)), more], [[other], true])
  assert.deepEqual(await store.storage.enqueue([newJob({ queue: full })]), [{ status: 'created' }])
  assert.deepEqual(await store.storage.settle([completed(leases[0]!.fence)]), ['ok'])
  await holder.query('commit')
  const taken = (await worker.claim({ queues })).leases.flatMap(({ jobs }) => jobs)
  assert.equal(taken.length, 2)
})

test('a transaction of a caller that enqueues into a limited queue holds up no claim of it', async () => {
  const queue = 'held open'
  await store.storage.control.limit(queue, { concurrency: 1, rate: { limit: 10, perMs: 1_000, burst: 10 } })
  await store.storage.enqueue([newJob({ queue })])
  const caller = await store.client()
  await caller.query('begin')
  await store.storage.enqueue([newJob({ queue })], { tx: caller })
  const worker = await TestWorker.registered(store.storage)
  const { leases } = await worker.claim({ queues: [{ queue, share: 9 }] })
  assert.equal(leases.length, 1)
  await caller.query('rollback')
})

test('what functions of an older version have claimed counts too', async () => {
  const queue = 'claimed before'
  await store.storage.enqueue(Array.from({ length: 4 }, () => newJob({ queue })))
  const worker = await TestWorker.registered(store.storage)
  const of = { queues: [{ queue, share: 2 }], limit: 2 }
  assert.equal((await worker.claim(of)).leases[0]!.jobs.length, 2)
  await store.sql('update :s.lease set queue = null where queue = $1', [await idOf(queue)])
  await store.storage.control.limit(queue, { concurrency: 3 })
  assert.equal((await worker.claim(of)).leases[0]!.jobs.length, 1)
})

test('tokens taken by a clock that has stepped back since hold nothing up', async () => {
  const queue = 'stepped back'
  await store.storage.control.limit(queue, { rate: { limit: 10, perMs: 1_000, burst: 1 } })
  await store.storage.enqueue([newJob({ queue }), newJob({ queue })])
  await store.sql(`update :s.queue_limit set rate_taken = :s.clock() + 3600000000 where queue = $1`, [
    await idOf(queue),
  ])
  const worker = await TestWorker.registered(store.storage)
  const of = { queues: [{ queue, share: 1 }], limit: 1 }
  const { leases, limited, nextTokenMs } = await worker.claim(of)
  assert.deepEqual([leases, limited], [[], [queue]])
  assert.ok(nextTokenMs !== null && nextTokenMs <= 100, `the next token in ${nextTokenMs} ms`)
})

test('a permit that a cancelled or lost job gives back is told to who waits for it', async () => {
  for (const how of ['cancelled', 'lost'] as const) {
    const queue = `freed by one ${how}`
    await store.storage.control.limit(queue, { concurrency: 1 })
    const once = { ...SPEC_DEFAULTS, delivery: 'at-most-once' as const }
    await store.storage.enqueue([newJob({ queue, spec: once }), newJob({ queue })])
    const [holder, waiter] = [await TestWorker.registered(store.storage), await TestWorker.registered(store.storage)]
    const of = { queues: [{ queue, share: 1 }], limit: 1 }
    const [lease] = (await holder.claim(of)).leases
    assert.deepEqual((await waiter.claim(of)).limited, [queue])
    const heard: string[][] = []
    const stop = await store.storage.wake.listen([queue], (queues) => heard.push(queues))
    heard.length = 0
    if (how === 'cancelled') await store.storage.control.cancel([lease!.jobs[0]!.id])
    else await store.storage.settle([{ fence: lease!.fence, ordinal: 0, to: 'started' }])
    // Its lease is not named: it ends by the hand of the store.
    await holder.beat({ known: holder.request, leases: [] })
    await until('the waiter hears of it', () => heard.flat().includes(queue))
    await stop()
    assert.equal((await waiter.claim(of)).leases.length, 1)
  }
})
