/** Cases of `enqueue`, but those about keys. */
import { strict as assert } from 'node:assert'
import { SPEC_DEFAULTS } from '../../../core/job.js'
import type { ConformanceCase } from '../case.js'
import { HOUR_MS } from '../kit.js'
import { givenBack, idsOf, returned, threw } from '../worker.js'

export const ENQUEUE: ConformanceCase[] = [
  {
    name: 'enqueue: a worker gets the job as it was given',
    promise: 'Nothing of a job is changed on its way.',
    needs: [],
    async run(kit) {
      const spec = { attempts: 3, timeoutMs: 1_234, backoff: { type: 'fixed', baseMs: 7, jitter: 0 } } as const
      const id = await kit.enqueueOne({ kind: 'other', priority: 13, payload: { to: ['ä', 1] }, spec })
      const { job, fence } = await (await kit.worker()).takeOne()
      const { enqueuedAt, waitedMs, ...rest } = job
      assert.deepEqual(rest, {
        id,
        kind: 'other',
        queue: 'q',
        priority: 13,
        payload: { to: ['ä', 1] },
        spec: { ...SPEC_DEFAULTS, ...spec },
        history: null,
        expiresInMs: null,
      })
      assert(enqueuedAt > 0 && waitedMs >= 0 && waitedMs <= kit.marginMs)
      assert(Number.isSafeInteger(fence))
    },
  },
  {
    name: 'enqueue: nothing in, nothing out',
    promise: 'An empty batch is a batch.',
    needs: [],
    async run(kit) {
      assert.deepEqual(await kit.store.enqueue([]), [])
    },
  },
  {
    name: 'enqueue: what one handle stores another sees at once',
    promise: 'A created job is visible to everybody.',
    needs: [],
    async run(kit) {
      const worker = await kit.worker(await kit.open())
      const id = await kit.enqueueOne()
      assert.deepEqual(idsOf(await worker.take(10)), [id])
    },
  },
  {
    name: 'enqueue: an id that waits or is delayed is refused',
    promise: 'One id is one job.',
    needs: [],
    async run(kit) {
      const waiting = await kit.enqueueOne()
      const delayed = await kit.enqueueOne({ due: { delayMs: HOUR_MS } })
      for (const id of [waiting, delayed]) await assertRefused(kit, id)
      assert.deepEqual(idsOf(await (await kit.worker()).take(10)), [waiting])
    },
  },
  {
    name: 'enqueue: an id that runs is refused',
    promise: 'One id is one job.',
    needs: [],
    async run(kit) {
      const worker = await kit.worker()
      const id = await kit.enqueueOne()
      const held = await worker.takeOne()
      await assertRefused(kit, id)
      await worker.settle(givenBack(held))
      assert.deepEqual(idsOf(await worker.take(10)), [id])
    },
  },
  {
    name: 'enqueue: an id that ended is refused',
    promise: 'One id is one job, as long as its record is kept.',
    needs: [],
    async run(kit) {
      const worker = await kit.worker()
      const [completed, dead] = await kit.enqueue({}, { spec: { attempts: 1 } })
      const held = await worker.take(2)
      await worker.settle(returned(held[0]!), threw(held[1]!))
      for (const id of [completed!, dead!]) await assertRefused(kit, id)
      assert.deepEqual(await worker.take(10), [])
    },
  },
  {
    name: 'enqueue: an id given twice in one call is one job',
    promise: 'One id is one job, and a bad item never sinks its neighbours.',
    needs: [],
    async run(kit) {
      const [one, two] = [kit.job(), kit.job()]
      const outcomes = await kit.store.enqueue([one, { ...one }, two])
      assert.deepEqual(
        outcomes.map(({ status }) => status),
        ['created', 'refused', 'created'],
      )
      assert.deepEqual(idsOf(await (await kit.worker()).take(10)), [one.id, two.id])
    },
  },
  {
    name: 'enqueue: of five thousand the two bad ones are refused and named',
    promise: 'A bad item never sinks its neighbours; one outcome for each, in order.',
    needs: [],
    async run(kit) {
      const known = await kit.enqueueOne({ queue: 'elsewhere' })
      const jobs = Array.from({ length: 5_000 }, (_, i) => kit.job({ payload: i }))
      jobs[1_234] = { ...jobs[1_234]!, id: known }
      jobs[4_321] = { ...jobs[4_321]!, payload: '{"not": JSON' }
      const outcomes = await kit.store.enqueue(jobs)
      const bad = outcomes.flatMap((outcome, i) => (outcome.status === 'created' ? [] : [[i, outcome.status]]))
      assert.deepEqual(bad, [
        [1_234, 'refused'],
        [4_321, 'refused'],
      ])
      const taken = await (await kit.worker()).take(5_000)
      const good = jobs.filter((_, i) => i !== 1_234 && i !== 4_321)
      assert.deepEqual(
        idsOf(taken),
        good.map(({ id }) => id),
      )
    },
  },
  {
    name: 'enqueue: a delay of nothing is ready without upkeep, any other is not',
    promise: 'Nothing runs early, and nothing that is due waits for a sweep to be stored as such.',
    needs: [],
    async run(kit) {
      const now = await kit.enqueueOne({ due: { delayMs: 0 } })
      await kit.enqueue({ due: { delayMs: HOUR_MS } })
      assert.deepEqual(idsOf(await (await kit.worker()).take(10)), [now])
    },
  },
  {
    name: 'enqueue: an instant is kept to',
    promise: 'A run-at is an instant of the wall clock; nothing runs early.',
    needs: [],
    async run(kit) {
      const worker = await kit.worker()
      const { nowMs } = await worker.claim()
      const id = await kit.enqueueOne({ due: { atMs: Math.round(nowMs) + HOUR_MS } })
      await kit.pass(HOUR_MS - kit.marginMs, worker)
      assert.deepEqual(await kit.promote(), [])
      await kit.pass(kit.marginMs, worker)
      assert.deepEqual(await kit.promote(), [id])
    },
  },
  {
    name: 'enqueue: an instant long past is due now, behind those that wait already',
    promise: 'First come, first served inside a priority.',
    needs: [],
    async run(kit) {
      const first = await kit.enqueueOne()
      await kit.advance(1_000)
      const second = await kit.enqueueOne({ due: { atMs: 0 } })
      const taken = await (await kit.worker()).take(10)
      assert.deepEqual(idsOf(taken), [first, second])
      assert(taken[1]!.job.waitedMs <= kit.marginMs, 'it cannot have waited before it was there')
    },
  },
  {
    name: 'enqueue: a delay of years is stored',
    promise: 'Delays from nothing to years.',
    needs: [],
    async run(kit) {
      const worker = await kit.worker()
      await kit.enqueue({ due: { delayMs: 10 * 366 * 24 * HOUR_MS } })
      assert.deepEqual(await kit.promote(), [])
      const { nextDueMs } = await worker.claim()
      assert(nextDueMs !== null && nextDueMs > 9 * 365 * 24 * HOUR_MS)
    },
  },
  {
    name: 'enqueue: the same id is free when its record is gone',
    promise: 'A kind that keeps no records leaves nothing behind.',
    needs: [],
    async run(kit) {
      const worker = await kit.worker()
      const id = await kit.enqueueOne({ spec: { keep: 'none' } })
      await worker.settle(returned(await worker.takeOne()))
      assert.deepEqual(await kit.store.enqueue([kit.job({ id })]), [{ status: 'created' }])
      assert.deepEqual(idsOf(await worker.take(10)), [id])
    },
  },
  {
    name: 'enqueue: a queue that is drained takes nothing new and gives what it has',
    promise: 'Draining refuses enqueues; what waits and runs goes on.',
    needs: ['control'],
    async run(kit) {
      const worker = await kit.worker()
      const before = await kit.enqueueMany(2)
      const [held] = await worker.take(1)
      await kit.control.refuse('q')
      const outcomes = await kit.store.enqueue([
        kit.job(),
        kit.job({ queue: 'elsewhere' }),
        kit.job({ due: { delayMs: 9 } }),
      ])
      assert.deepEqual(
        outcomes.map(({ status }) => status),
        ['draining', 'created', 'draining'],
      )
      await worker.settle(givenBack(held!))
      assert.deepEqual(idsOf(await worker.take(10)), before)
      await kit.control.resume('q')
      const id = await kit.enqueueOne()
      assert.deepEqual(idsOf(await worker.take(10)), [id])
    },
  },
]

async function assertRefused(kit: Parameters<ConformanceCase['run']>[0], id: string): Promise<void> {
  const [outcome] = await kit.store.enqueue([kit.job({ id, chosen: true })])
  assert(outcome?.status === 'refused' && outcome.code === 'DUPLICATE_ID', `${id}: ${outcome?.status}`)
}
