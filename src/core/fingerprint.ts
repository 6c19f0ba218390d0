/**
 * The fingerprint of a failure: the same for failures that differ only in what varies from job to job. Dead letters are
 * grouped by it. Pure; called where an attempt is judged (settlement.ts), so that every store and every take-over
 * has it. What is kept and what is taken out may not change lightly: prints are kept as long as dead letters are.
 */
import { createHash } from 'node:crypto'
import type { ErrorRecord } from './job.js'

/** Of a message so much is read; what tells errors apart stands at its beginning. */
const READ_LENGTH_MAX = 2_000
const TEMPLATE_LENGTH_MAX = 300
/** 48 bits: among ten thousand groups two would share a print once in five million stores. */
const PRINT_DIGITS = 12

/** Twelve hex digits over name, code and the message without what varies. */
export function fingerprintOf({ name, code = '', message }: Omit<ErrorRecord, 'stack'>): string {
  const meaning = JSON.stringify([name, code, templateOf(message)])
  return createHash('sha256').update(meaning).digest('hex').slice(0, PRINT_DIGITS)
}

/**
 * A message with `*` for what varies: numbers, ids, hex, times, addresses, quoted text, the query of a URL. What names
 * a thing in the code stays, also in quotes (`"users_email_key"`, `reading 'id'`), and so does an HTTP status: they
 * tell one error from another.
 */
export function templateOf(message: string): string {
  let text = readable(message)
  for (const [pattern, replacement] of RULES) text = text.replace(pattern, replacement)
  return text.trim().slice(0, TEMPLATE_LENGTH_MAX)
}

/** In a message that was cut, a quotation may have lost its end: it ends where the message does. */
function readable(message: string): string {
  if (message.length <= READ_LENGTH_MAX) return message
  const text = message.slice(0, READ_LENGTH_MAX)
  return text.split('"').length % 2 === 0 ? `${text}"` : text
}

type Replacement = (found: string, ...groups: (string | undefined)[]) => string
type Rule = readonly [RegExp, Replacement]

const varies: Replacement = () => '*'

/** Each is bounded in how far it looks ahead, so that no message takes long. An earlier rule goes before a later one. */
const RULES: readonly Rule[] = [
  // User and password, query and fragment of a URL. What varies in its path is left to the rules below.
  [
    /\b([a-z][a-z0-9+.-]{0,15}:\/\/)(?:[^\s/?#'"`@]{0,200}@)?([^\s?#'"`<>]*)(?:[?#][^\s'"`<>]*)?/gi,
    (_, scheme, path) => `${scheme}${path}`,
  ],
  [/[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}/g, varies],
  [/"([^"]*)"/g, quoted],
  [/`([^`]*)`/g, quoted],
  [/“([^”]*)”/g, quoted],
  // Those of the runtime: the property is what the error is about.
  [/\((reading|setting) '([^']{1,100})'\)/g, (_, verb, property) => `(${verb} ${property})`],
  // An apostrophe inside of a word opens and closes nothing.
  [/(?<![\p{L}\p{N}])'([^'\n]*)'(?![\p{L}\p{N}])/gu, quoted],
  [/\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?/g, varies],
  [
    /\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? (?:\d{1,2} )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)(?: \d{1,2})?,? \d{4} \d\d:\d\d:\d\d(?: (?:GMT|UTC)?(?:[+-]\d{4})?)?(?: \([^)]{1,60}\))?/g,
    varies,
  ],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, varies],
  [/(?<![\w:])(?:(?:[0-9a-f]{1,4}:){1,7}:|(?:[0-9a-f]{0,4}:){2,8}[0-9a-f]{1,4})(?!\w|:\w)/gi, varies],
  // A word with a digit in it is an id, a number or a measure; only a status says what went wrong.
  [
    /\b(status(?:[ _]?code)?|HTTP(?:\/[\d.]{1,4})?)([ :=]{1,3})([1-5]\d\d)\b|[\p{L}\p{N}_]+(?:-[\p{L}\p{N}_]+)*/giu,
    word,
  ],
  // Lists, fractions and addresses of any length are one thing that varies.
  [/\*(?:[\s,.:;/+-]{1,3}\*)+/g, varies],
  [/(?<![\p{L}\p{N}*])[-+]\*/gu, varies],
  [/\s+/g, () => ' '],
]

/** Without the quotes, so that `user 7` and `user "7"` are one. */
function quoted(_: string, inside = ''): string {
  return isNameInCode(inside) ? inside : '*'
}

/** `users_email_key`, `userId`, `app.users`: no person, place or product is written so. */
function isNameInCode(text: string): boolean {
  return text.length <= 100 && /^[A-Za-z_$][A-Za-z_$.]*$/.test(text) && /[_$]|[a-z][A-Z]|[a-z]\.[a-z]/.test(text)
}

/** Letters of `a` to `f` alone are hex from a length that no word of a language has. */
function word(found: string, status?: string, _between?: string, code?: string): string {
  if (status !== undefined) return `status ${code}`
  return /\p{N}/u.test(found) || /^[a-f]{8,}$/i.test(found) ? '*' : found
}
