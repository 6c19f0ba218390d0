/** How long a new job would wait, by what is known of its queue. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drainPerSecond, expectedWaitMs, type Load } from '../../src/core/capacity.js'
import { retryAfterMs } from '../../src/core/limits.js'

/** A hundred jobs wait for ten slots, of which all are taken; ten a second were completed, each of them in a second. */
const load = (more: Partial<Load> = {}): Load => ({
  ready: 100,
  workers: 2,
  slots: 10,
  busy: 10,
  paused: false,
  drained: { count: 200, sinceMs: 20_000 },
  ranMs: 1_000,
  concurrency: null,
  rate: null,
  ...more,
})

test('while all slots are taken, what they complete is the pace', () => {
  assert.equal(expectedWaitMs(load()), 10_000)
  assert.equal(expectedWaitMs(load({ drained: { count: 200, sinceMs: 10_000 } })), 5_000)
  assert.equal(expectedWaitMs(load({ ranMs: null })), 10_000)
})

test('while slots are free, the pace is what they could do', () => {
  // One job in ten seconds came, and was done at once: a hundred that come now do not wait for a quarter of an hour.
  const idle = { busy: 0, drained: { count: 6, sinceMs: 60_000 } }
  assert.equal(expectedWaitMs(load(idle)), 10_000)
  assert.equal(expectedWaitMs(load({ ...idle, ranMs: 0 })), 10)
  assert.equal(expectedWaitMs(load({ ...idle, concurrency: 2 })), 50_000)
})

test('nobody waits where a slot is free for him', () => {
  assert.equal(expectedWaitMs(load({ ready: 0 })), 0)
  assert.equal(expectedWaitMs(load({ ready: 3, busy: 6, drained: { count: 0, sinceMs: 0 }, ranMs: null })), 0)
  assert.notEqual(expectedWaitMs(load({ ready: 4, busy: 6 })), 0)
  assert.notEqual(expectedWaitMs(load({ ready: 3, busy: 6, concurrency: 7 })), 0)
})

test('a rate of starts is no faster than it says', () => {
  assert.equal(expectedWaitMs(load({ rate: { limit: 2, perMs: 1_000, burst: 1 } })), 50_000)
  assert.equal(expectedWaitMs(load({ rate: { limit: 1_000, perMs: 1_000, burst: 1 } })), 10_000)
})

test('without a worker, in a pause, or where nothing was completed nobody knows', () => {
  const nothing = { drained: { count: 0, sinceMs: 0 }, ranMs: null }
  for (const more of [{ workers: 0, slots: 0, busy: 0 }, { paused: true }, nothing])
    assert.equal(expectedWaitMs(load(more)), null)
})

test('two that ended in one moment are no pace of a thousand a second', () => {
  assert.equal(drainPerSecond({ count: 2, sinceMs: 0 }), 2)
  assert.equal(drainPerSecond({ count: 0, sinceMs: 0 }), null)
  assert.equal(drainPerSecond({ count: 30, sinceMs: 60_000 }), 0.5)
})

test('whoever is refused comes back when a tenth of the limit is free, within bounds', () => {
  const drained = { count: 100, sinceMs: 10_000 }
  assert.equal(retryAfterMs({ depth: 1_000, limit: 1_000 }, drained), 10_000)
  assert.equal(retryAfterMs({ depth: 1_500, limit: 1_000 }, drained), 60_000)
  assert.equal(retryAfterMs({ depth: 1, limit: 1 }, { count: 200, sinceMs: 1_000 }), 50)
  assert.equal(retryAfterMs({ depth: 5, limit: 5 }, { count: 0, sinceMs: 0 }), 1_000)
})
