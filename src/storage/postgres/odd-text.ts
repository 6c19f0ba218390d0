/**
 * Histories hold texts of handlers: with NUL or half a surrogate pair in them the server could keep the JSON, but no
 * operator of it could read it any more. Such characters are written as SUB and four hex digits, and read back as they
 * were. Called wherever a history goes in or out.
 */
import type { JobHistory, Json } from '../../core/job.js'

const SUB = '\u001a'
const ODD_ESCAPES = /\\u(?:0000|001a|d[89a-f])/i
const ODD = /[\u0000\u001a]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g
const WRITTEN = /\u001a([0-9a-f]{4})/g

export function historyText(history: JobHistory): string {
  const text = JSON.stringify(history)
  return ODD_ESCAPES.test(text) ? JSON.stringify(mapped(history as unknown as Json, write)) : text
}

/** A history as it was given. `text`: something that contains it as JSON text, to see cheaply that nothing is odd. */
export function readHistory<T extends JobHistory | null>(history: T, text?: string): T {
  if (history === null || (text !== undefined && !text.includes('\\u001a'))) return history
  return mapped(history as unknown as Json, read) as unknown as T
}

function write(text: string): string {
  return text.replace(ODD, (odd) => SUB + odd.charCodeAt(0).toString(16).padStart(4, '0'))
}

function read(text: string): string {
  return text.includes(SUB)
    ? text.replace(WRITTEN, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    : text
}

/** Every string in it, keys too. */
function mapped(value: Json, change: (text: string) => string): Json {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map((item) => mapped(item, change))
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [change(key), mapped(item, change)]))
}
