// Job: stops the server of a directory when nobody uses it any more.
// Called by: startEmbedded() when it fails, stop() and the watchdog, under the lock.
import type { Layout } from './layout.js'
import { recordOf } from './liveness.js'
import { findPostmaster, stopPostmaster } from './postmaster.js'
import { forgetDeadUsers, hasUsers } from './users.js'
import { endWatchdog, readWatchdog } from './watchdog.js'

/** Stops the server and its watchdog unless a living process uses it; true when nothing runs any more. */
export async function stopIfUnused(layout: Layout): Promise<boolean> {
  // First what there is to stop, then the users. Our lock means nothing once the directory is removed and made anew,
  // but a new user adds itself before it starts anything, so what we find here without a user is no newcomer's.
  const watchdog = await readWatchdog(layout)
  const found = findPostmaster(layout)
  const server = found === undefined ? undefined : recordOf(found.pid)
  await forgetDeadUsers(layout)
  if (await hasUsers(layout)) return false
  if (server !== undefined) await stopPostmaster(layout, server)
  if (watchdog !== undefined) await endWatchdog(layout, watchdog)
  return true
}
