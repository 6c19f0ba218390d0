/**
 * The other end of the webhooks, a process of its own: slow at times, failing at times, dead for some. It applies an
 * effect once for each idempotency key. Started by the demo with seed and log file; sends its addresses to it.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createSocketServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { behaviourOf, LATE_MS } from './behaviour.js'
import { childSettings } from './child.js'
import type { ReceivedRequest } from './files.js'
import { ReceiverLog, type Seen } from './receiver-log.js'

export interface ReceiverSettings {
  seed: number
  logPath: string
}

/** Addresses, as the demo is told them. */
export interface ReceiverReady {
  live: string
  /** Nothing listens there. */
  refused: string
}

const HOST = '127.0.0.1'

const { seed, logPath } = childSettings<ReceiverSettings>()
const log = new ReceiverLog(logPath)
const server = createServer((request, response) => {
  answer(request, response).catch(() => response.destroy())
})
// Longer than the demo: a connection that we close while it is being used again would be a fault of ours.
server.keepAliveTimeout = 600_000

// Nobody is left to count for.
process.on('disconnect', () => process.exit(1))
process.on('SIGTERM', stop)

server.listen(0, HOST)
await once(server, 'listening')
const ready: ReceiverReady = { live: addressOf(server.address()), refused: await refusingAddress() }
process.send?.(ready)

function stop(): void {
  server.close(() => {
    log.close()
    process.disconnect()
  })
  server.closeAllConnections()
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const seen = seenIn(request)
  // A body that does not arrive whole has no effect.
  for await (const _chunk of request);
  const { status, effect } = await taken(seen)
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ effect }))
}

function seenIn({ headers, url }: IncomingMessage): Seen {
  return {
    at: Date.now(),
    key: String(headers['idempotency-key']),
    jobId: String(headers['leasehold-job']),
    attempt: Number(headers['leasehold-attempt']),
    fence: Number(headers['leasehold-fence']),
    customer: (url ?? '').replace('/hooks/', ''),
  }
}

async function taken(seen: Seen): Promise<ReceivedRequest> {
  if (seen.customer === 'gone') return log.refuse(seen, 410)
  if (seen.customer === 'broken') return log.refuse(seen, 500)
  const { latencyMs, fault } = behaviourOf(seed, seen.key, log.arrived(seen.key))
  await sleep(latencyMs)
  if (fault === 'refuse') return log.refuse(seen, 500)
  const request = log.apply(seen, fault === 'forget' ? 500 : 200)
  await sleep(fault === 'late' ? LATE_MS : latencyMs)
  return request
}

function addressOf(address: AddressInfo | string | null): string {
  return `http://${HOST}:${(address as AddressInfo).port}`
}

/** A port that was free a moment ago. */
async function refusingAddress(): Promise<string> {
  const socket = createSocketServer().listen(0, HOST)
  await once(socket, 'listening')
  const address = addressOf(socket.address())
  socket.close()
  await once(socket, 'close')
  return address
}
