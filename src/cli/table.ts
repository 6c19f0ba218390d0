/** Tables for people: no lines, as wide as the terminal, whole where there is none. Called by the lists. */
import Table from 'cli-table3'
import type { Paint } from './paint.js'
import { cutToWidth, widthOf } from './width.js'

export interface Column<Row> {
  head: string
  /** Safe to print; see printable.ts. */
  cell: (row: Row) => string
  align?: 'right'
  /** The last such column takes what the others leave, and is cut to it. */
  flexible?: true
  /** Left out on terminals narrower than this. */
  fromWidth?: number
  colour?: (row: Row) => Parameters<Paint>[0] | undefined
}

export interface TableView {
  /** Undefined: nothing is cut or left out. */
  width: number | undefined
  paint: Paint
}

const GAP = 2
const FLEXIBLE_WIDTH_MIN = 12
const WIDTH_MAX = 400

const NO_LINES = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '',
}

/** Lines below a row, for what its columns have no room for; safe to print, and no wider than the terminal. */
export type Below<Row> = (row: Row) => readonly string[]

/** As cards, one fact a line, where the terminal is too narrow for the columns. */
export function table<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  view: TableView,
  below: Below<Row> = () => [],
): string {
  const { width, paint } = view
  const shown = columns.filter(({ fromWidth }) => width === undefined || fromWidth === undefined || width >= fromWidth)
  const cells = rows.map((row) => shown.map(({ cell }) => cell(row)))
  const colWidths = widths(shown, cells, width)
  if (colWidths === 'too wide') return cards(shown, cells, rows, view, below)
  const drawn = new Table({
    chars: NO_LINES,
    style: { 'padding-left': 0, 'padding-right': GAP, head: [], border: [] },
    head: shown.map(({ head }) => paint('dim', head)),
    colAligns: shown.map(({ align }) => align ?? 'left'),
    colWidths,
  })
  cells.forEach((line, at) => {
    drawn.push(line.map((text, column) => painted(text, shown[column]!, rows[at]!, paint)))
  })
  // The first line is the head, and each row is one line.
  const lines = drawn.toString().split('\n')
  return lines.flatMap((line, at) => [line.trimEnd(), ...(at === 0 ? [] : below(rows[at - 1]!))]).join('\n')
}

function painted<Row>(text: string, column: Column<Row>, row: Row, paint: Paint): string {
  const colour = column.colour?.(row)
  return colour === undefined ? text : paint(colour, text)
}

/** Null: as wide as its text. The last flexible column takes what the others leave. */
function widths<Row>(
  columns: readonly Column<Row>[],
  cells: readonly string[][],
  width: number | undefined,
): (number | null)[] | 'too wide' {
  if (width === undefined) return columns.map(() => null)
  const flexibleAt = columns.findLastIndex(({ flexible }) => flexible)
  const natural = columns.map(({ head }, at) => widest([head, ...cells.map((line) => line[at]!)]) + GAP)
  // The gap after the last column may hang over the edge: it is trimmed.
  const room = width + GAP
  const others = natural.reduce((sum, own, at) => sum + (at === flexibleAt ? 0 : own), 0)
  if (others + (flexibleAt < 0 ? 0 : Math.min(natural[flexibleAt]!, FLEXIBLE_WIDTH_MIN)) > room) return 'too wide'
  const left = Math.min(room - others, natural[flexibleAt] ?? 0, WIDTH_MAX)
  return columns.map((_, at) => (at === flexibleAt ? left : null))
}

function widest(texts: string[]): number {
  return texts.reduce((most, text) => Math.max(most, widthOf(text)), 0)
}

function cards<Row>(
  columns: readonly Column<Row>[],
  cells: readonly string[][],
  rows: readonly Row[],
  { width = WIDTH_MAX, paint }: TableView,
  below: Below<Row>,
): string {
  const headWidth = widest(columns.map(({ head }) => head)) + GAP
  const lineOf = (text: string, column: Column<Row>, row: Row): string => {
    const head = paint('dim', column.head.padEnd(headWidth))
    if (headWidth + widthOf(text) <= width) return `${head}${painted(text, column, row, paint)}`
    if (column.flexible) return `${head}${painted(cutToWidth(text, width - headWidth), column, row, paint)}`
    return `${head.trimEnd()}\n${' '.repeat(GAP)}${painted(text, column, row, paint)}`
  }
  return cells
    .map((line, at) => {
      const facts = line.flatMap((text, column) => (text === '' ? [] : [lineOf(text, columns[column]!, rows[at]!)]))
      return [...facts, ...below(rows[at]!)].join('\n')
    })
    .join('\n\n')
}
