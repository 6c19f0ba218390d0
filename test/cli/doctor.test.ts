/** Each fault that the doctor knows, really there, in a schema of a real server; and none of them in a healthy one. */
import assert from 'node:assert/strict'
import { createServer, connect as dial, type Socket } from 'node:net'
import { after, before, type TestContext, test } from 'node:test'
import { CHECKS } from '../../src/cli/doctor/checks.js'
import type { Finding } from '../../src/cli/doctor/finding.js'
import { connect, defineJob, type Queue, worker } from '../../src/index.js'
import { newJob, TestWorker } from '../support/jobs.js'
import { type Scratch, scratch } from '../support/postgres.js'
import { type CliStore, cliStore, run } from './command.js'
import { examine, withQueue, withSettings } from './patient.js'

const MINUTE = 60_000

/** A schema and its queue, gone with the test. */
async function patient(
  t: TestContext,
): Promise<{ store: Scratch; queue: Queue; look: (name: string) => Promise<Finding> }> {
  const store = await scratch()
  const queue = await connect(store.url, { schema: store.schema, migrate: false })
  t.after(async () => {
    await queue.close()
    await store.drop()
  })
  return { store, queue, look: (name) => examine(queue, name) }
}

/** As it is made; the scratch schemas of other tests have a clock of their own in them. */
let healthy: CliStore

before(async () => {
  healthy = await cliStore('doctor')
})
after(() => healthy.drop())

test('a healthy store, with a worker at work, is well in every respect', async (t) => {
  const queue = await connect(healthy.env.LEASEHOLD_URL!, { schema: healthy.env.LEASEHOLD_SCHEMA! })
  const kind = defineJob('fine')
  const running = worker(queue, [kind.handle(() => {})], { signals: false })
  t.after(async () => {
    await running.stop()
    await queue.close()
  })
  await running.start()
  for (const job of await Promise.all(Array.from({ length: 30 }, () => queue.enqueue(kind)))) await job.result()
  for (const { name } of CHECKS) {
    const finding = await examine(queue, name)
    // Others use the server, too: how many connections are open is their affair.
    if (name !== 'connections') assert.equal(finding.verdict, 'ok', `${name}: ${JSON.stringify(finding)}`)
  }
})

test('schema: an index that was dropped, and a trigger that somebody has added', async (t) => {
  const { store, look } = await patient(t)
  await store.sql('drop index :s.ready_id')
  const { verdict, items } = await look('schema')
  assert.equal(verdict, 'fail')
  assert.ok(
    items!.some((item) => /ready_id/.test(item)),
    items!.join('\n'),
  )
})

test('server: a database that takes no writes', async (t) => {
  const { store } = await patient(t)
  const url = withSettings(store.url, { default_transaction_read_only: 'on' })
  const finding = await withQueue(url, store.schema, (queue) => examine(queue, 'server'))
  assert.deepEqual([finding.verdict, /takes no writes/.test(finding.text)], ['fail', true])
})

test('durability: commits that are answered before they are safe', async (t) => {
  const { store } = await patient(t)
  const url = withSettings(store.url, { synchronous_commit: 'off' })
  const finding = await withQueue(url, store.schema, (queue) => examine(queue, 'durability'))
  assert.deepEqual([finding.verdict, finding.measured.synchronousCommit], ['warn', 'off'])
})

test('isolation: a role whose transactions begin at another level, at which claims are refused', async (t) => {
  const { store } = await patient(t)
  const url = withSettings(store.url, { default_transaction_isolation: 'repeatable read' })
  const finding = await withQueue(url, store.schema, (queue) => examine(queue, 'isolation'))
  assert.equal(finding.verdict, 'fail')
})

test("clock: a store whose clock is far from this machine's", async (t) => {
  const { store, look } = await patient(t)
  assert.equal((await look('clock')).verdict, 'ok')
  await store.advance(90 * MINUTE)
  const { verdict, text } = await look('clock')
  assert.deepEqual([verdict, /1h 30m behind the store's/.test(text)], ['warn', true], text)
})

test('hints: a pooler that lets none through', async (t) => {
  const { store, look } = await patient(t)
  assert.equal((await look('hints')).verdict, 'ok')
  const deaf = await withoutNotifications(store.url)
  t.after(() => deaf.close())
  const finding = await withQueue(deaf.url, store.schema, (queue) => examine(queue, 'hints'))
  assert.deepEqual([finding.verdict, finding.measured.hints], ['warn', 'do not arrive'])
})

test('pools: a worker whose claims and settlements wait for each other', async (t) => {
  const { store, look } = await patient(t)
  const narrow = await connect(store.url, { schema: store.schema, connections: 1 })
  const running = worker(narrow, [defineJob('k').handle(() => {})], { signals: false, name: 'narrow' })
  t.after(async () => {
    await running.stop()
    await narrow.close()
  })
  await running.start()
  await registered(narrow)
  const { verdict, text } = await look('pools')
  assert.deepEqual([verdict, /^narrow has 1 connection for 10 slots/.test(text)], ['warn', true], text)
})

test('days: tables that nobody makes, a detach that was cut off, and days that should be gone', async (t) => {
  const { store, look } = await patient(t)
  assert.equal((await look('days')).verdict, 'ok')
  const reader = await store.client()
  await reader.query(`begin; select count(*) from ${store.quoted}.ended`)
  const cutter = await store.client()
  const today = new Date().toISOString().slice(0, 10)
  await cutter.query(`select ${store.quoted}.ensure_day('2020-05-17')`)
  await cutter.query(`set lock_timeout = '200ms'`)
  await assert.rejects(
    cutter.query(`alter table ${store.quoted}.ended detach partition ${store.quoted}.ended_20200517 concurrently`),
  )
  await reader.query('rollback')
  await cutter.query('set lock_timeout = 0')
  assert.match((await look('days')).text, /detach of day 2020-05-17 was begun and not finished/)
  await cutter.query(`alter table ${store.quoted}.ended detach partition ${store.quoted}.ended_20200517 finalize`)
  assert.match((await look('days')).text, /day 2020-05-17 is detached and not dropped/)
  await cutter.query(`drop table ${store.quoted}.ended_20200517; select ${store.quoted}.ensure_day('2020-05-18')`)
  assert.equal((await look('days')).verdict, 'ok', 'nobody says for how long records are kept')
  const keeper = new TestWorker(store.storage)
  await keeper.beat({ info: { ...INFO, completedMs: 86_400_000 } })
  assert.match((await look('days')).text, /1 day should have been dropped, from 2020-05-18 on/)
  const days = await store.sql(
    `select relname from pg_class where relnamespace = $1::regnamespace and relkind = 'r' and relname ~ '^ended_' and relname > $2`,
    [store.quoted, `ended_${today.replaceAll('-', '')}`],
  )
  for (const { relname } of days.slice(1)) await store.sql(`drop table :s."${relname as string}"`)
  assert.match((await look('days')).text, /made for 1 day ahead only/)
})

test('queues: one that is paused while its jobs wait for long, and one that was drained and not resumed', async (t) => {
  const { store, queue, look } = await patient(t)
  await store.storage.enqueue([newJob({ queue: 'held' })])
  await queue.pause('held')
  assert.equal((await look('queues')).verdict, 'ok')
  await store.advance(20 * MINUTE)
  assert.match((await look('queues')).text, /^held is paused, and a job has been due in it for 20m/)
  await queue.resume('held')
  await queue.drain('done')
  assert.match((await look('queues')).text, /^done refuses new jobs/)
})

test('ability: kinds that wait where no worker can run them', async (t) => {
  const { store, look } = await patient(t)
  await store.storage.enqueue([
    newJob({ kind: 'mail.sned', queue: 'mail' }),
    newJob({ kind: 'mail.send', queue: 'mail' }),
    newJob({ queue: 'lonely' }),
  ])
  assert.equal((await look('ability')).verdict, 'ok', 'a worker may be on its way')
  await store.advance(MINUTE)
  assert.match((await look('ability')).items!.join('\n'), /no worker is alive/)
  await new TestWorker(store.storage).beat({ info: { ...INFO, queues: ['mail'], kinds: ['mail.send'] } })
  const { verdict, items, measured } = await look('ability')
  assert.equal(verdict, 'warn')
  assert.deepEqual(
    items!.map((item) => item.replace(/, due for \S+( \S+)?:/, ':')),
    [
      'kind in lonely: no worker works on the queue',
      'mail.sned in mail: no worker of the queue has a handler of the kind',
    ],
  )
  assert.equal((measured.unattended as unknown[]).length, 2)
})

test('promotion: delayed jobs that nobody makes ready', async (t) => {
  const { store, look } = await patient(t)
  await store.storage.enqueue([newJob({ due: { delayMs: 1_000 } }), newJob({ due: { delayMs: 86_400_000 } })])
  assert.equal((await look('promotion')).verdict, 'ok')
  await store.advance(5 * MINUTE)
  assert.match((await look('promotion')).text, /^1 delayed job should have become ready, up to [45]m/)
})

test('workers and leases: a beat that is missing, a main loop that does not answer, a lease that is long', async (t) => {
  const { store, look } = await patient(t)
  const one = await TestWorker.registered(store.storage)
  await one.beat({ mainLagMs: 7_000 })
  assert.match((await look('workers')).text, /^the main loop of test lags by 7s/)
  assert.match((await look('leases')).text, /has not answered for 7s of a lease of 10s/)
  await one.beat()
  assert.equal((await look('workers')).verdict, 'ok')
  await store.advance(8_000)
  assert.match((await look('workers')).text, /^test has not been heard of for 8/)
  await new TestWorker(store.storage).beat({ info: { ...INFO, name: 'long', leaseMs: 3_600_000, beatMs: 60_000 } })
  assert.match((await look('leases')).text, /when long dies its jobs wait for 1h/)
})

test('time-outs: attempts that come near theirs', async (t) => {
  const { queue, look } = await patient(t)
  const near = defineJob('near', { timeout: '1s', retry: { attempts: 1 } })
  const running = worker(queue, [near.handle(() => new Promise((resolve) => setTimeout(resolve, 750)))], {
    signals: false,
    concurrency: 25,
  })
  await queue.enqueueMany(Array.from({ length: 25 }, () => near.with()))
  await running.runUntilEmpty()
  const { verdict, text, measured } = await look('time-outs')
  // On a machine that is busy some of them are cut off, which is told as well.
  assert.equal(verdict, 'warn', JSON.stringify(measured))
  assert.match(text, /near is near its time-out: p95 \d+ms of 1s|attempts? of near timed out/)
})

test('crashes: leases that ended without their worker, and an at-most-once job that was lost', async (t) => {
  const { store, look } = await patient(t)
  const jobs = Array.from({ length: 12 }, () => newJob({ kind: 'apart' }))
  await store.storage.enqueue([
    ...jobs,
    newJob({ kind: 'once', spec: { ...newJob().spec, attempts: 1, delivery: 'at-most-once' } }),
  ])
  const dying = await TestWorker.registered(store.storage)
  const { leases } = await dying.claim({ kinds: ['apart', 'once'], apart: ['apart', 'once'] })
  assert.equal(leases.length, 13)
  assert.equal((await look('crashes')).verdict, 'ok')
  const once = leases.find((lease) => lease.jobs[0]!.kind === 'once')!
  // It says that it has started, and forgets it.
  await dying.beat({ leases: leases.map(({ fence }) => fence), started: [[once.fence, 0]] })
  await store.storage.settle([{ fence: once.fence, ordinal: 0, to: 'started' }])
  await dying.beat({ leases: [] })
  const { verdict, text } = await look('crashes')
  assert.equal(verdict, 'warn')
  assert.match(
    text,
    /^13 leases ended without their workers in the last hour; 1 at-most-once job may have run and was lost/,
  )
})

test('the command itself: its table, its document, and its exit codes', async (t) => {
  const { store } = await patient(t)
  const env = { LEASEHOLD_URL: store.url, LEASEHOLD_SCHEMA: store.schema }
  const sick = await run(['doctor'], { env })
  // The movable clock is a change to the schema, and found.
  assert.equal(sick.code, 1, sick.stderr)
  assert.match(sick.stdout, /^ok +server +PostgreSQL/m)
  assert.match(sick.stdout, /^fail +schema/m)
  assert.match(sick.stdout, /\n\n\d+ ok, (?:\d+ warnings?, )?1 failure\n$/)
  assert.doesNotMatch(sick.stdout, /\u001b/)
  const { checks, verdict } = JSON.parse((await run(['doctor', '--json'], { env })).stdout) as {
    verdict: string
    checks: { check: string; verdict: string; measured: object; fix?: string }[]
  }
  assert.equal(verdict, 'fail')
  assert.deepEqual(
    checks.map(({ check }) => check),
    CHECKS.map(({ name }) => name),
  )
  assert.ok(checks.every((one) => one.verdict !== 'unknown' && (one.verdict === 'ok' || one.fix !== undefined)))
  const missing = await run(['doctor', '--schema', 'nobody_has_it'], { env })
  assert.equal(missing.code, 1)
  assert.match(missing.stdout, /^fail +schema +schema "nobody_has_it" .*leasehold migrate/m)
  const away = await run(['doctor', '--url', 'postgres://someone@127.0.0.1:1/x'], { env })
  assert.match(away.stderr, /\(STORE_UNAVAILABLE\)/)
})

test('warnings are failures where that is asked for', async () => {
  const queue = await connect(healthy.env.LEASEHOLD_URL!, { schema: healthy.env.LEASEHOLD_SCHEMA! })
  await queue.drain('left')
  await queue.close()
  const mild = await healthy.run('doctor')
  assert.match(mild.stdout, /^warn +queues +left refuses new jobs/m)
  assert.equal(mild.code, 0, mild.stdout)
  assert.equal((await healthy.run('doctor', '--strict')).code, 1)
})

test('a store that tells nothing of itself is no failure: it says what it could not look at', async () => {
  const { code, stdout } = await run(['doctor', '--url', 'memory:'])
  assert.equal(code, 0)
  assert.match(stdout, /^unknown +snapshots +the memory store tells nothing of its health$/m)
  assert.match(stdout, /\d+ not looked at\n$/)
})

const INFO = { name: 'test', queues: ['queue'], concurrency: 10, leaseMs: 10_000, beatMs: 3_000 }

/** Its first beat was answered. */
async function registered(queue: Queue): Promise<void> {
  while ((await queue.workers()).length === 0);
}

/** The server's own messages, but for notifications: as a pooler in transaction mode leaves them out. */
async function withoutNotifications(url: string): Promise<{ url: string; close(): void }> {
  const { port, hostname } = new URL(url)
  const sockets = new Set<Socket>()
  const proxy = createServer((client) => {
    const server = dial(Number(port), hostname)
    let pending = Buffer.alloc(0)
    client.pipe(server)
    server.on('data', (chunk) => {
      pending = Buffer.concat([pending, chunk])
      while (pending.length >= 5 && pending.length >= 1 + pending.readInt32BE(1)) {
        const message = pending.subarray(0, 1 + pending.readInt32BE(1))
        pending = pending.subarray(message.length)
        if (message[0] !== 'A'.charCodeAt(0)) client.write(message)
      }
    })
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => client.destroy() && server.destroy())
    }
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const target = new URL(url)
  target.host = `127.0.0.1:${(proxy.address() as { port: number }).port}`
  return {
    url: target.href,
    close: () => {
      for (const socket of sockets) socket.destroy()
      proxy.close()
    },
  }
}
