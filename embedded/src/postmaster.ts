// Job: finds, starts and stops the PostgreSQL server process (the postmaster) of a directory.
// Called by: startEmbedded(), stop() and the watchdog, always under the lock of the directory.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { executable } from './binaries.js'
import { EmbeddedError, isMissing, isSystemError } from './error.js'
import type { Layout } from './layout.js'
import { isThere, liveness, type ProcessRecord } from './liveness.js'
import { dataArgument, type Spawned, spawnApart } from './program.js'

export interface Postmaster {
  pid: number
  port: number
  /** `ready`, or `starting` and `stopping` on the way. */
  status: string
}

/** What it takes to start a server. */
export interface Launch {
  layout: Layout
  /** Folder with bin/, lib/ and share/. */
  native: string
  settings: Readonly<Record<string, string>>
}

const READY_MS_MAX = 120_000 // crash recovery of a big database takes its time
const STOP_MS_MAX = 60_000
const POLL_MS = 5
const REMOVED = ' (deleted)' // what Linux adds to the path of a removed folder that a process still works in

/** The living server of this directory, whatever its status. */
export function findPostmaster(layout: Layout): Postmaster | undefined {
  const file = readPidFile(layout)
  return file !== undefined && isPostmasterOf(layout, file.pid) ? file : undefined
}

/** True when postmaster.pid is there: with no living server, the last one was killed. */
export function hasPidFile(layout: Layout): boolean {
  return readPidFile(layout) !== undefined
}

function readPidFile(layout: Layout): Postmaster | undefined {
  let text: string
  try {
    text = readFileSync(join(layout.data, 'postmaster.pid'), 'utf8')
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
  // Lines: pid, data folder, start time, port, socket folder, address, shared memory key, status.
  const lines = text.split('\n').map((line) => line.trim())
  const pid = Number(lines[0])
  return Number.isSafeInteger(pid) && pid > 0
    ? { pid, port: Number(lines[3]), status: lines[7] ?? 'starting' }
    : undefined
}

/** True when process `pid` is a PostgreSQL server that works in our data folder, and no zombie. */
function isPostmasterOf(layout: Layout, pid: number): boolean {
  if (!isThere(pid)) return false
  if (process.platform === 'win32') return true // the password check on connecting has to tell the rest
  const folder = folderOf(pid)
  return folder === undefined ? programName(pid) === 'postgres' : folder === layout.data
}

/** False for a server that works in a data folder which was removed, moved or made anew under it. */
export function isInPlace(layout: Layout, pid: number): boolean {
  // Its folder counts too: in a copy that was put in place of the original, the file names the server of the original.
  return readPidFile(layout)?.pid === pid && !folderOf(pid)?.endsWith(REMOVED)
}

/** Servers whose data folder lay here and was removed under them, so that no file leads to them. On Linux only. */
export function straysOf(layout: Layout): number[] {
  if (process.platform !== 'linux') return []
  const pids = readdirSync('/proc').map(Number).filter(Number.isInteger)
  const strays = pids.filter((pid) => folderOf(pid) === layout.data + REMOVED && programName(pid) === 'postgres')
  return strays.filter((pid) => !strays.includes(parentOf(pid))) // the others are the processes of its sessions
}

/** Where a process works; undefined when it is gone or a zombie, when it may not be told, or when it is not Linux. */
function folderOf(pid: number): string | undefined {
  if (process.platform !== 'linux') return undefined
  try {
    return readlinkSync(`/proc/${pid}/cwd`)
  } catch (error) {
    // Root in a container may lack the right to look at other users' processes; their names it sees.
    if (isSystemError(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM')) return undefined
    throw error
  }
}

/** Name of the program that a process runs; empty when it is gone or a zombie. */
function programName(pid: number): string {
  try {
    if (process.platform !== 'linux') {
      return basename(execFileSync('ps', ['-o', 'comm=', '-p', String(pid)], { encoding: 'utf8' }).trim())
    }
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const end = stat.lastIndexOf(')')
    return stat[end + 2] === 'Z' ? '' : stat.slice(stat.indexOf('(') + 1, end)
  } catch {
    return ''
  }
}

function parentOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return 0 // gone since
  }
}

/** Starts a server and waits until it is ready; undefined when it ended instead, for the reason in the log. */
export async function launchPostmaster(launch: Launch, port: number): Promise<Postmaster | undefined> {
  const { layout } = launch
  disownReusedPid(layout)
  const data = await dataArgument(layout, layout.data)
  const server = await spawnApart({
    file: join(launch.native, 'bin', executable('postgres')),
    args: ['-D', data, ...settingArguments(launch.settings, port)],
    cwd: layout.data,
    runAs: layout.owner,
    layout,
    environment: { LC_ALL: 'C', TZ: 'UTC' },
  })
  server.child.unref()
  return untilReady(layout, server)
}

// After a crash (or in a new container) another program may have the process id in postmaster.pid, and PostgreSQL would
// refuse to start. It ignores the id of its parent, which is us; the line for shared memory stays, so that processes
// which outlived a killed server are still noticed.
function disownReusedPid(layout: Layout): void {
  const file = readPidFile(layout)
  if (file === undefined || !isThere(file.pid)) return
  const path = join(layout.data, 'postmaster.pid')
  writeFileSync(path, readFileSync(path, 'utf8').replace(/^\d+/, String(process.pid)))
}

function settingArguments(settings: Readonly<Record<string, string>>, port: number): string[] {
  const all = { ...settings, port: String(port), listen_addresses: '127.0.0.1', unix_socket_directories: '' }
  return Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

async function untilReady(layout: Layout, { child, end }: Spawned): Promise<Postmaster | undefined> {
  let over = false
  const noteEnd = () => {
    over = true
  }
  end.then(noteEnd, noteEnd)
  const deadline = performance.now() + READY_MS_MAX
  while (!over) {
    const found = readPidFile(layout)
    if (found?.pid === child.pid && found?.status === 'ready') return found
    if (performance.now() > deadline) throw notReady(layout)
    await sleep(POLL_MS)
  }
  await end
  return undefined
}

/** Waits for a server that another process began to start; undefined when it ends instead. */
export async function awaitPostmaster(layout: Layout): Promise<Postmaster | undefined> {
  const deadline = performance.now() + READY_MS_MAX
  for (;;) {
    const found = findPostmaster(layout)
    if (found === undefined || found.status === 'ready') return found
    if (performance.now() > deadline) throw notReady(layout)
    await sleep(POLL_MS)
  }
}

function notReady(layout: Layout): EmbeddedError {
  const message = `PostgreSQL is not ready after ${READY_MS_MAX / 1000} s; see ${layout.log}, and try again later`
  return new EmbeddedError('START_FAILED', message)
}

/** Fast shutdown: ends all sessions, writes everything down, and waits until the process is gone. */
export async function stopPostmaster(layout: Layout, server: ProcessRecord): Promise<void> {
  await endBy('SIGINT', layout, server)
}

/** Immediate shutdown: writes nothing any more, for the data folder may be gone, or another server's. */
export async function dropPostmaster(layout: Layout, server: ProcessRecord): Promise<void> {
  await endBy('SIGQUIT', layout, server)
}

// On Windows both are a plain kill, which costs a crash recovery and no data.
async function endBy(signal: 'SIGINT' | 'SIGQUIT', layout: Layout, server: ProcessRecord): Promise<void> {
  if (liveness(server) !== 'alive') return
  const { pid } = server
  try {
    process.kill(pid, signal)
  } catch (error) {
    if (!isSystemError(error, 'ESRCH')) throw error
  }
  const deadline = performance.now() + STOP_MS_MAX
  while (liveness(server) === 'alive') {
    if (performance.now() > deadline) {
      const message = `the server (process ${pid}) is still there ${STOP_MS_MAX / 1000} s after ${signal}; see ${layout.log}`
      throw new EmbeddedError('STOP_FAILED', message)
    }
    await sleep(POLL_MS)
  }
}
