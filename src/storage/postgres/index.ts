/** The PostgreSQL store: opens it and puts its operations together behind the port. Called by connect.ts. */
import type pg from 'pg'
import { type Env, realEnv } from '../../core/env.js'
import type {
  Beat,
  BeatAnswer,
  BeatSource,
  Claim,
  ClaimRequest,
  EnqueueOptions,
  EnqueueOutcome,
  NewJob,
  SettleAnswer,
  Settlement,
  Storage,
  TakeOver,
} from '../storage.js'
import { Beats, TakeOverOperation } from './beat.js'
import { ClaimOperation } from './claim.js'
import { sslCopy } from './connections.js'
import { PostgresControl } from './control.js'
import type { Promoted } from './cursors.js'
import { Database } from './database.js'
import { PostgresDiagnosis } from './diagnosis.js'
import { Enqueue } from './enqueue.js'
import { grantStatements, type SchemaRole } from './grants.js'
import type { BeatData } from './heartbeat-source.js'
import { PostgresInspect } from './inspect.js'
import { PostgresSetup } from './migrate.js'
import { printMigrations } from './migration-text.js'
import { Pruning } from './pruning.js'
import { Queues } from './queues.js'
import { type SchemaName, schemaName } from './schema-name.js'
import { PLAN } from './schema-plan.js'
import { Settle } from './settle.js'
import { ownsTransaction } from './transaction.js'
import { PostgresUpkeep } from './upkeep.js'
import { PostgresWake } from './wake.js'

export type { SchemaRole } from './grants.js'
export type { TransactionClient } from './transaction.js'

/** How to reach the server and which schema to use. One of `url` and `pool` is needed. */
export interface PostgresOptions {
  /** `postgres://user:password@host:port/database`. */
  url?: string
  /** Your own pool in place of a URL; it is used and never ended. */
  pool?: pg.Pool
  /** Where the tables live. Default `leasehold`. */
  schema?: string
  /** Connections of the pool at most. Default 6; a worker takes two more, to listen and to beat. */
  connections?: number
  /** A call to the store without an answer for so long is given up. Default 30,000. */
  callTimeoutMs?: number
  env?: Env
}

/** Opens the store. Nothing is connected until the first call. */
export function openPostgres(options: PostgresOptions): PostgresStorage {
  return new PostgresStorage(options)
}

/** The PostgreSQL store behind the port. Made by `openPostgres`; applications use `connect`. */
export class PostgresStorage implements Storage {
  readonly name = 'postgres'
  readonly upkeep: PostgresUpkeep
  readonly control: PostgresControl
  readonly inspect: PostgresInspect
  readonly wake: PostgresWake
  readonly setup: PostgresSetup
  readonly diagnose: PostgresDiagnosis
  readonly connections: number
  readonly beatSource?: BeatSource
  private readonly database: Database
  /** For beats where no thread sends them: handlers may hold all of a shared pool for longer than a lease. */
  private readonly beatDatabase: Database
  private readonly enqueueOperation: Enqueue
  private readonly claimOperation: ClaimOperation
  private readonly settleOperation: Settle
  private readonly beats: Beats
  private readonly goodByes: Beats
  private readonly takeOverOperation: TakeOverOperation

  constructor(options: PostgresOptions) {
    const schema = schemaName(options.schema ?? 'leasehold')
    const env = options.env ?? realEnv
    const callTimeoutMs = options.callTimeoutMs ?? 30_000
    const client = clientConfig(options)
    this.database = new Database({
      client,
      connections: options.connections ?? 6,
      callTimeoutMs,
      env,
      ...(options.pool ? { pool: options.pool } : {}),
    })
    this.beatDatabase = new Database({ client, connections: 1, callTimeoutMs, env })
    const queues = new Queues(this.database, schema.quoted)
    const promoted: Promoted = { sinceUs: 0 }
    this.settleOperation = new Settle(this.database, schema.quoted)
    this.enqueueOperation = new Enqueue(this.database, queues, schema.quoted)
    this.claimOperation = new ClaimOperation(this.database, queues, this.settleOperation, promoted, env, schema.quoted)
    this.beats = new Beats(this.beatDatabase, this.settleOperation, schema.quoted)
    this.goodByes = new Beats(this.database, this.settleOperation, schema.quoted)
    this.takeOverOperation = new TakeOverOperation(this.database, queues, this.settleOperation, schema.quoted)
    this.upkeep = this.openUpkeep(queues, schema, promoted, env)
    this.inspect = new PostgresInspect(this.database, queues, schema.quoted)
    this.control = new PostgresControl(this.database, queues, this.settleOperation, this.inspect, schema.quoted)
    this.wake = new PostgresWake(this.database, env, schema.channel)
    this.setup = new PostgresSetup(this.database, schema, env)
    this.diagnose = new PostgresDiagnosis(this.database, queues, env, schema)
    this.connections = options.pool?.options.max ?? options.connections ?? 6
    const data: BeatData = { client, schema: schema.quoted }
    // A password that is a function, or keys that are objects, cannot cross to a thread: the main loop beats then.
    if (isPlain(data)) this.beatSource = { module: new URL('./heartbeat-source.js', import.meta.url).href, data }
  }

  enqueue(jobs: readonly NewJob[], options?: EnqueueOptions): Promise<EnqueueOutcome[]> {
    return this.enqueueOperation.enqueue(jobs, options)
  }

  ownsTransaction(tx: unknown): Promise<boolean> {
    return ownsTransaction(this.database, tx)
  }

  claim(request: ClaimRequest): Promise<Claim> {
    return this.claimOperation.claim(request)
  }

  beat(beat: Beat): Promise<BeatAnswer> {
    return this.beats.beat(beat)
  }

  settle(settlements: readonly Settlement[]): Promise<SettleAnswer[]> {
    return this.settleOperation.settle(settlements)
  }

  takeOver(request: { worker: string; limit: number }): Promise<TakeOver> {
    return this.takeOverOperation.takeOver(request)
  }

  unregister(worker: string): Promise<void> {
    return this.goodByes.unregister(worker)
  }

  async close(): Promise<void> {
    await Promise.all([this.database.close(), this.beatDatabase.close()])
  }

  private openUpkeep(queues: Queues, schema: SchemaName, promoted: Promoted, env: Env): PostgresUpkeep {
    const pruning = new Pruning(this.database, schema.quoted, schema.name)
    return new PostgresUpkeep(this.database, queues, pruning, promoted, env, schema.quoted)
  }
}

/** The SQL that `migrate` would run, for those who run it themselves. */
export function migrationSql(options: { schema?: string; from?: number } = {}): string {
  return printMigrations(schemaName(options.schema ?? 'leasehold'), PLAN, options.from ?? 0)
}

/**
 * The SQL that gives a role of the database what a worker, a producer or a reader needs, for the owner of the schema to
 * run: after it was made, and again after each upgrade.
 */
export function grantSql(options: { schema?: string; role: SchemaRole; to: string }): string {
  return grantStatements(schemaName(options.schema ?? 'leasehold'), PLAN, options.role, options.to)
}

function isPlain(data: unknown): boolean {
  try {
    structuredClone(data)
    return true
  } catch {
    return false
  }
}

/** What a connection of our own beside the pool needs, to listen and to beat: how to get in, and nothing of how to use it. */
function clientConfig(options: PostgresOptions): pg.ClientConfig {
  if (options.pool === undefined) return { connectionString: options.url!, application_name: 'leasehold' }
  const { host, port, user, database, password, connectionString, options: parameters } = options.pool.options
  const { ssl, sslnegotiation, enableChannelBinding, stream } = options.pool.options
  const given = { host, port, user, database, password, connectionString, options: parameters }
  const all = { ...given, ssl: sslCopy(ssl), sslnegotiation, enableChannelBinding, stream }
  // What is said as undefined would stand before what a connection string says.
  const said = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
  return { application_name: 'leasehold', ...said }
}
