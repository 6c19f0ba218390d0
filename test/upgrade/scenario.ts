/** Fills a store with jobs in all places, as they are when a release meets its upgrade. Called by make-release.ts. */
import { strict as assert } from 'node:assert'
import { DAY_MS, HOUR_MS, type JobSketch, Kit } from '../../src/testing/conformance/kit.js'
import {
  afterCrash,
  cancelled,
  givenBack,
  type Held,
  LEASE_MS,
  rejected,
  returned,
  snoozed,
  started,
  type TestWorker,
  threw,
} from '../../src/testing/conformance/worker.js'
import type { Scratch } from '../support/postgres.js'

const SUSPECTS = { suspects: true } as const
const DAYS = 3

/** JSON that a store may meet: as clients write it, and as others do that speak to the functions of the schema. */
const ODD_PAYLOADS: readonly string[] = [
  'null',
  'true',
  '""',
  '{}',
  '[]',
  '-0',
  '9007199254740993',
  '1e21',
  '"\\u0000 and \\ud800"',
  '"it\'s \\"quoted\\" \\\\ $$ :schema %s ;"',
  '{"b":1,"a":2,"b":3}',
  '{"":{"Ключ 🗝":"‮ אבג"}}',
  '{ "spaces" :\t[ 1 , 2 ] }',
  `${'['.repeat(100)}${']'.repeat(100)}`,
  // Over 16 KiB: a lease of its own.
  JSON.stringify('long '.repeat(3_300)),
]

/** Ends at the present: what was long ago happened days before it. */
export async function fill(store: Scratch): Promise<void> {
  const kit = await Kit.over(async () => ({
    open: async () => store.open(),
    advance: store.advance,
    driftMs: 1_000,
    discard: async () => {},
  }))
  const us = Number((await store.sql('select us from :s.test_clock'))[0]!.us)
  await store.advance(-DAYS * DAY_MS)
  for (let day = 0; day < DAYS; day++) {
    const from = await offsetMs(store)
    await ended(kit)
    await dead(kit)
    await store.advance(DAY_MS - ((await offsetMs(store)) - from))
  }
  await store.sql('update :s.test_clock set us = $1', [us - 10 * 60_000_000])
  await waiting(kit)
  await comeBack(kit)
  await suspects(kit)
  await otherQueues(kit)
  await store.sql('update :s.test_clock set us = $1', [us])
  await held(kit)
  await kit.close()
}

async function offsetMs(store: Scratch): Promise<number> {
  return Number((await store.sql('select us from :s.test_clock'))[0]!.us) / 1_000
}

async function ended(kit: Kit): Promise<void> {
  const worker = await kit.worker()
  await kit.enqueue({ key: `ended ${await kit.enqueueOne()}`, retentionMs: 1_000 }, {}, {}, { spec: { keep: 'none' } })
  const jobs = await worker.take(9)
  assert.equal(jobs.length, 5)
  const results = [undefined, 'null', '{"rows":[1,2]}', undefined, undefined]
  await worker.settle(...jobs.map((job, n) => (n === 3 ? cancelled(job) : returned(job, results[n]))))
  const waits = await kit.enqueueOne({ due: { delayMs: HOUR_MS } })
  await kit.control.cancel([waits])
  await kit.store.unregister(worker.id)
}

/** A dead letter of each reason. */
async function dead(kit: Kit): Promise<void> {
  await kit.enqueue({ spec: { expiresInMs: 1_000 } }, { spec: { expiresInMs: 1_000 }, due: { delayMs: 500 } })
  await kit.advance(2_000)
  assert.equal((await kit.store.upkeep.expire(10)).length, 2)
  const worker = await kit.worker()
  const once = { spec: { attempts: 1 } }
  await kit.enqueue({ ...once, key: `dead ${await kit.enqueueOne(once)}` }, once)
  const jobs = await worker.take(3)
  await worker.settle(threw(jobs[0]!), rejected(jobs[1]!), threw(jobs[2]!))
  await kit.control.redrive([jobs[2]!.job.id], { force: false })
  const [again] = await worker.take(1)
  await worker.settle(returned(again!))
  await kit.store.unregister(worker.id)
  await lost(kit)
  await poison(kit)
}

async function lost(kit: Kit): Promise<void> {
  await kit.enqueue({ spec: { delivery: 'at-most-once', attempts: 1 } })
  await die(kit, 1)
}

async function poison(kit: Kit): Promise<void> {
  const id = await kit.enqueueOne()
  for (let crashes = 0; crashes < 4; crashes++) {
    await kit.advance(HOUR_MS)
    await kit.promote()
    await die(kit, 1, crashes < 2 ? {} : SUSPECTS)
  }
  assert.equal((await kit.view(id)).reason, 'poison')
}

/** A worker starts jobs and dies; another one takes them over and settles them. */
async function die(kit: Kit, jobs: number, how: { suspects?: true } = {}): Promise<void> {
  const [gone, heir] = [await kit.worker(), await kit.worker()]
  const held = await gone.take(jobs, how)
  assert.equal(held.length, jobs)
  await gone.settle(...held.map(started))
  await kit.pass(LEASE_MS + kit.marginMs, heir)
  await heir.settle(...(await heir.takeOver()).map(afterCrash))
  await kit.store.unregister(heir.id)
}

async function waiting(kit: Kit): Promise<void> {
  const odd = (sketch: JobSketch) => ODD_PAYLOADS.map((payload) => ({ ...kit.job(sketch), payload }))
  await kit.store.enqueue(odd({ priority: 8 }))
  await kit.store.enqueue(odd({ due: { delayMs: 15 * 60_000 } }))
  for (const priority of [0, 4, 12, 15]) await kit.enqueue({ priority }, { priority, kind: 'other' })
  await kit.enqueue({ key: 'waits' }, { key: 'waits for days', due: { delayMs: 3 * DAY_MS } })
  await kit.enqueue({ spec: { expiresInMs: HOUR_MS, backoff: { type: 'fixed', baseMs: 1_000, jitter: 0 } } })
  await kit.enqueue({ due: { delayMs: 11 * 60_000 } }, { due: { delayMs: DAY_MS } })
  await kit.enqueue({ kind: 'nobody', payload: 'no worker knows its kind' })
}

/** Given back, failed, snoozed, retried by hand, brought back from the dead. */
async function comeBack(kit: Kit): Promise<void> {
  const worker = await kit.worker()
  const queue = { priority: 15, payload: 'came back' }
  await kit.enqueueMany(8, queue)
  const jobs = await worker.take(8)
  await worker.settle(
    givenBack(jobs[0]!),
    givenBack(jobs[1]!),
    threw(jobs[2]!, 11 * 60_000),
    threw(jobs[3]!, DAY_MS),
    snoozed(jobs[4]!, 12 * 60_000),
    threw(jobs[5]!, DAY_MS),
    rejected(jobs[6]!),
    threw(jobs[7]!, 0),
  )
  await kit.control.retry([jobs[5]!.job.id])
  await kit.control.redrive([jobs[6]!.job.id], { force: false })
  const old = await kit.enqueueOne({ ...queue, spec: { attempts: 50 } })
  for (let attempt = 0; attempt < 22; attempt++) {
    const taken = await worker.take(20)
    await worker.settle(...taken.map((each) => (each.job.id === old ? threw(each, 0) : givenBack(each))))
    await kit.promote()
  }
  await kit.store.unregister(worker.id)
}

/** One ready, one that waits for its time. */
async function suspects(kit: Kit): Promise<void> {
  const options = { queue: 'suspects', payload: 'a suspect' }
  await kit.enqueue(options, options)
  const queues = { queues: [{ queue: 'suspects', share: 2 }] }
  for (let crashes = 0; crashes < 2; crashes++) {
    const [gone, heir] = [await kit.worker(), await kit.worker()]
    const taken = await gone.take(2, queues)
    assert.equal(taken.length, 2)
    await kit.pass(LEASE_MS + kit.marginMs, heir)
    await heir.settle(...(await heir.takeOver()).map(afterCrash))
    await kit.store.unregister(heir.id)
  }
  await kit.advance(90_000)
  await kit.promote()
  const worker = await kit.worker()
  const [alone] = await worker.take(1, { ...queues, ...SUSPECTS })
  await worker.settle(threw(alone!, 20 * 60_000))
  await kit.store.unregister(worker.id)
}

async function otherQueues(kit: Kit): Promise<void> {
  for (const queue of ['paused', 'draining', 'strict', 'weighted']) await kit.enqueue({ queue }, { queue, priority: 8 })
  await kit.control.pause('paused')
  await kit.control.refuse('draining')
  await kit.control.order('strict', 'strict')
  await kit.control.order('weighted', 'weighted')
}

/** What living workers hold: of a lease of many a part is settled, started or to be cancelled; one was taken over. */
async function held(kit: Kit): Promise<void> {
  await kit.enqueueMany(2, { queue: 'held', payload: 'adopted' })
  const queues = { queues: [{ queue: 'held', share: 9 }] }
  const [gone, heir] = [await kit.worker(), await kit.worker()]
  await gone.settle(started((await gone.take(2, queues))[0]!))
  await kit.pass(LEASE_MS + kit.marginMs, heir)
  assert.equal((await heir.takeOver()).length, 2)
  const worker = await kit.worker()
  await kit.enqueueMany(6, { queue: 'held', payload: 'held' })
  await kit.enqueue({ queue: 'held', kind: 'other', payload: 'held apart', spec: { delivery: 'at-most-once' } })
  const taken = await worker.take(9, { ...queues, apart: ['other'] })
  assert.equal(taken.length, 7)
  await partly(kit, worker, taken)
}

async function partly(kit: Kit, worker: TestWorker, taken: readonly Held[]): Promise<void> {
  await worker.settle(returned(taken[0]!), threw(taken[1]!, DAY_MS), started(taken[6]!))
  await kit.control.cancel([taken[2]!.job.id])
  await worker.beat({ started: [[taken[3]!.fence, taken[3]!.ordinal]] })
}
