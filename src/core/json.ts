/**
 * Values as they are stored: plain JSON by one rule on every store, bounded in bytes. Called by the client for
 * payloads and by the worker for results and progress.
 *
 * The rule. Allowed: null, booleans, finite numbers, strings, arrays without holes, plain objects. A property whose
 * value is undefined is left out; -0 becomes 0; NUL, lone surrogates and keys such as "__proto__" are kept. Anything
 * else (Date, Map, class instances, BigInt, functions, NaN, undefined in an array, cycles) is refused by its path, as
 * the reader would get another thing than the writer gave.
 */
import { createHash } from 'node:crypto'
import { type ErrorCode, QueueError } from './errors.js'
import { PAYLOAD_BYTES_MAX, PROGRESS_BYTES_MAX, RESULT_BYTES_MAX } from './job.js'
import { grouped } from './show.js'

/** Deeper nesting is refused: readers in other languages, and recursion here, have to end somewhere. */
export const JSON_DEPTH_MAX = 256

/** What a value is stored as: its bound, and the errors it is refused with. */
export interface JsonUse {
  readonly noun: string
  readonly bytesMax: number
  readonly invalid: ErrorCode
  readonly tooLarge: ErrorCode
}

export const PAYLOAD: JsonUse = {
  noun: 'payload',
  bytesMax: PAYLOAD_BYTES_MAX,
  invalid: 'INVALID_PAYLOAD',
  tooLarge: 'PAYLOAD_TOO_LARGE',
}
export const RESULT: JsonUse = {
  noun: 'result',
  bytesMax: RESULT_BYTES_MAX,
  invalid: 'INVALID_RESULT',
  tooLarge: 'INVALID_RESULT',
}
export const PROGRESS: JsonUse = {
  noun: 'progress',
  bytesMax: PROGRESS_BYTES_MAX,
  invalid: 'INVALID_PROGRESS',
  tooLarge: 'INVALID_PROGRESS',
}

/** JSON text of a value; undefined is stored as null. Throws the codes of its use, naming path and fix. */
export function encodeJson(value: unknown, use: JsonUse): string {
  if (value === undefined) return 'null'
  let text: string
  try {
    const walk: Walk = { unitsLeft: use.bytesMax }
    if (!isPlain(value, 0, walk)) refuse(value, use, walk)
    text = JSON.stringify(value)
  } catch (error) {
    if (error instanceof QueueError) throw error
    throw new QueueError(use.invalid, `${use.noun}: reading it threw; it has to be plain JSON`, { cause: error })
  }
  // A UTF-16 unit takes three bytes at most, so most texts need no counting.
  if (text.length * 3 > use.bytesMax) checkBytes(Buffer.byteLength(text), use)
  return text
}

function checkBytes(bytes: number, use: JsonUse): void {
  if (bytes > use.bytesMax) throw tooLarge(`${grouped(bytes)} bytes`, use)
}

function tooLarge(size: string, use: JsonUse): QueueError {
  return new QueueError(
    use.tooLarge,
    `${use.noun}: ${size} as JSON; at most ${grouped(use.bytesMax)} are allowed. Store large data elsewhere and pass a reference.`,
    { field: use.noun },
  )
}

/** What one walk may still visit: no value takes less than a byte, so a walk beyond the bound is one beyond the limit. */
interface Walk {
  unitsLeft: number
}

/** The hot path: whether the rule holds, without saying why not. Bounded also for cycles and shared branches. */
function isPlain(value: unknown, depth: number, walk: Walk): boolean {
  switch (typeof value) {
    case 'string':
      walk.unitsLeft -= value.length
      return walk.unitsLeft >= 0
    case 'number':
      return Number.isFinite(value) && --walk.unitsLeft >= 0
    case 'boolean':
      return --walk.unitsLeft >= 0
    case 'object':
      if (--walk.unitsLeft < 0) return false
      if (value === null) return true
      if (depth >= JSON_DEPTH_MAX) return false
      return Array.isArray(value) ? isPlainArray(value, depth, walk) : isPlainObject(value, depth, walk)
    default:
      return false
  }
}

function isPlainArray(array: unknown[], depth: number, walk: Walk): boolean {
  if (Object.getPrototypeOf(array) !== Array.prototype && !isBuiltIn(array)) return false
  for (let index = 0; index < array.length; index++) {
    if (!isPlain(array[index], depth + 1, walk)) return false
  }
  return true
}

function isPlainObject(object: object, depth: number, walk: Walk): boolean {
  const plain = Object.getPrototypeOf(object) === Object.prototype && (object as MayHaveToJson).toJSON === undefined
  if (!plain && !isBuiltIn(object)) return false
  for (const key in object) {
    const value = (object as Record<string, unknown>)[key]
    if (value !== undefined && !isPlain(value, depth + 1, walk)) return false
  }
  return true
}

interface MayHaveToJson {
  toJSON?: unknown
}

/** Object or array without a class, also those of another realm (a vm context, as test runners use them). */
function isBuiltIn(value: object): boolean {
  if (typeof (value as MayHaveToJson).toJSON === 'function') return false
  const prototype: object | null = Object.getPrototypeOf(value)
  if (prototype === null) return true
  const above: object | null = Object.getPrototypeOf(prototype)
  return Array.isArray(value) ? above !== null && Object.getPrototypeOf(above) === null : above === null
}

// Refusals: the slow walk that finds the path and the fix.

function refuse(value: unknown, use: JsonUse, walk: Walk): void {
  if (walk.unitsLeft < 0) throw tooLarge(measured(value), use)
  const fault = findFault(value, use.noun, [])
  if (fault === undefined) return
  throw new QueueError(use.invalid, `${fault.path} ${fault.problem}`, { field: fault.path })
}

interface Fault {
  path: string
  problem: string
}

function findFault(value: unknown, path: string, above: object[]): Fault | undefined {
  if (typeof value !== 'object' || value === null) {
    const problem = primitiveProblem(value)
    return problem === undefined ? undefined : { path, problem }
  }
  if (above.includes(value)) return { path, problem: 'refers to an object that it is inside of; JSON has no cycles' }
  if (above.length >= JSON_DEPTH_MAX)
    return { path: `${path.slice(0, 40)}…`, problem: `is nested over ${JSON_DEPTH_MAX} levels deep` }
  if (!isBuiltIn(value)) return { path, problem: instanceProblem(value) }
  const inside = [...above, value]
  const step = Array.isArray(value) ? indexStep : keyStep
  for (const key of Array.isArray(value) ? value.keys() : Object.keys(value)) {
    const item = (value as Record<string | number, unknown>)[key]
    if (item === undefined && !Array.isArray(value)) continue
    const fault = findFault(item, path + step(key), inside)
    if (fault !== undefined) return fault
  }
  return undefined
}

function primitiveProblem(value: unknown): string | undefined {
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value) ? undefined : `is ${value}, which JSON cannot hold; use null or a string`
    case 'bigint':
      return 'is a BigInt, which JSON cannot hold; pass String(value) and read it with BigInt()'
    case 'undefined':
      return 'is undefined in an array (or a hole), which JSON cannot hold; use null'
    case 'function':
      return 'is a function; only plain JSON is stored'
    case 'symbol':
      return 'is a symbol; only plain JSON is stored'
    default:
      return undefined
  }
}

const FIXES: Readonly<Record<string, string>> = {
  Date: 'pass its toISOString(), or the milliseconds of getTime()',
  Map: 'pass Object.fromEntries(map) or [...map]',
  Set: 'pass [...set]',
  Buffer: 'pass its toString("base64")',
  Uint8Array: 'pass Buffer.from(bytes).toString("base64")',
  URL: 'pass its href',
  RegExp: 'pass its source',
  Error: 'pass its message',
}

function instanceProblem(value: object): string {
  const maker: unknown = (value as { constructor?: unknown }).constructor
  const name = typeof maker === 'function' && maker.name !== '' ? maker.name : 'class instance'
  const otherwise =
    typeof (value as MayHaveToJson).toJSON === 'function' ? 'pass what its toJSON() returns' : 'pass { ...value }'
  const fix = (Object.hasOwn(FIXES, name) && FIXES[name]) || otherwise
  const article = /^[AEIOU](?!RL)/.test(name) ? 'an' : 'a'
  return `is ${article} ${name}, which would be read back as another thing; ${fix}`
}

function indexStep(index: string | number): string {
  return `[${index}]`
}

function keyStep(key: string | number): string {
  const plain = typeof key === 'string' && /^[A-Za-z_$][\w$]{0,63}$/.test(key)
  return plain ? `.${key}` : `[${JSON.stringify(String(key).slice(0, 64))}]`
}

/** Sizes above are told as "at least", so that a refusal costs no more than a walk over this much. */
const MEASURED_BYTES_MAX = 67_108_864

function measured(value: unknown): string {
  const bytes = bytesOf(value, 0)
  return bytes > MEASURED_BYTES_MAX ? `at least ${grouped(bytes)} bytes` : `${grouped(bytes)} bytes`
}

/** Bytes of the JSON text, added up without building it; goes little beyond `MEASURED_BYTES_MAX`. */
function bytesOf(value: unknown, before: number, depth = 0): number {
  if (typeof value !== 'object' || value === null) return before + scalarBytes(value)
  if (depth > JSON_DEPTH_MAX) return before
  const named = !Array.isArray(value)
  const items = Object.entries(value).filter(([, item]) => item !== undefined)
  let bytes = before + 2 + Math.max(0, items.length - 1)
  for (const [key, item] of items) {
    if (bytes > MEASURED_BYTES_MAX) break
    if (named) bytes += scalarBytes(key) + 1
    bytes = bytesOf(item, bytes, depth + 1)
  }
  return bytes
}

function scalarBytes(value: unknown): number {
  // Of a value that JSON cannot hold any count will do: it is refused either way.
  if (typeof value !== 'string') return String(value).length
  // A text that is told as "at least" is not made a second time to be counted.
  return value.length > MEASURED_BYTES_MAX ? value.length + 2 : Buffer.byteLength(JSON.stringify(value))
}

/** One hash for all payloads that mean the same: the order of keys does not count, the kind does. Of stored text. */
export function payloadHash(kind: string, payload: string): string {
  return createHash('sha256')
    .update(kind)
    .update('\0')
    .update(canonical(JSON.parse(payload)))
    .digest('base64url')
}

function canonical(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([key, item]) => `${JSON.stringify(key)}:${canonical(item)}`).join(',')}}`
}
