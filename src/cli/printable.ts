/**
 * Text of others (payloads, errors, names) made safe to print: what could drive a terminal or hide text is shown as an
 * escape. Called for everything that comes out of the store, for people and for scripts alike.
 */

/** Control characters of both blocks, line separators, and those that reorder or hide text; lone surrogates. */
const UNSAFE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\p{Surrogate}/gu
const NEWLINE_AND_TAB = /[\n\t]/
const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** One line. */
export function printable(text: string): string {
  return text.replace(UNSAFE, escaped)
}

/** Several lines: line feeds and tabs stay. */
export function printableLines(text: string): string {
  return text.replace(UNSAFE, (character) => (NEWLINE_AND_TAB.test(character) ? character : escaped(character)))
}

/** JSON for a terminal or a script: means the same as JSON.stringify, and holds no character that drives a terminal. */
export function safeJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, null, indent) ?? 'null'
  // The only control characters left are the line feeds of the indent, which stand outside of strings.
  return text.replace(UNSAFE, (character) => (character === '\n' ? character : unicodeEscape(character)))
}

function escaped(character: string): string {
  return SHORT[character] ?? unicodeEscape(character)
}

function unicodeEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
