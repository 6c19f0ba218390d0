/** Arrows point down only: which folder may import which. Any other edge fails. */
import assert from 'node:assert/strict'
import { dirname, join, normalize } from 'node:path'
import test from 'node:test'
import { type SourceFile, sourceFiles } from '../support/source.js'

/** For each room, the rooms it may import from, itself aside. */
const ALLOWED: Record<string, readonly string[]> = {
  core: [],
  observe: ['core'],
  storage: ['core', 'observe'],
  'storage/memory': ['core', 'observe', 'storage'],
  'storage/postgres': ['core', 'observe', 'storage'],
  // Over stores that it is given.
  'storage/partitioned': ['core', 'observe', 'storage'],
  client: ['core', 'observe', 'storage'],
  worker: ['core', 'observe', 'storage'],
  // The one place that names adapters.
  connect: ['core', 'observe', 'storage', 'client', 'storage/memory', 'storage/postgres', 'storage/partitioned'],
  index: ['core', 'observe', 'storage', 'client', 'worker', 'connect', 'storage/postgres'],
  testing: ['core', 'observe', 'storage', 'storage/memory', 'client', 'worker'],
  // For `verify`, which holds a store to what the suite and the checker say.
  cli: ['core', 'observe', 'storage', 'client', 'worker', 'connect', 'index', 'storage/postgres', 'testing'],
}

function roomOf(path: string): string {
  const parts = path
    .replace(/^src\//, '')
    .replace(/\.ts$/, '')
    .split('/')
  if (parts[0] === 'storage' && parts.length > 2) return `storage/${parts[1]}`
  return parts[0]!
}

function importsOf(file: SourceFile): string[] {
  const found = file.text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)
  return [...found].map((match) => normalize(join(dirname(file.path), match[1]!)).replace(/\.js$/, '.ts'))
}

function wrongEdges(files: SourceFile[]): string[] {
  return files.flatMap((file) => {
    const room = roomOf(file.path)
    const allowed = ALLOWED[room]
    if (allowed === undefined) return [`${file.path}: the room "${room}" is not in the plan of the house`]
    return importsOf(file)
      .map((target) => ({ target, to: roomOf(target) }))
      .filter(({ to }) => to !== room && !allowed.includes(to))
      .map(({ target }) => `${file.path} imports ${target}`)
  })
}

test('every import points down', () => {
  assert.deepEqual(wrongEdges(sourceFiles('src')), [])
})

test('the check sees an arrow that points up, and a sibling', () => {
  const up = { path: 'src/core/job.ts', text: "import { x } from '../client/queue.js'" }
  const aside = { path: 'src/worker/a.ts', text: "const b = await import('../client/queue.js')" }
  assert.equal(wrongEdges([up, aside]).length, 2)
})
