/**
 * Connections to one server: handed out in turn, taken back, cut when they are of no more use. After one was lost the
 * older ones are not trusted either: a server that fails over and a network that forgets take all of them. Called by
 * database.ts.
 */
import pg from 'pg'
import type { Env, Timer } from '../../core/env.js'
import { QueueError } from '../../core/errors.js'
import { Abandoned } from './abandoned.js'
import { noneFree, unreachable } from './failures.js'

/** For a new connection to come up, log-in included. */
const CONNECT_MS_MAX = 5_000
/** How long `close` waits for calls under way before it cuts their connections. */
const CLOSE_MS_MAX = 1_000
const IDLE_MS_MAX = 60_000
/** The system looks after a silent connection from then on: the last resort for what no time-out of ours bounds. */
const KEEP_ALIVE_AFTER_MS = 10_000

export interface ConnectionsOptions {
  /** Settings of the driver: a URL or its parts. */
  client: pg.ClientConfig
  /** Connections at most, in a pool of ours. */
  connections: number
  /** A new connection that is not up by then is given up; never more than five seconds. */
  callTimeoutMs: number
  /** The user's own pool, used in place of one of ours; never ended by us. */
  pool?: pg.Pool
  env: Env
}

interface Caller {
  readonly timer: Timer
  resolve(client: pg.PoolClient): void
  reject(error: Error): void
}

export class Connections {
  private readonly pool: pg.Pool
  private readonly generations: Generations
  /** Those of our own making, also while they are coming up. */
  private readonly living = new Set<pg.Client>()
  private readonly Own: new () => pg.Client
  private readonly abandoned: Abandoned
  private readonly callers: Caller[] = []
  /** Requests to the pool that it has not answered. */
  private asked = 0
  private closed = false

  constructor(private readonly options: ConnectionsOptions) {
    this.abandoned = new Abandoned(options.env)
    this.Own = ownClient(options.client, this.living, Math.min(CONNECT_MS_MAX, options.callTimeoutMs))
    this.pool = options.pool ?? this.newPool()
    this.generations = Generations.of(this.pool)
  }

  /** Rises with every loss: what comes after it may be another server, which knows less than the one before. */
  get generation(): number {
    return this.generations.newest
  }

  /** A connection that nobody else uses until it is given back. Rejects when none is to be had within `timeoutMs`. */
  acquire(timeoutMs: number): Promise<pg.PoolClient> {
    if (this.closed) return Promise.reject(closedError())
    return new Promise((resolve, reject) => {
      const timer = this.options.env.timer(timeoutMs, () => {
        this.callers.splice(this.callers.indexOf(caller), 1)
        reject(noneFree(timeoutMs, this.pool.options.max ?? 0))
      })
      const caller: Caller = { timer, resolve, reject }
      this.callers.push(caller)
      // A request whose caller has given up serves the next one: they do not pile up in a pool that others hold.
      if (this.asked < this.callers.length) this.ask()
    })
  }

  release(client: pg.PoolClient): void {
    client.release()
  }

  /** Not used again, for a reason of its own: nobody knows in which state its session is. */
  discard(client: pg.PoolClient): void {
    client.release(true)
    // A good-bye might wait for a network that is gone.
    cut(client)
  }

  /** Its server or the network is gone, or is not what it was: the older ones shall not be used again either. */
  lost(client: pg.PoolClient): void {
    this.generations.lost(client)
    this.discard(client)
  }

  /** It owes an answer that nobody waits for any more: lost, as far as anybody knows. */
  abandon(client: pg.PoolClient): void {
    this.abandoned.add(client)
    this.lost(client)
  }

  /** A connection outside the pool, not yet up. The caller connects it and cuts it. */
  separate(): pg.Client {
    return new this.Own()
  }

  /** Waits for calls under way for a moment; a connection that says nothing more may not keep the process alive. */
  async close(): Promise<void> {
    if (this.closed) return
    this.closed = true
    this.abandoned.close()
    for (const { timer, reject } of this.callers.splice(0)) {
      timer.cancel()
      reject(closedError())
    }
    if (this.options.pool === undefined) {
      const patience = new AbortController()
      const ended = this.pool.end().finally(() => patience.abort())
      await Promise.race([ended, this.options.env.sleep(CLOSE_MS_MAX, patience.signal)])
    }
    for (const client of this.living) cut(client)
  }

  private ask(): void {
    this.asked += 1
    // By callback, which is called before anything else can happen to the connection: an error of a connection that
    // nobody listens to would end the process.
    this.pool.connect((error, client) => {
      this.asked -= 1
      if (client === undefined) this.next()?.reject(unreachable(error))
      else this.came(client)
    })
  }

  private came(client: pg.PoolClient): void {
    if (this.callers.length === 0) {
      client.release()
      return
    }
    this.generations.listenTo(client)
    if (this.generations.isOld(client) || isInTransaction(client)) {
      this.discard(client)
      this.ask()
      return
    }
    this.next()!.resolve(client)
  }

  private next(): Caller | undefined {
    const caller = this.callers.shift()
    caller?.timer.cancel()
    return caller
  }

  private newPool(): pg.Pool {
    return new pg.Pool({ max: this.options.connections, idleTimeoutMillis: IDLE_MS_MAX, Client: this.Own })
  }
}

/** A pool of the user's may be shared by several stores: each of them learns of a loss from any. */
class Generations {
  private static readonly known = new WeakMap<pg.Pool, Generations>()
  newest = 0
  private begun = false
  private readonly born = new WeakMap<pg.ClientBase, number>()
  private readonly heard = new WeakSet<pg.ClientBase>()

  static of(pool: pg.Pool): Generations {
    const known = Generations.known.get(pool)
    if (known !== undefined) return known
    const made = new Generations(pool)
    Generations.known.set(pool, made)
    return made
  }

  private constructor(pool: pg.Pool) {
    // Without a listener an idle connection that drops would end the process; the next call finds a new one.
    pool.on('error', (_, client) => this.lost(client))
    pool.on('connect', (client) => {
      // After a time without any nobody knows what happened meanwhile.
      if (this.begun && pool.totalCount === 1) this.newest += 1
      this.begun = true
      this.born.set(client, this.newest)
    })
  }

  /** The pool listens only while a connection is idle: one that drops in the middle of a call is ours to hear. */
  listenTo(client: pg.ClientBase): void {
    if (this.heard.has(client)) return
    this.heard.add(client)
    client.on('error', () => {})
  }

  isOld(client: pg.ClientBase): boolean {
    return (this.born.get(client) ?? 0) < this.newest
  }

  /** Only one that was still trusted tells something new. */
  lost(client: pg.ClientBase): void {
    if (!this.isOld(client)) this.newest += 1
  }
}

/** Somebody gave it back to the shared pool without an end to his transaction: what is written there is never committed. */
export function isInTransaction(client: pg.ClientBase): boolean {
  const { getTransactionStatus } = client as Partial<pg.ClientBase>
  // Older drivers do not tell.
  if (getTransactionStatus === undefined) return false
  const status = getTransactionStatus.call(client)
  return status === 'T' || status === 'E'
}

/**
 * Clients that are known from their making on, so that none is left when all shall end. What the pool would tell them
 * of its settings they need not read: it hides passwords in them.
 */
function ownClient(settings: pg.ClientConfig, living: Set<pg.Client>, connectMs: number): new () => pg.Client {
  return class extends pg.Client {
    constructor() {
      super({
        ...settings,
        ssl: sslCopy(settings.ssl),
        keepAlive: true,
        keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
        connectionTimeoutMillis: connectMs,
      })
      living.add(this)
      this.on('error', () => {})
      this.once('end', () => living.delete(this))
    }
  }
}

/** The driver hides the key of whatever it is given: settings that are to be used again have to stay whole. */
export function sslCopy(ssl: pg.ClientConfig['ssl']): pg.ClientConfig['ssl'] {
  if (typeof ssl !== 'object' || ssl === null || ssl.key === undefined) return ssl
  return { ...ssl, key: ssl.key }
}

/** Ends a connection without waiting for the other side. */
export function cut(client: pg.ClientBase): void {
  const { connection } = client as unknown as { connection?: { stream?: { destroy(): void } } }
  connection?.stream?.destroy()
}

function closedError(): QueueError {
  return new QueueError('QUEUE_CLOSED', 'the connection to the store was closed')
}
