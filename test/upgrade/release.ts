/** The releases that are kept, each with its schema and its client, made usable for a test. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import { serverUrl } from '../support/postgres.js'
import { ROOT } from '../support/source.js'

/** As the kept SQL calls the schema. */
export const RELEASE_SCHEMA = 'release_under_test'

export interface ReleaseFacts {
  /** The store's clock when it was kept. */
  madeAtUs: number
  /** What its client speaks. */
  protocol: number
  /** Of the last migration. */
  version: number
  functions: { revision: number; digest: string }
  /** How many jobs are in which state. */
  jobs: Record<string, number>
}

const FOLDER = join(ROOT, 'test/upgrade/releases')

export const RELEASES: readonly string[] = readdirSync(FOLDER)

export function factsOf(release: string): ReleaseFacts {
  return JSON.parse(readFileSync(join(FOLDER, release, 'release.json'), 'utf8'))
}

/** As it lies in the folder: it runs as it is, in a schema of its own name. */
export function keptSql(release: string): string {
  return readFileSync(join(FOLDER, release, 'schema.sql'), 'utf8')
}

/** Its SQL for another schema, with all instants moved so that it was kept `agoMs` ago. */
export function releaseSql(release: string, schema: string, agoMs = 0): string {
  if (!/^[a-z0-9_]{1,40}$/.test(schema)) throw new Error('a kept release goes to a schema of a plain name')
  const deltaUs = Math.round((Date.now() - agoMs) * 1_000 - factsOf(release).madeAtUs)
  const moved = (digits: string, perUnit: number): string => String(Number(digits) + Math.round(deltaUs / perUnit))
  return keptSql(release)
    .replaceAll(RELEASE_SCHEMA, schema)
    .replace(/(?<![\d.])1[78]\d{14}(?![\d.])/g, (us) => moved(us, 1))
    .replace(/(?<![\d.])1[78]\d{11}(?![\d.])/g, (ms) => moved(ms, 1_000))
}

/** Puts the kept schema into a fresh one on the server. */
export async function loadRelease(release: string, schema: string, more: { major?: 18 | 15; agoMs?: number } = {}) {
  const client = new pg.Client(serverUrl(more.major))
  await client.connect()
  try {
    await client.query(releaseSql(release, schema, more.agoMs))
  } finally {
    await client.end()
  }
}

export interface ReleaseClient {
  /** URL of its main module. */
  entry: string
  remove(): void
}

/** Unpacks its client where it finds the packages that it needs. */
export function releaseClient(release: string): ReleaseClient {
  const dir = mkdtempSync(join(tmpdir(), `leasehold-${release}-`))
  symlinkSync(join(ROOT, 'node_modules'), join(dir, 'node_modules'))
  mkdirSync(join(dir, 'client'))
  execFileSync('tar', ['xzf', join(FOLDER, release, 'client.tgz'), '-C', join(dir, 'client')])
  return {
    entry: pathToFileURL(join(dir, 'client/package/dist/index.js')).href,
    remove: () => rmSync(dir, { recursive: true, force: true }),
  }
}
