// Job: proves that the running server is ours by its password, and creates the user's database if it is missing.
// Called by: startEmbedded().
import { readFile } from 'node:fs/promises'
import { EmbeddedError, isSystemError } from './error.js'
import type { Layout } from './layout.js'
import { type QueryTarget, runStatement, ServerRefusal } from './query.js'

/** The superuser of every embedded server. */
export const SUPERUSER = 'leasehold'

const NO_SUCH_DATABASE = '3D000'
const DUPLICATE_DATABASE = '42P04'

export interface OpenedDatabase {
  url: string
  /** Version that the running server reports. */
  version: string
}

export async function openDatabase(layout: Layout, port: number, database: string): Promise<OpenedDatabase> {
  const target = { port, user: SUPERUSER, password: await readPassword(layout), database }
  try {
    const version = await ensureDatabase(target)
    return { url: urlOf(target), version }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    const message = `the server on port ${port} did not let us in: ${reason}; see ${layout.log}`
    throw new EmbeddedError('START_FAILED', message, { cause: error })
  }
}

async function ensureDatabase(target: QueryTarget): Promise<string> {
  try {
    return await runStatement(target, 'SELECT 1')
  } catch (error) {
    if (!(error instanceof ServerRefusal) || error.code !== NO_SUCH_DATABASE) throw error
    return createDatabase(target)
  }
}

async function createDatabase(target: QueryTarget): Promise<string> {
  const name = `"${target.database.replaceAll('"', '""')}"`
  try {
    // template0, because nobody may connect to it: a session left open on template1 would make the copy fail.
    return await runStatement({ ...target, database: 'postgres' }, `CREATE DATABASE ${name} TEMPLATE template0`)
  } catch (error) {
    if (!(error instanceof ServerRefusal) || error.code !== DUPLICATE_DATABASE) throw error
    return runStatement(target, 'SELECT 1')
  }
}

async function readPassword(layout: Layout): Promise<string> {
  try {
    return (await readFile(layout.password, 'utf8')).trim()
  } catch (error) {
    if (!isSystemError(error, 'ENOENT')) throw error
    const message = `${layout.password} is missing; put it back, or remove ${layout.dir} to begin anew`
    throw new EmbeddedError('DATA_DAMAGED', message, { cause: error })
  }
}

function urlOf(target: QueryTarget): string {
  const [password, database] = [target.password, target.database].map(encodeURIComponent)
  return `postgres://${target.user}:${password}@127.0.0.1:${target.port}/${database}`
}
