/** The end of a connection on a real PostgreSQL: what was sent is there, and nothing hangs. */
import assert from 'node:assert/strict'
import test from 'node:test'
import pg from 'pg'
import { connect } from '../../src/connect.js'
import { defineJob } from '../../src/core/kind.js'
import { scratch } from '../support/postgres.js'

const kind = defineJob<number>('kind')

test('close waits for batches under way: what was told as stored is stored, the rest is refused', async () => {
  const store = await scratch()
  const queue = await connect(store.url, { schema: store.schema, migrate: false })
  const enqueuing = queue.enqueueMany(Array.from({ length: 20_000 }, (_, n) => kind.with(n)))
  await queue.close()
  const results = await enqueuing
  const created = results.filter(({ status }) => status === 'created').length
  const codes = new Set(results.flatMap((result) => ('error' in result ? [result.error.code] : [])))
  assert.ok(created >= 1_000 && created < 20_000, `${created} were stored`)
  assert.deepEqual([...codes], ['QUEUE_CLOSED'])
  const [row] = await store.sql('select count(*)::int as stored from :s.job')
  assert.equal(row!.stored, created)
  await store.drop()
})

test('a pool is refused as tx', async () => {
  const store = await scratch()
  const queue = await connect(store.url, { schema: store.schema, migrate: false })
  const pool = new pg.Pool({ connectionString: store.url })
  await assert.rejects(queue.enqueue(kind, 1, { tx: pool }), { code: 'INVALID_OPTION', field: 'tx' })
  const client = await pool.connect()
  await client.query('begin')
  const { id } = await queue.enqueue(kind, 1, { tx: client })
  await client.query('commit')
  assert.equal((await queue.get(id))!.payload, 1)
  client.release()
  await pool.end()
  await queue.close()
  await store.drop()
})

test('what is wrong with the URL is told by its parts, and never by its password', async () => {
  const { host, port, user, database } = partsOf(await urlOfServer())
  const wrong = [
    `postgres://${user}:s3cret@${host}:${port}/no_such_database`,
    `postgres://no_such_role:s3cret@${host}:1/x`,
  ]
  for (const url of wrong)
    await assert.rejects(connect(url), (error: Error & { code?: string }) => {
      assert.equal(error.code, 'STORE_UNAVAILABLE')
      assert.match(error.message, /check that the server runs, and host, port, user, password and database of the URL/)
      assert.match(error.message, new RegExp(`host ${host}, port \\d+, user \\w+, database \\w+`))
      assert.doesNotMatch(error.message, /s3cret/)
      return true
    })
  assert.ok(database)
})

async function urlOfServer(): Promise<string> {
  const store = await scratch()
  await store.drop()
  return store.url
}

function partsOf(url: string): { host: string; port: string; user: string; database: string } {
  const { hostname, port, username, pathname } = new URL(url)
  return { host: hostname, port, user: username, database: pathname.slice(1) || username }
}
