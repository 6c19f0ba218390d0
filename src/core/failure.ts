/**
 * Whatever was thrown, as bounded, safe text. Called by the worker for each failed attempt, so nothing in here may
 * throw: not for cycles, throwing getters, revoked proxies, nor a stack of a megabyte.
 */
import { inspect, types } from 'node:util'
import { ERROR_BYTES_MAX, type ErrorRecord } from './job.js'
import { grouped } from './show.js'

const NAME_BYTES_MAX = 128
/** Of the causes of an error so many are told, one level each; of an AggregateError so many of its errors. */
const CAUSES_MAX = 5
const INNER_ERRORS_MAX = 5

/** Name, code, message and stack of a thrown value, together at most `bytesMax` bytes of UTF-8. NUL becomes U+FFFD. */
export function describeFailure(thrown: unknown, bytesMax = ERROR_BYTES_MAX): ErrorRecord {
  try {
    return describe(thrown, bytesMax)
  } catch {
    return { name: 'Error', message: '(what was thrown cannot be described)' }
  }
}

function describe(thrown: unknown, bytesMax: number): ErrorRecord {
  const found = facts(thrown)
  const name = cut(found.name, Math.min(NAME_BYTES_MAX, bytesMax >> 2))
  const message = cut(found.message, bytesMax >> 1)
  const code = codeOf(thrown, bytesMax >> 2)
  const left = bytesMax - Buffer.byteLength(name + message) - (code?.length ?? 0)
  const stack = cut(stackOf(thrown, found), left)
  return { name, message, ...(code === undefined ? {} : { code }), ...(stack === '' ? {} : { stack }) }
}

/** Short words of ASCII; anything else that is called a code is none. */
const CODE = /^[\w.:/-]{1,64}$/

/** Its own code, or that of the nearest cause: a failed fetch says only in its cause whether it was refused. */
function codeOf(thrown: unknown, bytesMax: number): string | undefined {
  let error = thrown
  for (let depth = 0; depth <= CAUSES_MAX && isObject(error); depth++) {
    const code = read(error, 'code')
    const text = typeof code === 'string' || Number.isInteger(code) ? String(code) : ''
    if (CODE.test(text) && text.length <= bytesMax) return text
    error = read(error, 'cause')
  }
  return undefined
}

interface Facts {
  name: string
  message: string
  /** The lines below the message: `    at …`; empty where there are none. */
  frames: string
}

function facts(thrown: unknown): Facts {
  if (!isObject(thrown)) return { name: 'NotAnError', message: primitiveMessage(thrown), frames: '' }
  const message = textOf(thrown, 'message')
  const stack = textOf(thrown, 'stack')
  if (message === undefined && stack === undefined)
    return { name: 'NotAnError', message: `thrown: ${preview(thrown)}`, frames: '' }
  return {
    name: nameOf(thrown),
    message: message || fallbackMessage(thrown),
    frames: framesOf(stack ?? '', message ?? ''),
  }
}

function primitiveMessage(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown === '' ? 'thrown: an empty string' : thrown
  return `thrown: ${String(thrown)}${typeof thrown === 'bigint' ? 'n' : ''}`
}

function nameOf(error: object): string {
  return textOf(error, 'name') || textOf(read(error, 'constructor'), 'name') || 'Error'
}

/** An AggregateError of Node's own (a refused connection) has no message, only a code and inner errors. */
function fallbackMessage(error: object): string {
  const inner = innerErrors(error).map((item) => (isObject(item) ? textOf(item, 'message') : primitiveMessage(item)))
  return textOf(error, 'code') || inner.find((message) => message) || '(no message)'
}

/** The frames alone, as the message in front of them may be a megabyte, and stands in the record already. */
function framesOf(stack: string, message: string): string {
  const at = message === '' ? -1 : stack.indexOf(message)
  const inHeader = at === 0 || (at > 1 && stack.startsWith(': ', at - 2))
  const rest = inHeader ? stack.slice(at + message.length) : stack
  const first = rest.search(/^ *at /m)
  return first < 0 ? rest.trim() : rest.slice(first)
}

/** The stack with header, inner errors and causes. */
function stackOf(thrown: unknown, found: Facts): string {
  if (!isObject(thrown)) return ''
  const parts = [section('', found), ...innerSections(thrown), ...causeSections(thrown)]
  return found.frames === '' && parts.length === 1 ? '' : parts.join('\n')
}

const SECTION_MESSAGE_BYTES_MAX = 512
const SECTION_FRAMES_BYTES_MAX = 1_500

function section(title: string, { name, message, frames }: Facts): string {
  const head = `${title}${cut(name, NAME_BYTES_MAX)}: ${cut(message, SECTION_MESSAGE_BYTES_MAX)}`
  // What is below has to have room too: causes are worth more than the frames of the event loop.
  return frames === '' ? head : `${head}\n${cut(frames, SECTION_FRAMES_BYTES_MAX)}`
}

function innerSections(error: object): string[] {
  const errors = innerErrors(error)
  const told = errors.slice(0, INNER_ERRORS_MAX).map((item, index) => section(`Error ${index + 1}: `, facts(item)))
  return errors.length > told.length ? [...told, `… ${errors.length - told.length} errors more`] : told
}

function innerErrors(error: object): unknown[] {
  const errors = read(error, 'errors')
  return Array.isArray(errors) ? errors : []
}

function causeSections(error: object): string[] {
  const told: string[] = []
  const seen = new Set<unknown>([error])
  let cause = read(error, 'cause')
  while (cause !== undefined && cause !== null) {
    if (seen.has(cause)) return [...told, 'Caused by: an error above (a cycle)']
    if (told.length === CAUSES_MAX) return [...told, '… causes beyond these are left out']
    seen.add(cause)
    told.push(section('Caused by: ', facts(cause)))
    cause = isObject(cause) ? read(cause, 'cause') : undefined
  }
  return told
}

const PREVIEW_KEYS_MAX = 200

/** A look at an object that is no error, without running any code of its own. */
function preview(value: object): string {
  try {
    if (!types.isProxy(value) && Object.keys(value).length > PREVIEW_KEYS_MAX)
      return 'an object with too many keys to show'
    return inspect(value, {
      customInspect: false,
      showProxy: true,
      getters: false,
      depth: 2,
      maxArrayLength: 20,
      maxStringLength: 500,
      breakLength: 120,
    })
  } catch {
    return 'an object that cannot be shown'
  }
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

/** A property that may be a getter, of an object that may be a proxy, revoked too. */
function read(value: unknown, key: string): unknown {
  try {
    return isObject(value) ? (value as Record<string, unknown>)[key] : undefined
  } catch {
    return undefined
  }
}

function textOf(value: unknown, key: string): string | undefined {
  const found = read(value, key)
  return typeof found === 'string' ? found : undefined
}

/** At most `bytesMax` bytes, with a marker where something was cut. Well-formed, without NUL. */
function cut(text: string, bytesMax: number): string {
  // Coding no more than can be kept: a text may be a megabyte, and it fails thousands of times.
  const bytes = Buffer.from(text.slice(0, bytesMax + 1).replaceAll('\0', '\uFFFD'))
  if (bytes.length <= bytesMax) return bytes.toString()
  const marker = ` … [cut: ${grouped(text.length)} characters]`
  if (marker.length + 2 >= bytesMax) return ''
  return bytes.subarray(0, wholeCharacters(bytes, bytesMax - Buffer.byteLength(marker))).toString() + marker
}

/** The largest end that is no more than `end` and cuts no character in two. */
function wholeCharacters(bytes: Buffer, end: number): number {
  let at = end
  while (at > 0 && (bytes[at]! & 0xc0) === 0x80) at--
  return at
}
