/** A primary that is demoted, restarted or lost: servers of the test's own, worker processes, a proxy as their address. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type EmbeddedServer, startEmbedded } from '@leasehold/embedded'
import pg from 'pg'
import { connect, type Job, type JobView, type Queue } from '../../src/index.js'
import { openPostgres } from '../../src/storage/postgres/index.js'
import { Children } from '../support/children.js'
import { hasty } from '../support/hasty.js'
import { TcpProxy } from '../support/proxy.js'
import { until } from '../support/until.js'
import { pause } from './worker-child.js'

const QUICK = { lease: '2s', beat: '500ms', poll: '500ms', shutdownGrace: '1s' }
/** In these a worker sends some twenty; a hot loop would send thousands. */
const WATCHED_MS = 5_000
const STATEMENTS_MAX = 100

let dir: string
let server: EmbeddedServer
let admin: pg.Client
let queue: Queue
let children: Children
/** What to end after the test, the last first. */
let ends: (() => Promise<unknown>)[]

beforeEach(async () => {
  ends = []
  dir = await mkdtemp(join(tmpdir(), 'leasehold-failover-'))
  ends.push(() => rm(dir, { recursive: true, force: true, maxRetries: 20 }))
  server = await started('first')
  admin = await adminOf(server.url)
  queue = await connect(server.url)
  ends.push(() => queue.close())
})
afterEach(async () => {
  for (const end of ends.reverse()) await end()
})

async function started(name: string, settings: Record<string, string> = {}): Promise<EmbeddedServer> {
  const running = await startEmbedded({ dir: join(dir, name), settings: { fsync: 'off', ...settings } })
  ends.push(() => running.stop())
  return running
}

/** It outlives a restart of the server. */
async function adminOf(url: string): Promise<pg.Client> {
  const at = new URL(url)
  at.pathname = '/postgres'
  const client = new pg.Client(at.href)
  client.on('error', () => {})
  await client.connect()
  // Whatever becomes of the others: this one makes it so.
  await client.query('set default_transaction_read_only = off')
  ends.push(() => client.end())
  return client
}

function childrenAt(url: string): Children {
  children = new Children({ url, schema: 'leasehold' })
  ends.push(() => children.end())
  return children
}

async function readOnly(state: 'on' | 'off'): Promise<void> {
  await admin.query(`alter system set default_transaction_read_only = ${state}`)
  await admin.query('select pg_reload_conf()')
  await until('the setting is in', async () => {
    const probe = new pg.Client(server.url)
    await probe.connect()
    const { rows } = await probe.query(`select current_setting('default_transaction_read_only') as state`)
    await probe.end()
    return (rows[0] as { state: string }).state === state
  })
}

async function load(at: Queue, count: number, ms: number): Promise<Job<unknown>[]> {
  return Promise.all(Array.from({ length: count }, (_, n) => at.enqueue(pause, { name: `load-${n}-`, ms })))
}

/** Each job has ended well; one that ran more than once can say why. */
async function allEnded(at: Queue, jobs: readonly Job<unknown>[]): Promise<void> {
  await until('all jobs have ended', async () => (await at.counts('process')).completed.count >= jobs.length)
  for (const [n, { id }] of jobs.entries()) {
    const view = (await at.get(id)) as JobView
    assert.equal(view.state, 'completed')
    const ends = children.lines(`end load-${n}- `).length
    const crashes = view.history?.entries.filter(({ outcome }) => outcome === 'crashed').length ?? 0
    assert.ok(ends >= 1 && ends <= 1 + crashes, `${ends} ends, ${JSON.stringify(view.history)}`)
  }
}

test('B35: a primary turns read-only under load and comes back: nothing is lost, and nobody has to help', async () => {
  const proxy = await TcpProxy.to(server.url)
  ends.push(() => proxy.close())
  childrenAt(proxy.url)
  const [leaving] = await Promise.all([children.start(QUICK), children.start(QUICK)])
  const jobs = await load(queue, 400, 100)
  await children.until('end load-', 20)
  await readOnly('on')
  await admin.query(`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'leasehold'`)
  await children.until('event {"type":"store.unavailable","operation":"beat"', 2)
  await until('it is told that nothing is stored', async () => {
    const error = await queue.enqueue(pause, { name: 'never', ms: 1 }).catch((error) => error)
    assert.equal(error.code, 'STORE_UNAVAILABLE')
    return /read-only/.test(error.message)
  })
  assert.equal(await children.kill(leaving!, 'SIGTERM'), 0)
  const before = proxy.sent.length
  await sleep(WATCHED_MS)
  const made = proxy.sent.slice(before)
  assert.ok(made.length > 3 && made.length <= STATEMENTS_MAX, `${made.length} statements: ${made.slice(0, 50)}`)
  await readOnly('off')
  await allEnded(queue, jobs)
  assert.deepEqual(children.lines('start never'), [])
  assert.deepEqual(children.lines('warning'), [])
  assert.equal((await queue.counts('process')).ready.count, 0)
})

test('B35: connections that go on answering read-only are given up, and new ones find who writes', async () => {
  childrenAt(server.url)
  const child = await children.start({ ...QUICK, lease: '1h' })
  const [job] = await load(queue, 1, 1)
  await job!.result({ timeout: '20s' })
  const told: string[] = []
  const listening = openPostgres({ url: server.url, env: hasty(30) })
  const end = await listening.wake.listen(
    ['process'],
    () => void told.push('hears'),
    () => void told.push('deaf'),
  )
  ends.push(() => listening.close(), end)
  await until('it listens', () => told.includes('hears'))
  await readOnly('on')
  await assert.rejects(queue.enqueue(pause, { name: 'never', ms: 1 }), { code: 'STORE_UNAVAILABLE' })
  await until('claims meet it', async () => (await children.health(child)).failing.includes('claim'))
  await until('the listener has left it', () => told.includes('deaf'))
  // From now on whoever connects may write; those who are connected may not, for as long as they stay.
  await admin.query('alter role leasehold set default_transaction_read_only = off')
  const more = await load(queue, 5, 1)
  for (const one of more) await one.result({ timeout: '30s' })
  await until('it is well', async () => (await children.health(child)).status === 'ok')
  assert.deepEqual(children.lines('start never'), [])
})

test('B10: a restart in the middle of long jobs: nobody starts them before the lease is over, each ends once', async () => {
  childrenAt(server.url)
  // Beats go on within the lease as soon as the server is back.
  const options = { ...QUICK, lease: '30s', beat: '500ms' }
  await Promise.all([children.start(options), children.start(options)])
  const jobs = await load(queue, 20, 6_000)
  await children.until('start load-', 20)
  await server.stop()
  server = await started('first')
  queue = await connect(server.url)
  ends.push(() => queue.close())
  await allEnded(queue, jobs)
  assert.equal(children.lines('start load-').length, 20)
  assert.deepEqual(children.lines('event {"type":"worker.took over"'), [])
})

/** Two servers: the first, and one that follows it. */
async function withStandby(): Promise<EmbeddedServer> {
  await queue.close()
  await admin.end()
  await server.stop()
  // A copy of a server that stands still needs no tool.
  await mkdir(join(dir, 'second'), { mode: 0o700 })
  for (const name of ['pgdata', 'password']) execFileSync('cp', ['-a', join(dir, 'first', name), join(dir, 'second')])
  server = await started('first')
  const { hostname, port, username, password } = new URL(server.url)
  await writeFile(join(dir, 'second', 'pgdata', 'standby.signal'), '')
  return started('second', {
    primary_conninfo: `host=${hostname} port=${port} user=${username} password=${decodeURIComponent(password)}`,
  })
}

test('B35: the primary is lost, its address leads to a standby, which is promoted later: work goes on there', async () => {
  const standby = await withStandby()
  const proxy = await TcpProxy.to(server.url)
  ends.push(() => proxy.close())
  queue = await connect(proxy.url)
  ends.push(() => queue.close())
  childrenAt(proxy.url)
  const [child] = await Promise.all([children.start(QUICK), children.start(QUICK)])
  const jobs = await load(queue, 200, 200)
  await children.until('end load-', 20)
  const follower = await adminOf(standby.url)
  const primary = await adminOf(server.url)
  const { rows } = await primary.query('select pg_current_wal_flush_lsn() as lsn')
  proxy.swallow = true
  proxy.leadTo(standby.url)
  await until('the standby has all that was told as stored', async () => {
    const answer = await follower.query('select pg_last_wal_replay_lsn() >= $1 as has', [rows[0].lsn])
    return answer.rows[0].has
  })
  await primary.end()
  await server.stop()
  proxy.cut()
  proxy.swallow = false
  await until('they have reached it', async () => {
    const { failing } = await children.health(child!)
    return failing.includes('beat')
  })
  await until('it is told that nothing is stored', async () => {
    const error = await queue.enqueue(pause, { name: 'never', ms: 1 }).catch((error) => error)
    assert.match(error.code, /STORE_UNAVAILABLE|OUTCOME_UNKNOWN/)
    return error.code === 'STORE_UNAVAILABLE' && /read-only|recovery/.test(error.message)
  })
  await follower.query('select pg_promote()')
  await allEnded(queue, jobs)
  await until('it is well', async () => (await children.health(child!)).status === 'ok')
  assert.deepEqual(children.lines('warning'), [])
})
