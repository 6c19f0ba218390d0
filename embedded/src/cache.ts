// Job: gives a folder with PostgreSQL that the server's user can run, copied where the installed one cannot be.
// Called by: startEmbedded().
import { randomBytes } from 'node:crypto'
import { access, chmod, copyFile, lstat, mkdir, readdir, readFile, rename, rm, symlink } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'
import { type Binaries, executable } from './binaries.js'
import { EmbeddedError, isSystemError } from './error.js'
import type { Owner } from './layout.js'
import { isReachable, isRoot } from './owner.js'

interface SharedName {
  source: string
  target: string
}

const COPIES_AT_ONCE = 8

/**
 * Returns a folder with bin/, lib/ and share/. That is the installed one, unless its links are missing (packages
 * installed without their install scripts) or the server's user cannot get there (below a home folder of mode 0700).
 */
export async function runnableBinaries(
  binaries: Binaries,
  owner: Owner | undefined,
  cacheDir: string | undefined,
): Promise<string> {
  const names = await sharedNames(binaries.root)
  const native = join(binaries.root, 'native')
  if ((await hasLinks(binaries.root, names)) && (await canRun(native, owner))) return native
  const home = await cacheFolder(cacheDir)
  const copy = join(home, `${binaries.version}-${process.platform}-${process.arch}`)
  if (!(await exists(copy))) await copyAtomically(native, copy, names)
  await checkSafe(copy)
  if (!(await canRun(copy, owner))) {
    throw new EmbeddedError('CACHE_UNSAFE', `the server's user cannot read ${copy}; set cacheDir to a folder it can`)
  }
  return copy
}

/** The library names that npm packages cannot hold because they are links. */
async function sharedNames(root: string): Promise<SharedName[]> {
  try {
    const parsed: unknown = JSON.parse(await readFile(join(root, 'native', 'pg-symlinks.json'), 'utf8'))
    return Array.isArray(parsed) ? parsed.filter(isSharedName) : []
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return [] // this platform needs none
    throw error
  }
}

// The paths come from a package: keep them inside its own folder.
function isSharedName(value: unknown): value is SharedName {
  if (typeof value !== 'object' || value === null || !('source' in value) || !('target' in value)) return false
  return [value.source, value.target].every(
    (path) => typeof path === 'string' && path.startsWith('native/') && !path.split('/').includes('..'),
  )
}

async function hasLinks(root: string, names: SharedName[]): Promise<boolean> {
  const found = await Promise.all(names.map(({ target }) => exists(join(root, target))))
  return found.every(Boolean)
}

async function canRun(native: string, owner: Owner | undefined): Promise<boolean> {
  const program = await isReachable(join(native, 'bin', executable('postgres')), owner)
  return program && (await isReachable(join(native, 'lib'), owner)) && (await isReachable(join(native, 'share'), owner))
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path)
    return true
  } catch {
    return false
  }
}

async function cacheFolder(cacheDir: string | undefined): Promise<string> {
  const choices = cacheDir === undefined ? defaultCacheFolders() : [cacheDir]
  for (const [index, folder] of choices.entries()) {
    try {
      await mkdir(folder, { recursive: true, mode: 0o755 })
      await access(folder, 2)
      await checkSafe(folder)
      return folder
    } catch (error) {
      if (index === choices.length - 1) throw error
    }
  }
  throw new EmbeddedError('CACHE_UNSAFE', 'found no cache folder; set cacheDir')
}

function defaultCacheFolders(): string[] {
  const own = `leasehold-embedded-${process.getuid?.() ?? 'user'}`
  return [join(usualCache(), 'leasehold-embedded'), join(tmpdir(), own)]
}

function usualCache(): string {
  if (process.platform === 'win32') return process.env.LOCALAPPDATA ?? join(homedir(), 'AppData', 'Local')
  if (isRoot()) return '/var/cache'
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Caches')
  return process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache')
}

// We are about to run what lies there, so nobody else may be able to put it there.
async function checkSafe(folder: string): Promise<void> {
  const uid = process.getuid?.()
  if (uid === undefined) return
  const stat = await lstat(folder)
  if (stat.isDirectory() && (stat.uid === uid || stat.uid === 0) && (stat.mode & 0o022) === 0) return
  const message = `${folder} can be written by another user; set cacheDir to a folder that only you can write`
  throw new EmbeddedError('CACHE_UNSAFE', message)
}

// The copy gets its name when it is whole: a killed or a second copier leaves no half copy under it.
async function copyAtomically(native: string, copy: string, names: SharedName[]): Promise<void> {
  const draft = join(dirname(copy), `.draft-${randomBytes(6).toString('hex')}`)
  try {
    await copyFolder(native, draft)
    await linkShared(draft, names)
    await rename(draft, copy)
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    if (!isSystemError(error, 'ENOTEMPTY', 'EEXIST', 'EPERM') || !(await exists(copy))) throw error
  }
}

async function copyFolder(from: string, to: string): Promise<void> {
  await mkdir(to)
  await chmod(to, 0o755)
  const entries = await readdir(from, { withFileTypes: true })
  for (let start = 0; start < entries.length; start += COPIES_AT_ONCE) {
    const some = entries.slice(start, start + COPIES_AT_ONCE)
    await Promise.all(some.map((entry) => copyEntry(join(from, entry.name), join(to, entry.name), entry)))
  }
}

async function copyEntry(from: string, to: string, entry: { isDirectory(): boolean; isFile(): boolean }) {
  if (entry.isDirectory()) return copyFolder(from, to)
  // Links are made anew afterwards; static libraries serve only to build programs.
  if (!entry.isFile() || from.endsWith('.a')) return
  await copyFile(from, to)
  await chmod(to, basename(dirname(from)) === 'bin' ? 0o755 : 0o644)
}

async function linkShared(native: string, names: SharedName[]): Promise<void> {
  for (const { source, target } of names) {
    await symlink(relative(dirname(target), source), join(native, relative('native', target)))
  }
}
