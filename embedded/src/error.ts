// Job: the one error class of this package, with a table of its codes.
// Called by: every module here; callers of startEmbedded() branch on `code`.

/** Every code an `EmbeddedError` can carry, with what it means. The message of each error says what to do. */
export const EMBEDDED_ERRORS = {
  BAD_OPTION: 'An option is unknown, missing or malformed.',
  PLATFORM_UNSUPPORTED: 'No PostgreSQL binary exists for this operating system and processor.',
  BINARY_MISSING: 'The package that holds the PostgreSQL binary is not installed.',
  CACHE_UNSAFE: 'The cache folder for binaries can be written by another user.',
  DIR_NOT_EMPTY: 'The directory holds files of something else.',
  DIR_NOT_OURS: 'The directory belongs to another user.',
  DIR_UNREACHABLE: 'The user that the server runs as cannot enter the directory.',
  DATA_FROM_OTHER_MAJOR: 'The data was made by another major version of PostgreSQL.',
  DATA_DAMAGED: 'The data directory lacks files that it must have.',
  IN_USE_ELSEWHERE: 'Another container or machine runs a server on this directory.',
  LOCK_TIMEOUT: 'Another process held the lock of the directory for too long.',
  START_FAILED: 'PostgreSQL did not start, or did not let us in.',
  STOP_FAILED: 'PostgreSQL did not stop in time.',
} as const

export type EmbeddedErrorCode = keyof typeof EMBEDDED_ERRORS

/** Thrown by `startEmbedded()` and `stop()`. Branch on `code`; the message is for people and names the fix. */
export class EmbeddedError extends Error {
  override readonly name = 'EmbeddedError'
  readonly code: EmbeddedErrorCode

  constructor(code: EmbeddedErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}

/** True when `error` is a system error with one of these codes, such as ENOENT. */
export function isSystemError(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code))
}

/** True when `error` says that a file is not there, be it that a folder on the way is missing or is a file. */
export function isMissing(error: unknown): boolean {
  return isSystemError(error, 'ENOENT', 'ENOTDIR')
}
