/** When worker processes together had run so many jobs. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { whenRan } from '../../bench/drain-round.js'

function process(...marks: [ran: number, atUs: number][]) {
  return { marks: marks.map(([ran, atUs]) => ({ ran, atUs, rssBytes: 0 })) }
}

function near(actual: number, expected: number): void {
  assert.ok(Math.abs(actual - expected) <= 1, `${actual} is not ${expected}`)
}

test('of one process: at its marks, and in between in proportion', () => {
  const one = [process([0, 1_000], [100, 2_000], [200, 6_000])]
  near(whenRan(one, 100), 2_000)
  near(whenRan(one, 50), 1_500)
  near(whenRan(one, 150), 4_000)
  near(whenRan(one, 200), 6_000)
})

test('of several: what they ran by then is added up', () => {
  const both = [process([0, 0], [100, 1_000]), process([0, 0], [100, 10_000])]
  near(whenRan(both, 110), 1_000)
  near(whenRan(both, 155), 5_500)
  near(whenRan(both, 200), 10_000)
})

test('jobs beyond the last mark count as run at it', () => {
  near(whenRan([process([0, 0], [100, 1_000])], 103), 1_000)
})
