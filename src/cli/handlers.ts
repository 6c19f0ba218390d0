/** The handlers that a user's module exports. Called by `work`. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { BoundHandler } from '../core/handler.js'
import { isKind } from '../core/kind.js'
import { CommandError } from './failure.js'

const EXPORT_FIX = 'export what kind.handle(…) makes: by name, or an array of them as default'

/** Named exports, and the default one: a handler or an array of them, each handler once. */
export async function handlersOf(modulePath: string): Promise<BoundHandler[]> {
  const path = resolve(modulePath)
  if (!existsSync(path))
    throw new CommandError('USAGE', `there is no module ${modulePath}`, {
      fix: `give the path of a file; looked for ${path}`,
    })
  const exported = await imported(path, modulePath)
  const handlers = new Set<BoundHandler>()
  for (const value of Object.values(exported))
    for (const one of Array.isArray(value) ? value : [value]) if (isHandler(one)) handlers.add(one)
  if (handlers.size > 0) return [...handlers]
  const kind = Object.entries(exported).find(([, value]) => isKind(value))?.[0]
  const found = kind === undefined ? 'exports no handler' : `exports the kind ${kind}, and no handler of it`
  throw new CommandError('USAGE', `${modulePath} ${found}`, { fix: EXPORT_FIX })
}

async function imported(path: string, shown: string): Promise<Record<string, unknown>> {
  try {
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>
  } catch (error) {
    const { code, message } = error as { code?: unknown; message?: unknown }
    if (code === 'ERR_UNKNOWN_FILE_EXTENSION')
      throw new CommandError('MODULE_FAILED', `this Node (${process.version}) cannot run ${shown}`, {
        fix: 'compile it to JavaScript, use Node 22.18 or newer, or run this command by "node --import tsx"',
        cause: error,
      })
    throw new CommandError('MODULE_FAILED', `${shown} could not be loaded: ${String(message ?? error)}`, {
      fix: 'run it with --verbose to see where',
      cause: error,
    })
  }
}

/** By shape: the module may have a copy of the library of its own. */
function isHandler(value: unknown): value is BoundHandler {
  const candidate = value as Partial<BoundHandler> | null | undefined
  return (
    typeof candidate === 'object' &&
    typeof candidate?.kind === 'string' &&
    typeof candidate.run === 'function' &&
    typeof candidate.parse === 'function'
  )
}
