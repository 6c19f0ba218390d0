/** The reference says what the code says: the committed pages are what scripts/reference.mjs makes of it now. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { ROOT } from '../support/source.js'

interface Maker {
  /** The pages by path, made of the compiled source in that folder. */
  pages(built: string): Promise<Record<string, string>>
}

const maker = (await import(pathToFileURL(join(ROOT, 'scripts/reference.mjs')).href)) as Maker
const made = await maker.pages(fileURLToPath(new URL('../../src', import.meta.url)))

for (const [path, text] of Object.entries(made))
  test(`${path} is up to date; "npm run docs:reference" makes it anew`, () => {
    assert.equal(readFileSync(join(ROOT, path), 'utf8'), text)
  })
