/** The page about the checker names every rule, in its order, and what it promises. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { RULES } from '../../../src/testing/checker/rules.js'
import { RULES_OF_SCENE } from '../../../src/testing/checker/scene-table.js'
import { ROOT } from '../../support/source.js'

const page = readFileSync(join(ROOT, 'docs/checker.md'), 'utf8')

test('the page names every rule of the tables, with its promise and what it reads', () => {
  const section = page.slice(page.indexOf('\n## The rules\n'), page.indexOf('\n## A new rule\n'))
  const rows = [...section.matchAll(/^\| (.+?) +\| (.+?) +\| (.+?) +\|$/gm)].slice(1).map(([, ...cells]) => cells)
  const all = [...RULES, ...RULES_OF_SCENE]
  assert.deepEqual(
    rows.filter(([name]) => !name!.startsWith('---')),
    all.map(({ name, promise, reads }) => [name, promise, reads]),
  )
})

test('no two rules have one name', () => {
  const names = [...RULES, ...RULES_OF_SCENE].map(({ name }) => name)
  assert.equal(new Set(names).size, names.length)
})
