/**
 * Options, declared once: a table of names, defaults and checks drives validation and types. The comment above an
 * entry is its doc: editors show it to who writes the option, and the reference is made from it. Used by defineJob,
 * the client, connect and worker, each with tables of its own.
 *
 *     const WORKER_OPTIONS = {
 *       /** How many jobs run at once; 10 unless given. *\/
 *       concurrency: { default: 10, check: whole({ min: 1, max: 10_000 }) },
 *     } satisfies OptionTable
 *     export type WorkerOptions = Given<typeof WORKER_OPTIONS>      // { concurrency?: number }
 *     const readWorkerOptions = optionReader(WORKER_OPTIONS)
 *     const { concurrency } = readWorkerOptions(options)            // number, checked
 */
import { DURATION_MS_MAX, type Duration, durationMs, formatDuration } from './duration.js'
import { QueueError } from './errors.js'
import { checkName } from './name.js'
import { grouped, show } from './show.js'
import { didYouMean } from './suggest.js'

/** Turns what a caller wrote into what the code holds, or throws INVALID_OPTION naming the field. */
export interface Check<Given, Held> {
  (value: unknown, field: string): Held
  /** For types only, never set: what a caller may write. */
  readonly given?: Given
}

export interface Option {
  /** The doc as text, where a program shows it too: the help of the command line. */
  readonly doc?: string
  /** As the code holds it. Without one the option is undefined where it is not given. */
  readonly default?: unknown
  readonly check: Check<unknown, unknown>
}

export type OptionTable = Readonly<Record<string, Option>>

/** What a caller may write: every option may be left out. */
export type Given<Table extends OptionTable> = {
  [Name in keyof Table]?: Table[Name]['check'] extends Check<infer G, unknown> ? G : never
}

/** What the code holds after the check. */
export type Held<Table extends OptionTable> = {
  [Name in keyof Table]: Table[Name]['check'] extends Check<unknown, infer H>
    ? Table[Name] extends { default: unknown }
      ? H
      : H | undefined
    : never
}

/** Reads options that a caller gave (undefined: none). `path` stands before each name in messages: `retry.`. */
export type OptionReader<Table extends OptionTable> = (given: unknown, path?: string) => Held<Table>

export function optionReader<const Table extends OptionTable>(table: Table): OptionReader<Table> {
  const names = Object.keys(table)
  const defaults = Object.fromEntries(names.map((name) => [name, table[name]!.default]))
  return (given, path = '') => {
    const held: Record<string, unknown> = { ...defaults }
    if (given !== undefined) readInto(held, table, given, path)
    return held as Held<Table>
  }
}

/** Own keys only: what a prototype carries, polluted or not, is nobody's option. */
function readInto(held: Record<string, unknown>, table: OptionTable, given: unknown, path: string): void {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw invalidOption(path.replace(/\.$/, '') || 'options', given, 'an object')
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(table, name)) throw unknownOption(name, Object.keys(table), path)
    if (value !== undefined) held[name] = table[name]!.check(value, path + name)
  }
}

function unknownOption(name: string, known: string[], path: string): QueueError {
  const message = `unknown option ${show(path + name)}${didYouMean(name, known)} (known: ${known.join(', ')})`
  return new QueueError('UNKNOWN_OPTION', message, { field: path + name })
}

/** The error of a value that an option may not have: names the field, the value and what is allowed. */
export function invalidOption(field: string, value: unknown, allowed: string): QueueError {
  return new QueueError('INVALID_OPTION', `${field}: ${show(value)} is not allowed; give ${allowed}`, { field })
}

/** The error of options that are each fine and together are not. */
export function badRelation(field: string, message: string): QueueError {
  return new QueueError('INVALID_OPTION', `${field}: ${message}`, { field })
}

// The checks.

export function whole(range: { min: number; max: number }): Check<number, number> {
  const allowed = `a whole number from ${grouped(range.min)} to ${grouped(range.max)}`
  return (value, field) => {
    if (typeof value === 'number' && Number.isInteger(value) && value >= range.min && value <= range.max)
      return value + 0 // -0 becomes 0
    throw invalidOption(field, value, allowed)
  }
}

export function between(min: number, max: number): Check<number, number> {
  return (value, field) => {
    if (typeof value === 'number' && value >= min && value <= max) return value + 0
    throw invalidOption(field, value, `a number from ${min} to ${max}`)
  }
}

/** Milliseconds, from any way a duration is written. */
export function duration(range: { minMs?: number; maxMs?: number } = {}): Check<Duration, number> {
  const { minMs = 0, maxMs = DURATION_MS_MAX } = range
  const allowed = `a duration ("250ms", "20s", "15m", "1h", "30d" or milliseconds) from ${formatDuration(minMs)} to ${formatDuration(maxMs)}`
  return (value, field) => {
    if (typeof value !== 'number' && typeof value !== 'string') throw invalidOption(field, value, allowed)
    const ms = durationMs(value, field)
    if (ms < minMs || ms > maxMs) throw invalidOption(field, value, allowed)
    return ms + 0
  }
}

export function oneOf<const Words extends readonly string[]>(words: Words): Check<Words[number], Words[number]> {
  return (value, field) => {
    const found = words.find((word) => word === value)
    if (found !== undefined) return found
    const hint = typeof value === 'string' ? didYouMean(value, words) : ''
    throw invalidOption(field, value, words.map((word) => JSON.stringify(word)).join(' or ') + hint)
  }
}

export const flag: Check<boolean, boolean> = (value, field) => {
  if (typeof value === 'boolean') return value
  throw invalidOption(field, value, 'true or false')
}

/** The name of a queue, kind or worker. */
export const name: Check<string, string> = checkName

export const names: Check<readonly string[], readonly string[]> = (value, field) => {
  if (!Array.isArray(value)) throw invalidOption(field, value, 'an array of names')
  return value.map((item, index) => checkName(item, `${field}[${index}]`))
}

/**
 * Text that every store keeps as it is: not empty, bounded, without NUL, and well-formed, as two texts that differ in
 * a lone surrogate only would be one and the same in UTF-8.
 */
export function text(bytesMax: number): Check<string, string> {
  return (value, field) => {
    if (typeof value !== 'string' || value === '') throw invalidOption(field, value, 'a text that is not empty')
    if (/\0|\p{Surrogate}/u.test(value)) throw invalidOption(field, value, 'a text without NUL and lone surrogates')
    const bytes = Buffer.byteLength(value)
    if (bytes <= bytesMax) return value
    throw badRelation(field, `${grouped(bytes)} bytes of text; at most ${grouped(bytesMax)} are allowed`)
  }
}

/** A function, of whose type only the compiler can make sure. */
export function callback<F extends (...args: never[]) => unknown>(): Check<F, F> {
  return (value, field) => {
    if (typeof value === 'function') return value as F
    throw invalidOption(field, value, 'a function')
  }
}

/** An object of options of its own. */
export function nested<Table extends OptionTable>(read: OptionReader<Table>): Check<Given<Table>, Held<Table>> {
  return (value, field) => read(value, `${field}.`)
}

/** Null, which takes something away, or what `check` allows. */
export function orNull<Given, Held>(check: Check<Given, Held>): Check<Given | null, Held | null> {
  return (value, field) => (value === null ? null : check(value, field))
}

/** A value that has no default and has to be given. */
export function required<T>(value: T | undefined, field: string, what: string): T {
  if (value === undefined) throw badRelation(field, `is missing; give ${what}`)
  return value
}

/** An object that is somebody else's to check, such as a client of a driver. */
export function object<T extends object>(what: string): Check<T, T> {
  return (value, field) => {
    if (typeof value === 'object' && value !== null) return value as T
    throw invalidOption(field, value, what)
  }
}
