/** The product's source files, for the tests that hold the house in order. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The root of the repository: the tests run from its build folder. */
export const ROOT = findRoot()

export interface SourceFile {
  /** From the root, with forward slashes. */
  path: string
  text: string
}

export function sourceFiles(folder: string): SourceFile[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.name.endsWith('.d.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ path: relative(ROOT, path).replaceAll('\\', '/'), text: readFileSync(path, 'utf8') }))
}

function findRoot(): string {
  const given = process.env.LEASEHOLD_ROOT
  if (given !== undefined) return given
  const here = fileURLToPath(new URL('.', import.meta.url))
  return here.slice(0, here.lastIndexOf('/build/'))
}
