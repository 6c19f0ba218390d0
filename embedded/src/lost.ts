// Job: stops servers that lost their directory: it was removed or moved under them, and perhaps made anew.
// Called by: stop() and the watchdog. Without the lock, which went with the directory.
import type { Layout } from './layout.js'
import { liveness, type ProcessRecord } from './liveness.js'
import { dropPostmaster, isInPlace } from './postmaster.js'

/**
 * Stops those of `servers` that are not in place: postmaster.pid does not name them, which PostgreSQL itself takes as a
 * reason to end, but it looks only once a minute. The server that is in place may be a newcomer's and is left alone.
 */
export async function stopLost(layout: Layout, servers: readonly ProcessRecord[]): Promise<void> {
  const lost = servers.filter((server) => liveness(server) === 'alive' && !isInPlace(layout, server.pid))
  await Promise.all(lost.map((server) => dropPostmaster(layout, server)))
}
