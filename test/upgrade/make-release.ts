/**
 * Keeps a release for the tests of upgrades: its schema with jobs in all places as SQL, and its client as a package.
 * Run by hand when a version is released, from a tree of exactly that version, after both builds.
 *
 *     LEASEHOLD_TEST_URL_15=postgres://… node build/test/upgrade/make-release.js
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrationSql } from '../../src/storage/postgres/index.js'
import { CLIENT_PROTOCOL } from '../../src/storage/postgres/migrations/index.js'
import { scratch } from '../support/postgres.js'
import { ROOT } from '../support/source.js'
import { dumpRows } from './dump.js'
import { RELEASE_SCHEMA, type ReleaseFacts } from './release.js'
import { fill } from './scenario.js'

const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<string, unknown>
const folder = join(ROOT, 'test/upgrade/releases', manifest.version as string)
mkdirSync(folder, { recursive: true })
writeFileSync(join(folder, 'release.json'), `${JSON.stringify(await dump(), null, 2)}\n`)
pack()
console.log(`kept in ${folder}`)

/** On the oldest server that is supported, so that every one can read it. */
async function dump(): Promise<ReleaseFacts> {
  const store = await scratch({ major: 15, schema: RELEASE_SCHEMA })
  try {
    await fill(store)
    const sql = `${migrationSql({ schema: RELEASE_SCHEMA })}\n\n${await dumpRows(store)}`
    writeFileSync(join(folder, 'schema.sql'), sql)
    return await facts(store)
  } finally {
    await store.drop()
  }
}

async function facts(store: Awaited<ReturnType<typeof scratch>>): Promise<ReleaseFacts> {
  const [row] = await store.sql(`select :s.clock() as "madeAtUs", (select max(version) from :s.migration) as version,
    (select revision from :s.functions) as revision, (select digest from :s.functions) as digest`)
  const counts = await store.sql('select state, count(*)::int as jobs from :s.job group by 1 order by 1')
  return {
    madeAtUs: Number(row!.madeAtUs),
    protocol: CLIENT_PROTOCOL,
    version: row!.version as number,
    functions: { revision: row!.revision as number, digest: row!.digest as string },
    jobs: Object.fromEntries(counts.map(({ state, jobs }) => [state, jobs as number])),
  }
}

/** What the package needs to run as a library: neither declarations nor maps, no command line, no test tools. */
function pack(): void {
  const dir = mkdtempSync(join(tmpdir(), 'leasehold-pack-'))
  try {
    const left = (path: string): boolean => !/\.(map|d\.ts|tsbuildinfo)$|dist\/(cli|testing)$/.test(path)
    cpSync(join(ROOT, 'dist'), join(dir, 'dist'), { recursive: true, filter: left })
    const { name, version, type, main, dependencies, peerDependencies } = manifest
    const slim = { name, version, type, main, files: ['dist'], dependencies, peerDependencies }
    writeFileSync(join(dir, 'package.json'), `${JSON.stringify(slim, null, 2)}\n`)
    const [packed] = JSON.parse(execFileSync('npm', ['pack', '--json'], { cwd: dir, encoding: 'utf8' }))
    renameSync(join(dir, packed.filename), join(folder, 'client.tgz'))
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}
