/** The whole conformance suite through a PgBouncer in transaction mode, with two connections that it changes all the time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { conformanceOn } from '../support/conformance.js'
import { type Pooler, startPooler } from '../support/pgbouncer.js'

let pooler: Pooler

conformanceOn(18, async (url) => {
  pooler = await startPooler(url, { servers: 2, settings: { server_lifetime: 2 } })
  return { ...pooler, deaf: true }
})

test('B132: what the suite goes through hands two sessions around among all that come', async () => {
  const clients = Array.from({ length: 6 }, () => new pg.Client(pooler.url))
  await Promise.all(clients.map((client) => client.connect()))
  const asked = clients.map((client) => client.query('select pg_backend_pid() as pid, pg_sleep(0.02)::text'))
  const pids = (await Promise.all(asked)).map(({ rows }) => (rows[0] as { pid: number }).pid)
  assert.equal(new Set(pids).size, 2)
  await Promise.all(clients.map((client) => client.end()))
})
