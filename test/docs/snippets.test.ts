/** The examples of the documents compile against the package as it is published, and run on real stores. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { serverUrl } from '../support/postgres.js'
import { blocksOf, documents } from './markdown.js'
import { compile, missingOf, PLACEHOLDER_URL, run, type Snippet, writeSnippets } from './snippets.js'

const blocks = documents().flatMap(blocksOf)
/** A database for each document that names one, as its examples make tables of their own. */
const paths = new Set(blocks.filter(({ code }) => code.includes(PLACEHOLDER_URL)).map(({ path }) => path))
const databases = new Map([...paths].map((path, n) => [path, `docs_${process.pid}_${n}`]))

const snippets = writeSnippets(blocks, urlOf)
let faults: string[]
let folder: string

function urlOf(path: string): string {
  const url = new URL(serverUrl())
  url.pathname = `/${databases.get(path)}`
  return url.href
}

async function onServer(text: (database: string) => string): Promise<void> {
  if (databases.size === 0) return
  const client = new pg.Client(serverUrl())
  await client.connect()
  try {
    for (const database of databases.values()) await client.query(text(database))
  } finally {
    await client.end()
  }
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'leasehold-docs-'))
  await onServer((database) => `create database ${database}`)
  faults = compile(snippets)
})
after(async () => {
  await onServer((database) => `drop database if exists ${database} with (force)`)
  await rm(folder, { recursive: true, force: true })
})

test('every example compiles', () => {
  assert.deepEqual(faults, [])
})

for (const snippet of snippets.filter(({ run: how }) => how !== undefined))
  test(`it runs: ${snippet.block.path}:${snippet.block.line}`, async () => {
    assert.deepEqual(faults, [], 'it does not compile')
    const { code, output } = await run(snippet, folder)
    assert.equal(code, 0, output)
    assert.equal(missingOf(snippet.prints, output), undefined, output)
  })

test('the README and each guide have an example that runs', () => {
  const guides = documents().filter(
    ({ path, text }) => /^(README|docs\/[a-z-]+)\.md$/.test(path) && text.includes('```ts'),
  )
  const silent = guides.filter(({ path }) => !snippets.some(({ block, run: how }) => block.path === path && how))
  assert.deepEqual(
    silent.map(({ path }) => path),
    [],
  )
})

test('the check sees an example that does not compile, and one that prints something else', () => {
  const prints = ['one', 'two']
  assert.equal(missingOf(prints, 'one\nthree\n'), 'two')
  assert.equal(missingOf(prints, 'two\none\n'), 'two')
  assert.equal(missingOf(prints, 'one\nthree\ntwo\n'), undefined)
  const wrong = { path: 'docs/wrong.md', line: 7, words: ['ts'], code: "\nqueue.enqueue('email.send')" }
  const [fault] = compile(wrongly([wrong]))
  assert.match(fault!, /^docs\/wrong\.md:8 /)
})

/** Beside the others, which stay as they are. */
function wrongly(wrong: (typeof blocks)[number][]): Snippet[] {
  return writeSnippets([...blocks, ...wrong], urlOf).slice(-wrong.length)
}
