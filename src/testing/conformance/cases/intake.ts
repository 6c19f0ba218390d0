/** Cases about limits of what comes in: one bucket for all producers of a queue, and what takes a token of it. */
import { strict as assert } from 'node:assert'
import type { EnqueueOutcome, RateLimit } from '../../../storage/storage.js'
import type { ConformanceCase } from '../case.js'
import { HOUR_MS, type JobSketch, type Kit } from '../kit.js'
import { givenBack, rejected, returned, threw } from '../worker.js'

const LATER: JobSketch = { due: { delayMs: HOUR_MS } }

export const INTAKE_CASES: ConformanceCase[] = [
  {
    name: 'intake: a call is stored as far as there are tokens, from its first job on',
    promise:
      'A queue with an intake of 3 refuses the fourth job, whatever its form, and says when the next one may come.',
    needs: ['control', 'inspect'],
    async run(kit) {
      await intake(kit, 3)
      const jobs = [
        kit.job({ priority: 9 }),
        kit.job(LATER),
        kit.job({ key: 'k' }),
        kit.job(),
        kit.job({ key: 'other' }),
      ]
      const outcomes = await kit.store.enqueue(jobs)
      assert.deepEqual(words(outcomes), ['created', 'created', 'created', 'early', 'early'])
      assertEarly(kit, outcomes[3])
      const stored = (await kit.inspect.get(jobs.map(({ id }) => id))).map((view) => view !== null)
      assert.deepEqual(stored, [true, true, true, false, false])
      for (const job of [kit.job(), kit.job(LATER), kit.job({ spec: { tenant: 'a' } })])
        assertEarly(kit, (await kit.store.enqueue([job]))[0])
    },
  },
  {
    name: 'intake: plain jobs of several priorities in one call are taken by their order in it',
    promise: 'Who finds a token depends on the order of the call, not on how a store groups its jobs.',
    needs: ['control'],
    async run(kit) {
      await intake(kit, 3)
      const jobs = [4, 9, 4, 9, 4].map((priority) => kit.job({ priority }))
      assert.deepEqual(words(await kit.store.enqueue(jobs)), ['created', 'created', 'created', 'early', 'early'])
    },
  },
  {
    name: 'intake: tokens come with time, up to the burst',
    promise: 'In each span so many jobs more may come in; after a pause the burst, and no more.',
    needs: ['control'],
    async run(kit) {
      await intake(kit, 2)
      assert.deepEqual(await taken(kit, 3), 2)
      await kit.pass(HOUR_MS)
      assert.deepEqual(await taken(kit, 3), 1)
      await kit.pass(9 * HOUR_MS)
      assert.deepEqual(await taken(kit, 5), 2)
    },
  },
  {
    name: 'intake: all producers share it',
    promise: 'However many processes enqueue, together they bring in what the limit says.',
    needs: ['control'],
    async run(kit) {
      const other = await kit.open()
      await intake(kit, 3)
      assert.deepEqual(words(await other.enqueue([kit.job(), kit.job()])), ['created', 'created'])
      assert.deepEqual(words(await kit.store.enqueue([kit.job(), kit.job()])), ['created', 'early'])
      assert.deepEqual(words(await other.enqueue([kit.job(LATER)])), ['early'])
    },
  },
  {
    name: 'intake: only what is stored takes a token',
    promise: 'A duplicate, and what finds no room or a queue that is drained, leaves the tokens to the others.',
    needs: ['control'],
    async run(kit) {
      await intake(kit, 3)
      await kit.control.limit('q', { depth: { limit: 1, perTenant: null, kinds: {} } })
      const call = [kit.job({ key: 'k' }), kit.job({ key: 'k' }), kit.job(), kit.job()]
      assert.deepEqual(words(await kit.store.enqueue(call)), ['created', 'duplicate', 'full', 'full'])
      await kit.control.limit('q', { depth: null })
      await kit.control.refuse('q')
      assert.deepEqual(words(await kit.store.enqueue([kit.job(), kit.job(LATER)])), ['draining', 'draining'])
      await kit.control.resume('q')
      assert.deepEqual(words(await kit.store.enqueue([kit.job({ key: 'k' }), kit.job({ key: 'k' })])), [
        'duplicate',
        'duplicate',
      ])
      assert.deepEqual(await taken(kit, 3), 2)
      // Without a token a known key is answered, too.
      assert.deepEqual(words(await kit.store.enqueue([kit.job({ key: 'k' })])), ['duplicate'])
    },
  },
  {
    name: 'intake: a refused job takes no key',
    promise: '`early` means that nothing was stored: sent again with its key the job comes in.',
    needs: ['control'],
    async run(kit) {
      await intake(kit, 1)
      const [first, again, other] = [kit.job({ key: 'k' }), kit.job({ key: 'k' }), kit.job({ key: 'k', payload: 7 })]
      assert.deepEqual(words(await kit.store.enqueue([kit.job(), first, again, other])), [
        'created',
        'early',
        'early',
        'early',
      ])
      assert.deepEqual(words(await kit.store.enqueue([first])), ['early'])
      await kit.pass(HOUR_MS)
      assert.deepEqual(words(await kit.store.enqueue([again, first])), ['created', 'duplicate'])
    },
  },
  {
    name: 'intake: a queue that takes no more holds no other one up',
    promise: 'In one call with others, only the jobs of that queue are refused.',
    needs: ['control'],
    async run(kit) {
      await intake(kit, 1)
      const other = { queue: 'other' }
      const plain = [kit.job(other), kit.job(), kit.job(), kit.job(other)]
      assert.deepEqual(words(await kit.store.enqueue(plain)), ['created', 'created', 'early', 'created'])
      const mixed = [kit.job({ ...other, ...LATER }), kit.job(LATER), kit.job({ ...other, key: 'k' })]
      assert.deepEqual(words(await kit.store.enqueue(mixed)), ['created', 'early', 'created'])
    },
  },
  {
    name: 'intake: what comes back needs no token',
    promise: 'Retries, jobs given back and redrives are let in, and take nothing from who comes new.',
    needs: ['control'],
    async run(kit) {
      await kit.enqueueMany(3)
      await intake(kit, 2)
      assert.deepEqual(await taken(kit, 1), 1)
      const worker = await kit.worker()
      const held = await worker.take(3)
      const answers = await worker.settle(threw(held[0]!, 1), givenBack(held[1]!), rejected(held[2]!))
      assert.deepEqual(answers, ['ok', 'ok', 'ok'])
      assert.deepEqual(await kit.control.redrive([held[2]!.job.id], { force: false }), ['ok'])
      await worker.settle(...(await worker.take(4)).map((one) => returned(one)))
      assert.deepEqual(await taken(kit, 2), 1)
    },
  },
  {
    name: 'intake: a changed limit holds from the next enqueue on, and begins full',
    promise: 'Limits are changed while the queue runs; setting the same one again gives no tokens.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const producer = await kit.open()
      await intake(kit, 1)
      assert.deepEqual(words(await producer.enqueue([kit.job(), kit.job()])), ['created', 'early'])
      await intake(kit, 1)
      await kit.control.limit('q', { concurrency: 1 })
      assert.deepEqual(words(await producer.enqueue([kit.job()])), ['early'])
      await intake(kit, 2)
      assert.deepEqual((await kit.inspect.queues())[0]?.limits.intake, rateOf(2))
      assert.deepEqual(words(await producer.enqueue([kit.job(), kit.job(), kit.job()])), [
        'created',
        'created',
        'early',
      ])
      await kit.control.limit('q', { intake: null })
      assert.deepEqual(words(await producer.enqueue([kit.job(), kit.job(), kit.job()])), [
        'created',
        'created',
        'created',
      ])
      assert.equal((await kit.inspect.queues())[0]?.limits.intake, null)
    },
  },
]

/** A token an hour: none comes while a case runs. */
function rateOf(burst: number): RateLimit {
  return { limit: 1, perMs: HOUR_MS, burst }
}

async function intake(kit: Kit, burst: number): Promise<void> {
  await kit.control.limit('q', { intake: rateOf(burst) })
}

/** How many of so many plain jobs come in. */
async function taken(kit: Kit, count: number): Promise<number> {
  const outcomes = await kit.store.enqueue(Array.from({ length: count }, () => kit.job()))
  return words(outcomes).filter((word) => word === 'created').length
}

function words(outcomes: readonly EnqueueOutcome[]): string[] {
  return outcomes.map(({ status }) => status)
}

function assertEarly(kit: Kit, outcome: EnqueueOutcome | undefined): void {
  assert(outcome?.status === 'early', `${outcome?.status}`)
  assert.deepEqual([outcome.limit, outcome.perMs], [1, HOUR_MS])
  const { retryAfterMs } = outcome
  assert(retryAfterMs >= HOUR_MS - kit.marginMs && retryAfterMs <= HOUR_MS, `${retryAfterMs} ms`)
}
