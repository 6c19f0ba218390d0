/** The connection that listens for hints: proven to hear, found out when it no longer does, and made anew. */
import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import type { PostgresStorage } from '../../src/storage/postgres/index.js'
import { hasty } from '../support/hasty.js'
import { type Scratch, scratch } from '../support/postgres.js'
import { TcpProxy } from '../support/proxy.js'
import { until } from '../support/until.js'

let store: Scratch
let proxy: TcpProxy
before(async () => {
  store = await scratch()
})
after(() => store.drop())
beforeEach(async () => {
  proxy = await TcpProxy.to(store.url)
})
afterEach(() => proxy.close())

/** A listener, and what it was told: queues, or that it hears no longer. */
async function listening(storage: PostgresStorage, queues = ['a', 'b']) {
  const told: string[] = []
  const end = await storage.wake.listen(
    queues,
    (named) => void told.push(named.join('+')),
    () => void told.push('deaf'),
  )
  await until('it is proven to hear', () => told.length > 0)
  return { told, end }
}

function hint(payload: string): Promise<unknown> {
  return store.sql('select pg_notify($1, $2)', [`leasehold_${store.schema}`, payload])
}

test('a listener begins by telling of everything, then of what it listens for, and never of the proofs of others', async () => {
  const { told, end } = await listening(store.open({ url: proxy.url }))
  const other = await listening(store.open({ url: store.url }), ['c'])
  await hint('b,c')
  await until('both have heard', () => told.length > 1 && other.told.length > 1)
  assert.deepEqual(
    [told, other.told],
    [
      ['a+b', 'b'],
      ['c', 'c'],
    ],
  )
  await end()
  await other.end()
})

for (const how of ['cut', 'half open'] as const)
  test(`a listener whose connection is ${how} says that it is deaf, comes back, and tells of everything`, async () => {
    const { told, end } = await listening(store.open({ url: proxy.url, env: hasty(30) }))
    if (how === 'cut') proxy.cut()
    else {
      proxy.swallow = true
      proxy.swallow = false
    }
    await until('it hears again', () => told.length >= 3)
    await hint('a')
    await until('it has heard', () => told.length >= 4)
    assert.deepEqual(told, ['a+b', 'deaf', 'a+b', 'a'])
    await end()
  })

test('a listener that is stopped while its connection comes up holds nobody up', async () => {
  proxy.swallow = true
  const storage = store.open({ url: proxy.url })
  const end = await storage.wake.listen(['a'], () => {})
  await until('it tries', () => proxy.open > 0)
  const began = performance.now()
  await end()
  // Connecting would take five seconds.
  assert.ok(performance.now() - began < 4_000)
})
