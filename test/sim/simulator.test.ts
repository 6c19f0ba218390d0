/** The simulator itself: one seed, one trace; it sees a fault that is put into the world; kept seeds hold. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { addJudged } from '../../sim/seeds.js'
import { configurationOf, shrink, simulate } from '../../src/testing/simulator/index.js'
import { KEPT } from './kept.js'
import { idleRules, listedInVain } from './unfed.js'

const SEEDS = 15

test('the same seed gives the same trace, and another seed another one', async () => {
  const first = await simulate(7, { trace: 'lines' })
  const again = await simulate(7, { trace: 'lines' })
  assert.deepEqual(again.trace, first.trace)
  assert.equal(again.digest, first.digest)
  assert.ok(first.trace.length > 100)
  assert.notEqual((await simulate(8)).digest, first.digest)
})

test('a trace does not depend on what ran before it', async () => {
  const alone = await simulate(11)
  await simulate(12)
  assert.equal((await simulate(11)).digest, alone.digest)
})

test(`${SEEDS} seeds break no rule, and give the rules something to judge`, async () => {
  const judged: Record<string, number> = {}
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { violations, verdict } = await simulate(seed)
    assert.deepEqual(violations, [], `npm run sim -- --seed ${seed} --trace`)
    addJudged(judged, verdict.rules)
  }
  assert.deepEqual(idleRules(judged, 'few'), [])
  assert.deepEqual(listedInVain(judged), [])
})

for (const { story, configuration } of KEPT)
  test(`kept: ${story}`, async () => {
    assert.deepEqual((await simulate(configuration)).violations, [])
  })

test('the swarm draws calm seeds, and seeds with every fault on', () => {
  const faults = Array.from({ length: 200 }, (_, seed) => Object.values(configurationOf(seed).faults))
  const on = faults.map((strengths) => strengths.filter((strength) => strength > 0).length)
  assert.ok(
    on.some((count) => count <= 1),
    'a calm one',
  )
  assert.ok(
    on.some((count) => count === faults[0]!.length),
    'one with all of them',
  )
})

/** A take-over that forgets what it found: the jobs of the dead stay where they are for ever. */
const FORGETFUL = {
  spoil: ({ store }: Parameters<NonNullable<NonNullable<Parameters<typeof simulate>[1]>['spoil']>>[0]) => {
    const takeOver = store.takeOver.bind(store)
    store.takeOver = async (request) => ({ ...(await takeOver(request)), leases: [] })
    return undefined
  },
}

test('a broken store is found, and the seed that finds it is made small', { timeout: 300_000 }, async () => {
  let seed = 1
  let failing = await simulate(seed, FORGETFUL)
  while (failing.violations.length === 0) failing = await simulate(++seed, FORGETFUL)
  const { rule } = failing.violations[0]!
  assert.equal(rule, 'everything ends')
  const small = await shrink(failing.configuration, rule, {
    simulate: (configuration) => simulate(configuration, FORGETFUL),
    runsMax: 12,
  })
  const on = (count: Record<string, number>): number => Object.values(count).filter((value) => value > 0).length
  assert.ok(small.jobs <= failing.configuration.jobs)
  assert.ok(on({ ...small.faults }) <= on({ ...failing.configuration.faults }))
  assert.ok((await simulate(small, FORGETFUL)).violations.some((violation) => violation.rule === rule))
  assert.deepEqual((await simulate(small)).violations, [])
})
