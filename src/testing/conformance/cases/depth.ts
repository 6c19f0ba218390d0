/** Cases about limits of what may wait: who is refused, and who never is. */
import { strict as assert } from 'node:assert'
import type { DepthLimit, EnqueueOutcome, Full } from '../../../storage/storage.js'
import type { ConformanceCase } from '../case.js'
import { HOUR_MS, type JobSketch, type Kit } from '../kit.js'
import { givenBack, idsOf, rejected, returned, threw } from '../worker.js'

const LATER: JobSketch = { due: { delayMs: HOUR_MS } }

export const DEPTH_CASES: ConformanceCase[] = [
  {
    name: 'depth: a call is stored up to the limit, from its first job on',
    promise: 'A queue limited to 4 never has a fifth job waiting; what does not fit is refused, job by job.',
    needs: ['control', 'inspect'],
    async run(kit) {
      await limit(kit, 4)
      await kit.enqueueMany(1)
      const jobs = [
        kit.job({ priority: 9 }),
        kit.job(LATER),
        kit.job({ key: 'k' }),
        kit.job(),
        kit.job({ priority: 9 }),
      ]
      const outcomes = await kit.store.enqueue(jobs)
      assert.deepEqual(words(outcomes), ['created', 'created', 'created', 'full', 'full'])
      assertFull(outcomes[3], { scope: 'queue', limit: 4 })
      const stored = (await kit.inspect.get(jobs.map(({ id }) => id))).map((view) => view !== null)
      assert.deepEqual(stored, [true, true, true, false, false])
      assert.deepEqual(words(await kit.store.enqueue([kit.job({ key: 'other' }), kit.job(LATER)])), ['full', 'full'])
    },
  },
  {
    name: 'depth: plain jobs of several priorities in one call fit by their order in it',
    promise: 'Who is refused depends on the order of the call, not on how a store groups its jobs.',
    needs: ['control', 'inspect'],
    async run(kit) {
      await limit(kit, 3)
      const jobs = [4, 9, 4, 9, 4].map((priority) => kit.job({ priority }))
      assert.deepEqual(words(await kit.store.enqueue(jobs)), ['created', 'created', 'created', 'full', 'full'])
      assert.deepEqual(
        idsOf(await (await kit.worker()).take(9)).sort(),
        jobs.slice(0, 3).map(({ id }) => id),
      )
    },
  },
  {
    name: 'depth: what waits counts, what runs or has ended does not',
    promise: 'A full queue lets new jobs in by itself as workers take what waits.',
    needs: ['control'],
    async run(kit) {
      await limit(kit, 3)
      const worker = await kit.worker()
      await kit.enqueue({}, {}, LATER)
      assert.deepEqual(words(await kit.store.enqueue([kit.job()])), ['full'])
      const [first, second] = await worker.take(2)
      assert.deepEqual(words(await kit.store.enqueue([kit.job(), kit.job(), kit.job()])), [
        'created',
        'created',
        'full',
      ])
      // A retry waits, and takes the place of a new job.
      await worker.settle(threw(first!, HOUR_MS), returned(second!))
      await worker.take(1)
      assert.deepEqual(words(await kit.store.enqueue([kit.job()])), ['full'])
      await worker.take(1)
      assert.deepEqual(words(await kit.store.enqueue([kit.job(), kit.job()])), ['created', 'full'])
    },
  },
  {
    name: 'depth: what comes back is never refused',
    promise: 'Retries, jobs given back or taken over, and redrives wait also in a full queue.',
    needs: ['control', 'inspect'],
    async run(kit) {
      await kit.enqueueMany(6)
      const { heir } = await kit.death(1, 'started')
      await limit(kit, 1)
      const held = await heir.take(4)
      const redriven = held[0]!.job.id
      await heir.settle(rejected(held[0]!), threw(held[1]!), givenBack(held[2]!))
      assert.deepEqual(await kit.control.redrive([redriven], { force: false }), ['ok'])
      const adopted = await heir.takeOver()
      await heir.settle(...adopted.map((one) => givenBack(one)))
      for (const id of [redriven, ...held.slice(1, 3).map(({ job }) => job.id), ...idsOf(adopted)])
        assert(['ready', 'delayed', 'retrying'].includes((await kit.view(id)).state), id)
      assert.deepEqual(words(await kit.store.enqueue([kit.job()])), ['full'])
    },
  },
  {
    name: 'depth: a kind may have a limit of its own, inside that of its queue',
    promise: 'One kind cannot fill the queue for the others.',
    needs: ['control'],
    async run(kit) {
      await limit(kit, 4, { other: 2 })
      const bulk = { kind: 'other' }
      const jobs = [kit.job(), kit.job(bulk), kit.job(bulk), kit.job(bulk), kit.job(), kit.job()]
      const outcomes = await kit.store.enqueue(jobs)
      assert.deepEqual(words(outcomes), ['created', 'created', 'created', 'full', 'created', 'full'])
      assertFull(outcomes[3], { scope: 'kind', limit: 2 })
      assertFull(outcomes[5], { scope: 'queue', limit: 4 })
      assertFull((await kit.store.enqueue([kit.job(bulk)]))[0], { scope: 'queue', limit: 4 })
      // The same kind in another queue is not meant.
      await kit.enqueueMany(3, { ...bulk, queue: 'other' })
    },
  },
  {
    name: 'depth: no tenant has more waiting than its part',
    promise: 'A queue limited to 2 jobs of a tenant refuses the third of each, and takes those of the others.',
    needs: ['control'],
    async run(kit) {
      await limit(kit, 9, {}, 2)
      const of = (tenant: string, more: JobSketch = {}) => kit.job({ ...more, spec: { tenant } })
      // Jobs of a call, delayed ones and those of another priority, and each tenant's by itself.
      const jobs = [of('a'), of('a', LATER), of('b'), of('a', { priority: 9 }), of('b', { key: 'k' }), of('b')]
      const outcomes = await kit.store.enqueue(jobs)
      assert.deepEqual(words(outcomes), ['created', 'created', 'created', 'full', 'created', 'full'])
      assertFull(outcomes[3], { scope: 'tenant', limit: 2 })
      for (const one of [of('a'), of('a', LATER), of('b', LATER), of('b', { key: 'new' })])
        assertFull((await kit.store.enqueue([one]))[0], { scope: 'tenant', limit: 2 })
      // What is refused takes nothing of the queue, a known key is answered, another queue is not meant.
      assert.deepEqual(words(await kit.store.enqueue([of('b', { key: 'k' })])), ['duplicate'])
      await kit.enqueueMany(3, { queue: 'other', spec: { tenant: 'a' } })
      const call = [...'cdefgh'].map((tenant) => of(tenant))
      const last = await kit.store.enqueue(call)
      assert.deepEqual(words(last), ['created', 'created', 'created', 'created', 'created', 'full'])
      assertFull(last[5], { scope: 'queue', limit: 9 })
    },
  },
  {
    name: 'depth: jobs without a tenant are one tenant',
    promise: 'Who gives no tenant shares one part of the queue with all who give none.',
    needs: ['control'],
    async run(kit) {
      // From before the first job with a tenant, where no turns were taken yet.
      await kit.enqueueMany(1)
      await limit(kit, 9, {}, 3)
      const ofA: JobSketch = { spec: { tenant: 'a' } }
      const outcomes = await kit.store.enqueue([kit.job(), kit.job(ofA), kit.job(LATER), kit.job(), kit.job(ofA)])
      assert.deepEqual(words(outcomes), ['created', 'created', 'created', 'full', 'created'])
      assertFull(outcomes[3], { scope: 'tenant', limit: 3 })
      assert.deepEqual(words(await kit.store.enqueue([kit.job(), kit.job({ priority: 9 })])), ['full', 'full'])
      assert.deepEqual(words(await kit.store.enqueue([kit.job(ofA)])), ['created'])
    },
  },
  {
    name: 'depth: a tenant counts what waits of it, wherever that came from',
    promise: 'What workers take of a tenant makes room for it; retries, what is given back or blocked take it.',
    needs: ['control'],
    async run(kit) {
      const ofA: JobSketch = { spec: { tenant: 'a' } }
      await limit(kit, 9, {}, 2)
      await kit.enqueue(ofA, ofA, { spec: { tenant: 'b' } })
      const worker = await kit.worker()
      const held = await worker.take(3)
      assert.deepEqual(words(await kit.store.enqueue([kit.job(ofA), kit.job(ofA), kit.job(ofA)])), [
        'created',
        'created',
        'full',
      ])
      const more = await worker.take(2)
      const [retried, returnedToIt] = held.filter(({ job }) => job.spec.tenant === 'a')
      await worker.settle(threw(retried!, HOUR_MS))
      assert.deepEqual(words(await kit.store.enqueue([kit.job(ofA), kit.job(ofA)])), ['created', 'full'])
      await worker.settle(givenBack(returnedToIt!), ...more.map((one) => returned(one)))
      assertFull((await kit.store.enqueue([kit.job(ofA)]))[0], { scope: 'tenant', limit: 2 })
      await kit.control.purge('q', 9)
      assert.deepEqual(words(await kit.store.enqueue([kit.job(ofA), kit.job(ofA), kit.job(ofA)])), [
        'created',
        'created',
        'full',
      ])
      await kit.control.purge('q', 9)
      // The second one is blocked by the first.
      const keyed: JobSketch = { spec: { tenant: 'a', orderKey: 'k' } }
      await kit.enqueue(keyed, keyed)
      await worker.take(1)
      await worker.claim({ limit: 1 })
      assert.deepEqual(words(await kit.store.enqueue([kit.job(ofA), kit.job(ofA)])), ['created', 'full'])
    },
  },
  {
    name: 'depth: a key that is known is answered, and a refused job takes none',
    promise:
      'A call that is sent again hears of its job, however full the queue is; `full` means that nothing was stored.',
    needs: ['control', 'inspect'],
    async run(kit) {
      await limit(kit, 2)
      const [first, again] = [kit.job({ key: 'k' }), kit.job({ key: 'k' })]
      const fresh = kit.job({ key: 'new' })
      assert.deepEqual(words(await kit.store.enqueue([first, kit.job()])), ['created', 'created'])
      assert.deepEqual(await kit.store.enqueue([first, again]), [
        { status: 'duplicate', id: first.id },
        { status: 'duplicate', id: first.id },
      ])
      assert.deepEqual(words(await kit.store.enqueue([fresh])), ['full'])
      const worker = await kit.worker()
      await worker.take(1)
      // A duplicate takes no room from who comes after it, nor does a second one of the call.
      const call = [kit.job({ key: 'k' }), fresh, kit.job({ key: 'new' }), kit.job({ key: 'newer' })]
      assert.deepEqual(words(await kit.store.enqueue(call)), ['duplicate', 'created', 'duplicate', 'full'])
    },
  },
  {
    name: 'depth: a full queue holds no other one up',
    promise: 'In one call with others, only the jobs of the full queue are refused.',
    needs: ['control'],
    async run(kit) {
      await limit(kit, 1)
      const other = { queue: 'other' }
      const jobs = [
        kit.job(other),
        kit.job(),
        kit.job({ ...other, ...LATER }),
        kit.job(),
        kit.job({ ...other, key: 'k' }),
      ]
      assert.deepEqual(words(await kit.store.enqueue(jobs)), ['created', 'created', 'created', 'full', 'created'])
      const plain = [kit.job(), kit.job(other), kit.job(), kit.job(other)]
      assert.deepEqual(words(await kit.store.enqueue(plain)), ['full', 'created', 'full', 'created'])
    },
  },
  {
    name: 'depth: a changed limit holds from the next enqueue on',
    promise: 'Limits are changed while the queue runs; what waits beyond a lower one stays.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const producer = await kit.open()
      const ids = await kit.enqueueMany(5)
      await limit(kit, 3)
      assert.deepEqual(await depthLimit(kit), { limit: 3, perTenant: null, kinds: {} })
      assert.deepEqual(words(await producer.enqueue([kit.job()])), ['full'])
      const worker = await kit.worker()
      assert.deepEqual(idsOf(await worker.take(2)), ids.slice(0, 2))
      assert.deepEqual(words(await producer.enqueue([kit.job()])), ['full'])
      await limit(kit, 4, { work: 4 }, 4)
      assert.deepEqual(await depthLimit(kit), { limit: 4, perTenant: 4, kinds: { work: 4 } })
      assert.deepEqual(words(await producer.enqueue([kit.job(), kit.job()])), ['created', 'full'])
      await kit.control.limit('q', { concurrency: 1 })
      assert.deepEqual(words(await producer.enqueue([kit.job()])), ['full'])
      await limit(kit, 9, {}, 4)
      assert.deepEqual(words(await producer.enqueue([kit.job()])), ['full'])
      await limit(kit, 9)
      assert.deepEqual(words(await producer.enqueue([kit.job()])), ['created'])
      await limit(kit, 1)
      await kit.control.limit('q', { depth: null })
      assert.deepEqual(words(await producer.enqueue([kit.job(), kit.job()])), ['created', 'created'])
    },
  },
  {
    name: 'depth: whoever is refused hears when to try again, by the pace of the queue',
    promise: 'A producer that waits as it was told finds room.',
    needs: ['control'],
    async run(kit) {
      await limit(kit, 100)
      await kit.enqueueMany(10)
      const worker = await kit.worker()
      await worker.settle(...(await worker.take(10)).map((one) => returned(one)))
      await kit.pass(10_000, worker)
      await kit.enqueueMany(100)
      const [outcome] = await kit.store.enqueue([kit.job()])
      assertFull(outcome, { scope: 'queue', limit: 100 })
      // One a second was done, and a tenth of the limit should be free.
      assert(outcome.retryAfterMs >= 9_000 && outcome.retryAfterMs <= 14_000, `${outcome.retryAfterMs} ms`)
    },
  },
]

async function limit(
  kit: Kit,
  depth: number,
  kinds: Record<string, number> = {},
  perTenant: number | null = null,
): Promise<void> {
  await kit.control.limit('q', { depth: { limit: depth, perTenant, kinds } })
}

async function depthLimit(kit: Kit): Promise<DepthLimit | null | undefined> {
  return (await kit.inspect.queues())[0]?.limits.depth
}

function words(outcomes: readonly EnqueueOutcome[]): string[] {
  return outcomes.map(({ status }) => status)
}

function assertFull(
  outcome: EnqueueOutcome | undefined,
  { scope, limit: reached }: Pick<Full, 'scope' | 'limit'>,
): asserts outcome is EnqueueOutcome & { status: 'full' } {
  assert(outcome?.status === 'full', `${outcome?.status}`)
  assert.deepEqual([outcome.scope, outcome.limit], [scope, reached])
  assert(outcome.depth >= reached, `${outcome.depth} of ${reached}`)
  assert(outcome.retryAfterMs > 0, `${outcome.retryAfterMs} ms`)
}
