/** What has 32 bits or fewer in the schema, and why it cannot outgrow them. Whatever counts without an end has 64. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { TestWorker } from '../support/jobs.js'
import { type Scratch, scratch } from '../support/postgres.js'

let store: Scratch
before(async () => {
  store = await scratch()
})
after(() => store.drop())

const LANES = 'a number of a queue, times 64: there would have to be 33 million queues'
const RECORD = 'a duration that is cut at 24 days where it is written'
const PAYLOAD = 'bytes of one payload, which has at most a megabyte'
const LIMIT = 'a limit that somebody sets, of at most a million'
const RELEASE = 'rises with a release'

const COLUMNS: Record<string, string> = {
  'queue.id': LANES,
  'queue.levels': 'a bit for each of 16 levels',
  'queue.fair': 'a bit for each of 16 levels',
  'fair_lane.lane': LANES,
  'ready.lane': LANES,
  'delayed.lane': LANES,
  'idle.queue': LANES,
  'ended.queue': LANES,
  'dead.queue': LANES,
  'lease.queue': LANES,
  'permit.queue': LANES,
  'queue_limit.queue': LANES,
  'queue_limit.concurrency': LIMIT,
  'queue_limit.rate_count': LIMIT,
  'queue_limit.rate_burst': LIMIT,
  'queue_limit.intake_count': LIMIT,
  'queue_limit.intake_burst': LIMIT,
  'queue_limit.depth': LIMIT,
  'queue_limit.depth_tenant': LIMIT,
  'ready.bytes': PAYLOAD,
  'delayed.bytes': PAYLOAD,
  'ended.state': 'one of two',
  'ended.level': 'one of 16',
  'dead.level': 'one of 16',
  'ended.ran_ms': RECORD,
  'dead.ran_ms': RECORD,
  'functions.revision': RELEASE,
  'migration.version': RELEASE,
  'migration.oldest_client': RELEASE,
}

const OF_ONE_CALL = 'counts what one call asks for or gets'
const COUNTED = 'what a look at workers and waiting jobs counts, with a bound'
const OF_ONE_LEASE = 'places in a lease, of at most a hundred jobs'
const WORDS = 'a few words, as numbers'

/** Arguments and columns of answers, by name; those of functions that clients of earlier releases call are as they were. */
const ARGUMENTS: Record<string, string> = {
  lane: LANES,
  p_lane: LANES,
  p_lanes: LANES,
  p_queue: LANES,
  p_queues: LANES,
  queue: LANES,
  paused: LANES,
  p_level: 'one of 16',
  p_levels: 'a bit for each of 16 levels',
  p_fair: 'a bit for each of 16 levels',
  fair_lanes: LANES,
  p_limit: OF_ONE_CALL,
  p_bytes: OF_ONE_CALL,
  p_quotas: OF_ONE_CALL,
  quota: OF_ONE_CALL,
  p_shares: OF_ONE_CALL,
  p_sizes: OF_ONE_CALL,
  p_order: OF_ONE_CALL,
  p_count: OF_ONE_CALL,
  permits: LIMIT,
  tokens: LIMIT,
  limited: LANES,
  concurrency: LIMIT,
  rate_count: LIMIT,
  rate_burst: LIMIT,
  depth: LIMIT,
  depth_tenant: LIMIT,
  intake_count: LIMIT,
  intake_burst: LIMIT,
  granted: OF_ONE_CALL,
  most: LIMIT,
  ended: COUNTED,
  busy: COUNTED,
  slots: COUNTED,
  workers: COUNTED,
  later: COUNTED,
  ready: COUNTED,
  count: OF_ONE_CALL,
  taken: OF_ONE_CALL,
  jobs: OF_ONE_CALL,
  p_ordinals: OF_ONE_LEASE,
  s_ordinals: OF_ONE_LEASE,
  p_pattern: 'tiers, of which there are four',
  p_tos: WORDS,
  s_tos: WORDS,
  settled: WORDS,
  status: WORDS,
}

const RELEASED = ['claim', 'beat', 'take', 'take_suspect', 'leases_text', 'lock_worker']
const SHORT = `in ('int'::regtype, 'smallint'::regtype, 'int[]'::regtype, 'smallint[]'::regtype)`

test('B120: every column of 32 bits holds what is bounded, and none is forgotten here', async () => {
  const rows = await store.sql(
    `select c.relname || '.' || a.attname as name from pg_class c join pg_attribute a on a.attrelid = c.oid
      where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
        and a.attnum > 0 and not a.attisdropped and a.atttypid ${SHORT}`,
    [store.quoted],
  )
  assert.deepEqual(rows.map(({ name }) => name).sort(), Object.keys(COLUMNS).sort())
})

test('B120: every argument and answer of 32 bits is bounded, but for those that older clients know', async () => {
  const rows = await store.sql(
    `select distinct a.name from pg_proc p,
        lateral unnest(p.proargnames, coalesce(p.proallargtypes, p.proargtypes::oid[])) a(name, type)
      where p.pronamespace = $1::regnamespace and a.type ${SHORT} and p.proname <> all($2)`,
    [store.quoted, RELEASED],
  )
  const unknown = rows.map(({ name }) => name as string).filter((name) => ARGUMENTS[name] === undefined)
  assert.deepEqual(unknown, [])
})

test('B120: lock_worker, as older clients know it, answers in 32 bits, and nothing of a worker that is written off', async () => {
  const worker = await TestWorker.registered(store.storage)
  const locked = async (): Promise<unknown> => {
    const [row] = await store.sql('select :s.lock_worker($1) as known', [worker.id])
    return row!.known
  }
  assert.equal(await locked(), 0)
  await store.sql('update :s.worker set known = 5000000000 where id = $1', [worker.id])
  assert.equal(await locked(), 2_147_483_647)
  await store.storage.unregister(worker.id)
  assert.equal(await locked(), null)
})
