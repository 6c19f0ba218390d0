// Job: makes the data folder with initdb, and refuses one that this version of PostgreSQL cannot read.
// Called by: startEmbedded(), under the lock.
import { randomBytes } from 'node:crypto'
import { readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type Binaries, executable } from './binaries.js'
import { SUPERUSER } from './database.js'
import { EmbeddedError, isSystemError } from './error.js'
import type { Layout } from './layout.js'
import { logSize, quoteLog } from './log.js'
import { makePrivateFolder, replaceFile } from './owner.js'
import { dataArgument, spawnApart } from './program.js'

const FIRST_MAJOR_WITH_BUILTIN_LOCALE = 17

/** Whether there is a data folder of the same major version; throws when there is one of another. */
export async function hasCluster(layout: Layout, binaries: Binaries): Promise<boolean> {
  const major = await majorOf(layout)
  if (major === undefined || major === binaries.major) return major !== undefined
  throw new EmbeddedError(
    'DATA_FROM_OTHER_MAJOR',
    `${layout.dir} was made by PostgreSQL ${major} and cannot be read by ${binaries.major}; ` +
      `give the binaries of ${major}, or choose another directory (or remove this one, with its data)`,
  )
}

async function majorOf(layout: Layout): Promise<string | undefined> {
  try {
    return (await readFile(join(layout.data, 'PG_VERSION'), 'utf8')).trim()
  } catch (error) {
    if (!isSystemError(error, 'ENOENT')) throw error
    const entries = await readdir(layout.data).catch(() => undefined)
    if (entries === undefined) return undefined
    const message = `${layout.data} is no data folder of PostgreSQL: it lacks PG_VERSION; remove it to begin anew`
    throw new EmbeddedError('DATA_DAMAGED', message, { cause: error })
  }
}

/** Runs initdb in a draft folder that gets its name when whole, so a killed first start leaves nothing half made. */
export async function createCluster(layout: Layout, binaries: Binaries, native: string): Promise<void> {
  await removeDrafts(layout)
  await makePassword(layout)
  const draft = join(layout.dir, `pgdata-${randomBytes(6).toString('hex')}.new`)
  await makePrivateFolder(draft, layout.owner)
  const logged = await logSize(layout.log)
  const { end } = await spawnApart({
    file: join(native, 'bin', executable('initdb')),
    args: initdbArguments(binaries, await dataArgument(layout, draft)),
    cwd: draft,
    runAs: layout.owner,
    layout,
    environment: { LC_ALL: 'C', TZ: 'UTC' },
  })
  if ((await end) !== 0) {
    throw new EmbeddedError('START_FAILED', `initdb failed: ${await quoteLog(layout.log, logged)}`)
  }
  await rename(draft, layout.data)
}

function initdbArguments(binaries: Binaries, data: string): string[] {
  const locale = ['--encoding=UTF8', '--locale=C']
  // C order is fast and the same everywhere; the builtin provider adds what C lacks, upper and lower case of UTF-8.
  if (Number(binaries.major) >= FIRST_MAJOR_WITH_BUILTIN_LOCALE) {
    locale.push('--locale-provider=builtin', '--builtin-locale=C.UTF-8')
  }
  // Relative, because the server's user may be unable to get to the directory by its full path.
  const access = [`--username=${SUPERUSER}`, '--auth=scram-sha-256', '--pwfile=../password']
  return [`--pgdata=${data}`, ...access, ...locale, '--data-checksums', '--no-instructions']
}

/** In one step, and anew with each try: the file of a start that was killed may be empty, or not yet the server's own. */
function makePassword(layout: Layout): Promise<void> {
  return replaceFile(layout.password, `${randomBytes(24).toString('base64url')}\n`, layout.owner)
}

// An initdb whose parent was killed may still write into its draft; then the draft goes at a later start.
async function removeDrafts(layout: Layout): Promise<void> {
  const drafts = (await readdir(layout.dir)).filter((name) => /^pgdata-.+\.new$/.test(name))
  for (const name of drafts) {
    await rm(join(layout.dir, name), { recursive: true, force: true }).catch(() => undefined)
  }
}
