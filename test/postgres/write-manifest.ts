/**
 * Writes src/storage/postgres/schema-manifest.ts from a schema that the migrations have made. Run by hand after a new
 * migration, with the URL of a server:
 *
 *     npm run build:test && LEASEHOLD_TEST_URL_18=postgres://… node build/test/postgres/write-manifest.js
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../support/source.js'
import { freshFacts } from './fresh-facts.js'

const file = join(ROOT, 'src/storage/postgres/schema-manifest.ts')
const facts = Object.fromEntries(Object.entries(await freshFacts(18)).sort(([a], [b]) => (a < b ? -1 : 1)))
const head = readFileSync(file, 'utf8').split('export const MANIFEST')[0]
writeFileSync(file, `${head}export const MANIFEST: Facts = ${JSON.stringify(facts, null, 2)}\n`)
execFileSync('npx', ['biome', 'check', '--write', file], { cwd: ROOT, stdio: 'inherit' })
