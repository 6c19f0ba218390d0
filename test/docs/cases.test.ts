/** The page of reported faults: complete, tested or owed, and up to date. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { ROOT } from '../support/source.js'
import { casesPage, idsIn, namedIds, problems } from './cases-page.js'
import { SECTIONS } from './reported.js'

const cases = SECTIONS.flatMap((section) => section.cases)
const tests = namedIds()

/** Of the list that was collected; one that goes missing here is missing there. */
const CASES = 123

test('every reported fault has a test that carries its id, or a part of the product that owes it', () => {
  assert.deepEqual(problems(cases, tests), [])
  assert.equal(cases.length, CASES)
  for (const one of cases) assert.match(one.id, /^B\d{2,3}$/)
})

test('docs/cases.md is up to date; "node build/test/docs/write-cases.js" makes it anew', () => {
  assert.equal(readFileSync(join(ROOT, 'docs/cases.md'), 'utf8'), casesPage(tests))
})

test('the check can fail', () => {
  const first = cases[0]!
  const unlisted = `B${999}`
  assert.ok(problems([{ ...first, later: [] }], new Map()).includes(`${first.id} is neither tested nor owed`))
  assert.ok(problems([first, first], tests).includes('an id is listed twice'))
  assert.ok(
    problems(cases, new Map([['test/x.test.ts', new Set([unlisted])]])).includes(
      `${unlisted} of test/x.test.ts is not listed`,
    ),
  )
  assert.ok(problems([{ ...first, later: ['magic'] }], tests).some((problem) => problem.endsWith('nobody owes')))
  const without = new Map([...tests].map(([file]) => [file, new Set<string>()]))
  assert.notEqual(casesPage(without), casesPage(tests))
  const unnamed = { path: 'x.ts', text: "// B01\nconst a = 'B01'\ntest('a name', () => 'B01')" }
  assert.equal(idsIn(unnamed).size, 0)
})
