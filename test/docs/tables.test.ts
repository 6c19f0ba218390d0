/** What the guide to the command line shows is what it prints: the heads of its tables, and the checks of the doctor. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { CHECKS } from '../../src/cli/doctor/checks.js'
import { CLAUSE_CODES } from '../../src/core/explain.js'
import { sourceFiles } from '../support/source.js'
import { blocksOf, type Document, documents } from './markdown.js'

const guide = documents().find(({ path }) => path === 'docs/cli.md')!

/** Lines of capitals, two blanks or more between the words. */
function headsIn(document: Document): string[] {
  const lines = blocksOf(document)
    .filter(({ words }) => words[0] === 'text')
    .flatMap(({ code }) => code.split('\n'))
  return lines
    .filter((line) => /^ *[A-Z/0-9]+(?: {2,}[A-Z/0-9 ]+)+$/.test(line))
    .flatMap((line) => line.trim().split(/ {2,}/))
}

const known = new Set(
  sourceFiles('src/cli').flatMap(({ text }) =>
    [...text.matchAll(/(?:head: |countColumn\()'([A-Z/0-9 ]+)'/g)].map((match) => match[1]!),
  ),
)

test('every head of a table in the guide is one that a command prints', () => {
  const heads = headsIn(guide)
  assert.ok(heads.length > 20, `${heads}`)
  assert.deepEqual(
    heads.filter((head) => !known.has(head)),
    [],
  )
})

test('the guide names every check of the doctor, in its order', () => {
  const rows = [...guide.text.matchAll(/^\| `([a-z-]+)` +\|/gm)].map((match) => match[1])
  assert.deepEqual(
    rows,
    CHECKS.map(({ name }) => name),
  )
})

test('the guide to explanations names every clause, in its order', () => {
  const page = documents().find(({ path }) => path === 'docs/explain.md')!
  const rows = [...page.text.matchAll(/^\| `([a-z ]+)` +\|/gm)].map((match) => match[1])
  assert.deepEqual(rows, CLAUSE_CODES)
})

test('the check sees a head that no command prints', () => {
  const page = { path: 'docs/cli.md', text: '```text\nID   KIND  QEUEU\nabc  k     q\n```' }
  assert.deepEqual(
    headsIn(page).filter((head) => !known.has(head)),
    ['QEUEU'],
  )
})
