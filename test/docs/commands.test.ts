/** The commands that the documents show exist, with the options that they are given. */
import assert from 'node:assert/strict'
import test from 'node:test'
import type { Command } from 'commander'
import { program } from '../../src/cli/program.js'
import type { Terminal } from '../../src/cli/terminal.js'
import { blocksOf, type Document, documents } from './markdown.js'

const root = program({} as Terminal, () => {})

interface Shown {
  where: string
  words: string[]
}

/** Lines of shell blocks, and what stands in code of tables and sentences. */
function commandsIn(document: Document): Shown[] {
  const shell = blocksOf(document).filter(({ words }) => words[0] === 'sh')
  const lines = shell.flatMap(({ code, line }) =>
    code.split('\n').map((text, n) => ({ where: `${document.path}:${line + n}`, text })),
  )
  const inline = [...document.text.matchAll(/`((?:npx )?leasehold [^`\n]+)`/g)]
  const all = [...lines, ...inline.map((match) => ({ where: document.path, text: match[1]! }))]
  return all.flatMap(({ where, text }) => {
    const found = /^(?:npx )?leasehold ([^|<>]*)/.exec(text)
    return found === null ? [] : [{ where, words: wordsOf(found[1]!) }]
  })
}

/** As a shell takes them apart, quotes included. */
function wordsOf(text: string): string[] {
  return text.match(/'[^']*'|\S+/g) ?? []
}

/** What is wrong with it; undefined when nothing is. */
function faultOf({ where, words }: Shown): string | undefined {
  let command: Command = root
  let at = 0
  for (; command.commands.length > 0 && at < words.length; at++) {
    const next = command.commands.find((one) => one.name() === words[at])
    if (next === undefined) return `${where}: there is no command "${words.slice(0, at + 1).join(' ')}"`
    command = next
  }
  const known = [...command.options, ...root.options].map(({ long }) => long)
  const unknown = words.slice(at).find((word) => word.startsWith('--') && !known.includes(word))
  return unknown === undefined ? undefined : `${where}: ${command.name()} has no option ${unknown}`
}

test('every command in the documents is one', () => {
  const shown = documents()
    .filter(({ path }) => !path.startsWith('docs/reference/'))
    .flatMap(commandsIn)
  assert.ok(shown.length > 10, 'commands were found')
  assert.deepEqual(
    shown.map(faultOf).filter((fault) => fault !== undefined),
    [],
  )
})

test('the check sees a command and an option that do not exist', () => {
  const text = '```sh\nleasehold jobs lst\nleasehold jobs list --stat dead\nleasehold workers --json\n```'
  const faults = commandsIn({ path: 'a.md', text }).map(faultOf)
  assert.deepEqual(faults, ['a.md:2: there is no command "jobs lst"', 'a.md:3: list has no option --stat', undefined])
})
