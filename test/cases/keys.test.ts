/** Faults that other queues were reported to have (docs/cases.md): keys that are never free again, and losers that say they won. On a real store. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Queue } from '../../src/client/queue.js'
import { emptyHistory } from '../../src/core/job.js'
import { defineJob } from '../../src/index.js'
import { completed, TestWorker } from '../support/jobs.js'
import { type Scratch, scratch } from '../support/postgres.js'
import { judge, kitOn, queueOn, settleCrashes, writtenOff } from './kit.js'

const kind = defineJob<{ n: number }>('kind', { queue: 'queue', retry: { attempts: 2 } })
const KEPT_MS = 60_000
const EXPIRES_MS = KEPT_MS / 2
const KEPT = { completedMs: 86_400_000, deadMs: 86_400_000, limit: 100 }

let store: Scratch
let queue: Queue
before(async () => {
  store = await scratch()
  queue = queueOn(kitOn(store.storage))
})
after(() => store.drop())

function keyed(key: string, more = {}) {
  return queue.enqueue(kind, { n: 1 }, { idempotencyKey: key, idempotencyRetention: KEPT_MS, ...more })
}

/** The job of the key is in a worker's hands. */
async function taken() {
  const worker = await TestWorker.registered(store.storage)
  const { leases } = await worker.claim()
  return { worker, fence: leases[0]!.fence }
}

/** What becomes of the job of a key, and whether the key is free then at once or after its retention. */
const ENDS: readonly { how: string; free: 'at once' | 'later'; end: (id: string) => Promise<unknown> }[] = [
  { how: 'cancelled while it waits', free: 'later', end: (id) => queue.cancel(id) },
  { how: 'purged', free: 'at once', end: () => queue.purge('queue') },
  {
    how: 'completed',
    free: 'later',
    end: async () => store.storage.settle([completed((await taken()).fence)]),
  },
  { how: 'cancelled while it runs', free: 'later', end: cancelledRunning },
  { how: 'taken from a killed worker, then completed', free: 'later', end: recovered },
  { how: 'expired', free: 'later', end: expiredAndDropped },
  { how: 'dead and discarded', free: 'at once', end: async (id) => queue.discard(await dead(id)) },
  { how: 'dead, redriven and completed', free: 'later', end: redriven },
]

async function cancelledRunning(id: string): Promise<void> {
  const { fence } = await taken()
  await queue.cancel(id)
  await store.storage.settle([{ fence, ordinal: 0, to: 'cancelled', history: emptyHistory() }])
}

async function recovered(): Promise<void> {
  const { worker } = await taken()
  const heir = await judge(store)
  await settleCrashes(store, heir, await writtenOff(store, heir, worker.id))
  await store.sql('update :s.delayed set due = 0')
  await store.storage.upkeep.promote(100)
  await store.storage.settle([completed((await taken()).fence)])
}

async function expiredAndDropped(): Promise<void> {
  await store.advance(EXPIRES_MS)
  await store.storage.upkeep.expire(100)
  // A dead letter may be brought back, so it has its key for as long as it is there.
  await store.storage.upkeep.prune({ ...KEPT, deadMs: 0 })
}

async function dead(id: string): Promise<string> {
  const { fence } = await taken()
  await store.storage.settle([{ fence, ordinal: 0, to: 'dead', reason: 'failed', history: emptyHistory() }])
  return id
}

async function redriven(id: string): Promise<void> {
  await queue.redrive(await dead(id))
  await store.storage.settle([completed((await taken()).fence)])
}

for (const { how, free, end } of ENDS)
  test(`B76: the key of a job that was ${how} is free ${free === 'at once' ? 'at once' : 'when its retention is over'}, with no clean-up by hand`, async () => {
    const first = await keyed(how, { expiresIn: EXPIRES_MS })
    assert.equal((await keyed(how, { expiresIn: EXPIRES_MS })).id, first.id)
    await end(first.id)
    if (free === 'later') {
      assert.equal((await keyed(how, { expiresIn: EXPIRES_MS })).duplicate, true, 'held for its retention')
      await store.advance(KEPT_MS + 1_000)
    }
    const next = await keyed(how, { expiresIn: EXPIRES_MS })
    assert.deepEqual([next.duplicate, next.id !== first.id], [false, true])
    await queue.purge('queue')
  })

test('B76: while its job waits or runs a key is not free, however long that takes', async () => {
  const first = await keyed('long')
  await store.advance(2 * KEPT_MS)
  assert.equal((await keyed('long')).id, first.id)
  const { fence } = await taken()
  await store.advance(2 * KEPT_MS)
  assert.equal((await keyed('long')).id, first.id)
  await store.storage.settle([completed(fence)])
  assert.equal((await keyed('long')).duplicate, false)
})

test('B156: of fifty that enqueue one key at once one tells that it did, the others that it was done, all with an id that exists', async () => {
  const kits = Array.from({ length: 5 }, () => kitOn(store.open({ connections: 2 })))
  const queues = kits.map(queueOn)
  const told = await Promise.all(
    Array.from({ length: 50 }, (_, n) => queues[n % 5]!.enqueue(kind, { n: 1 }, { idempotencyKey: 'race' })),
  )
  const [created, duplicates] = [
    kits.flatMap((kit) => kit.all('job.enqueued')),
    kits.flatMap((kit) => kit.all('job.duplicate')),
  ]
  assert.deepEqual([created.length, duplicates.length], [1, 49])
  const { id } = told[0]!
  assert.ok(await queue.get(id))
  assert.deepEqual(new Set(told.map((job) => job.id)), new Set([id]))
  assert.equal(created[0]!.jobId, id)
  assert.deepEqual(new Set(duplicates.map(({ firstId }) => firstId)), new Set([id]))
})
