// Job: starts the server on a free port, the one of last time if possible, and tries again where that can help.
// Called by: startEmbedded(), under the lock.
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { EmbeddedError, isSystemError } from './error.js'
import type { Layout } from './layout.js'
import { logSize, quoteLog } from './log.js'
import { replaceFile } from './owner.js'
import { hasPidFile, type Launch, launchPostmaster, type Postmaster } from './postmaster.js'

const ATTEMPTS_MAX = 20
const PAUSE_MS = 500

/**
 * Two failures pass by themselves: a program took the port after we had found it free, and processes of a killed
 * server still hold its shared memory (they end when their query does). Any other is thrown at once.
 */
export async function startOnFreePort(launch: Launch): Promise<Postmaster> {
  const { layout } = launch
  let wanted = await lastPort(layout)
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort(wanted)
    const crashed = hasPidFile(layout)
    const logged = await logSize(layout.log)
    const server = await launchPostmaster(launch, port)
    if (server !== undefined) {
      await replaceFile(layout.port, `${port}\n`, layout.owner)
      return server
    }
    const taken = (await freePort(port)) !== port
    if (attempt === ATTEMPTS_MAX || !(taken || crashed)) throw await startFailed(layout, logged)
    wanted = taken ? 0 : port
    await sleep(PAUSE_MS)
  }
}

async function startFailed(layout: Layout, logged: number): Promise<EmbeddedError> {
  return new EmbeddedError('START_FAILED', `PostgreSQL did not start: ${await quoteLog(layout.log, logged)}`)
}

/** `wanted` when it is free, else any free port; 0 wants any. */
async function freePort(wanted: number): Promise<number> {
  try {
    return await tryPort(wanted)
  } catch (error) {
    if (wanted === 0 || !isSystemError(error, 'EADDRINUSE', 'EACCES')) throw error
    return tryPort(0)
  }
}

function tryPort(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen({ port, host: '127.0.0.1', exclusive: true }, () => {
      const address = probe.address()
      probe.close(() => resolve(address !== null && typeof address === 'object' ? address.port : 0))
    })
  })
}

async function lastPort(layout: Layout): Promise<number> {
  const text = await readFile(layout.port, 'utf8').catch(() => '')
  const port = Number(text)
  return Number.isInteger(port) && port > 1023 && port <= 65_535 ? port : 0
}
