/** A queue over several real stores: two schemas of one server, and one whose server does not answer. */
import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { after, before, test } from 'node:test'
import { connect } from '../../src/connect.js'
import { defineJob } from '../../src/core/kind.js'
import { worker } from '../../src/worker/index.js'
import { type Scratch, scratch } from '../support/postgres.js'
import { until } from '../support/until.js'

const mail = defineJob<{ n: number }>('mail', { queue: 'mail' })
const TENANTS = Array.from({ length: 40 }, (_, n) => `tenant ${n}`)

let one: Scratch
let two: Scratch
before(async () => {
  one = await scratch()
  two = await scratch()
})
after(async () => {
  await one.drop()
  await two.drop()
})

const stores = () => [
  { name: 'one', url: one.url, schema: one.schema },
  { name: 'two', url: two.url, schema: two.schema },
]

/** Nobody listens there. */
async function closedUrl(): Promise<string> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return `postgres://nobody@127.0.0.1:${port}/nothing`
}

test('jobs are enqueued, run, listed and counted over two schemas', async () => {
  await using queue = await connect({ by: 'tenant', partitions: stores() })
  const results = await queue.enqueueMany(TENANTS.map((tenant, n) => mail.with({ n }, { tenant })))
  assert.ok(results.every(({ status }) => status === 'created'))
  const [here] = await one.sql('select count(*)::int as n from :s.ready')
  const [there] = await two.sql('select count(*)::int as n from :s.ready')
  assert.equal(Number(here!.n) + Number(there!.n), TENANTS.length)
  assert.ok(Number(here!.n) > 5 && Number(there!.n) > 5)
  assert.deepEqual((await queue.counts('mail')).ready, { count: TENANTS.length, exact: true })
  const handled: number[] = []
  const runs = worker(queue, [mail.handle(({ n }) => void handled.push(n))], { signals: false })
  const stats = await runs.runUntilEmpty()
  assert.equal(stats.completed, TENANTS.length)
  assert.deepEqual(
    handled.sort((a, b) => a - b),
    TENANTS.map((_, n) => n),
  )
  const seen: number[] = []
  let last = Number.POSITIVE_INFINITY
  for await (const job of queue.jobs({ state: 'completed', limit: 7 })) {
    assert.ok(job.endedAt! <= last, 'the newest end first')
    last = job.endedAt!
    seen.push((job.payload as { n: number }).n)
  }
  assert.deepEqual(
    seen.sort((a, b) => a - b),
    TENANTS.map((_, n) => n),
  )
})

test('a fence of one store never reaches another: both have drawn the same ones', async () => {
  await using queue = await connect({ by: 'tenant', partitions: stores() })
  const jobs = await queue.enqueueMany(TENANTS.map((tenant, n) => mail.with({ n }, { tenant })))
  const runs = worker(queue, [mail.handle(() => {})], {
    signals: false,
    concurrency: 4,
  })
  await runs.runUntilEmpty()
  for (const store of [one, two]) {
    const [left] = await store.sql('select count(*)::int as n from :s.lease')
    assert.equal(left!.n, 0)
  }
  const views = await Promise.all(jobs.map((job) => queue.get((job as { id: string }).id)))
  assert.ok(views.every((view) => view!.state === 'completed'))
})

test('a transaction takes the jobs of the database it runs in, and says so of others', async () => {
  const url = await closedUrl()
  const client = await one.client()
  await using queue = await connect({ by: 'tenant', partitions: [...stores(), { name: 'gone', url }] })
  await client.query('begin')
  const results = await queue.enqueueMany(
    TENANTS.map((tenant, n) => mail.with({ n }, { tenant })),
    { tx: client },
  )
  const statuses = new Set(results.map((result) => (result.status === 'refused' ? result.error.code : result.status)))
  assert.deepEqual(statuses, new Set(['created', 'STORE_UNAVAILABLE']))
  const before = (await queue.counts('mail')).ready.count
  await client.query('commit')
  const created = results.filter(({ status }) => status === 'created').length
  assert.equal((await queue.counts('mail')).ready.count, before + created)
  await queue.purge('mail').catch((error: { code?: string }) => assert.equal(error.code, 'STORE_UNAVAILABLE'))
})

test('a store that nobody listens at costs its own tenants: producers, workers, counts and lists go on', async () => {
  const url = await closedUrl()
  await assert.rejects(connect({ by: 'tenant', partitions: [{ name: 'gone', url }] }), { code: 'STORE_UNAVAILABLE' })
  await using queue = await connect({ by: 'tenant', partitions: [stores()[0]!, { name: 'gone', url }] })
  const results = await queue.enqueueMany(TENANTS.map((tenant, n) => mail.with({ n }, { tenant })))
  const stored = results.filter(({ status }) => status === 'created')
  const refused = results.filter((result) => result.status === 'refused')
  assert.ok(stored.length > 5 && refused.length > 5)
  assert.equal(stored.length + refused.length, TENANTS.length)
  for (const { error } of refused) {
    assert.equal(error.code, 'STORE_UNAVAILABLE')
    assert.match(error.message, /^partition "gone": /)
  }
  assert.deepEqual((await queue.counts('mail')).ready, { count: stored.length, exact: false })
  const page = await queue.list({ state: 'ready', limit: 100 })
  assert.deepEqual([page.jobs.length, page.missing, page.next], [stored.length, ['gone'], null])
  const runs = worker(queue, [mail.handle(() => {})], { signals: false })
  await runs.start()
  await until('its jobs are done', async () => (await queue.counts('mail')).ready.count === 0)
  const health = runs.health()
  assert.deepEqual(
    [health.status, health.partitions!.one!.status, health.partitions!.gone!.status],
    ['degraded', 'ok', 'degraded'],
  )
  await runs.stop()
})
