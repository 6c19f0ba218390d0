/** Ageing: what its figures are held to. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { ageingFigures } from '../../bench/scenarios/ageing.js'

function held(maxStartsBeyond: number) {
  const low = { maxStartsBetween: 40, maxStartsBeyond, started: 9 }
  return ageingFigures({ load: { overload: 2, seconds: 60, low: 10 }, ms: 60_000, criticalLeft: 5, starts: 600, low })
}

test('low jobs may wait one claim of each worker beyond their sixteens', () => {
  const { workers, claimMax, bound } = held(0)
  // Five slots, and as many jobs of 20 ms as start in them within 100 ms.
  assert.deepEqual([workers, claimMax, bound], [2, 30, 60])
  assert.deepEqual([held(60).holds, held(61).holds], [true, false])
})
