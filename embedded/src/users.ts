// Job: keeps the list of processes that use the server of a directory.
// Called by: startEmbedded() and stop() under the lock; the watchdog reads it.
import { randomBytes } from 'node:crypto'
import { readdir, readFile, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { isSystemError } from './error.js'
import type { Layout } from './layout.js'
import { liveness, parseRecord, recordOf } from './liveness.js'
import { makePrivateFolder, writeNewFile } from './owner.js'

/** Notes that this process uses the server; returns the file that says so, for `removeUser()`. */
export async function addUser(layout: Layout): Promise<string> {
  await makePrivateFolder(layout.users, layout.owner)
  const path = join(layout.users, `${process.pid}-${randomBytes(6).toString('hex')}`)
  await writeNewFile(path, JSON.stringify(recordOf(process.pid)), layout.owner)
  return path
}

export async function removeUser(path: string): Promise<void> {
  try {
    await unlink(path)
  } catch (error) {
    if (!isSystemError(error, 'ENOENT')) throw error
  }
}

/** Whether a living process uses the server. */
export async function hasUsers(layout: Layout): Promise<boolean> {
  for (const name of await userFiles(layout)) {
    if (await isAlive(join(layout.users, name))) return true
  }
  return false
}

/** Forgets users that died without stop(). To be called under the lock only: a file being written looks dead. */
export async function forgetDeadUsers(layout: Layout): Promise<void> {
  for (const name of await userFiles(layout)) {
    const path = join(layout.users, name)
    if (!(await isAlive(path))) await removeUser(path)
  }
}

async function userFiles(layout: Layout): Promise<string[]> {
  try {
    return await readdir(layout.users)
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return []
    throw error
  }
}

// A user in another container counts as dead: it cannot reach our loopback port.
async function isAlive(path: string): Promise<boolean> {
  const text = await readFile(path, 'utf8').catch(() => '')
  const record = parseRecord(text)
  return record !== undefined && liveness(record) === 'alive'
}
