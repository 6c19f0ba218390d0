/** The page of guarantees says what the suites show: up to date, complete, and every test that it names exists. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { RULES } from '../../src/testing/checker/rules.js'
import { RULES_OF_SCENE } from '../../src/testing/checker/scene-table.js'
import { CASES, type ConformanceCase } from '../../src/testing/conformance/index.js'
import { ROOT } from '../support/source.js'

interface Maker {
  page(built: string): Promise<string>
  questionOf(one: ConformanceCase): string
  QUESTIONS: Record<string, string>
  /** By promise, the files and names of tests, `{n}` for what is filled in; a whole file has no name. */
  PROCESSES: Record<string, readonly (readonly [file: string, name: string | undefined])[]>
}

const maker = (await import(pathToFileURL(join(ROOT, 'scripts/guarantees.mjs')).href)) as Maker
const made = await maker.page(fileURLToPath(new URL('../../src', import.meta.url)))

test('docs/guarantees.md is up to date; "node scripts/guarantees.mjs dist" makes it anew after a build', () => {
  assert.equal(readFileSync(join(ROOT, 'docs/guarantees.md'), 'utf8'), made)
})

test('every case of the suite answers one of the questions, and every question is answered', () => {
  const asked = new Set(CASES.map(maker.questionOf))
  assert.deepEqual([...asked].toSorted(), Object.keys(maker.QUESTIONS).toSorted())
  assert.throws(() => maker.questionOf({ name: 'magic: it happens', promise: '', needs: [], run: async () => {} }))
})

test('every case stands in the page once, with its promise', () => {
  const plain = made.replaceAll('\\', '')
  for (const { name, promise } of CASES) {
    assert.equal(plain.split(`_${name}_`).length, 2, name)
    assert.ok(plain.includes(promise), promise)
  }
})

test('every test that the page names exists', () => {
  for (const [file, name] of Object.values(maker.PROCESSES).flat()) {
    const text = readFileSync(join(ROOT, file), 'utf8')
    assert.ok(/\b(test|it)\(/.test(text), `${file} has no tests`)
    if (name === undefined) continue
    const named = [`test('${name}'`, `test(\`${name.replaceAll('{', '${')}\``].some((call) => text.includes(call))
    assert.ok(named, `${file} has no test "${name}"`)
  }
})

test('every rule of the checker stands in the page', () => {
  for (const { name } of [...RULES, ...RULES_OF_SCENE]) assert.ok(made.includes(`| ${name} `), name)
})
