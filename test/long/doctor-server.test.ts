/** Faults of the server itself, on one that is made for them: settings, limits, old snapshots, tables that have grown. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, type TestContext, test } from 'node:test'
import type { EmbeddedServer } from '@leasehold/embedded'
import { startEmbedded } from '@leasehold/embedded'
import pg from 'pg'
import type { Finding } from '../../src/cli/doctor/finding.js'
import { connect, type Queue } from '../../src/index.js'
import { examine, withQueue } from '../cli/patient.js'

const SCHEMA = 'sick'
const SETTINGS = {
  fsync: 'off',
  full_page_writes: 'off',
  synchronous_commit: 'off',
  autovacuum: 'off',
  max_connections: '14',
  max_prepared_transactions: '2',
}

let dir: string
let server: EmbeddedServer
let admin: pg.Client
let queue: Queue

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'leasehold-doctor-'))
  server = await startEmbedded({ dir, settings: SETTINGS })
  admin = await client()
  queue = await connect(server.url, { schema: SCHEMA, connections: 2 })
})
after(async () => {
  await queue?.close()
  await admin?.end()
  await server?.stop()
  await rm(dir, { recursive: true, force: true, maxRetries: 20 })
})
/** Whatever a test has left would hold the next one's rows. */
beforeEach(async () => {
  await admin.query(`vacuum ${SCHEMA}.ready`)
})

async function client(t?: TestContext): Promise<pg.Client> {
  const made = new pg.Client({ connectionString: server.url, application_name: 'a test' })
  made.on('error', () => {})
  await made.connect()
  t?.after(() => made.end())
  return made
}

const look = (name: string): Promise<Finding> => examine(queue, name)

/** Makes so many transactions pass, in one statement. */
async function transactionsPass(count: number): Promise<void> {
  await admin.query('create temp table if not exists passed (n int)')
  await admin.query(
    `do $$ begin for n in 1 .. ${count} loop begin insert into passed values (n); exception when others then null; end; end loop; end $$`,
  )
}

test('a server that forgets what it has confirmed is found', async () => {
  const { verdict, text } = await look('durability')
  assert.equal(verdict, 'fail')
  for (const word of ['fsync is off', 'full_page_writes is off', 'synchronous_commit is off'])
    assert.ok(text.includes(word), text)
})

test('connections are counted before they run out', async (t) => {
  assert.equal((await look('connections')).verdict, 'ok')
  for (let n = 0; n < 10; n++) await client(t)
  const { verdict, text } = await look('connections')
  assert.notEqual(verdict, 'ok', text)
  assert.match(text, /^\d+ of \d+ connections of the server are open$/)
})

test('a limit of the role counts, too', async (t) => {
  await admin.query(`create role narrow login password 'narrow' connection limit 3`)
  await admin.query(
    `grant usage on schema ${SCHEMA} to narrow; grant select on all tables in schema ${SCHEMA} to narrow`,
  )
  t.after(() => admin.query('drop owned by narrow; drop role narrow'))
  const url = new URL(server.url)
  Object.assign(url, { username: 'narrow', password: 'narrow' })
  await withQueue(url.href, SCHEMA, async (other) => {
    const more = new pg.Client(url.href)
    await more.connect()
    const again = new pg.Client(url.href)
    await again.connect()
    const { verdict, text } = await examine(other, 'connections')
    await Promise.all([more.end(), again.end()])
    assert.deepEqual([verdict, text], ['fail', '3 of 3 connections of this role are open'])
    const rights = await examine(other, 'rights')
    assert.equal(rights.verdict, 'warn')
    assert.ok(rights.items!.includes('read and write ready'), rights.items!.join('\n'))
  })
})

test('a snapshot that was left open is found by who holds it, before it is old', async (t) => {
  assert.equal((await look('snapshots')).verdict, 'ok')
  const holder = await client(t)
  await holder.query('begin isolation level repeatable read')
  await holder.query('select count(*) from pg_class')
  const { rows } = await holder.query('select pg_backend_pid() as pid')
  await transactionsPass(100_000)
  const { verdict, items, fix } = await look('snapshots')
  assert.equal(verdict, 'warn')
  assert.match(
    items![0]!,
    new RegExp(`^pid ${rows[0].pid} \\(a test, leasehold\\) idle in transaction for \\S+ 100,\\d{3} transactions ago$`),
  )
  assert.match(fix!, /pg_terminate_backend/)
  await holder.query('rollback')
  assert.equal((await look('snapshots')).verdict, 'ok')
})

test('a transaction that was prepared and forgotten is found', async (t) => {
  const preparer = await client(t)
  await preparer.query(`begin; create table ${SCHEMA}_kept (n int); prepare transaction 'forgotten'`)
  t.after(() => admin.query(`rollback prepared 'forgotten'`))
  await transactionsPass(100_000)
  const { verdict, items, fix } = await look('snapshots')
  assert.equal(verdict, 'warn')
  assert.match(items![0]!, /^prepared transaction forgotten \(leasehold\) prepared/)
  assert.match(fix!, /rollback prepared/)
})

test('vacuum that does not come is found: switched off, disabled, and by the rows that are dead', async (t) => {
  assert.match((await look('vacuum')).text, /^autovacuum is off for the whole server/)
  await admin.query(`alter table ${SCHEMA}.ready set (autovacuum_enabled = false)`)
  t.after(() => admin.query(`alter table ${SCHEMA}.ready reset (autovacuum_enabled); truncate ${SCHEMA}.ready`))
  assert.match((await look('vacuum')).text, /autovacuum is disabled for table ready/)
  await admin.query(
    `insert into ${SCHEMA}.ready (lane, bytes, pos, id, kind, payload) select 68, 1, n, gen_random_uuid(), 'k', '1' from generate_series(1, 210000) n`,
  )
  assert.doesNotMatch((await look('vacuum')).text, /dead rows beside/)
  await admin.query(`delete from ${SCHEMA}.ready`)
  await admin.query('select pg_stat_force_next_flush()')
  await admin.query('select 1')
  assert.match((await look('vacuum')).text, /table ready has 210,000 dead rows beside 0 live ones/)
})

test('a table that holds on to room which nothing lies in is found', async (t) => {
  t.after(() => admin.query(`truncate ${SCHEMA}.ready`))
  assert.equal((await look('growth')).verdict, 'ok')
  // Text that does not compress, 1 MB a row, and one row behind all of them that keeps the file from being cut.
  await admin.query(
    `insert into ${SCHEMA}.ready (lane, bytes, pos, id, kind, payload) select 68, 1, n, gen_random_uuid(), 'k',
      (select json_agg(md5(random()::text || m || n)) from generate_series(1, 26000) m) from generate_series(1, 280) n`,
  )
  await admin.query(`delete from ${SCHEMA}.ready where pos < 280`)
  // Counted before vacuum says what is left, and not taken away from that.
  await admin.query('select pg_stat_force_next_flush()')
  await admin.query(`vacuum (truncate off) ${SCHEMA}.ready`)
  const { verdict, text } = await look('growth')
  assert.equal(verdict, 'warn', text)
  assert.match(text, /^table ready takes \d+ MB for 1 row$/)
})
