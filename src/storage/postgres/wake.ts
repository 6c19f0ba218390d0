/**
 * Listens for hints on a connection of its own, and comes back when that is lost. What is not proven to hear is deaf:
 * behind a pooler LISTEN is answered like any other statement, and no hint ever comes. Called by the fetcher through
 * the port.
 */
import type pg from 'pg'
import type { Env } from '../../core/env.js'
import type { Wake } from '../storage.js'
import { cut } from './connections.js'
import type { Database } from './database.js'

const RETRY_MS_MIN = 500
const RETRY_MS_MAX = 30_000
/** A pooler stays one as a rule; asking now and then finds that it was taken away. */
const DEAF_RETRY_MS_MIN = 30_000
const DEAF_RETRY_MS_MAX = 600_000
/** For a statement on this connection, and for the hint that it sends to itself. */
const ANSWER_MS_MAX = 5_000
/** For the client to take what the server has sent. Whoever reads later than that has polled meanwhile. */
const UNREAD_MS_MAX = 10_000
/** A pooler gives a session of its choice, and as a rule the one that was free last. */
const TAKE_BACK_TRIES = 20
const PID = 'select pg_backend_pid() as pid'
/** How often to look whether the connection still lives: a half-open one is as silent as a quiet one. */
const CHECK_MS = 30_000

export class PostgresWake implements Wake {
  constructor(
    private readonly database: Database,
    private readonly env: Env,
    private readonly channel: string,
  ) {}

  async listen(
    queues: readonly string[],
    listener: (queues: string[]) => void,
    deaf: () => void = () => {},
  ): Promise<() => Promise<void>> {
    const wanted = new Set(queues)
    const tell = (payload: string): void => {
      const named = payload === '*' ? [...wanted] : payload.split(',').filter((queue) => wanted.has(queue))
      if (named.length > 0) listener(named)
    }
    const makeEar = (): Ear => new Ear(this.database, this.env, this.channel, tell)
    const listening = new Listening(this.env, makeEar, tell, deaf)
    listening.start()
    return () => listening.stop()
  }
}

/** Whether hints arrive on this way to the server: by a connection of its own, in bounded time. For who diagnoses it. */
export async function hintsArrive(database: Database, env: Env, channel: string): Promise<boolean> {
  const ear = new Ear(database, env, channel, () => {})
  try {
    await ear.open()
    return await ear.hears()
  } finally {
    ear.close()
  }
}

/** What became of an ear: it heard and was lost, it was up and could not hear, or it did not come up. */
type Course = 'lost' | 'deaf' | 'failed'

/** One ear at a time, kept up. Each that hears begins by telling of everything, as hints may have been missed. */
class Listening {
  private readonly ended = new AbortController()
  private ear: Ear | undefined
  private loop: Promise<void> = Promise.resolve()

  constructor(
    private readonly env: Env,
    private readonly makeEar: () => Ear,
    private readonly tell: (payload: string) => void,
    private readonly deaf: () => void,
  ) {}

  start(): void {
    this.loop = this.keepUp()
  }

  async stop(): Promise<void> {
    this.ended.abort()
    this.ear?.close()
    await this.loop
  }

  private async keepUp(): Promise<void> {
    let before: Course = 'lost'
    let waitMs = 0
    while (!this.ended.signal.aborted) {
      // That hints are missing shows in latency, never in correctness: polling goes on meanwhile.
      const course = await this.listenOnce().catch((): Course => 'failed')
      if (this.ended.signal.aborted) return
      const [minMs, maxMs] = course === 'deaf' ? [DEAF_RETRY_MS_MIN, DEAF_RETRY_MS_MAX] : [RETRY_MS_MIN, RETRY_MS_MAX]
      waitMs = course === before && course !== 'lost' ? Math.min(maxMs, waitMs * 2) : minMs
      before = course
      await this.env.sleep(waitMs * (0.5 + this.env.random()), this.ended.signal)
    }
  }

  private async listenOnce(): Promise<Course> {
    const ear = this.makeEar()
    this.ear = ear
    try {
      await ear.open()
      if (!(await ear.hears())) return 'deaf'
      await ear.boundUnread()
      this.tell('*')
      await ear.whileAlive()
      this.deaf()
      return 'lost'
    } finally {
      ear.close()
    }
  }
}

/** One connection that listens. */
class Ear {
  private readonly client: pg.Client
  private readonly proof: string
  private readonly over = new AbortController()
  private readonly proven: Promise<void>
  /** The process of the server that listens. */
  private pid: unknown

  constructor(
    private readonly database: Database,
    private readonly env: Env,
    private readonly channel: string,
    tell: (payload: string) => void,
  ) {
    this.client = database.separate()
    this.client.once('end', () => this.over.abort())
    // No queue has such a name, so nobody else takes it for a hint.
    this.proof = `?${env.id()}`
    this.proven = new Promise((resolve) => {
      let hears = false
      this.client.on('notification', ({ payload = '*' }) => {
        if (payload === this.proof) {
          hears = true
          resolve()
          // What a pooler lets through by chance proves nothing.
        } else if (hears) tell(payload)
      })
    })
  }

  async open(): Promise<void> {
    await this.client.connect()
    // As one text: behind a pooler the next statement may come to another session.
    const answers = (await this.query(`listen ${this.channel}; ${PID}`)) as unknown as pg.QueryResult[]
    this.pid = answers.at(-1)!.rows[0].pid
  }

  /** Sends a hint by the way that all hints come, and waits for it. */
  async hears(): Promise<boolean> {
    const notify = { name: '', text: 'select pg_notify($1, $2)' }
    await this.database.run(notify, [this.channel, this.proof], ANSWER_MS_MAX)
    const patience = new AbortController()
    const heard = this.proven.then(() => true)
    const given = this.env.sleep(ANSWER_MS_MAX, patience.signal).then(() => false)
    const hears = await Promise.race([heard, given, this.ended()])
    patience.abort()
    if (!hears) await this.takeBack()
    return hears
  }

  /** The session that listens now is the pooler's, and may be anybody's next. */
  private async takeBack(): Promise<void> {
    for (let tries = 0; tries < TAKE_BACK_TRIES; tries++) {
      const answers = (await this.query(`unlisten *; ${PID}`)) as unknown as pg.QueryResult[]
      if (answers.at(-1)!.rows[0].pid === this.pid) return
    }
  }

  /**
   * A process that stands still reads no hints. Once the buffers between are full the server goes on trying to write
   * them, with a snapshot open that holds up vacuum everywhere; so its side of the connection has to end.
   */
  async boundUnread(): Promise<void> {
    try {
      await this.query(`set tcp_user_timeout = ${UNREAD_MS_MAX}`)
    } catch {
      // A server that does not know it, or a connection that is gone, as will be seen in a moment.
    }
  }

  /** Resolves when it hears no longer: the connection ended or is silent, or leads to a server that was demoted. */
  async whileAlive(): Promise<void> {
    const { signal } = this.over
    do await this.env.sleep(CHECK_MS * (0.5 + this.env.random()), signal)
    while (!signal.aborted && (await this.isWell()))
  }

  close(): void {
    cut(this.client)
  }

  private ended(): Promise<never> {
    return new Promise((_, reject) => {
      this.over.signal.addEventListener('abort', () => reject(new Error('the connection ended')), { once: true })
    })
  }

  private async isWell(): Promise<boolean> {
    try {
      const { rows } = await this.query(`select current_setting('transaction_read_only') as only`)
      return (rows[0] as { only: string }).only === 'off'
    } catch {
      return false
    }
  }

  private query(text: string): Promise<pg.QueryResult> {
    return this.database.bounded(this.client.query(text), ANSWER_MS_MAX)
  }
}
