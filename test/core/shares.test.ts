/** Weights between the queues of one worker. */
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { sharesOf, type WeightedQueue } from '../../src/core/shares.js'

function queues(weights: number[]): WeightedQueue[] {
  return weights.map((weight, i) => ({ queue: `q${i}`, weight, credit: 0, turn: 0 }))
}

/** What each queue got in so many claims of these limits. */
function given(weights: number[], limits: number[]): Map<string, number> {
  const sums = new Map<string, number>()
  let now = queues(weights)
  for (const limit of limits) {
    const next = sharesOf(now, limit)
    now = next.queues
    for (const { queue, share } of next.shares) sums.set(queue, (sums.get(queue) ?? 0) + share)
  }
  return sums
}

test('claims of one job follow the weights, evenly spread', () => {
  let now = queues([3, 1])
  const order = Array.from({ length: 8 }, () => {
    const next = sharesOf(now, 1)
    now = next.queues
    return next.shares.find(({ share }) => share === 1)!.queue
  })
  assert.deepEqual(order.filter((queue) => queue === 'q0').length, 6)
  assert.ok(!order.join().includes('q1,q1'))
})

test('shares add up to the limit, and each queue gets its weight to within one job', () => {
  const weights = fc.array(fc.double({ min: 0.01, max: 1_000, noNaN: true }), { minLength: 1, maxLength: 8 })
  const limits = fc.array(fc.integer({ min: 1, max: 500 }), { minLength: 1, maxLength: 50 })
  fc.assert(
    fc.property(weights, limits, (some, asked) => {
      const sums = given(some, asked)
      const total = asked.reduce((a, b) => a + b, 0)
      const weight = some.reduce((a, b) => a + b, 0)
      assert.equal(
        [...sums.values()].reduce((a, b) => a + b, 0),
        total,
      )
      for (const [i, one] of some.entries())
        assert.ok(Math.abs(sums.get(`q${i}`)! - (total * one) / weight) <= some.length)
    }),
  )
})

test('whoever is next in line comes first, and so gets what others leave', () => {
  const { shares, queues: next } = sharesOf(queues([2, 1, 1]), 1)
  assert.equal(shares.at(-1)!.queue, 'q0')
  assert.ok(Math.abs(next.reduce((sum, { credit }) => sum + credit, 0)) < 1e-9)
})
