// Job: decides which user the server runs as, and makes the directory and its files belong to that user.
// Called by: startEmbedded() and the modules that write files into the directory.
import { randomBytes } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import { chmod, type FileHandle, lchown, lstat, mkdir, open, readdir, realpath, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { EmbeddedError, isSystemError } from './error.js'
import { isOurName, type Owner } from './layout.js'

const NOBODY: Owner = { uid: 65534, gid: 65534 }

export function isRoot(): boolean {
  return process.getuid?.() === 0
}

/** Whom to run the server of this directory as, for PostgreSQL refuses root; undefined for ourselves. */
export async function ownerOf(dir: string): Promise<Owner | undefined> {
  if (!isRoot()) return undefined
  const { uid, gid } = await lstat(dir)
  return uid === 0 ? NOBODY : { uid, gid }
}

/** Makes the directory if missing and ours alone; returns its real path. */
export async function prepareDirectory(path: string): Promise<string> {
  await mkdir(dirname(path), { recursive: true })
  await makePrivateFolder(path, undefined)
  const dir = await realpath(path)
  const stat = await lstat(dir)
  if (!stat.isDirectory()) throw new EmbeddedError('BAD_OPTION', `dir: ${path} is not a directory`)
  await checkContent(dir)
  await takeOver(dir, stat)
  return dir
}

async function checkContent(dir: string): Promise<void> {
  const names = await listing(dir)
  const strange = names.find((name) => !isOurName(name))
  if (strange === undefined || names.includes('pgdata')) return
  throw new EmbeddedError(
    'DIR_NOT_EMPTY',
    `${dir} holds "${strange}", which no embedded server made; choose a new or an empty directory`,
  )
}

async function listing(dir: string): Promise<string[]> {
  try {
    return await readdir(dir)
  } catch (error) {
    if (isSystemError(error, 'EACCES')) throw notOurs(dir, error)
    throw error
  }
}

// Mode 0700: the password and the data are for the server's user alone, and nobody else can plant a link in here.
async function takeOver(dir: string, stat: Stats): Promise<void> {
  const uid = process.getuid?.()
  if (uid === undefined) return
  if (!isRoot() && stat.uid !== uid) throw notOurs(dir)
  if (isRoot() && stat.uid === 0) await giveTo(dir, NOBODY)
  if ((stat.mode & 0o777) !== 0o700) await chmod(dir, 0o700)
}

function notOurs(dir: string, cause?: unknown): EmbeddedError {
  const message = `${dir} belongs to another user; run as that user or as root, or choose another directory`
  return new EmbeddedError('DIR_NOT_OURS', message, { cause })
}

/** Hands a file or folder to the server's user. Never follows a link: root must not be led out of the directory. */
export async function giveTo(path: string, owner: Owner | undefined): Promise<void> {
  if (owner !== undefined) await lchown(path, owner.uid, owner.gid)
}

/** Makes a folder of mode 0700; false when it was there. */
export async function makePrivateFolder(path: string, owner: Owner | undefined): Promise<boolean> {
  try {
    await mkdir(path, { mode: 0o700 })
    await giveTo(path, owner)
    return true
  } catch (error) {
    if (isSystemError(error, 'EEXIST')) return false
    throw error
  }
}

/** Opens a new file of mode 0600 that belongs to the server's user, to write to; fails when it exists. */
export async function openNewFile(path: string, owner: Owner | undefined): Promise<FileHandle> {
  const file = await open(path, 'wx', 0o600)
  if (owner !== undefined) await file.chown(owner.uid, owner.gid)
  return file
}

/** Writes a new file of mode 0600 that belongs to the server's user; fails when it exists. */
export async function writeNewFile(path: string, text: string, owner: Owner | undefined): Promise<void> {
  const file = await openNewFile(path, owner)
  try {
    await file.writeFile(text)
  } finally {
    await file.close()
  }
}

/** Puts a file in place of another in one step, so that a reader sees the old text or the new. */
export async function replaceFile(path: string, text: string, owner: Owner | undefined): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString('hex')}.new`
  await writeNewFile(draft, text, owner)
  await rename(draft, path)
}

/** Opens a file for appending, made if missing, that belongs to the server's user. */
export async function openForAppend(path: string, owner: Owner | undefined) {
  const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0)
  const file = await open(path, flags, 0o600)
  if (owner !== undefined) await file.chown(owner.uid, owner.gid)
  return file
}

/** True when this user may enter every folder on the way to `path` and read (for folders: enter) what lies there. */
export async function isReachable(path: string, owner: Owner | undefined): Promise<boolean> {
  if (owner === undefined) return true
  const real = await realpath(path)
  for (let at = real; ; at = dirname(at)) {
    const stat = await lstat(at)
    const wanted = stat.isDirectory() ? 0o1 : 0o4
    if (!allows(stat, owner, wanted)) return false
    if (at === dirname(at)) return true
  }
}

function allows(stat: Stats, owner: Owner, wanted: number): boolean {
  if (stat.uid === owner.uid) return (stat.mode & (wanted << 6)) !== 0
  if (stat.gid === owner.gid) return (stat.mode & (wanted << 3)) !== 0
  return (stat.mode & wanted) !== 0
}
