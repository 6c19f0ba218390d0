/** The verdict of verify: what is kept, and what has shown too little to be. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { page } from '../../src/cli/verify/page.js'
import type { Played } from '../../src/cli/verify/play.js'
import { reportOf, type VerifyReport } from '../../src/cli/verify/report.js'
import { RULES } from '../../src/testing/checker/rules.js'
import { RULES_OF_SCENE } from '../../src/testing/checker/scene-table.js'
import { UNFED_RULES } from '../../src/testing/verify/unfed-rules.js'

const NAMES = [...RULES, ...RULES_OF_SCENE].map(({ name }) => name)

/** Drills that broke nothing, in which these rules had nothing to judge. */
function reported(idle: readonly string[]): VerifyReport {
  const rules = NAMES.map((rule) => ({ rule, judged: idle.includes(rule) ? 0 : 1, broken: 0 }))
  const played: Played = { drills: [], findings: [], rules, rounds: 1, jobs: 1, kills: 1, seconds: 1 }
  return reportOf({ store: { name: 'postgres' }, seconds: 1, cases: [], drills: { ...played, leaseMs: 2_000 } })
}

test('drills that give a rule nothing to judge have not judged it, and the page names the rule', () => {
  assert.equal(reported(Object.keys(UNFED_RULES)).verdict, 'kept')
  const idle = reported([...Object.keys(UNFED_RULES), 'one end is told'])
  assert.equal(idle.verdict, 'not judged')
  const view = { width: undefined, paint: (_: unknown, text: string) => text }
  assert.match(
    page(idle, view as Parameters<typeof page>[1]),
    /NOT judged: nothing in the drills was about "one end is told"; /,
  )
})

test('every rule that the drills need not feed is one of the checker', () => {
  for (const name of Object.keys(UNFED_RULES)) assert.ok(NAMES.includes(name), name)
})
