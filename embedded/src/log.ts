// Job: keeps the server's log small and quotes its end in errors.
// Called by: the modules that start programs, and the watchdog.
import { copyFile, open, rm, stat, truncate } from 'node:fs/promises'
import { isSystemError } from './error.js'
import type { Layout } from './layout.js'
import { giveTo } from './owner.js'

const LOG_BYTES_MAX = 10 * 1024 * 1024
const QUOTE_BYTES_MAX = 2_000

/** Moves a log of more than 10 MB to `<log>.1`. The server may go on writing: it appends, so emptying is safe. */
export async function boundLog({ log, owner }: Layout): Promise<void> {
  if ((await logSize(log)) <= LOG_BYTES_MAX) return
  const aside = `${log}.1`
  await rm(aside, { force: true }) // it may be root's, which we could remove but not write
  await copyFile(log, aside)
  await giveTo(aside, owner)
  await truncate(log)
}

export async function logSize(path: string): Promise<number> {
  try {
    return (await stat(path)).size
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return 0
    throw error
  }
}

/** What was logged after byte `from`, or the end of that. */
export async function quoteLog(path: string, from: number): Promise<string> {
  const size = await logSize(path)
  const start = Math.max(from, size - QUOTE_BYTES_MAX)
  const file = await open(path, 'r')
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.max(0, size - start)), 0, size - start, start)
    return buffer.toString('utf8', 0, bytesRead).trim()
  } finally {
    await file.close()
  }
}
