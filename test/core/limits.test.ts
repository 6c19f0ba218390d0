/** The token bucket: never more than burst and what came in, and nothing is lost on the way. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Bucket, type RateLimit, taken, tokensAt, untilToken } from '../../src/core/limits.js'

const FULL: Bucket = { takenUntil: Number.NEGATIVE_INFINITY }

const rates = fc.record({
  limit: fc.integer({ min: 1, max: 10_000 }),
  perMs: fc.integer({ min: 1, max: 3_600_000 }),
  burst: fc.integer({ min: 1, max: 1_000 }),
})

/** What was taken when, by somebody who always takes all there is, at most `most`. */
function greedy(rate: RateLimit, steps: readonly { waitMs: number; most: number }[]): { at: number; count: number }[] {
  let bucket = FULL
  let now = 1_000_000
  return steps.map(({ waitMs, most }) => {
    now += waitMs
    const count = Math.min(most, tokensAt(bucket, rate, now))
    if (count > 0) bucket = taken(bucket, rate, now, count)
    return { at: now, count }
  })
}

const steps = fc.array(
  fc.record({ waitMs: fc.integer({ min: 0, max: 600_000 }), most: fc.integer({ min: 1, max: 2_000 }) }),
  { maxLength: 40 },
)

test('within any span no more than burst and what came in within it', () => {
  fc.assert(
    fc.property(rates, steps, (rate, given) => {
      const takes = greedy(rate, given)
      for (let from = 0; from < takes.length; from++) {
        let sum = 0
        for (let to = from; to < takes.length; to++) {
          sum += takes[to]!.count
          const cameIn = ((takes[to]!.at - takes[from]!.at) * rate.limit) / rate.perMs
          assert.ok(sum <= rate.burst + cameIn + 1e-6, `${sum} in ${takes[to]!.at - takes[from]!.at} ms`)
        }
      }
    }),
  )
})

test('a token is there when it was promised, and not before', () => {
  fc.assert(
    fc.property(rates, steps, (rate, given) => {
      let bucket = FULL
      let now = 1_000_000
      for (const { waitMs } of given) {
        now += waitMs
        const count = tokensAt(bucket, rate, now)
        if (count > 0) bucket = taken(bucket, rate, now, count)
        const wait = untilToken(bucket, rate, now)
        assert.ok(wait <= rate.perMs / rate.limit + 1e-6)
        assert.equal(tokensAt(bucket, rate, now + wait * 0.99), 0)
        assert.ok(tokensAt(bucket, rate, now + wait + 0.001) >= 1)
      }
    }),
  )
})
