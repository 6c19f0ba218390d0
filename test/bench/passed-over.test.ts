/** What jobs of a passed-over level wait, counted in starts. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { type Passing, passing } from '../../bench/passed-over.js'

/** A start each microsecond from 1 on. `low`: when each low job came in, and when it started, of `count` starts. */
function waitsOf(low: readonly (readonly [ready: number, start: number])[], count: number): Passing {
  const startsUs = Array.from({ length: count }, (_, n) => n + 1)
  return passing({ readyUs: low.map(([ready]) => ready), startUs: low.map(([, start]) => start), startsUs }, 4)
}

test('starts are counted from one low job to the next that waits', () => {
  assert.equal(waitsOf([[0, 4], [0, 9], [0, 12]], 12).maxStartsBetween, 5) // biome-ignore format: one row
  // The last one came in long after the others had started.
  assert.equal(waitsOf([[0, 4], [90, 92]], 100).maxStartsBetween, 4) // biome-ignore format: one row
})

test('one may wait four starts for itself and for each before it', () => {
  assert.equal(waitsOf([[0, 4], [0, 8], [0, 12]], 12).maxStartsBeyond, 0) // biome-ignore format: one row
  assert.equal(waitsOf([[0, 4], [0, 8], [0, 15]], 15).maxStartsBeyond, 3) // biome-ignore format: one row
  // It came in when the first one had gone: only the second one is before it.
  assert.equal(waitsOf([[0, 4], [0, 8], [5, 14]], 14).maxStartsBeyond, 1) // biome-ignore format: one row
})

test('one that never started has waited until the end', () => {
  const { started, maxStartsBeyond, maxStartsBetween } = waitsOf([[0, 4], [0, Number.NaN]], 50) // biome-ignore format: one row
  assert.deepEqual([started, maxStartsBeyond, maxStartsBetween], [1, 42, 46])
})
