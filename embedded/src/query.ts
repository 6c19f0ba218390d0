// Job: runs one statement on the server, with just enough of the PostgreSQL protocol; accepts SCRAM alone.
// Called by: database.ts, to prove that the server is ours and to create the database.
import { connect, type Socket } from 'node:net'
import { type ScramExchange, startScram } from './scram.js'

export interface QueryTarget {
  port: number
  user: string
  password: string
  database: string
}

/** The server refused; `code` is its SQLSTATE, for instance 3D000 for "no such database". */
export class ServerRefusal extends Error {
  override readonly name = 'ServerRefusal'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

interface Message {
  type: string
  body: Buffer
}

interface Session {
  socket: Socket
  scram: ScramExchange
  /** Whether the server has proved that it knows the password. */
  proven: boolean
  sent: boolean
  serverVersion: string
}

const SILENCE_MS_MAX = 30_000
const MESSAGE_BYTES_MAX = 1_048_576
const PROTOCOL_3 = 196_608

/** Runs `sql` and returns the server's version, such as `18.4`. Rows are ignored. */
export async function runStatement(target: QueryTarget, sql: string): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port: target.port, noDelay: true })
  socket.setTimeout(SILENCE_MS_MAX, () => socket.destroy(new Error('the server did not answer')))
  const session = { socket, scram: startScram(target.password), proven: false, sent: false, serverVersion: '' }
  try {
    socket.write(startup(target))
    for await (const message of messages(socket)) {
      const done = await take(session, message, sql)
      if (done) return session.serverVersion
    }
    throw new Error('the server closed the connection')
  } finally {
    socket.destroy()
  }
}

async function take(session: Session, { type, body }: Message, sql: string): Promise<boolean> {
  if (type === 'E') throw refusal(body)
  if (type === 'R') await authenticate(session, body)
  if (type === 'S') noteParameter(session, body)
  if (type !== 'Z') return false
  if (session.sent) return true
  session.sent = true
  session.socket.write(frame('Q', cString(sql)))
  return false
}

async function authenticate(session: Session, body: Buffer): Promise<void> {
  const kind = body.readInt32BE(0)
  const text = body.toString('utf8', 4)
  if (kind === 10 && text.split('\0').includes('SCRAM-SHA-256')) {
    const first = Buffer.from(session.scram.first)
    session.socket.write(frame('p', cString('SCRAM-SHA-256'), int32(first.length), first))
  } else if (kind === 11) {
    session.socket.write(frame('p', Buffer.from(await session.scram.answer(text))))
  } else if (kind === 12) {
    session.proven = session.scram.verify(text)
    if (!session.proven) throw new Error('the server does not know the password')
  } else if (kind !== 0 || !session.proven) {
    // Asking for a bare password, or letting us in without proof, is what a stranger on the port would do.
    throw new Error('the server did not prove who it is; another program may listen on the port')
  }
}

function noteParameter(session: Session, body: Buffer): void {
  const [name, value] = body.toString('utf8').split('\0')
  if (name === 'server_version' && value !== undefined) session.serverVersion = value.split(' ')[0] ?? ''
}

function refusal(body: Buffer): ServerRefusal {
  const fields = body.toString('utf8').split('\0')
  const field = (letter: string) => fields.find((text) => text.startsWith(letter))?.slice(1) ?? ''
  return new ServerRefusal(field('C'), field('M'))
}

async function* messages(socket: Socket): AsyncGenerator<Message> {
  let pending: Buffer = Buffer.alloc(0)
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    pending = Buffer.concat([pending, chunk])
    while (pending.length >= 5) {
      const end = 1 + pending.readUInt32BE(1)
      if (end < 5 || end > MESSAGE_BYTES_MAX) throw new Error('the answer is not that of a PostgreSQL server')
      if (pending.length < end) break
      yield { type: pending.toString('latin1', 0, 1), body: pending.subarray(5, end) }
      pending = pending.subarray(end)
    }
  }
}

function startup(target: QueryTarget): Buffer {
  const pairs = ['user', target.user, 'database', target.database, 'application_name', 'leasehold embedded']
  const body = Buffer.concat([int32(PROTOCOL_3), ...pairs.map(cString), Buffer.alloc(1)])
  return Buffer.concat([int32(body.length + 4), body])
}

function frame(type: string, ...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  return Buffer.concat([Buffer.from(type, 'latin1'), int32(body.length + 4), body])
}

function int32(value: number): Buffer {
  const buffer = Buffer.alloc(4)
  buffer.writeInt32BE(value)
  return buffer
}

function cString(text: string): Buffer {
  return Buffer.from(`${text}\0`)
}
