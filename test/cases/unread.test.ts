/** A worker that stands still, and what the server keeps open for it meanwhile. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { schemaName } from '../../src/storage/postgres/schema-name.js'
import { Children } from '../support/children.js'
import { scratch } from '../support/postgres.js'
import { until } from '../support/until.js'

/** Far more than fits into the buffers between a server and a client. */
const HINTS = 400_000

test('B116: for a frozen worker that reads no hints the server keeps no snapshot open', async () => {
  const store = await scratch()
  const name = `unread_${store.schema}`
  const url = new URL(store.url)
  url.searchParams.set('application_name', name)
  const children = new Children({ url: url.href, schema: store.schema })
  const sessions = async (condition: string): Promise<number> => {
    const [row] = await store.sql(
      `select count(*)::int as n from pg_stat_activity where application_name = $1 and ${condition}`,
      [name],
    )
    return row!.n as number
  }
  try {
    const frozen = await children.start()
    await until('it works and listens', async () => {
      const [row] = await store.sql('select count(*)::int as n from :s.worker')
      return row!.n === 1 && (await sessions('true')) >= 3
    })
    frozen.kill('SIGSTOP')
    const { channel } = schemaName(store.schema)
    await store.sql(
      `do $$ begin for n in 1 .. ${HINTS} loop perform pg_notify('${channel}', 'queue ' || n); end loop; end $$`,
    )
    await until('the server tries to write', async () => (await sessions('backend_xmin is not null')) > 0)
    await until('it has given up', async () => (await sessions('backend_xmin is not null')) === 0)
    // Once it goes on it hears again: all connections that it had are there, or made anew.
    frozen.kill('SIGCONT')
    await until('it listens again', async () => (await sessions(`query like '%tcp_user_timeout%'`)) > 0)
    assert.equal(await children.kill(frozen, 'SIGTERM'), 0)
  } finally {
    await children.end()
    await store.drop()
  }
})
