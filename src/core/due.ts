/** When a job may start, from the ways a caller says it. Called by the client at enqueue. */
import { DURATION_MS_MAX } from './duration.js'
import { badRelation, type Check, invalidOption } from './options.js'

/** As the store takes it: from its own now, or an instant in epoch milliseconds. */
export type Due = { delayMs: number } | { atMs: number }

/** A Date, an ISO text with Z or an offset, or epoch milliseconds. */
export type Instant = Date | string | number

/** Epoch milliseconds below this would be 1973 and earlier: nearly always seconds, given by mistake. */
const EPOCH_MS_MIN = 100_000_000_000
const ISO = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)$/
const ISO_TEXT = 'an ISO text with Z or an offset ("2030-01-31T09:00:00+01:00")'
const ALLOWED = `a Date, ${ISO_TEXT} or epoch milliseconds`

export const instant: Check<Instant, number> = (value, field) => {
  const ms = epochMs(value, field)
  if (Number.isNaN(ms) || ms > DURATION_MS_MAX) throw invalidOption(field, value, ALLOWED)
  // Long ago is due now; stores need not know years before 1970.
  return Math.max(0, ms)
}

/** Where only text can be given, as on the command line. */
export const isoInstant: Check<string, number> = (value, field) => {
  if (typeof value !== 'string' || Number.isNaN(isoMs(value, field))) throw invalidOption(field, value, ISO_TEXT)
  return instant(value, field)
}

function epochMs(value: unknown, field: string): number {
  if (value instanceof Date) return value.getTime()
  if (typeof value === 'string') return isoMs(value, field)
  if (typeof value !== 'number' || !Number.isInteger(value)) return Number.NaN
  if (value >= EPOCH_MS_MIN) return value
  throw badRelation(field, `${value} looks like seconds; give epoch milliseconds`)
}

/** The text says which instant it means: without an offset it would be another one on each machine. */
function isoMs(text: string, field: string): number {
  const match = ISO.exec(text)
  if (match === null) {
    if (/^\d{4}-\d\d-\d\d(T[\d:.]*)?$/.test(text))
      throw badRelation(field, `"${text}" has no time zone; end it with Z or an offset such as +01:00`)
    return Number.NaN
  }
  // Date.parse takes February 30 for March 2.
  const midnight = Date.parse(`${match[1]}T00:00:00Z`)
  if (Number.isNaN(midnight) || new Date(midnight).toISOString().slice(0, 10) !== match[1]) return Number.NaN
  return Date.parse(text)
}

/** What a caller chose, read and in milliseconds. */
export interface DueChoice {
  delay: number | undefined
  runAt: number | undefined
  spread: number | undefined
}

/** `fraction` in [0, 1): where in the spread this job is placed. */
export function dueOf({ delay, runAt, spread }: DueChoice, fraction: number): Due {
  const extraMs = spread === undefined ? 0 : Math.floor(spread * fraction)
  return runAt === undefined ? { delayMs: (delay ?? 0) + extraMs } : { atMs: runAt + extraMs }
}

/** Throws INVALID_OPTION for choices that exclude each other. */
export function checkDue({ delay, runAt, spread }: DueChoice, expiresInMs: number | undefined): void {
  if (delay !== undefined && runAt !== undefined) throw badRelation('runAt', 'give delay or runAt, not both')
  // A run-at is not compared: that would take this machine's clock, and a wrong one may change nothing.
  const latestMs = (delay ?? 0) + (spread ?? 0)
  if (expiresInMs !== undefined && runAt === undefined && latestMs >= expiresInMs)
    throw badRelation('expiresIn', `${expiresInMs} ms end before the job may start (${latestMs} ms from now)`)
}
