/** Whether hints arrive, as `leasehold doctor` asks: it leaves nothing behind, and comes to an end. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { startPooler } from '../support/pgbouncer.js'
import { type Scratch, scratch } from '../support/postgres.js'
import { TcpProxy } from '../support/proxy.js'

let store: Scratch
before(async () => {
  store = await scratch()
})
after(() => store.drop())

test('straight to the server hints arrive', async () => {
  assert.equal(await store.storage.diagnose.hints(), 'arrive')
})

test('through a transaction pooler they do not, and no session of the pooler goes on listening', async () => {
  const pooler = await startPooler(store.url, { servers: 3 })
  const own = await Promise.all([1, 2, 3].map(() => connected(pooler.url)))
  try {
    for (const client of own) await client.query('select 1')
    assert.equal(await store.open({ url: pooler.url }).diagnose.hints(), 'do not arrive')
    // Each in a transaction of its own at the same time, so that all sessions of the pooler are asked.
    await Promise.all(own.map((client) => client.query('begin')))
    const heard = await Promise.all(
      own.map((client) => client.query('select pg_backend_pid() as pid, pg_listening_channels() as channel')),
    )
    assert.deepEqual(
      heard.flatMap(({ rows }) => rows),
      [],
    )
    const pids = await Promise.all(own.map((client) => client.query('select pg_backend_pid() as pid')))
    assert.equal(new Set(pids.map(({ rows }) => rows[0].pid)).size, 3)
  } finally {
    for (const client of own) await client.end()
    await pooler.stop()
  }
})

for (const mute of [/^listen /, /pg_notify/])
  test(`a connection that says nothing more after ${mute} is given up`, { timeout: 60_000 }, async () => {
    const proxy = await TcpProxy.to(store.url)
    try {
      const storage = store.open({ url: proxy.url, callTimeoutMs: 2_000 })
      proxy.mute = mute
      await assert.rejects(storage.diagnose.hints(), { code: 'STORE_UNAVAILABLE' })
    } finally {
      await proxy.close()
    }
  })

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client(url)
  await client.connect()
  return client
}
