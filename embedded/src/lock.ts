// Job: lets one process at a time start, join or stop the server of a directory; a killed holder cannot block it.
// Called by: startEmbedded(), stop() and the watchdog.
import { randomBytes } from 'node:crypto'
import { type FileHandle, link, readdir, readFile, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { EmbeddedError, isMissing, isSystemError } from './error.js'
import type { Layout } from './layout.js'
import { liveness, parseRecord, recordOf } from './liveness.js'
import { makePrivateFolder, openNewFile } from './owner.js'

// The lock is a folder of files named by number, one for each turn. The file with the highest number is the lock: it
// is held while it names a living process. To take over, a process links a file with the next number; the file system
// lets one win. Unlike with a lock file that is removed when stale, a slow process that judges an old state can never
// remove the lock of a newer holder: it could only make a number that exists, or one that is no longer the highest.

const WAIT_MS_MAX = 180_000 // more than a start (120 s) and a stop (60 s) may take, one after the other
const POLL_MS = 10
const ELSEWHERE_TRUST_MS = 30_000 // a holder in another container cannot be looked at; believe it for so long

/**
 * Runs `action` while holding the lock, whose folder makeLock() made. Waits its turn; throws LOCK_TIMEOUT when that
 * takes too long, and the error of the system when the directory was removed.
 */
export async function withLock<T>({ lock, owner }: Layout, action: () => Promise<T>): Promise<T> {
  const candidate = join(lock, `candidate-${process.pid}-${randomBytes(6).toString('hex')}`)
  const file = await openNewFile(candidate, owner)
  try {
    await take(lock, candidate, file)
    return await action()
  } finally {
    // The open file, not its name: that may be the name of another's turn by now, in a directory made anew.
    await file.truncate().finally(() => file.close())
  }
}

/** Makes the folder of the lock. Only a start does: in a directory that is being removed it would be in the way. */
export async function makeLock({ lock, owner }: Layout): Promise<void> {
  await makePrivateFolder(lock, owner)
}

async function take(folder: string, candidate: string, file: FileHandle): Promise<void> {
  try {
    await file.writeFile(JSON.stringify(recordOf(process.pid)))
    await waitForTurn(folder, candidate)
  } finally {
    await removeFile(candidate)
  }
}

async function waitForTurn(folder: string, candidate: string): Promise<void> {
  const deadline = performance.now() + WAIT_MS_MAX
  for (;;) {
    if (await tryTurn(folder, candidate)) return
    if (performance.now() > deadline) {
      throw new EmbeddedError(
        'LOCK_TIMEOUT',
        `${folder} is held by a process that does not let go; its id is in the file with the highest number there`,
      )
    }
    await sleep(POLL_MS)
  }
}

async function tryTurn(folder: string, candidate: string): Promise<boolean> {
  const top = await highestTurn(folder)
  if (top > 0 && (await isHeld(join(folder, String(top))))) return false
  const mine = join(folder, String(top + 1))
  try {
    await link(candidate, mine)
  } catch (error) {
    if (isSystemError(error, 'EEXIST')) return false
    throw error
  }
  // We may have looked long ago: if turns went by since, our number was free only because its file was cleared away.
  if ((await highestTurn(folder)) !== top + 1) {
    await removeFile(mine)
    return false
  }
  await clearAway(folder, top + 1, candidate)
  return true
}

async function highestTurn(folder: string): Promise<number> {
  const turns = (await readdir(folder)).filter((name) => /^\d+$/.test(name)).map(Number)
  return Math.max(0, ...turns)
}

async function isHeld(path: string): Promise<boolean> {
  try {
    const holder = parseRecord(await readFile(path, 'utf8'))
    if (holder === undefined) return false // released: the file is empty
    const state = liveness(holder)
    if (state !== 'elsewhere') return state === 'alive'
    return Date.now() - (await stat(path)).mtimeMs < ELSEWHERE_TRUST_MS
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return true // cleared away, so there is a newer turn: look again
    throw error
  }
}

// Keeps the file before ours, so that a process listing the folder right now sees at least one of the two.
async function clearAway(folder: string, turn: number, candidate: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name)
    if (/^\d+$/.test(name) ? Number(name) < turn - 1 : path !== candidate && (await isLeftover(path))) {
      await removeFile(path)
    }
  }
}

async function isLeftover(candidate: string): Promise<boolean> {
  const text = await readFile(candidate, 'utf8').catch(() => '')
  const writer = parseRecord(text)
  return writer !== undefined && liveness(writer) === 'dead'
}

async function removeFile(path: string): Promise<void> {
  try {
    await unlink(path)
  } catch (error) {
    if (!isMissing(error)) throw error
  }
}
