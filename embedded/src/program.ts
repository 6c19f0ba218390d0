// Job: spawns initdb, the server and the watchdog so that they are cut off from the host process.
// Called by: cluster.ts, postmaster.ts and watchdog.ts.
import { type ChildProcess, spawn } from 'node:child_process'
import { EmbeddedError, isSystemError } from './error.js'
import type { Layout, Owner } from './layout.js'
import { isReachable, openForAppend } from './owner.js'

export interface Program {
  file: string
  args: string[]
  /** Working directory. */
  cwd: string
  /** User to run as; undefined for ourselves. */
  runAs: Owner | undefined
  /** Whose log gets what the program prints. */
  layout: Layout
  /** Variables on top of the few that are handed on. */
  environment?: Record<string, string>
}

// Nothing else is handed on: PG* variables would change the server, and secrets of the host must not outlive it in
// another user's process.
const HANDED_ON = ['PATH', 'LD_LIBRARY_PATH', 'DYLD_LIBRARY_PATH', 'TMPDIR', 'TEMP', 'TMP', 'SystemRoot']

export interface Spawned {
  child: ChildProcess
  /** Its exit code, or null when a signal ended it; rejects when it could not be run. Nobody has to wait for it. */
  end: Promise<number | null>
}

/**
 * Spawns in a process group of its own, so Ctrl-C in the host's terminal does not reach it, and without our pipes.
 * The child keeps our event loop alive until the caller unrefs it.
 */
export async function spawnApart(program: Program): Promise<Spawned> {
  const log = await openForAppend(program.layout.log, program.layout.owner)
  try {
    const child = spawn(program.file, program.args, {
      cwd: program.cwd,
      env: { ...handedOn(), ...program.environment },
      stdio: ['ignore', log.fd, log.fd],
      detached: true,
      windowsHide: true,
      ...program.runAs,
    })
    const end = endOf(child) // listens at once: an error of spawn itself is told in this very turn
    end.catch(() => undefined)
    return { child, end }
  } finally {
    await log.close()
  }
}

function endOf(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.once('exit', resolve)
    child.once('error', (error) => reject(explainSpawn(error)))
  })
}

/**
 * How to name the data folder to a program that runs inside it: on Linux as "the folder I am in". PostgreSQL writes some
 * files by full path, pg_control among them; in a directory that was removed and made anew under it, those would be the
 * files of the new server. And root may use a folder that the server's user cannot get to by its path.
 */
export async function dataArgument({ dir, owner }: Layout, data: string): Promise<string> {
  if (process.platform === 'linux') return '/proc/self/cwd'
  if (await isReachable(dir, owner)) return data
  throw new EmbeddedError(
    'DIR_UNREACHABLE',
    `${dir} cannot be entered by the user that the server runs as, for PostgreSQL does not run as root; move it`,
  )
}

function explainSpawn(error: Error): EmbeddedError {
  if (!isSystemError(error, 'ENOENT')) {
    return new EmbeddedError('START_FAILED', `could not run PostgreSQL: ${error.message}`, { cause: error })
  }
  // The file is there, as findBinaries() saw, so what is missing is the loader it asks for.
  const message =
    'this system cannot run the PostgreSQL binary (it needs glibc; Alpine has musl); ' +
    'install PostgreSQL yourself and give a postgres:// URL instead'
  return new EmbeddedError('PLATFORM_UNSUPPORTED', message, { cause: error })
}

function handedOn(): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const name of HANDED_ON) {
    const value = process.env[name]
    if (value !== undefined) kept[name] = value
  }
  return kept
}
