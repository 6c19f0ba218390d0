// Job: the watchdog process: stops the server of a directory soon after its last user is dead, then ends.
// Called by: ensureWatchdog() as a program of its own, with what watchedLayout() reads as its arguments.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Layout } from './layout.js'
import { liveness, type ProcessRecord, recordOf } from './liveness.js'
import { withLock } from './lock.js'
import { boundLog } from './log.js'
import { stopLost } from './lost.js'
import { findPostmaster, straysOf } from './postmaster.js'
import { stopIfUnused } from './unused.js'
import { hasUsers } from './users.js'
import { beat, readWatchdog, WATCH_EVERY_MS, watchedLayout } from './watchdog.js'

// Tests remove the directory under a running server, and make it anew. Its files go one by one and in any order, and
// after every `await` the next one may be a newcomer's. So a missing file alone never ends us while a server that we
// know lives, and neither does an error: only with us would that server be stopped soon.

const IDLE_LOOKS_MAX = 3 // our starter may be slow to write the record that names us, and removing takes its time

interface Watched {
  layout: Layout
  /** The servers known to live: more than one when the directory was made anew. */
  servers: ProcessRecord[]
}

/** Whether we are needed any longer. */
type Need = 'needed' | 'idle' | 'over'

await watch({ layout: watchedLayout(process.argv.slice(2)), servers: [] })

async function watch(watched: Watched): Promise<void> {
  let told = ''
  for (let idle = 0; idle < IDLE_LOOKS_MAX; ) {
    await sleep(WATCH_EVERY_MS)
    try {
      const need = await look(watched)
      if (need === 'over') return
      idle = need === 'idle' ? idle + 1 : 0
    } catch (error) {
      if (String(error) !== told) console.error('watchdog:', error) // into the server's log
      told = String(error)
      idle = watched.servers.some(isAlive) ? 0 : idle + 1
    }
  }
}

async function look(watched: Watched): Promise<Need> {
  const { layout } = watched
  const need = await endLost(watched)
  if (need !== 'needed') return need
  await beat(layout)
  await boundLog(layout)
  if (await hasUsers(layout)) return 'needed'
  const stopped = await withLock(layout, () => stopIfUnused(layout)) // looks again, for a user may be arriving
  return stopped ? endLost(watched) : 'needed' // the directory may be gone since, and then it stopped nothing
}

/** Stops the servers that lost the directory. */
async function endLost(watched: Watched): Promise<Need> {
  const { layout, servers } = watched
  const named = await readWatchdog(layout)
  const isOurs = named?.pid === process.pid
  const isTaken = named !== undefined && !isOurs && liveness(named) !== 'dead'
  const found = findPostmaster(layout)
  // A server that started and lost its directory before we could look is found among all processes.
  const strays = isOurs && servers.length > 0 ? [] : straysOf(layout)
  const pids = [...(found === undefined ? [] : [found.pid]), ...strays]
  watched.servers = updated(servers, pids)
  await stopLost(layout, watched.servers)
  if (isTaken) return 'over' // another watchdog took over, here or in a directory made anew
  if (isOurs || watched.servers.some(isAlive)) return 'needed'
  return servers.length + watched.servers.length > 0 ? 'over' : 'idle' // over when those there were have ended
}

function updated(servers: readonly ProcessRecord[], pids: readonly number[]): ProcessRecord[] {
  const living = servers.filter(isAlive)
  const added = pids.filter((pid) => !living.some((server) => server.pid === pid))
  return [...living, ...added.map(recordOf)]
}

function isAlive(server: ProcessRecord): boolean {
  return liveness(server) === 'alive'
}
