/** How many jobs a worker claims ahead. */
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { claimLimit, Paces, prefetchBeyond } from '../../src/core/prefetch.js'

const WINDOW = 100

test('a kind never measured counts as half a window: twice the slots at first', () => {
  const meanMs = new Paces().meanMs(WINDOW)
  assert.equal(prefetchBeyond({ quickSlots: 10, meanMs, windowMs: WINDOW, max: 500 }), 20)
})

test('jobs slower than the window are not prefetched, quick ones up to the bound', () => {
  const beyond = (meanMs: number): number => prefetchBeyond({ quickSlots: 10, meanMs, windowMs: WINDOW, max: 500 })
  assert.equal(beyond(101), 0)
  assert.equal(beyond(100), 10)
  assert.equal(beyond(10), 100)
  assert.equal(beyond(0), 500)
})

test('without a window nothing is prefetched', () => {
  assert.equal(prefetchBeyond({ quickSlots: 10, meanMs: 0, windowMs: 0, max: 500 }), 0)
})

test('slots that one job has held for a window do not count', () => {
  assert.equal(prefetchBeyond({ quickSlots: 0, meanMs: 1, windowMs: WINDOW, max: 500 }), 0)
})

test('the mean is that of the jobs that come, not of those that end', () => {
  const paces = new Paces()
  paces.claimed(['quick', 'slow'])
  for (let i = 0; i < 100; i++) paces.ran('quick', 1)
  paces.ran('slow', 999)
  assert.equal(Math.round(paces.meanMs(WINDOW)), 500)
  assert.deepEqual(paces.slow(), ['slow'])
})

test('a mix that changes is noticed within a few claims', () => {
  const paces = new Paces()
  paces.ran('quick', 1)
  paces.ran('slow', 1_000)
  for (let i = 0; i < 50; i++) paces.claimed(['slow'])
  for (let i = 0; i < 12; i++) paces.claimed(['quick'])
  assert.ok(paces.meanMs(WINDOW) < WINDOW)
})

test('a claim never asks for more than slots, window and batch allow, and always fills a free slot', () => {
  const facts = fc.record({
    free: fc.nat(10_000),
    buffered: fc.nat(2_000),
    beyond: fc.nat(1_000),
    max: fc.integer({ min: 1, max: 500 }),
  })
  fc.assert(
    fc.property(facts, (given) => {
      const limit = claimLimit(given)
      assert.ok(limit >= 0 && limit <= given.max)
      assert.ok(limit + given.buffered <= Math.max(given.buffered, given.free + given.beyond))
      if (given.free > given.buffered) assert.ok(limit > 0)
    }),
  )
})

test('a buffer more than half full is left to drain, so that claims are batches', () => {
  assert.equal(claimLimit({ free: 0, buffered: 51, beyond: 100, max: 500 }), 0)
  assert.equal(claimLimit({ free: 0, buffered: 50, beyond: 100, max: 500 }), 50)
})
