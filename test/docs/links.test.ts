/** Every link between the documents leads to a file and a heading that are there. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import test from 'node:test'
import { ROOT } from '../support/source.js'
import { anchorsOf, type Document, documents, linksOf } from './markdown.js'

function broken(document: Document, all: readonly Document[]): string[] {
  return linksOf(document)
    .filter((link) => !/^[a-z]+:/.test(link))
    .filter((link) => !leadsSomewhere(link, document, all))
    .map((link) => `${document.path}: ${link}`)
}

function leadsSomewhere(link: string, from: Document, all: readonly Document[]): boolean {
  const [file, anchor] = link.split('#') as [string, string | undefined]
  const path = file === '' ? from.path : normalize(join(dirname(from.path), file)).replaceAll('\\', '/')
  if (!existsSync(join(ROOT, path))) return false
  const target = all.find((document) => document.path === path)
  return anchor === undefined || (target !== undefined && anchorsOf(target).includes(anchor))
}

const all = documents()

test('links between documents lead somewhere', () => {
  assert.deepEqual(
    all.flatMap((document) => broken(document, all)),
    [],
  )
})

test('every guide and every page of the reference is linked from the README or the list of guides', () => {
  const starts = all.filter(({ path }) => path === 'README.md' || path === 'docs/README.md')
  const linked = new Set(
    starts.flatMap((from) => linksOf(from).map((link) => normalize(join(dirname(from.path), link)))),
  )
  const lost = all.map(({ path }) => path).filter((path) => path.startsWith('docs/') && path !== 'docs/README.md')
  assert.deepEqual(
    lost.filter((path) => !linked.has(path)),
    [],
  )
})

test('the check sees a file that is missing and a heading that is', () => {
  const page = {
    path: 'docs/README.md',
    text: '# One two\n[a](b.md) [b](#one-two) [c](#three) [d](https://example.com)',
  }
  assert.deepEqual(broken(page, [page]), ['docs/README.md: b.md', 'docs/README.md: #three'])
})
