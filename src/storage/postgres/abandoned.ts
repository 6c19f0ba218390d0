/**
 * Statements that nobody waits for any more. The server goes on with them, and that is well where it is only slow; but
 * behind a lock that is held for long they would pile up until it has no connection left for anybody. So each gets a
 * while, and only a few at a time. Called by connections.ts.
 */
import { connect } from 'node:net'
import type pg from 'pg'
import type { Env, Timer } from '../../core/env.js'

/** What the server has not done by then it is asked to leave. */
const PATIENCE_MS = 60_000
/** Beyond so many the oldest is asked to end at once. */
const ABANDONED_MAX = 8
/** For the server to hear of it. */
const CANCEL_MS_MAX = 1_000
/** Of the protocol: the code of a cancel request, and the length of one. */
const CANCEL_CODE = 80_877_102
const CANCEL_BYTES = 16

/** How the server knows a session, and where it listens. */
interface SessionKey {
  processID: number
  secretKey: number
  host: string
  port: number
}

export class Abandoned {
  /** The oldest first. */
  private readonly kept: { key: SessionKey; timer: Timer }[] = []
  private closed = false

  constructor(private readonly env: Env) {}

  /** The statement that the connection waits for; the connection itself is of no more use. */
  add(client: pg.ClientBase): void {
    const key = client as unknown as Partial<SessionKey>
    if (this.closed || !isComplete(key)) return
    const timer = this.env.timer(PATIENCE_MS, () => this.endOldest())
    this.kept.push({ key, timer })
    if (this.kept.length > ABANDONED_MAX) this.endOldest()
  }

  /** What is still under way is left to the server: it may be an outcome that just came late. */
  close(): void {
    this.closed = true
    for (const { timer } of this.kept.splice(0)) timer.cancel()
  }

  private endOldest(): void {
    const oldest = this.kept.shift()
    if (!oldest) return
    oldest.timer.cancel()
    cancel(oldest.key)
  }
}

function isComplete(key: Partial<SessionKey>): key is SessionKey {
  return typeof key.processID === 'number' && typeof key.secretKey === 'number' && !!key.host && !!key.port
}

/** A session that has ended meanwhile has no such key any more, so that nobody else is ever meant. */
function cancel({ processID, secretKey, host, port }: SessionKey): void {
  const request = Buffer.alloc(CANCEL_BYTES)
  for (const [n, word] of [CANCEL_BYTES, CANCEL_CODE, processID, secretKey].entries()) request.writeInt32BE(word, n * 4)
  const socket = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host)
  // Nobody waits for this either.
  socket.unref()
  socket.setTimeout(CANCEL_MS_MAX, () => socket.destroy())
  socket.on('error', () => {})
  socket.once('connect', () => socket.end(request))
}
