/** docs/benchmarks.md tells of every scenario and option, and the documents show no command that there is not. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { readCommand } from '../../bench/command-line.js'
import { flagName } from '../../bench/options.js'
import { SCENARIOS } from '../../bench/scenarios.js'
import { documents } from '../docs/markdown.js'

/** Options that every section may leave to the help: what they do is in their name. */
const SAID_ONCE = ['jobs', 'rounds', 'seconds']

const guide = documents().find(({ path }) => path === 'docs/benchmarks.md')!

function sectionOf(name: string): string | undefined {
  return new RegExp(`^### ${name}$([\\s\\S]*?)(?=^##|$(?![\\s\\S]))`, 'm').exec(guide.text)?.[1]
}

test('every scenario has a section that names its options', () => {
  for (const { name, options } of SCENARIOS) {
    const section = sectionOf(name)
    assert.ok(section !== undefined, `${name} has no section`)
    for (const key of Object.keys(options)) {
      const where = SAID_ONCE.includes(key) ? guide.text : section
      assert.ok(where.includes(`--${flagName(key)}`), `the section of ${name} does not name --${flagName(key)}`)
    }
  }
})

test('every command for the benchmarks in the documents is one', () => {
  const shown = documents().flatMap(({ path, text }) =>
    [...text.matchAll(/npm run bench -- ([^`#\n]+)/g)].map((match) => ({ path, words: match[1]!.trim().split(/ +/) })),
  )
  assert.ok(shown.length >= 3)
  for (const { path, words } of shown) assert.doesNotThrow(() => readCommand(words, SCENARIOS), `${path}: ${words}`)
})
