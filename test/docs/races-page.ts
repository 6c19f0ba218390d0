/** The parts of docs/races.md that are made from the races themselves. Used by races.test.ts, and by write-races.ts, which writes them. */

import {
  allPairs,
  EXPLAINED,
  key,
  meetingOf,
  metPairs,
  OPERATIONS,
  OWN,
  orderOf,
  ownPairs,
  type Pair,
} from '../postgres/races/matrix.js'
import type { Meeting } from '../postgres/races/meeting.js'
import { MEETINGS } from '../postgres/races/meetings.js'
import { table } from './table.js'

/** Played by a table, by a test of its own; explained; committed whole; nothing in common. */
const MARKS = { table: '●', own: '◆', sees: '·', apart: '' }

/** Takes the same rows, and is not explained: the orders that are not played. */
export function unplayed(played: ReadonlySet<string>): string[] {
  const explained = new Set(EXPLAINED.flatMap(({ pairs }) => pairs.map(key)))
  const open = allPairs().filter((pair) => meetingOf(pair) === 'takes' && !explained.has(key(pair)))
  const orders = new Set(open.flatMap(([one, other]) => [orderOf([one, other]), orderOf([other, one])]))
  return [...orders].filter((order) => !played.has(order))
}

function cell(pair: Pair): string {
  if (metPairs().has(key(pair))) return MARKS.table
  if (ownPairs().has(key(pair))) return MARKS.own
  const at = EXPLAINED.findIndex(({ pairs }) => pairs.some((one) => key(one) === key(pair)))
  if (at >= 0) return String(at + 1)
  return meetingOf(pair) === 'apart' ? MARKS.apart : MARKS.sees
}

export function grid(): string {
  const names = Object.keys(OPERATIONS)
  const rows = names.map((one, at) => [one, ...names.map((other, n) => (n < at ? '' : cell([one, other])))])
  return table(['', ...names], rows)
}

export function explanations(): string {
  return EXPLAINED.map(({ why }, at) => `${at + 1}. ${why}`).join('\n')
}

export function meetingTables(): string {
  return Object.entries(MEETINGS)
    .map(([place, all]) => `### ${TITLES[place]}\n\n${meetingTable(all)}`)
    .join('\n\n')
}

const TITLES: Readonly<Record<string, string>> = {
  ready: 'A job that is ready',
  delayed: 'A job that is delayed, and due',
  leased: 'A job that a worker holds',
  dead: 'A dead letter',
}

function meetingTable(all: readonly Meeting[]): string {
  const rows = all.map(({ first, second, meets, then, held, again }) => [
    first,
    second,
    meets,
    said(then),
    held === undefined ? '' : `${said(held)}${again === undefined ? '' : `; the next time ${said(again)}`}`,
  ])
  return table(
    ['first', 'second', 'meets', 'what the second says, and where the job is', 'while the first is open'],
    rows,
  )
}

function said([word, state]: readonly [string, string]): string {
  return `\`${word}\`, ${state}`
}

export function ownTable(): string {
  const rows = Object.entries(OWN).map(([name, pairs]) => [pairs.map(([a, b]) => `${a}, ${b}`).join('; '), `_${name}_`])
  return table(['who', 'test'], rows)
}

/** The made parts, by the name of their mark in the page. */
export const PARTS: Readonly<Record<string, () => string>> = {
  matrix: grid,
  explanations,
  meetings: meetingTables,
  own: ownTable,
}

/** The page with its made parts replaced by those of today. */
export function remade(page: string): string {
  return Object.entries(PARTS).reduce((text, [name, make]) => {
    const [open, close] = [`<!-- made: ${name} -->`, `<!-- end: ${name} -->`]
    const [before, rest] = [text.slice(0, text.indexOf(open)), text.slice(text.indexOf(close))]
    if (!text.includes(open) || !text.includes(close)) throw new Error(`docs/races.md has no place for ${name}`)
    return `${before}${open}\n\n${make()}\n\n${rest}`
  }, page)
}
