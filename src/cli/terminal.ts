/**
 * Where a command speaks: the answer goes to stdout, whatever is meant for people beside it to stderr. Made by main,
 * handed to every command.
 */
import { type Paint, paintFor } from './paint.js'

export interface Terminal {
  /** Scripts read the answer: one JSON document (or JSON lines) on stdout. */
  readonly json: boolean
  /** Errors are shown with their stacks. */
  readonly verbose: boolean
  /** Columns of stdout. Undefined where it is no terminal: then nothing is cut. */
  readonly width: number | undefined
  /** Whether somebody sits at stdin and can be asked. */
  readonly asks: boolean
  /** Whether stderr can be drawn on again and again. */
  readonly redraws: boolean
  /** For stdout. */
  readonly paint: Paint
  /** For stderr. */
  readonly notePaint: Paint
  /** A line (or several) of the answer. */
  answer(text: string): void
  /** A line for people, also where scripts read the answer. */
  note(text: string): void
  /** Raw text to stderr, for redraws. */
  draw(text: string): void
  /** Columns of stderr. */
  noteWidth(): number
  /** Lines of stderr. */
  noteHeight(): number
}

const WIDTH_MIN = 40
const WIDTH_UNKNOWN = 80
const HEIGHT_MIN = 4
const HEIGHT_UNKNOWN = 24

export function realTerminal(given: { json: boolean; verbose: boolean }, host: NodeJS.Process = process): Terminal {
  const { stdout, stderr, stdin, env } = host
  return {
    ...given,
    width: stdout.isTTY ? Math.max(WIDTH_MIN, stdout.columns || WIDTH_UNKNOWN) : undefined,
    asks: stdin.isTTY === true && stderr.isTTY === true,
    redraws: stderr.isTTY === true && env.TERM !== 'dumb',
    paint: paintFor(stdout, env),
    notePaint: paintFor(stderr, env),
    answer: (text) => void stdout.write(`${text}\n`),
    note: (text) => void stderr.write(`${text}\n`),
    draw: (text) => void stderr.write(text),
    noteWidth: () => Math.max(WIDTH_MIN, stderr.columns || WIDTH_UNKNOWN),
    noteHeight: () => Math.max(HEIGHT_MIN, stderr.rows || HEIGHT_UNKNOWN),
  }
}
