/** How long the worker waits before it asks the store again. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { FIRST_POLL_MS, jittered, pollDelayMs, storeRetryMs } from '../../src/core/polling.js'

test('empty claims back off from 5 ms to the poll interval', () => {
  const waits = Array.from({ length: 14 }, (_, i) => pollDelayMs(i + 1, FIRST_POLL_MS, 5_000, 0.5))
  assert.deepEqual(waits.slice(0, 5), [5, 10, 20, 40, 80])
  assert.equal(waits.at(-1), 5_000)
})

test('polls are spread by a fifth, so that idle workers do not keep step', () => {
  assert.equal(pollDelayMs(100, FIRST_POLL_MS, 5_000, 0), 4_000)
  assert.equal(Math.round(pollDelayMs(100, FIRST_POLL_MS, 5_000, 0.999999)), 6_000)
  assert.equal(jittered(100, 0), 80)
})

test('a store that fails at once is asked less than a hundred times in a minute', () => {
  for (const random of [0, 0.5, 0.999]) {
    let at = 0
    let tries = 0
    while (at < 60_000) at += storeRetryMs(++tries, random)
    assert.ok(tries < 50, `${tries} tries`)
  }
})

test('counts without end stay finite', () => {
  assert.equal(storeRetryMs(100_000, 0), 5_000)
  assert.equal(pollDelayMs(100_000, FIRST_POLL_MS, 1_000, 0.5), 1_000)
})
