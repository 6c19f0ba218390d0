/** Every mutant of the simulator: what `npm run sim -- --mutants` runs. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { huntAll } from '../../sim/mutants/mutants.js'

const SEEDS_MAX = 2_000

test('each mutant is caught by its rule', async () => {
  const hunts = await huntAll({ from: 1, seedsMax: SEEDS_MAX, onHunt: () => {} })
  assert.ok(hunts.length >= 25)
  assert.deepEqual(
    hunts.filter(({ seed }) => seed === undefined),
    [],
  )
})
