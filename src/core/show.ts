/** A value as messages quote it: short, never throwing, whatever it is. Used by every check. */

const SHOWN_LENGTH_MAX = 60

export function show(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return quoted(value)
    case 'bigint':
      return `${cut(String(value))}n`
    case 'function':
      return 'a function'
    case 'object':
      return showObject(value)
    default:
      return Object.is(value, -0) ? '-0' : String(value)
  }
}

function showObject(value: object | null): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'an invalid Date' : 'a Date'
  return 'an object'
}

function quoted(text: string): string {
  return JSON.stringify(cut(text))
}

function cut(text: string): string {
  return text.length <= SHOWN_LENGTH_MAX ? text : `${text.slice(0, SHOWN_LENGTH_MAX)}…`
}

/** `1234567` as people read it in messages: `1,234,567`. */
export function grouped(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+(?!\d))/g, ',')
}
