/** Values of options as the shell gives them, checked by the same rules as those of the library. Called by the declarations in syntax/. */
import { JOB_STATES, type JobState, PRIORITY_LEVELS, type Priority } from '../core/job.js'
import { checkName } from '../core/name.js'
import { type Check, duration, invalidOption, oneOf, whole } from '../core/options.js'
import { priority } from '../core/policy.js'
import { didYouMean } from '../core/suggest.js'
import type { LogLevel } from '../observe/events.js'

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const satisfies readonly LogLevel[]

/** A parser of one option, for commander. Throws INVALID_OPTION naming the option. */
export type ValueParser<T> = (text: string) => T

export function count(option: string, range: { min: number; max: number }): ValueParser<number> {
  const check = whole(range)
  // Number('') is 0 and Number('0x1f') is 31: digits only.
  return (text) => check(/^\d{1,16}$/.test(text) ? Number(text) : text, option)
}

export function oneWord<const Words extends readonly string[]>(
  option: string,
  words: Words,
): ValueParser<Words[number]> {
  const check = oneOf(words)
  return (text) => check(text, option)
}

export function nameOf(option: string): ValueParser<string> {
  return (text) => checkName(text, option)
}

/** Text that the library reads later; checked here, so that a refusal names the option and not a field. */
export function checked(option: string, check: Check<unknown, unknown>): ValueParser<string> {
  return (text) => {
    check(text, option)
    return text
  }
}

/** A tier, or a number up to 15. */
export function priorityOf(option: string): ValueParser<Priority> {
  return (text) => {
    const given = /^\d{1,2}$/.test(text) ? Number(text) : text
    priority(given, option)
    return given as Priority
  }
}

/** What people call pending; and all states in the order of a job's life. */
const PENDING: readonly JobState[] = ['retrying', 'ready', 'blocked', 'delayed']
export const LISTED_STATES: readonly JobState[] = ['running', ...PENDING, 'dead', 'cancelled', 'completed']

/** `dead`, `ready,delayed`, or `pending` for all that wait. */
export function statesOf(option: string): ValueParser<JobState[]> {
  return (text) => {
    const words = text.split(',').flatMap((word): readonly string[] => (word === 'pending' ? PENDING : [word]))
    const known: string[] = [...JOB_STATES, 'pending']
    for (const word of words)
      if (!known.includes(word)) throw invalidOption(option, word, `${known.join(', ')}${didYouMean(word, known)}`)
    return LISTED_STATES.filter((state) => words.includes(state))
  }
}

/** Those of `allowed`, with commas; `pending` is all of them that wait. */
export function statesAmong<const Words extends readonly JobState[]>(
  option: string,
  allowed: Words,
): ValueParser<Words[number][]> {
  const waiting = PENDING.filter((state) => allowed.includes(state))
  const known: string[] = [...allowed, ...(waiting.length === PENDING.length ? ['pending'] : [])]
  return (text) => {
    const words = text.split(',').flatMap((word): readonly string[] => {
      if (!known.includes(word)) throw invalidOption(option, word, `${known.join(', ')}${didYouMean(word, known)}`)
      return word === 'pending' ? waiting : [word]
    })
    return allowed.filter((state) => words.includes(state))
  }
}

/** Takes something away. A word, as commander makes an empty text of null. */
export type None = 'none'

export function orNone<T>(parse: ValueParser<T>): ValueParser<T | None> {
  return (text) => (text === 'none' ? text : parse(text))
}

export function isNone(value: unknown): value is None {
  return value === 'none'
}

/** So many starts in so long. */
export interface StartRate {
  limit: number
  per: string
}

/** `100/s`, `5/m`, `1000/15m`. */
export function startRate(option: string): ValueParser<StartRate> {
  const limit = whole({ min: 1, max: 1_000_000 })
  const per = duration({ minMs: 1, maxMs: 31 * 86_400_000 })
  return (text) => {
    const [, count, span = ''] = /^(\d{1,9})\/((?:\d+(?:\.\d+)?)?(?:ms|s|m|h|d))$/.exec(text) ?? []
    if (count === undefined) throw invalidOption(option, text, 'how many in which time: 100/s, 5/m or 1000/15m')
    const given = /^\d/.test(span) ? span : `1${span}`
    per(given, option)
    return { limit: limit(Number(count), option), per: given }
  }
}

const RATE_UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600 }
const RATE_MIN = 0.01
const RATE_MAX = 100_000

/** `50`, `50/s`, `600/m` or `1000/h`: jobs a second. */
export function rateOf(option: string): ValueParser<number> {
  return (text) => {
    const match = /^(\d{1,9}(?:\.\d{1,3})?)(?:\/([smh]))?$/.exec(text)
    const rate = match === null ? Number.NaN : Number(match[1]) / RATE_UNITS[match[2] ?? 's']!
    if (rate >= RATE_MIN && rate <= RATE_MAX) return rate
    throw invalidOption(option, text, 'a rate (50/s, 600/m or 1000/h) from 0.01 to 100,000 a second')
  }
}

/** `mail,reports`, or with weights `mail=3,reports=1`. */
export function queuesOf(option: string): ValueParser<Record<string, number>> {
  return (text) => {
    const parts = text.split(',').map((part) => {
      const [queue, weight, ...more] = part.split('=')
      const known = more.length === 0 && (weight === undefined || /^\d{1,4}(\.\d{1,3})?$/.test(weight))
      if (!known) throw invalidOption(option, part, 'queues (mail,reports) or their weights (mail=3,reports=1)')
      return [checkName(queue, option), weight === undefined ? 1 : Number(weight)] as const
    })
    return Object.fromEntries(parts)
  }
}

export const PRIORITY_WORDS = `critical, high, normal, low, or 0 to ${PRIORITY_LEVELS - 1}`
