/** Cases about idempotency keys. */
import { strict as assert } from 'node:assert'
import type { ConformanceCase } from '../case.js'
import { DAY_MS, HOUR_MS, type JobSketch, type Kit } from '../kit.js'
import { cancelled, idsOf, rejected, returned, threw } from '../worker.js'

const RETENTIONS = { completedMs: DAY_MS, deadMs: 30 * DAY_MS, limit: 10_000 }

export const KEYS: ConformanceCase[] = [
  {
    name: 'keys: a second enqueue names the first job, wherever that one is',
    promise: 'One key is one job.',
    needs: [],
    async run(kit) {
      const worker = await kit.worker()
      const first = await kit.enqueueOne({ key: 'k' })
      const delayed = await kit.enqueueOne({ key: 'later', due: { delayMs: HOUR_MS } })
      await assertDuplicate(kit, { key: 'k' }, first)
      await assertDuplicate(kit, { key: 'later' }, delayed)
      const held = await worker.takeOne()
      await assertDuplicate(kit, { key: 'k' }, first)
      await worker.settle(returned(held))
      await assertDuplicate(kit, { key: 'k' }, first)
      assert.deepEqual(await worker.take(10), [])
    },
  },
  {
    name: 'keys: another payload under a known key is a mismatch and stores nothing',
    promise: 'A key that is used for something else is told, never guessed about.',
    needs: [],
    async run(kit) {
      const first = await kit.enqueueOne({ key: 'k', payload: 1 })
      const outcomes = await kit.store.enqueue([kit.job({ key: 'k', payload: 2 }), kit.job({ key: 'k', payload: 1 })])
      assert.deepEqual(outcomes, [
        { status: 'mismatch', id: first },
        { status: 'duplicate', id: first },
      ])
      assert.deepEqual(idsOf(await (await kit.worker()).take(10)), [first])
    },
  },
  {
    name: 'keys: in one call the first of a key wins',
    promise: 'One key is one job, in bulk too, and its neighbours are stored.',
    needs: [],
    async run(kit) {
      const jobs = [{ key: 'b' }, {}, { key: 'a' }, { key: 'b' }, { key: 'b', payload: 1 }].map((sketch) =>
        kit.job(sketch),
      )
      const outcomes = await kit.store.enqueue(jobs)
      assert.deepEqual(outcomes, [
        { status: 'created' },
        { status: 'created' },
        { status: 'created' },
        { status: 'duplicate', id: jobs[0]!.id },
        { status: 'mismatch', id: jobs[0]!.id },
      ])
      assert.deepEqual(
        idsOf(await (await kit.worker()).take(10)).sort(),
        [jobs[0]!.id, jobs[1]!.id, jobs[2]!.id].sort(),
      )
    },
  },
  {
    name: 'keys: a key belongs to its kind',
    promise: 'Two kinds may use the same key.',
    needs: [],
    async run(kit) {
      await kit.enqueue({ key: 'k', kind: 'work' }, { key: 'k', kind: 'other' })
      assert.equal((await (await kit.worker()).take(10)).length, 2)
    },
  },
  {
    name: 'keys: each text is a key of its own',
    promise: 'Keys are compared as they are: no trimming, no folding, no pattern.',
    needs: [],
    async run(kit) {
      const keys = ['a', 'A', ' a', 'a ', 'a:b', 'a%', 'ä', 'a\u0308', "'", '"', '\\', '{,}', 'NULL', '💡'.repeat(200)]
      const ids = await kit.enqueue(...keys.map((key) => ({ key })))
      for (const [i, key] of keys.entries()) await assertDuplicate(kit, { key }, ids[i]!)
    },
  },
  {
    name: 'keys: without one nothing is remembered',
    promise: 'Only a key makes two enqueues one job.',
    needs: [],
    async run(kit) {
      await kit.enqueue({ payload: 'same' }, { payload: 'same' })
      assert.equal((await (await kit.worker()).take(10)).length, 2)
    },
  },
  {
    name: 'keys: a call sent twice stores its job once, whatever became of it meanwhile',
    promise: 'An enqueue with a key may be sent again after a lost answer.',
    needs: [],
    async run(kit) {
      const worker = await kit.worker()
      const job = kit.job({ key: 'k' })
      await kit.store.enqueue([job])
      const again = async (): Promise<void> =>
        assert.deepEqual(await kit.store.enqueue([job]), [{ status: 'duplicate', id: job.id }])
      await again()
      const held = await worker.takeOne()
      await again()
      await worker.settle(returned(held))
      await again()
      assert.deepEqual(await worker.take(10), [])
    },
  },
  {
    name: 'keys: a call sent again while the queue is drained hears of its job',
    promise: '`draining` means that nothing was stored.',
    needs: ['control'],
    async run(kit) {
      const job = kit.job({ key: 'k' })
      await kit.store.enqueue([job])
      await kit.control.refuse('q')
      assert.deepEqual(await kit.store.enqueue([job]), [{ status: 'duplicate', id: job.id }])
    },
  },
  {
    name: 'keys: a refused job takes no key',
    promise: 'What was not stored holds nothing.',
    needs: ['control'],
    async run(kit) {
      await kit.control.refuse('q')
      assert.deepEqual(await kit.store.enqueue([kit.job({ key: 'k' })]), [{ status: 'draining' }])
      await kit.control.resume('q')
      const known = await kit.enqueueOne({ queue: 'elsewhere' })
      const [refused] = await kit.store.enqueue([kit.job({ key: 'k', id: known })])
      assert.equal(refused?.status, 'refused')
      await kit.enqueue({ key: 'k' })
    },
  },
  {
    name: 'keys: held for the retention after the job came in, then free',
    promise: 'A key is free again when its retention is over and its job has ended.',
    needs: [],
    async run(kit) {
      const worker = await kit.worker()
      const first = await kit.enqueueOne({ key: 'k', retentionMs: 2 * HOUR_MS })
      await worker.settle(returned(await worker.takeOne()))
      await kit.advance(2 * HOUR_MS - kit.marginMs)
      await kit.store.upkeep.prune(RETENTIONS)
      await assertDuplicate(kit, { key: 'k' }, first)
      await kit.advance(2 * kit.marginMs)
      await kit.store.upkeep.prune(RETENTIONS)
      await kit.enqueue({ key: 'k' })
    },
  },
  {
    name: 'keys: the retention of a delayed job begins when it is due',
    promise: 'A key outlives the start of its job by its retention.',
    needs: [],
    async run(kit) {
      const first = await kit.enqueueOne({ key: 'k', due: { delayMs: 5 * HOUR_MS }, retentionMs: HOUR_MS })
      await kit.advance(5 * HOUR_MS)
      await kit.promote()
      const worker = await kit.worker()
      await worker.settle(returned(await worker.takeOne()))
      await kit.advance(HOUR_MS / 2)
      await kit.store.upkeep.prune(RETENTIONS)
      await assertDuplicate(kit, { key: 'k' }, first)
    },
  },
  {
    name: 'keys: one of a job that has not ended is held beyond its retention',
    promise: 'Two jobs of one key are never alive at once.',
    needs: [],
    async run(kit) {
      const [waiting, running, retrying] = await kit.enqueue(
        { key: 'waiting', priority: 0, retentionMs: 0 },
        { key: 'running', priority: 15, retentionMs: 0 },
        { key: 'retrying', priority: 15, retentionMs: 0 },
      )
      const worker = await kit.worker()
      const held = await worker.take(2)
      await worker.settle(threw(held[1]!, 9 * DAY_MS))
      await kit.pass(5 * 60_000, worker)
      await kit.store.upkeep.prune(RETENTIONS)
      await assertDuplicate(kit, { key: 'waiting' }, waiting!)
      await assertDuplicate(kit, { key: 'running' }, running!)
      await assertDuplicate(kit, { key: 'retrying' }, retrying!)
    },
  },
  {
    name: 'keys: after any end a key is held for its retention and not for ever',
    promise: 'No end of a job leaves its key locked.',
    needs: ['control'],
    async run(kit) {
      const ends = ['completed', 'cancelled while it runs', 'dead', 'cancelled while it waits', 'expired']
      const sketches = ends.map((key, i): JobSketch => ({ key, priority: 15 - i, spec: { attempts: 1 } }))
      sketches[4]!.spec = { expiresInMs: 1_000 }
      const ids = await kit.enqueue(...sketches)
      const worker = await kit.worker()
      const held = await worker.take(3)
      await worker.settle(returned(held[0]!), cancelled(held[1]!), threw(held[2]!))
      await kit.control.cancel([ids[3]!])
      await kit.advance(1_000 + kit.marginMs)
      assert.equal((await kit.store.upkeep.expire(10)).length, 1)
      for (const [i, key] of ends.entries()) await assertDuplicate(kit, { key }, ids[i]!)
      await kit.advance(HOUR_MS)
      await kit.store.upkeep.prune(RETENTIONS)
      const dead = ['dead', 'expired']
      await kit.enqueue(...ends.filter((key) => !dead.includes(key)).map((key) => ({ key })))
      // Theirs last as long as their records.
      await kit.advance(31 * DAY_MS)
      while ((await kit.store.upkeep.prune(RETENTIONS)).more);
      await kit.enqueue(...dead.map((key) => ({ key })))
    },
  },
  {
    name: 'keys: a dead letter holds its key as long as it is there, and after a redrive',
    promise: 'Two jobs of one key are never alive at once, also when an operator brings one back.',
    needs: ['control'],
    async run(kit) {
      const id = await kit.enqueueOne({ key: 'k', retentionMs: HOUR_MS })
      const worker = await kit.worker()
      await worker.settle(rejected(await worker.takeOne()))
      await kit.advance(5 * HOUR_MS)
      await kit.store.upkeep.prune(RETENTIONS)
      await assertDuplicate(kit, { key: 'k' }, id)
      assert.deepEqual(await kit.control.redrive([id], { force: false }), ['ok'])
      await kit.store.upkeep.prune(RETENTIONS)
      await assertDuplicate(kit, { key: 'k' }, id)
      assert.deepEqual(idsOf(await (await kit.worker()).take(9)), [id])
    },
  },
  {
    name: 'keys: what is refused for its id takes no key along',
    promise: 'A key belongs to a job that was stored.',
    needs: [],
    async run(kit) {
      const id = await kit.enqueueOne()
      const [outcome] = await kit.store.enqueue([kit.job({ id, chosen: true, key: 'k' })])
      assert.equal(outcome?.status, 'refused')
      await kit.enqueue({ key: 'k' })
    },
  },
  {
    name: 'keys: one is free when its job has ended, whatever became of those it was claimed with',
    promise: 'A key is free again when its retention is over and its job has ended.',
    needs: [],
    async run(kit) {
      await kit.enqueue({ key: 'k', retentionMs: HOUR_MS }, {})
      const worker = await kit.worker()
      const [keyed, neighbour] = await worker.take(2)
      await worker.settle(returned(keyed!))
      await kit.pass(HOUR_MS + kit.marginMs, worker)
      await kit.enqueue({ key: 'k' })
      assert.deepEqual(await worker.settle(returned(neighbour!)), ['ok'])
    },
  },
]

async function assertDuplicate(kit: Kit, sketch: JobSketch, id: string): Promise<void> {
  assert.deepEqual(await kit.store.enqueue([kit.job(sketch)]), [{ status: 'duplicate', id }], `key ${sketch.key}`)
}
