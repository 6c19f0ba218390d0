/**
 * Every operation of the port once, each with something to do: an operation that is new and has no line here does not
 * compile. For tests that run them under different rights.
 */
import assert from 'node:assert/strict'
import { realEnv } from '../../src/core/env.js'
import { emptyHistory } from '../../src/core/job.js'
import type { PostgresStorage } from '../../src/storage/postgres/index.js'
import type {
  Control,
  DatabaseFacts,
  Diagnose,
  Inspect,
  Lease,
  NewJob,
  Settlement,
  Setup,
  Storage,
  Upkeep,
  Wake,
} from '../../src/storage/storage.js'
import { completed, newJob, TestWorker } from '../support/jobs.js'

export interface Site {
  /** Of the role under test. */
  store: PostgresStorage
  /** Of the owner, who prepares what the operation works on. */
  owner: PostgresStorage
  advance(ms: number): Promise<void>
}

type Operation = (site: Site) => Promise<unknown>
type Walk<Facet> = { [Name in keyof Facet]-?: Operation }
type Own = Pick<Storage, 'enqueue' | 'claim' | 'beat' | 'settle' | 'takeOver' | 'unregister'>

const MONTH_MS = 30 * 86_400_000
const RETENTION = { completedMs: MONTH_MS, deadMs: MONTH_MS, limit: 100 }
const FOUND = { limit: 10 }

const ENQUEUE: Walk<Own> = {
  enqueue: async ({ store, owner }) => {
    const idempotency = { key: realEnv.id(), payloadHash: 'h', retentionMs: 1_000 }
    const spec = { ...newJob().spec, expiresInMs: 60_000 }
    const jobs = [
      newJob(),
      newJob({ idempotency }),
      newJob({ due: { delayMs: 60_000 } }),
      newJob({ chosen: true, spec }),
    ]
    assert.deepEqual(
      await store.enqueue(jobs),
      jobs.map(() => ({ status: 'created' })),
    )
    const again = newJob({ idempotency })
    assert.deepEqual(await store.enqueue([again]), [{ status: 'duplicate', id: jobs[1]!.id }])
    await store.enqueue([newJob({ queue: realEnv.id(), priority: 9 })])
    const shared = realEnv.id()
    const ofTenant = newJob({ queue: shared, spec: { ...newJob().spec, tenant: 'a' } })
    const shares = await store.enqueue([ofTenant, newJob({ queue: shared })])
    assert.deepEqual(
      shares.map(({ status }) => status),
      ['created', 'created'],
    )
    const queue = realEnv.id()
    await owner.control.limit(queue, { depth: { limit: 1, perTenant: 1, kinds: { kind: 1 } } })
    const bounded = [newJob({ queue }), newJob({ queue })]
    const keyed = newJob({ queue, idempotency: { ...idempotency, key: queue } })
    const outcomes = [...(await store.enqueue(bounded)), ...(await store.enqueue([keyed]))]
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['created', 'full', 'full'],
    )
    const metered = realEnv.id()
    await owner.control.limit(metered, { intake: { limit: 1, perMs: MONTH_MS, burst: 1 } })
    const arrivals = [
      ...(await store.enqueue([newJob({ queue: metered }), newJob({ queue: metered })])),
      ...(await store.enqueue([newJob({ queue: metered, idempotency: { ...idempotency, key: metered } })])),
    ]
    assert.deepEqual(
      arrivals.map(({ status }) => status),
      ['created', 'early', 'early'],
    )
  },
  claim: async ({ store, owner }) => {
    await waiting(owner)
    const worker = await TestWorker.registered(owner)
    const other = new Claims(store, worker.id)
    assert.ok((await other.claim()).leases.length > 0)
  },
  beat: async ({ store }) => TestWorker.registered(store),
  settle: async ({ store, owner }) => {
    const lease = await leased(owner, 5)
    const history = emptyHistory()
    const { fence } = lease
    const settlements: Settlement[] = [
      { fence, ordinal: 0, to: 'started' },
      { ...completed(fence, 0), to: 'completed', history: null, keep: true },
      { fence, ordinal: 1, to: 'delayed', delayMs: 1, suspect: false, history },
      { fence, ordinal: 2, to: 'ready', suspect: false, history },
      { fence, ordinal: 3, to: 'dead', reason: 'rejected', history },
      { fence, ordinal: 4, to: 'cancelled', history },
    ]
    assert.deepEqual(
      await store.settle(settlements),
      settlements.map(() => 'ok'),
    )
  },
  takeOver: async ({ store, owner, advance }) => {
    await leased(owner, 2)
    const heir = await TestWorker.registered(owner)
    for (let passed = 0; passed < 12_000; passed += 3_000) {
      await advance(3_000)
      await heir.beat()
    }
    const { leases } = await store.takeOver({ worker: heir.id, limit: 1_000 })
    assert.ok(leases.length > 0)
  },
  unregister: async ({ store, owner }) => store.unregister((await TestWorker.registered(owner)).id),
}

const UPKEEP: Walk<Upkeep> = {
  promote: async ({ store, owner, advance }) => {
    await owner.enqueue([newJob({ due: { delayMs: 1_000 } })])
    await advance(2_000)
    assert.ok((await store.upkeep.promote(100)).moved.length > 0)
  },
  expire: async ({ store, owner, advance }) => {
    await owner.enqueue([newJob({ spec: { ...newJob().spec, expiresInMs: 1_000 } })])
    await advance(2_000)
    assert.ok((await store.upkeep.expire(100)).length > 0)
  },
  prune: async ({ store, owner, advance }) => {
    const { fence } = await leased(owner, 2)
    await owner.settle([completed(fence)])
    await advance(2 * MONTH_MS)
    // A day is made by a settlement that finds none, and one of long ago is dropped.
    await owner.upkeep.prune({ ...RETENTION, completedMs: 100 * MONTH_MS, deadMs: 100 * MONTH_MS })
    const { deleted } = await store.upkeep.prune({ ...RETENTION, completedMax: 1, deadMax: 1 })
    assert.ok(deleted > 0)
  },
}

const CONTROL: Walk<Control> = {
  cancel: async ({ store, owner }) => {
    const [delayed, running] = [await waiting(owner, { due: { delayMs: 60_000 } }), await leased(owner, 1)]
    assert.deepEqual(await store.control.cancel([delayed, running.jobs[0]!.id]), ['cancelled', 'signalled'])
  },
  retry: async ({ store, owner }) =>
    assert.deepEqual(await store.control.retry([await waiting(owner, { due: { delayMs: 60_000 } })]), ['ok']),
  redrive: async ({ store, owner }) =>
    assert.deepEqual(await store.control.redrive([await dead(owner)], { force: false }), ['ok']),
  discard: async ({ store, owner }) =>
    assert.deepEqual(await store.control.discard([await dead(owner)]), ['discarded']),
  pause: ({ store }) => store.control.pause('steered'),
  refuse: ({ store }) => store.control.refuse('steered'),
  resume: ({ store }) => store.control.resume('steered'),
  order: ({ store }) => store.control.order('steered', 'strict'),
  limit: ({ store }) => {
    const rate = { limit: 1, perMs: 1_000, burst: 1 }
    return store.control.limit('steered', {
      concurrency: 3,
      rate,
      depth: { limit: 9, perTenant: 3, kinds: {} },
      intake: rate,
    })
  },
  purge: async ({ store, owner }) => {
    await owner.enqueue([newJob({ queue: 'purged' }), newJob({ queue: 'purged', due: { delayMs: 60_000 } })])
    assert.equal((await store.control.purge('purged', 10)).deleted, 2)
  },
}

const INSPECT: Walk<Inspect> = {
  get: async ({ store, owner }) => assert.notDeepEqual(await store.inspect.get([await waiting(owner)]), [null]),
  list: async ({ store }) => {
    for (const state of ['ready', 'delayed', 'retrying', 'running', 'completed', 'cancelled', 'dead'] as const)
      await store.inspect.list({ state, ...FOUND })
  },
  match: async ({ store }) => {
    for (const state of ['ready', 'delayed', 'retrying', 'running', 'dead'] as const)
      await store.inspect.match({ state, ...FOUND })
  },
  deadGroups: ({ store }) => store.inspect.deadGroups(FOUND),
  facts: async ({ store, owner }) => {
    for (const id of [await waiting(owner), (await leased(owner, 1)).jobs[0]!.id]) await store.inspect.facts(id)
  },
  queues: ({ store }) => store.inspect.queues(),
  counts: ({ store }) => store.inspect.counts('queue'),
  workers: ({ store }) => store.inspect.workers(),
  capacity: async ({ store, owner }) => {
    await waiting(owner)
    assert.ok((await store.inspect.capacity('queue')).ready.count > 0)
  },
}

const WAKE: Walk<Wake> = {
  listen: async ({ store }) => (await store.wake.listen(['queue'], () => {}))(),
}

const SETUP: Walk<Setup> = {
  migrate: async ({ store }) => assert.deepEqual(await store.setup.migrate(), { applied: [] }),
  check: ({ store }) => store.setup.check(),
  drift: ({ store }) => store.setup.drift(),
}

const DIAGNOSE: Walk<Omit<Diagnose, 'database'>> = {
  pace: ({ store }) => store.diagnose.pace('queue'),
  endings: ({ store }) => store.diagnose.endings({ states: ['completed', 'dead'], backMs: 60_000, ...FOUND }),
  clock: ({ store }) => store.diagnose.clock(),
  runs: ({ store }) => store.diagnose.runs(),
  waiting: ({ store }) => store.diagnose.waiting(),
  overdue: ({ store }) => store.diagnose.overdue(),
  crashes: ({ store }) => store.diagnose.crashes(),
  hints: async ({ store }) => assert.equal(await store.diagnose.hints(), 'arrive'),
}

const FACTS: Walk<DatabaseFacts> = {
  settings: ({ store }) => store.diagnose.database.settings(),
  connections: ({ store }) => store.diagnose.database.connections(),
  holders: ({ store }) => store.diagnose.database.holders(),
  tables: ({ store }) => store.diagnose.database.tables(),
  days: ({ store }) => store.diagnose.database.days(),
  access: ({ store }) => store.diagnose.database.access(),
}

const FACETS = { enqueue: ENQUEUE, upkeep: UPKEEP, control: CONTROL, inspect: INSPECT, wake: WAKE, setup: SETUP }

/** By name: `control.cancel`. */
export const OPERATIONS: ReadonlyMap<string, Operation> = new Map(
  Object.entries({ ...FACETS, diagnose: DIAGNOSE, 'diagnose.database': FACTS }).flatMap(([facet, walk]) =>
    Object.entries(walk as Record<string, Operation>).map(([name, run]): [string, Operation] => [
      facet === 'enqueue' ? name : `${facet}.${name}`,
      run,
    ]),
  ),
)

/** Claims in the name of a worker that another handle registered. */
class Claims extends TestWorker {
  constructor(
    storage: Storage,
    override readonly id: string,
  ) {
    super(storage)
  }
}

async function waiting(owner: Storage, sketch: Partial<NewJob> = {}): Promise<string> {
  const job = newJob(sketch)
  await owner.enqueue([job])
  return job.id
}

/** So many jobs of a queue of their own, in one lease. */
async function leased(owner: Storage, count: number): Promise<Lease> {
  const queue = realEnv.id()
  await owner.enqueue(Array.from({ length: count }, () => newJob({ queue })))
  const worker = await TestWorker.registered(owner)
  const { leases } = await worker.claim({ queues: [{ queue, share: count }] })
  return leases[0]!
}

async function dead(owner: Storage): Promise<string> {
  const { fence, jobs } = await leased(owner, 1)
  await owner.settle([{ fence, ordinal: 0, to: 'dead', reason: 'failed', history: emptyHistory() }])
  return jobs[0]!.id
}
