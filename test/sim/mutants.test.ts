/** The table of mutants of the simulator. Whether each is caught takes minutes: see test/long/sim.test.ts. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { hunt } from '../../sim/mutants/hunt.js'
import { MUTANTS } from '../../sim/mutants/index.js'
import { RULES } from '../../src/testing/checker/rules.js'
import { RULES_OF_SCENE } from '../../src/testing/checker/scene-table.js'

test('each mutant has a name of its own, and a rule that is there', () => {
  const rules = new Set([...RULES, ...RULES_OF_SCENE].map(({ name }) => name))
  for (const { name, caughtBy } of MUTANTS) assert.ok(rules.has(caughtBy), `${name}: there is no rule "${caughtBy}"`)
  assert.equal(new Set(MUTANTS.map(({ name }) => name)).size, MUTANTS.length)
})

test('a mutant that breaks nothing is not caught, and leaves nothing behind', async () => {
  const { seed, others } = await hunt({ name: 'nothing', caughtBy: 'everything ends', spoil: () => {} }, 1, 3)
  assert.deepEqual([seed, others], [undefined, {}])
})
