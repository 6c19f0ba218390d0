/** `leasehold verify` on a healthy store, from its first case to its last drill. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CASES } from '../../src/testing/index.js'
import { DRILLS } from '../../src/testing/verify/drill-plan.js'
import { verifiesWell } from '../cli/verify-run.js'
import { serverUrl } from '../support/postgres.js'

test('a healthy store keeps every promise, in the suite and in every drill, and nothing is left in it', async () => {
  const { cases, drills } = await verifiesWell(serverUrl())
  assert.deepEqual(cases, { all: CASES.length, kept: CASES.length, broken: 0, notJudged: 0 })
  assert.deepEqual(
    drills!.drills.map(({ drill }) => drill),
    [...DRILLS],
  )
  const figures = Object.fromEntries(drills!.drills.map((drill) => [drill.drill, drill.figures]))
  assert.ok(figures.kill!.recoveryMs! >= 500, 'nobody judges before the lease is over')
  assert.ok(figures.kill!.takenOver! > 0 && figures.saturate!.mostWaiting! > figures.saturate!.mostHeld!)
  assert.deepEqual([figures.poison!.crashes, figures.poison!.crashesAlone], [4, 2])
  assert.equal(figures.hopeless!.attempts, 12)
  assert.ok(drills!.rules.filter(({ judged }) => judged > 0).length > 10, 'the checker had much to judge')
})
