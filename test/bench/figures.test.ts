/** The arithmetic of the benchmarks. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { hundredths, latencies, median, percentile, perSecond, ratio } from '../../bench/figures.js'

const hundred = Array.from({ length: 100 }, (_, n) => n + 1)

test('a percentile is the smallest sample that so many do not exceed', () => {
  assert.equal(percentile(hundred, 0.5), 50)
  assert.equal(percentile(hundred, 0.95), 95)
  assert.equal(percentile(hundred, 0.99), 99)
  assert.equal(percentile(hundred, 1), 100)
  assert.equal(percentile([7], 0.5), 7)
  assert.equal(percentile([1, 2], 0.5), 1)
  assert.equal(percentile([1, 2], 0), 1)
  assert.ok(Number.isNaN(percentile([], 0.5)))
})

test('latencies are of samples in any order, compared as numbers, and leave them as they are', () => {
  const samples = [9, 100, 1, 80]
  assert.deepEqual(latencies(samples), { p50Ms: 9, p95Ms: 100, p99Ms: 100 })
  assert.deepEqual(samples, [9, 100, 1, 80])
  assert.deepEqual(latencies(Float64Array.from([0.12345])), { p50Ms: 0.12, p95Ms: 0.12, p99Ms: 0.12 })
})

test('a median lies between the two in the middle', () => {
  assert.equal(median([10, 1, 9]), 9)
  assert.equal(median([4, 1, 3, 2]), 2.5)
  assert.ok(Number.isNaN(median([])))
})

test('rates and ratios are rounded to what a measurement bears', () => {
  assert.equal(perSecond(1_000, 250), 4_000)
  assert.equal(ratio(2, 3), 0.667)
  assert.equal(ratio(1_234, 1), 1_230)
  assert.equal(hundredths(1.005_1), 1.01)
})
