/** Flood: what its figures are held to, and how shares are counted. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { breaks } from '../../bench/figures.js'
import { floodFigures, heavyForEachLight, type Measured, type Waits } from '../../bench/scenarios/flood.js'
import { inOrder } from '../../bench/starts.js'

/** A hundred jobs of which each waits as long. */
function waits(ms: number): Waits {
  return { latencyMs: new Float64Array(100).fill(ms), lateMs: new Float64Array(100), ran: 1, left: 1 }
}

function measured({
  empty,
  flooded,
  weightRatio = 3,
}: {
  empty: number
  flooded: number
  weightRatio?: number
}): Measured {
  return { empty: waits(empty), flooded: waits(flooded), weightRatio, waiting: 200, weighted: 100 }
}

test('others may wait twice as long as in an empty queue, and a run of 20 ms and a window of 100 ms', () => {
  const kept = floodFigures(measured({ empty: 10, flooded: 140 }))
  assert.deepEqual([kept.victimP99Ms, kept.emptyP99Ms, kept.boundMs, kept.holds], [140, 10, 140, true])
  assert.equal(floodFigures(measured({ empty: 10, flooded: 140.01 })).holds, false)
})

test('shares of weights 3 and 1 are 3 within 5 %', () => {
  const held = [2.84, 2.85, 3.15, 3.16].map(
    (weightRatio) => floodFigures(measured({ empty: 1, flooded: 1, weightRatio })).holds,
  )
  assert.deepEqual(held, [false, true, true, false])
})

test('a broken bound fails the command, but not where sizes are small', () => {
  const broken = floodFigures(measured({ empty: 1, flooded: 1_000 }))
  assert.deepEqual([breaks(broken, 'full'), breaks(broken, 'quick')], [true, false])
  assert.equal(breaks({ scenario: 'drain' }, 'full'), false)
})

test('shares are counted over the first starts of all processes together', () => {
  const starts = inOrder([Float64Array.of(1, 10, -1, 40, -2, 60, -3, 70), Float64Array.of(0, 20, 2, 30, -4, 50)])
  assert.deepEqual([...starts], [1, 10, 0, 20, 2, 30, -1, 40, -4, 50, -2, 60, -3, 70])
  assert.equal(heavyForEachLight(starts, 4), 3)
})
