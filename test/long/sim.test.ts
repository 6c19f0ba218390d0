/** The simulator over many seeds: what `npm run sim` runs, in the size of a test. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { runSeeds } from '../../sim/seeds.js'
import { idleRules, listedInVain } from '../sim/unfed.js'

const SEEDS = 1_000

test(`${SEEDS} seeds break no rule, and give each rule something to judge`, async () => {
  const { seeds, failures, judged } = await runSeeds({ from: 1, count: SEEDS, onProgress: () => {} })
  assert.deepEqual(failures, [])
  assert.equal(seeds, SEEDS)
  assert.deepEqual(idleRules(judged, 'many'), [])
  assert.deepEqual(listedInVain(judged), [])
})
