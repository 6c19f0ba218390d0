/** The PostgreSQL of `@leasehold/embedded`: starts it, and tells whether there is one. Called by `dev`, `demo` and invocation.ts. */
import { access } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { QueueError } from '../core/errors.js'

/** What is needed of the package, which users may not have: so its name stands in no import. */
interface Embedded {
  startEmbedded(options: { dir: string }): Promise<EmbeddedServer>
}

export interface EmbeddedServer {
  url: string
  /** The absolute path. */
  dir: string
  pid: number
  /** It ran already, started by another process. */
  attached: boolean
  version: string
  stop(): Promise<void>
}

const PACKAGE = '@leasehold/embedded'

/** The data folder, as the package names it to its users: made whole by the first start, or not at all. */
const DATA = 'pgdata'

/** What cannot be looked at is there, too: the start will say what is wrong with it. */
export async function hasStore(dir: string): Promise<boolean> {
  try {
    await access(join(resolve(dir), DATA))
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code !== 'ENOENT' && code !== 'ENOTDIR'
  }
}

/** Throws DRIVER_MISSING when the package is not there, or an EmbeddedError. */
export async function startEmbedded(dir: string): Promise<EmbeddedServer> {
  return (await load()).startEmbedded({ dir })
}

async function load(): Promise<Embedded> {
  try {
    return (await import(PACKAGE)) as Embedded
  } catch (error) {
    const { code, message } = error as { code?: unknown; message?: unknown }
    if (code !== 'ERR_MODULE_NOT_FOUND' || !String(message).includes(`'${PACKAGE}'`)) throw error
    throw new QueueError('DRIVER_MISSING', `this needs the package ${PACKAGE}: npm install ${PACKAGE}`, {
      cause: error,
    })
  }
}
