/** From a URL to a queue: the one place that names stores. Each is imported when it is asked for. Called by applications. */
import { rateLimit } from './client/limits.js'
import { Queue } from './client/queue.js'
import { type Env, realEnv } from './core/env.js'
import { QueueError } from './core/errors.js'
import { isKind, type Kind } from './core/kind.js'
import {
  type Check,
  duration,
  flag,
  type Given,
  type Held,
  invalidOption,
  type OptionTable,
  object,
  oneOf,
  optionReader,
  text,
  whole,
} from './core/options.js'
import { type PartitionList, type PartitionOptions, partitionsIn } from './core/partition-list.js'
import { nearest } from './core/suggest.js'
import { EventBus, type EventListener, type LogLevel } from './observe/events.js'
import { startLog } from './observe/log.js'
import { type Connection, LocalHints } from './storage/connection.js'
import type { Storage } from './storage/storage.js'

const LOG_OPTIONS = {
  /** Events that are less important leave no line: debug, info (unless given), warn, error. */
  level: { default: 'info', check: oneOf(['debug', 'info', 'warn', 'error']) },
} satisfies OptionTable

const readLog = optionReader(LOG_OPTIONS)

type LogChoice = boolean | EventListener | Given<typeof LOG_OPTIONS>
type HeldLog = EventListener | { level: LogLevel } | undefined

const logChoice: Check<LogChoice, HeldLog> = (value, field) => {
  if (value === false) return undefined
  if (typeof value === 'function') return value as EventListener
  return readLog(value === true ? undefined : value, `${field}.`)
}

const CONNECT_OPTIONS = {
  /** The PostgreSQL schema that holds the tables; leasehold unless given. */
  schema: { default: 'leasehold', check: text(63) },
  /** Connections of the pool at most: 6 unless given. A worker takes two more, to listen and to beat. */
  connections: { check: whole({ min: 1, max: 1_000 }) },
  /**
   * Whether connect() brings the schema up to date, as it does unless told false; then it throws when that is needed.
   */
  migrate: { default: true, check: flag },
  /** How long one call to the store may take before it is given up; 30 seconds unless given. */
  storeTimeout: { default: 30_000, check: duration({ minMs: 1, maxMs: 3_600_000 }) },
  /**
   * How many jobs this process may enqueue, over all queues: `{ limit, per, burst }`. Beyond it enqueues are refused
   * (RATE_LIMITED); all may unless given.
   */
  intake: { check: rateLimit },
  /** The kinds this program uses; two kinds of one name are refused at once. */
  jobs: { check: kindsOf as Check<readonly Kind<unknown, unknown>[], readonly Kind<unknown, unknown>[]> },
  /** true: a line of JSON on stderr for each event; { level } for fewer or more; or a function that gets each event. */
  log: { default: undefined as HeldLog, check: logChoice },
  /** Clock, chance and timers, for tests. */
  env: { default: realEnv, check: object<Env>('an Env') },
} satisfies OptionTable

/** The options of `connect`. */
export type ConnectOptions = Given<typeof CONNECT_OPTIONS>
type HeldConnect = Held<typeof CONNECT_OPTIONS>

const readConnect = optionReader(CONNECT_OPTIONS)

/** A store that was opened, and what has to end with it. */
interface Opened {
  storage: Storage
  stop?: () => Promise<void>
}

type Opener = (url: string, options: HeldConnect) => Promise<Opened>

/** What a URL may begin with, and how the messages show it. */
const STORES: Readonly<Record<string, { example: string; open: Opener }>> = {
  postgres: { example: 'postgres://user@host/database', open: openPostgres },
  postgresql: { example: 'postgresql://user@host/database', open: openPostgres },
  embedded: { example: 'embedded:./data', open: openEmbedded },
  memory: { example: 'memory:', open: openMemory },
}

/**
 * Opens a store and returns its queue:
 *
 *     const queue = await connect('postgres://localhost/app')      // PostgreSQL 15 or newer; needs the package `pg`
 *     const queue = await connect('embedded:./data')               // starts a PostgreSQL; needs `@leasehold/embedded`
 *     const queue = await connect('memory:')                       // for unit tests; gone with the queue
 *     const queue = await connect({ by: 'tenant', partitions: ['postgres://one/app', 'postgres://two/app'] })
 *
 * The last one is a queue over several stores: each job goes to one of them, by its tenant. The same as a text, for
 * LEASEHOLD_URL and the like: `by=tenant,postgres://one/app,postgres://two/app`.
 *
 * Brings the schema up to date unless `{ migrate: false }`. It looks at the store once and does not wait for one that is
 * down: call it again, or let a supervisor start the process again. Workers wait, once they are started. Rejects with
 * UNKNOWN_STORE, DRIVER_MISSING, STORE_UNAVAILABLE, SCHEMA_MISSING or SCHEMA_OUTDATED, and for options with
 * UNKNOWN_OPTION or INVALID_OPTION.
 */
export async function connect(url: string | PartitionOptions, options?: ConnectOptions): Promise<Queue> {
  const held = readConnect(options)
  const events = new EventBus()
  const parts = partitionsIn(url)
  const { storage, ready, stop } = await (parts ? openPartitions(parts, held) : openOne(url as string, held))
  const connection: Connection = { storage, env: held.env, events, hints: new LocalHints() }
  const stopLog = log(connection, held.log)
  const onClose = async (): Promise<void> => {
    stopLog()
    await stop?.()
  }
  const queue = new Queue(connection, { storeTimeoutMs: held.storeTimeout, intake: held.intake, onClose })
  try {
    await ready()
    return queue
  } catch (error) {
    // What went wrong first is what the caller has to hear.
    await queue.close().catch(() => {})
    throw error
  }
}

/** Opens one store; `ready` brings it up to date, or looks whether it is. */
async function openOne(url: string, held: HeldConnect): Promise<Opened & { ready: () => Promise<void> }> {
  const opened = await storeOf(url).open(url, held)
  const { setup } = opened.storage
  const ready = async (): Promise<void> => {
    try {
      if (held.migrate) await setup?.migrate()
      await setup?.check()
    } catch (error) {
      throw explained(error, url)
    }
  }
  return { ...opened, ready }
}

/**
 * Opens several stores as one. Those that are away now are gone without until they are back, unless all of them are; a store
 * that is there and cannot be used is a mistake, and told.
 */
async function openPartitions(
  { partitions, by }: PartitionList,
  held: HeldConnect,
): Promise<Opened & { ready: () => Promise<void> }> {
  const { isAway, Member, PartitionedStorage } = await import('./storage/partitioned/index.js')
  const members: InstanceType<typeof Member>[] = []
  const stops: (() => Promise<void>)[] = []
  const stop = async (): Promise<void> => {
    await Promise.all(stops.map((one) => one()))
  }
  try {
    for (const { name, url, schema, draining } of partitions) {
      const one = await openOne(url, schema === undefined ? held : { ...held, schema })
      if (one.stop) stops.push(one.stop)
      members.push(new Member({ name, draining, storage: one.storage, open: one.ready, env: held.env }))
    }
  } catch (error) {
    await Promise.allSettled(members.map(({ storage }) => storage.close()))
    await stop()
    throw error
  }
  const ready = async (): Promise<void> => {
    const looks = await Promise.allSettled(members.map((member) => member.read(async () => {})))
    const faults = looks.flatMap((look) => (look.status === 'rejected' ? [look.reason as unknown] : []))
    const fatal = faults.find((error) => !isAway(error) || error.code.startsWith('SCHEMA_'))
    if (fatal !== undefined || faults.length === members.length) throw fatal ?? faults[0]
    looks.forEach((look, index) => {
      if (look.status === 'rejected') members[index]!.away(look.reason as QueueError)
    })
  }
  return { storage: new PartitionedStorage(members, by), ready, stop }
}

/** A first connection that fails is nearly always a mistake in the URL: says which parts there are to look at. */
function explained(error: unknown, url: string): unknown {
  if (!(error instanceof QueueError) || error.code !== 'STORE_UNAVAILABLE' || !/^postgres(ql)?:/i.test(url))
    return error
  const message = `${error.message}; check that the server runs, and host, port, user, password and database of the URL${shownParts(url)}`
  return new QueueError(error.code, message, { cause: error.cause ?? error })
}

/** Never the password. Where a part of one may have slipped into another place, nothing is shown. */
function shownParts(url: string): string {
  if (!URL.canParse(url)) return ''
  const { hostname, port, username, pathname, search, hash } = new URL(url)
  if (`${pathname}${search}${hash}`.includes('@') || search !== '') return ''
  const parts = { host: hostname, port: port || '5432', user: username, database: pathname.slice(1) }
  const shown = Object.entries(parts).filter(([, value]) => value !== '')
  return ` (${shown.map(([part, value]) => `${part} ${value}`).join(', ')})`
}

function storeOf(url: unknown): { open: Opener } {
  const scheme = typeof url === 'string' ? /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(url)?.[1]?.toLowerCase() : undefined
  const store = scheme !== undefined && Object.hasOwn(STORES, scheme) ? STORES[scheme] : undefined
  if (store) return store
  // Only the scheme is shown: the rest of a URL may hold a password.
  const found = scheme === undefined ? undefined : nearest(scheme, Object.keys(STORES))
  const hint = found === undefined ? '' : `; did you mean "${found}:"?`
  const shown = scheme === undefined ? 'the URL has no scheme' : `no store has the scheme "${scheme}:"`
  const examples = Object.values(STORES).map(({ example }) => example)
  throw new QueueError('UNKNOWN_STORE', `${shown}${hint} (known: ${examples.join(', ')})`)
}

async function openPostgres(url: string, options: HeldConnect): Promise<Opened> {
  const postgres = await loaded(() => import('./storage/postgres/index.js'), 'pg', 'postgres:')
  const { schema, connections, storeTimeout, env } = options
  const storage = postgres.openPostgres({
    url,
    schema,
    env,
    callTimeoutMs: storeTimeout,
    ...(connections === undefined ? {} : { connections }),
  })
  return { storage }
}

/** What this needs of `@leasehold/embedded`; a package that users may not have is not named in an import. */
interface Embedded {
  startEmbedded(options: { dir: string }): Promise<{ url: string; stop(): Promise<void> }>
}

async function openEmbedded(url: string, options: HeldConnect): Promise<Opened> {
  const dir = url.slice(url.indexOf(':') + 1)
  if (dir === '') throw invalidOption('url', url, 'a directory after "embedded:", such as embedded:./data')
  const packageName = '@leasehold/embedded'
  const embedded = await loaded(() => import(packageName) as Promise<Embedded>, packageName, 'embedded:')
  const server = await embedded.startEmbedded({ dir })
  try {
    const { storage } = await openPostgres(server.url, options)
    return { storage, stop: () => server.stop() }
  } catch (error) {
    await server.stop()
    throw error
  }
}

async function openMemory(_url: string, { env }: HeldConnect): Promise<Opened> {
  const memory = await import('./storage/memory/index.js')
  return { storage: memory.openMemory({ env }) }
}

/** Imports what needs an optional package. Throws DRIVER_MISSING, naming it, when it is not installed. */
async function loaded<T>(load: () => Promise<T>, packageName: string, scheme: string): Promise<T> {
  try {
    return await load()
  } catch (error) {
    const { code, message } = error as { code?: unknown; message?: unknown }
    if (code !== 'ERR_MODULE_NOT_FOUND' || !String(message).includes(`'${packageName}'`)) throw error
    throw new QueueError(
      'DRIVER_MISSING',
      `${scheme} URLs need the package ${packageName}, which is not installed: npm install ${packageName}`,
      { cause: error },
    )
  }
}

function log({ events, env }: Connection, choice: HeldLog): () => void {
  if (choice === undefined) return () => {}
  if (typeof choice === 'function') return events.on(choice)
  // Not stdout: a program's output is its own.
  return startLog(events, { level: choice.level, env, write: (line) => void process.stderr.write(line) })
}

function kindsOf(value: unknown, field: string): readonly Kind<unknown, unknown>[] {
  if (!Array.isArray(value)) throw invalidOption(field, value, 'an array of what defineJob() made')
  const byName = new Map<string, unknown>()
  value.forEach((kind, index) => {
    if (!isKind(kind)) throw invalidOption(`${field}[${index}]`, kind, 'what defineJob() made')
    if (byName.has(kind.name) && byName.get(kind.name) !== kind)
      throw new QueueError('INVALID_NAME', `${field}: two kinds have the name "${kind.name}"`, { field })
    byName.set(kind.name, kind)
  })
  return value
}
