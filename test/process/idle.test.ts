/** What an idle worker costs its server: its statements, counted on their way. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Children } from '../support/children.js'
import { scratch } from '../support/postgres.js'
import { TcpProxy } from '../support/proxy.js'

const SETTLING_MS = 6_000
const MEASURED_MS = 15_000
const STATEMENTS_PER_SECOND_MAX = 2

test('an idle worker sends at most two statements a second', async () => {
  const store = await scratch()
  const proxy = await TcpProxy.to(store.url)
  const children = new Children({ url: proxy.url, schema: store.schema })
  try {
    await children.start()
    await sleep(SETTLING_MS)
    proxy.sent.length = 0
    await sleep(MEASURED_MS)
    const perSecond = proxy.sent.length / (MEASURED_MS / 1_000)
    assert.ok(perSecond > 0, 'the worker does nothing at all')
    assert.ok(perSecond <= STATEMENTS_PER_SECOND_MAX, `${perSecond} a second: ${proxy.sent}`)
  } finally {
    await children.end()
    await proxy.close()
    await store.drop()
  }
})
