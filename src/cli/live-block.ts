/** A few lines that are drawn again and again at the end of a terminal. Called by whatever is watched as it goes on. */
import type { Terminal } from './terminal.js'
import { cutToWidth } from './width.js'

/** Of the line that the cursor is in: a key that was pressed, such as Ctrl-C, has left its mark there. */
const CLEAR = '\r\u001b[2K'
const UP_AND_CLEAR = '\u001b[1A\u001b[2K'
const HIDE_CURSOR = '\u001b[?25l'
const SHOW_CURSOR = '\u001b[?25h'

export class LiveBlock {
  private lines = 0
  private hidden = false

  constructor(private readonly terminal: Pick<Terminal, 'draw' | 'noteWidth' | 'noteHeight' | 'notePaint'>) {}

  /**
   * Draws the lines in place of those before. Each is cut to the terminal, as one that wraps could not be wiped out; so
   * are those that would scroll away, for the same reason.
   */
  show(lines: readonly string[]): void {
    const width = this.terminal.noteWidth() - 1
    const cut = this.fitting(lines).map((line) => cutToWidth(line, width))
    const hide = this.hidden ? '' : HIDE_CURSOR
    this.hidden = true
    this.terminal.draw(`${hide}${this.wiping()}${cut.map((line) => `${line}\n`).join('')}`)
    this.lines = cut.length
  }

  /** A line that stays, above the block. */
  note(line: string): void {
    this.terminal.draw(`${this.wiping()}${line}\n`)
    this.lines = 0
  }

  /** Wipes the block out and gives the cursor back. */
  end(): void {
    if (!this.hidden) return
    this.terminal.draw(`${this.wiping()}${SHOW_CURSOR}`)
    this.lines = 0
    this.hidden = false
  }

  /** Leaves what was drawn last, and gives the cursor back. */
  leave(): void {
    if (!this.hidden) return
    this.terminal.draw(`${CLEAR}${SHOW_CURSOR}`)
    this.lines = 0
    this.hidden = false
  }

  private fitting(lines: readonly string[]): readonly string[] {
    const room = this.terminal.noteHeight() - 1
    if (lines.length <= room) return lines
    const left = lines.length - room + 1
    return [...lines.slice(0, room - 1), this.terminal.notePaint('dim', `… ${left} lines more`)]
  }

  private wiping(): string {
    return `${CLEAR}${UP_AND_CLEAR.repeat(this.lines)}`
  }
}
