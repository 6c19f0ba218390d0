// Job: joins the server of a directory, or makes the data and starts the server; undoes all that when the user leaves.
// Called by: applications and tests, through the package's entry point.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Binaries, findBinaries } from './binaries.js'
import { runnableBinaries } from './cache.js'
import { createCluster, hasCluster } from './cluster.js'
import { openDatabase } from './database.js'
import { isMissing } from './error.js'
import { type Layout, layoutOf } from './layout.js'
import { type ProcessRecord, recordOf } from './liveness.js'
import { makeLock, withLock } from './lock.js'
import { boundLog } from './log.js'
import { stopLost } from './lost.js'
import { type CheckedOptions, checkOptions, type EmbeddedOptions } from './options.js'
import { ownerOf, prepareDirectory } from './owner.js'
import { startOnFreePort } from './port.js'
import { awaitPostmaster, dropPostmaster, findPostmaster, type Postmaster } from './postmaster.js'
import { stopIfUnused } from './unused.js'
import { addUser, removeUser } from './users.js'
import { ensureWatchdog, refuseWhileElsewhere } from './watchdog.js'

/** A running server, and this caller's hold on it. */
export interface EmbeddedServer {
  /** `postgres://leasehold:<password>@127.0.0.1:<port>/<database>`, for the `pg` driver, psql and other tools. */
  readonly url: string
  /** Real path of the directory. */
  readonly dir: string
  /** Process id of the PostgreSQL server. */
  readonly pid: number
  /** True when the server was running already. */
  readonly attached: boolean
  /** Version that the server reports, such as `18.4`. */
  readonly version: string
  /**
   * Gives up this caller's hold; the last one to do so stops the server and waits until it is gone. Close your
   * connections first. Idempotent. Throws `STOP_FAILED` when the server does not end within a minute.
   */
  stop(): Promise<void>
}

/** A process that is being killed is still seen for a moment. */
const ENDING_LOOKS = 25
const ENDING_LOOK_MS = 20

interface Site {
  options: CheckedOptions
  binaries: Binaries
  layout: Layout
}

/**
 * Starts a real PostgreSQL on `options.dir`, or joins the one that runs there, started by this or another process.
 * For development and tests. The server outlives a killed caller as long as it has other users; when the last user is
 * dead, a watchdog process stops it within seconds. Holds no handle open, so it never keeps your process alive.
 *
 * Throws `EmbeddedError`; `EMBEDDED_ERRORS` lists the codes. A failed call leaves no server and no hold behind.
 *
 * @example
 * const server = await startEmbedded({ dir: '.leasehold' })
 * const pool = new pg.Pool({ connectionString: server.url })
 * // ...
 * await pool.end()
 * await server.stop()
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedServer> {
  const checked = checkOptions(options)
  const binaries = await findBinaries(checked.binaries)
  const dir = await prepareDirectory(checked.dir)
  const site = { options: checked, binaries, layout: layoutOf(dir, await ownerOf(dir)) }
  await makeLock(site.layout)
  return withLock(site.layout, () => enter(site))
}

async function enter(site: Site): Promise<EmbeddedServer> {
  const { layout } = site
  await refuseWhileElsewhere(layout)
  const made = await hasCluster(layout, site.binaries)
  const user = await addUser(layout)
  try {
    await ensureWatchdog(layout)
    const { server, attached, opened } = await joinOrStart(site, made)
    const stop = stopOnce(layout, user, recordOf(server.pid))
    return { url: opened.url, dir: layout.dir, pid: server.pid, attached, version: opened.version, stop }
  } catch (error) {
    await leave(layout, user)
    throw error
  }
}

async function joinOrStart(site: Site, made: boolean) {
  const { layout, options } = site
  const open = (server: Postmaster) => openDatabase(layout, server.port, options.database)
  const running = await joinRunning(layout)
  if (running !== undefined) {
    try {
      return { server: running, attached: true, opened: await open(running) }
    } catch (error) {
      // It may have been killed this moment, and took our connection with it.
      if (!(await endsSoon(layout, running))) throw error
    }
  }
  const server = await startServer(site, made)
  return { server, attached: false, opened: await open(server) }
}

async function endsSoon(layout: Layout, { pid }: Postmaster): Promise<boolean> {
  for (let looks = 0; looks < ENDING_LOOKS; looks++) {
    if (findPostmaster(layout)?.pid !== pid) return true
    await sleep(ENDING_LOOK_MS)
  }
  return false
}

async function joinRunning(layout: Layout): Promise<Postmaster | undefined> {
  const found = findPostmaster(layout)
  return found === undefined || found.status === 'ready' ? found : awaitPostmaster(layout)
}

async function startServer(site: Site, made: boolean): Promise<Postmaster> {
  const { layout, options, binaries } = site
  await boundLog(layout)
  const native = await runnableBinaries(binaries, layout.owner, options.cacheDir)
  if (!made) await createCluster(layout, binaries, native)
  return startOnFreePort({ layout, native, settings: options.settings })
}

function stopOnce(layout: Layout, user: string, server: ProcessRecord): () => Promise<void> {
  let stopped: Promise<void> | undefined
  return () => {
    stopped ??= stop(layout, user, server)
    return stopped
  }
}

async function stop(layout: Layout, user: string, server: ProcessRecord): Promise<void> {
  await stopLost(layout, [server]) // the directory may be gone or made anew, with a lock and a list that are not ours
  try {
    await withLock(layout, () => leave(layout, user))
  } catch (error) {
    if (!isMissing(error)) throw error
    await dropPostmaster(layout, server) // it is being removed: lock and list are gone, or go while we use them
  }
}

async function leave(layout: Layout, user: string): Promise<void> {
  await removeUser(user)
  if (!(await stopIfUnused(layout))) await ensureWatchdog(layout) // somebody may have killed it
}
