import { strict as assert } from 'node:assert'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Backoff, SPEC_DEFAULTS } from '../../src/core/job.js'
import { RETRY_DELAY_MS_MAX, retryDelayMs } from '../../src/core/retry.js'

const CHANCES = [0, 0.5, 1 - 2 ** -53]

test('the delays of the default policy: 2 s, doubled each time, an hour at most', () => {
  const delays = Array.from({ length: 14 }, (_, i) => retryDelayMs(SPEC_DEFAULTS.backoff, i + 1, 0.5))
  assert.deepEqual(delays.slice(0, 5), [2_000, 4_000, 8_000, 16_000, 32_000])
  assert.deepEqual(delays.slice(-2), [3_600_000, 3_600_000])
})

test('the five retries of the default policy take about a minute', () => {
  const sum = [1, 2, 3, 4, 5].reduce((total, attempt) => total + retryDelayMs(SPEC_DEFAULTS.backoff, attempt, 0.5), 0)
  assert.equal(sum, 62_000)
})

test('exponential: finite, rising up to the cap and never over it for attempts 1 to 10,000', () => {
  for (const baseMs of [1_000, 10_000]) {
    for (const factor of [2, 10]) {
      const backoff: Backoff = { type: 'exponential', baseMs, factor, capMs: 3_600_000, jitter: 0.25 }
      for (const random of CHANCES) {
        let before = 0
        for (let attempt = 1; attempt <= 10_000; attempt++) {
          const delay = retryDelayMs(backoff, attempt, random)
          assert(Number.isSafeInteger(delay) && delay >= before, `attempt ${attempt}: ${delay}`)
          assert(delay <= 3_600_000 * 1.25 && delay >= baseMs * 0.75)
          before = delay
        }
        assert.equal(before, Math.round(3_600_000 * (1 + 0.25 * (2 * random - 1))))
      }
    }
  }
})

test('any policy at any attempt gives a whole number that a store can hold', () => {
  const backoff = fc.oneof(
    fc.record({
      type: fc.constant('exponential' as const),
      baseMs: fc.oneof(fc.constant(0), fc.nat(1e9)),
      factor: fc.oneof(fc.constant(0), fc.constant(1), fc.double({ min: 0, max: 1e3, noNaN: true })),
      capMs: fc.oneof(fc.nat(1e9), fc.constant(Number.MAX_VALUE), fc.constant(Infinity)),
      jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
    fc.record({
      type: fc.constant('linear' as const),
      baseMs: fc.nat(1e9),
      capMs: fc.oneof(fc.nat(1e9), fc.constant(Infinity)),
      jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
    fc.record({
      type: fc.constant('fixed' as const),
      baseMs: fc.nat(1e9),
      jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  )
  const attempts = fc.oneof(
    fc.integer({ min: -1, max: 2_000 }),
    fc.constantFrom(31, 64, 1_100, 2 ** 31, Number.MAX_SAFE_INTEGER),
  )
  fc.assert(
    fc.property(
      backoff,
      attempts,
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (policy, attempt, random) => {
        const delay = retryDelayMs(policy, attempt, random)
        assert(Number.isSafeInteger(delay) && delay >= 0 && delay <= RETRY_DELAY_MS_MAX, `${delay}`)
      },
    ),
  )
})

test('jitter spreads to both sides and no further', () => {
  const backoff: Backoff = { type: 'fixed', baseMs: 10_000, jitter: 0.25 }
  assert.deepEqual(
    CHANCES.map((random) => retryDelayMs(backoff, 3, random)),
    [7_500, 10_000, 12_500],
  )
  const draws = new Set(Array.from({ length: 100 }, (_, i) => retryDelayMs(backoff, 1, i / 100)))
  assert.equal(draws.size, 100, 'jobs that failed together come back apart')
})

test('without jitter the delay is exact', () => {
  for (const random of CHANCES)
    assert.equal(retryDelayMs({ type: 'fixed', baseMs: 1_234, jitter: 0 }, 9, random), 1_234)
})

test('linear grows by its base up to its cap', () => {
  const backoff: Backoff = { type: 'linear', baseMs: 1_000, capMs: 3_500, jitter: 0 }
  assert.deepEqual(
    [1, 2, 3, 4, 99].map((attempt) => retryDelayMs(backoff, attempt, 0)),
    [1_000, 2_000, 3_000, 3_500, 3_500],
  )
})

test('a base of nothing is no delay, at any attempt', () => {
  const backoff: Backoff = { type: 'exponential', baseMs: 0, factor: 2, capMs: 3_600_000, jitter: 0.25 }
  assert.equal(retryDelayMs(backoff, 5_000, 0.9), 0)
})
