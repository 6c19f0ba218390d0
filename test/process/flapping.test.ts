/** A network that cuts connections again and again, at random points, while jobs are enqueued and run. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect, type JobView, type Queue, type QueueError } from '../../src/index.js'
import { Children } from '../support/children.js'
import { type Scratch, scratch } from '../support/postgres.js'
import { seeded, TcpProxy } from '../support/proxy.js'
import { until } from '../support/until.js'
import { pause } from './worker-child.js'

const FLAPPING_MS = 8_000
const JOBS_MAX = 600

let store: Scratch
let proxy: TcpProxy
let children: Children
let direct: Queue
beforeEach(async () => {
  store = await scratch()
  proxy = await TcpProxy.to(store.url)
  children = new Children({ url: proxy.url, schema: store.schema })
  direct = await connect(store.url, { schema: store.schema })
})
afterEach(async () => {
  await children.end()
  await direct.close()
  await proxy.close()
  await store.drop()
})

/** What the producer was told of each job. */
type Told = 'stored' | 'not stored' | 'unknown'

async function enqueued(queue: Queue, n: number, told: Map<string, Told>): Promise<void> {
  // An id of ours is known whatever the answer; without a key nothing is sent twice.
  try {
    const { id } = await queue.enqueue(pause, { name: `flap-${n}-`, ms: 20 })
    told.set(id, 'stored')
  } catch (error) {
    const { code, jobId } = error as QueueError
    assert.match(code, /^(STORE_UNAVAILABLE|OUTCOME_UNKNOWN)$/)
    if (jobId !== undefined) told.set(jobId, code === 'OUTCOME_UNKNOWN' ? 'unknown' : 'not stored')
    else assert.equal(code, 'STORE_UNAVAILABLE')
  }
}

const seed = Number(process.env.LEASEHOLD_TEST_SEED ?? Date.now() % 1_000_000)

test(`connections are cut every 50 to 200 ms: nobody dies, and each job ends once or was retried (seed ${seed})`, async () => {
  const random = seeded(seed)
  const workers = await Promise.all([0, 1].map(() => children.start({ lease: '3s', beat: '500ms', concurrency: 10 })))
  const queue = await connect(proxy.url, { schema: store.schema })
  const told = new Map<string, Told>()
  const warnings: string[] = []
  const warned = ({ name, message }: Error): void => void warnings.push(`${name}: ${message}`)
  process.on('warning', warned)
  const flapping = proxy.flap({ minMs: 50, maxMs: 200, random })
  const deadline = performance.now() + FLAPPING_MS
  for (let n = 0; n < JOBS_MAX && performance.now() < deadline; n++) {
    void enqueued(queue, n, told)
    await sleep(FLAPPING_MS / JOBS_MAX)
  }
  const cuts = flapping.stop()
  assert.ok(cuts > 20, `only ${cuts} cuts`)
  await queue.close()
  const stored = [...told].filter(([, what]) => what === 'stored').map(([id]) => id)
  assert.ok(stored.length > 20, `only ${stored.length} of ${told.size} jobs were stored`)

  await until('nothing waits or runs any more', async () => {
    const { ready, delayed, retrying, running } = await direct.counts('process')
    return ready.count + delayed.count + retrying.count + running.count === 0
  })
  const views = new Map<string, JobView | null>()
  for (const id of told.keys()) views.set(id, await direct.get(id))
  for (const [id, what] of told) {
    const view = views.get(id)!
    if (what === 'not stored') assert.equal(view, null, `${id} was told as not stored, and is there`)
    if (what === 'stored') assert.equal(view?.state, 'completed', `${id} was told as stored`)
    if (view !== null) assertOnce(view)
  }
  assert.equal((await store.sql('select count(*)::int as n from :s.lease'))[0]!.n, 0)
  for (const child of workers) {
    assert.equal(child.exitCode, null)
    await until('it is well', async () => (await children.health(child)).status === 'ok')
  }
  process.off('warning', warned)
  assert.deepEqual([...warnings, ...children.lines('warning')], [])
})

/** A job that ran more than once says in its history why. */
function assertOnce({ id, payload, history }: JobView): void {
  const { name } = payload as { name: string }
  const ends = children.lines(`end ${name} `).length
  const again = history?.entries.filter(({ outcome }) => outcome !== 'completed').length ?? 0
  assert.ok(ends >= 1 && ends <= 1 + again, `${id} ended ${ends} times: ${JSON.stringify(history)}`)
}
