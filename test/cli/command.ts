/** The built command line, run as a person or a script would. Used by the test files of this folder. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { serverUrl } from '../support/postgres.js'

export const MAIN = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url))

export interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
}

export interface RunOptions {
  env?: Record<string, string>
  input?: string
  cwd?: string
}

export interface Running {
  child: ChildProcess
  /** What was written so far. */
  stdout(): string
  stderr(): string
  /** Resolves when `pattern` was written, to either stream. */
  wrote(pattern: RegExp): Promise<void>
  ended: Promise<Ended>
}

/** Without the variables of whoever runs the tests. */
function cleanEnvironment(more: Record<string, string> = {}): NodeJS.ProcessEnv {
  const { LEASEHOLD_URL: _url, LEASEHOLD_SCHEMA: _schema, NO_COLOR: _colour, ...rest } = process.env
  return { ...rest, ...more }
}

export function start(args: readonly string[], options: RunOptions = {}): Running {
  return watched(
    spawn(process.execPath, [MAIN, ...args], {
      cwd: options.cwd,
      env: cleanEnvironment(options.env),
      stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    }),
    options.input,
  )
}

export function run(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  return start(args, options).ended
}

/** A line of shell in which `leasehold` is the command. */
export function shell(line: string, options: RunOptions = {}): Promise<Ended> {
  const script = `leasehold() { "${process.execPath}" "${MAIN}" "$@"; }\n${line}`
  const env = cleanEnvironment(options.env)
  return watched(spawn('bash', ['-c', script], { env, stdio: ['ignore', 'pipe', 'pipe'] }), undefined).ended
}

function watched(child: ChildProcess, input: string | undefined): Running {
  const written = { stdout: '', stderr: '' }
  let wake: () => void = () => {}
  for (const name of ['stdout', 'stderr'] as const)
    child[name]!.on('data', (chunk) => {
      written[name] += String(chunk)
      wake()
    })
  child.stdin?.end(input)
  const ended = new Promise<Ended>((resolve) => {
    child.on('close', (code, signal) => {
      resolve({ code, signal, ...written })
      wake()
    })
  })
  const wrote = async (pattern: RegExp): Promise<void> => {
    while (!pattern.test(written.stdout + written.stderr)) {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`it ended and never wrote ${pattern}: ${written.stdout}${written.stderr}`)
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  return { child, ended, wrote, stdout: () => written.stdout, stderr: () => written.stderr }
}

/** A schema of one test file, for the command line. */
export interface CliStore {
  env: Record<string, string>
  run(...args: string[]): Promise<Ended>
  /** The one JSON document that the command answers. */
  json<T>(...args: string[]): Promise<T>
  drop(): Promise<void>
}

export async function cliStore(name: string): Promise<CliStore> {
  const schema = `cli_${name}_${process.pid}`
  const env = { LEASEHOLD_URL: serverUrl(), LEASEHOLD_SCHEMA: schema }
  const store: CliStore = {
    env,
    run: (...args) => run(args, { env }),
    json: async (...args) => {
      const { stdout, stderr } = await run([...args, '--json'], { env })
      return parsed(stdout, stderr)
    },
    drop: async () => {
      const client = new pg.Client(serverUrl())
      await client.connect()
      await client.query(`drop schema if exists "${schema}" cascade`)
      await client.end()
    },
  }
  const made = await store.run('migrate')
  if (made.code !== 0) throw new Error(`migrate failed: ${made.stderr}`)
  return store
}

/** Exactly one line, and it is JSON. */
export function parsed<T>(stdout: string, stderr = ''): T {
  const lines = stdout.split('\n')
  if (lines.length !== 2 || lines[1] !== '') throw new Error(`not one line: ${JSON.stringify(stdout)} ${stderr}`)
  return JSON.parse(lines[0]!) as T
}

export async function scratchFolder(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'leasehold-cli-'))
  t.after(() => rm(dir, { recursive: true, force: true, maxRetries: 20 }))
  return dir
}

/** A module of handlers in a file of its own; `text` gets `defineJob` and the verdicts. */
export async function handlerModule(dir: string, text: string, name = 'jobs.mjs'): Promise<string> {
  const library = new URL('../../src/index.js', import.meta.url).href
  const path = join(dir, name)
  await writeFile(path, `import { dead, defineJob, retryAfter, snooze } from '${library}'\n${text}`)
  return path
}
