/** A real PgBouncer before the test's server, with few connections of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, chmodSync, constants, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import pg from 'pg'
import { until } from './until.js'

const INSTALL = `this test needs PgBouncer and does not find it: install it and run again
  Debian, Ubuntu: apt-get install -y pgbouncer
  macOS:          brew install pgbouncer`

/** Where packages put it that is not on every PATH. */
const FOLDERS = ['/usr/sbin', '/usr/local/sbin', '/opt/homebrew/bin']

export interface Pooler {
  /** The server's URL by way of the pooler. */
  readonly url: string
  /** What it has logged. */
  log(): string
  /** Its process ends by this signal, and nobody listens there any more. */
  end(signal: NodeJS.Signals): Promise<void>
  /** Another process at the same address. */
  start(): Promise<void>
  stop(): Promise<void>
}

export interface PoolerOptions {
  mode?: 'transaction' | 'session'
  /** Connections to the server. */
  servers?: number
  /** Further settings of pgbouncer.ini. */
  settings?: Readonly<Record<string, string | number>>
}

export async function startPooler(
  url: string,
  { mode = 'transaction', servers = 2, settings = {} }: PoolerOptions = {},
): Promise<Pooler> {
  const program = programPath()
  const dir = mkdtempSync(join(tmpdir(), 'leasehold-pooler-'))
  const port = await freePort()
  const path = join(dir, 'pgbouncer.ini')
  writeFileSync(path, ini(new URL(url), { port, mode, servers, settings }))
  // It refuses to run as root, and has to read its file as whom it becomes.
  const root = process.getuid?.() === 0
  if (root) chmodSync(dir, 0o755)
  const through = new URL(url)
  through.host = `127.0.0.1:${port}`
  let said = ''
  let child: ChildProcess
  const start = async (): Promise<void> => {
    const started = spawn(program, [...(root ? ['-u', 'nobody'] : []), path], { stdio: ['ignore', 'ignore', 'pipe'] })
    child = started
    started.stderr!.on('data', (chunk) => {
      said = (said + String(chunk)).slice(-100_000)
    })
    await until('the pooler answers', async () => {
      if (started.exitCode !== null) throw new Error(`pgbouncer ended at once:\n${said}`)
      return answers(through.href)
    })
  }
  await start()
  return {
    url: through.href,
    log: () => said,
    end: (signal) => ended(child, signal),
    start,
    stop: async () => {
      await ended(child, 'SIGINT')
      rmSync(dir, { recursive: true, force: true, maxRetries: 20 })
    },
  }
}

function programPath(): string {
  const folders = [...(process.env.PATH ?? '').split(delimiter), ...FOLDERS]
  const found = folders.map((folder) => join(folder, 'pgbouncer')).find(isExecutable)
  if (found === undefined) throw new Error(INSTALL)
  return found
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

function ini(
  { hostname, port: serverPort, username, password }: URL,
  { port, mode, servers, settings }: Required<PoolerOptions> & { port: number },
): string {
  const all = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    // Whoever comes gets in, as the user of the line above: what is tested is what becomes of sessions.
    auth_type: 'any',
    pool_mode: mode,
    default_pool_size: servers,
    max_client_conn: 500,
    ...settings,
  }
  const server = `* = host=${hostname} port=${serverPort} user=${username} password='${decodeURIComponent(password)}'`
  return [
    '[databases]',
    server,
    '[pgbouncer]',
    ...Object.entries(all).map(([name, value]) => `${name} = ${value}`),
    '',
  ].join('\n')
}

async function freePort(): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client(url)
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query('select 1')
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => {})
  }
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  child.kill(signal)
  const patience = setTimeout(() => child.kill('SIGKILL'), 5_000)
  await exit
  clearTimeout(patience)
}
