/**
 * Statements and their answers: prepared while the server bears it, an end to every call, and connections that have
 * become useless out of the way. Called by the operations of this adapter.
 */
import { createHash } from 'node:crypto'
import type pg from 'pg'
import { Connections, type ConnectionsOptions, isInTransaction } from './connections.js'
import { endsConnection, foreign, isForeign, isStalePlan, isUnprepared, queueError, Unanswered } from './failures.js'

/** A statement with a name; the schema is already in its text. */
export interface Statement {
  readonly name: string
  readonly text: string
}

export type Row = Record<string, unknown>

export interface DatabaseOptions extends ConnectionsOptions {
  /** A call without an answer for so long is given up and its connection closed. */
  callTimeoutMs: number
}

/** A connection that is ours for several statements. */
export interface Session {
  /** Runs SQL without values, of several statements too; given up after `timeoutMs`. */
  query(text: string, timeoutMs?: number): Promise<{ rows: Row[] }>
}

/** Of a statement that surely had no effect, and for whose failure the connection is to blame. */
const TRIES_MAX = 4
/** What a worker sends is sent again after so long: a longer wait on a dead connection would only hold work up. */
const WORK_MS_MAX = 10_000

export class Database {
  private readonly connections: Connections
  private readonly names = new Map<string, string>()
  private prepared = true

  constructor(private readonly options: DatabaseOptions) {
    this.connections = new Connections(options)
  }

  /** Rises when connections were lost. What was learnt before may not be so any more: another server may answer now. */
  get generation(): number {
    return this.connections.generation
  }

  /** Runs one statement in a transaction of its own. */
  async run(statement: Statement, values: unknown[], timeoutMs = this.options.callTimeoutMs): Promise<Row[]> {
    for (let tries = 1; ; tries++) {
      const client = await this.connections.acquire(timeoutMs)
      const named = this.prepared && statement.name !== ''
      const { text } = statement
      const query = named ? { name: this.nameOf(statement), text, values } : { text, values }
      try {
        return await this.runOn(client, query, timeoutMs)
      } catch (error) {
        // Made anew it is stale again: a pooler keeps plans of its own.
        const isKept = isStalePlan(error) && tries > 1
        if (named && (isUnprepared(error) || isKept)) this.prepared = false
        else if (tries === TRIES_MAX || !isUndone(error)) throw error
      }
    }
  }

  /** As `run`, for what a worker repeats until it is answered. */
  work(statement: Statement, values: unknown[]): Promise<Row[]> {
    return this.run(statement, values, Math.min(WORK_MS_MAX, this.options.callTimeoutMs))
  }

  /** As `run`, for what may be asked again at will: its failures are told as callers see them. */
  async ask(statement: Statement, values: unknown[]): Promise<Row[]> {
    try {
      return await this.run(statement, values)
    } catch (error) {
      throw queueError(error, statement.name.replace('lh_', ''))
    }
  }

  /** Runs `work` with a connection of its own, for transactions of several statements. */
  async session<T>(work: (session: Session) => Promise<T>): Promise<T> {
    const { callTimeoutMs } = this.options
    const client = await this.connections.acquire(callTimeoutMs)
    const query: Session['query'] = (text, timeoutMs = callTimeoutMs) => this.bounded(client.query(text), timeoutMs)
    try {
      const result = await work({ query })
      this.connections.release(client)
      return result
    } catch (error) {
      // Its transaction may still be open.
      if (error instanceof Unanswered || endsConnection(error)) this.useless(client, error)
      else this.connections.discard(client)
      throw error
    }
  }

  /** One statement outside of any transaction, for a moment: what takes longer the server goes on with, without us. */
  async forMoment(text: string, ms: number): Promise<void> {
    const client = await this.connections.acquire(this.options.callTimeoutMs)
    try {
      await this.bounded(client.query(text), ms)
      this.connections.release(client)
    } catch (error) {
      this.connections.discard(client)
      throw error
    }
  }

  /** A connection outside the pool, for LISTEN. The caller connects it and cuts it. */
  separate(): pg.Client {
    return this.connections.separate()
  }

  close(): Promise<void> {
    return this.connections.close()
  }

  /** Rejects with `Unanswered` when the work takes longer: a half-open connection never answers. */
  bounded<T>(work: Promise<T>, ms: number): Promise<T> {
    return new Promise((resolve, reject) => {
      const late = (): void => reject(new Unanswered(`no answer from the store within ${ms} ms`))
      const timer = this.options.env.timer(ms, late)
      work.then(resolve, reject).finally(() => timer.cancel())
    })
  }

  private async runOn(client: pg.PoolClient, query: pg.QueryConfig, timeoutMs: number): Promise<Row[]> {
    try {
      const result = await this.bounded(client.query(query), timeoutMs)
      // Without an end to that transaction nothing is stored, whatever the answer says.
      if (isInTransaction(client)) throw foreign()
      this.connections.release(client)
      return result.rows as Row[]
    } catch (error) {
      if (isForeign(error)) this.connections.discard(client)
      else if (endsConnection(error)) this.useless(client, error)
      else this.connections.release(client)
      throw error
    }
  }

  private useless(client: pg.PoolClient, error: unknown): void {
    if (error instanceof Unanswered) this.connections.abandon(client)
    else this.connections.lost(client)
  }

  /** Names of prepared statements live in the session, where other schemas and versions may have left theirs. */
  private nameOf({ name, text }: Statement): string {
    const known = this.names.get(text)
    if (known !== undefined) return known
    const full = `${name}_${createHash('sha256').update(text).digest('hex').slice(0, 12)}`
    this.names.set(text, full)
    return full
  }
}

/** On another connection the same statement is right. */
function isUndone(error: unknown): boolean {
  return isStalePlan(error) || isForeign(error)
}
