/** The runner says at its end what failed: the names are found in what the reporter of Node writes, however it is cut. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { pathToFileURL } from 'node:url'
import { ROOT } from '../support/source.js'

interface Finder {
  read(chunk: string): void
  found(): string[]
  reason(name: string): string[]
}

const { FailedTests } = (await import(pathToFileURL(join(ROOT, 'scripts/failed-tests.mjs')).href)) as {
  FailedTests: new (root: string) => Finder
}

const TESTS = `
import test from 'node:test'
test('fine', () => {})
test('is broken (a bit)', () => { throw new Error('no') })
test('outer', async (t) => { await t.test('inner', () => { throw new Error('no') }) })
`

function reported(dir: string): string {
  writeFileSync(join(dir, 'some.test.mjs'), TESTS)
  const { NODE_TEST_CONTEXT: _inside, ...env } = process.env
  const args = ['--test', '--test-reporter=spec', join(dir, 'some.test.mjs')]
  return spawnSync(process.execPath, args, { env, cwd: dir, encoding: 'utf8' }).stdout
}

test('names of failed tests, with their file and what they said, from pieces of any size', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'leasehold-failed-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  const output = reported(dir)
  for (const size of [1, 7, output.length]) {
    const finder = new FailedTests(`${dir}/`)
    for (let at = 0; at < output.length; at += size) finder.read(output.slice(at, at + size))
    const found = finder.found()
    assert.ok(
      found.some((name) => /^some\.test.*: is broken \(a bit\)$/.test(name)),
      `${found}\n${output}`,
    )
    assert.ok(
      found.some((name) => /^some\.test.*: inner$/.test(name)),
      `${found}`,
    )
    assert.ok(!found.some((name) => /fine/.test(name)))
    for (const name of found) assert.match(finder.reason(name).join('\n'), /Error: no/, output)
  }
})

test('a runner that died in mid-work leaves the names without their files', () => {
  const finder = new FailedTests('/x/')
  finder.read('✔ fine (1ms)\n✖ is broken (2.5ms)\n')
  assert.deepEqual(finder.found(), ['is broken'])
  assert.deepEqual(finder.reason('is broken'), [])
})
