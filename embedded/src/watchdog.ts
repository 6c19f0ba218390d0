// Job: starts and ends the watchdog process, which stops a server that all users died on; reads its pulse.
// Called by: startEmbedded() and stop(), under the lock.
import { readFile, stat, unlink, utimes } from 'node:fs/promises'
import { parse } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { EmbeddedError, isMissing, isSystemError } from './error.js'
import { type Layout, layoutOf, type Owner } from './layout.js'
import { liveness, type ProcessRecord, parseRecord, recordOf } from './liveness.js'
import { replaceFile } from './owner.js'
import { spawnApart } from './program.js'

/** How often the watchdog looks. */
export const WATCH_EVERY_MS = 1_000

const PULSE_MS_MAX = 3 * WATCH_EVERY_MS

/** Makes sure that a watchdog lives. It runs as ourselves, for our script may lie where the server's user cannot go. */
export async function ensureWatchdog(layout: Layout): Promise<void> {
  const present = await readWatchdog(layout)
  if (present !== undefined && liveness(present) === 'alive') return
  const script = fileURLToPath(new URL('./watch.js', import.meta.url))
  const { child } = await spawnApart({
    file: process.execPath,
    args: [script, layout.dir, ...ownerArguments(layout.owner)],
    cwd: parse(layout.dir).root,
    runAs: undefined,
    layout,
  })
  child.unref()
  // Without a watchdog the server still works, and the next call tries again.
  if (child.pid !== undefined) await replaceFile(layout.watch, JSON.stringify(recordOf(child.pid)), layout.owner)
}

// Told, for it could no longer look it up once the directory is removed.
function ownerArguments(owner: Owner | undefined): string[] {
  return owner === undefined ? [] : [String(owner.uid), String(owner.gid)]
}

/** The directory that a watchdog is told to watch. */
export function watchedLayout([dir, uid, gid]: readonly string[]): Layout {
  if (dir === undefined) throw new Error('usage: watch.js DIRECTORY [UID GID]')
  return layoutOf(dir, uid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) })
}

/**
 * Ends that watchdog, after the server was stopped. No other: since it was looked up, the directory may have been
 * removed and made anew, with a watchdog of its own.
 */
export async function endWatchdog(layout: Layout, watchdog: ProcessRecord): Promise<void> {
  try {
    const present = await readWatchdog(layout)
    if (present?.pid === watchdog.pid && present.started === watchdog.started) await unlink(layout.watch)
    if (liveness(watchdog) === 'alive' && watchdog.pid !== process.pid) process.kill(watchdog.pid, 'SIGTERM')
  } catch (error) {
    // Another user's watchdog, or one that ended by itself: without its file it goes at its next look.
    if (!isSystemError(error, 'EPERM', 'ESRCH', 'ENOENT')) throw error
  }
}

/**
 * Throws IN_USE_ELSEWHERE while the watchdog of another container or machine has a pulse. PostgreSQL alone would not
 * notice the other server, since process ids and shared memory mean nothing across containers, and two servers on one
 * data folder destroy it.
 */
export async function refuseWhileElsewhere(layout: Layout): Promise<void> {
  const present = await readWatchdog(layout)
  if (present === undefined || liveness(present) !== 'elsewhere') return
  const before = await pulse(layout)
  await sleep(PULSE_MS_MAX)
  if ((await pulse(layout)) === before) return // it stands still, so that machine or container is gone
  const message = `${layout.dir} is in use by a server in another container or on another machine; use its URL there`
  throw new EmbeddedError('IN_USE_ELSEWHERE', message)
}

/** Shows that the watchdog lives, to those who cannot see its process. */
export async function beat(layout: Layout): Promise<void> {
  const now = new Date()
  try {
    await utimes(layout.watch, now, now)
  } catch (error) {
    if (!isSystemError(error, 'ENOENT')) throw error // stop() is ending us this moment
  }
}

export async function readWatchdog(layout: Layout): Promise<ProcessRecord | undefined> {
  try {
    return parseRecord(await readFile(layout.watch, 'utf8'))
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

async function pulse(layout: Layout): Promise<number> {
  try {
    return (await stat(layout.watch)).mtimeMs
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return 0
    throw error
  }
}
