/** Shows how verify gets on: redrawn on a terminal, plain lines elsewhere. Called by verify.ts. */
import { realEnv } from '../../core/env.js'
import { DRILLS, type DrillName } from '../../testing/verify/drill-plan.js'
import { LiveBlock } from '../live-block.js'
import type { Terminal } from '../terminal.js'
import type { DrillProgress } from './play.js'

const BAR_LENGTH = 24
const PLAIN_EVERY_MS = 5_000
const NAME_WIDTH = 10

export class Progress implements DrillProgress {
  private readonly block: LiveBlock
  private readonly startedAt = realEnv.monotonic()
  private readonly drills = new Map<DrillName, string>()
  private judged = 0
  private broken = 0
  private shownAt = Number.NEGATIVE_INFINITY

  constructor(
    private readonly terminal: Terminal,
    private readonly cases: number,
  ) {
    this.block = new LiveBlock(terminal)
  }

  /** Something that happened, and stays to be read. */
  note(text: string): void {
    const line = `${this.terminal.notePaint('dim', this.elapsed())}  ${text}`
    if (this.terminal.redraws) this.block.note(line)
    else this.terminal.note(line)
  }

  /** One case more was judged. */
  caseJudged(verdict: 'kept' | 'broken' | 'not judged'): void {
    this.judged += 1
    if (verdict === 'broken') this.broken += 1
    const now = realEnv.monotonic()
    if (this.terminal.redraws) this.draw([this.bar()])
    else if (now - this.shownAt >= PLAIN_EVERY_MS) {
      this.shownAt = now
      this.note(`${this.judged} of ${this.cases} cases judged${this.brokenWords()}`)
    }
  }

  say(drill: DrillName, text: string): void {
    if (!this.terminal.redraws) this.note(`${drill.padEnd(NAME_WIDTH)}${text}`)
    this.show(drill, text)
  }

  show(drill: DrillName, text: string): void {
    this.drills.set(drill, text)
    if (this.terminal.redraws) this.draw(this.drillLines())
  }

  /** Wipes the redrawn lines out. */
  end(): void {
    this.block.end()
  }

  private draw(lines: string[]): void {
    this.block.show(['', ...lines])
  }

  private bar(): string {
    const { notePaint } = this.terminal
    const full = Math.floor((this.judged / this.cases) * BAR_LENGTH)
    const bar = notePaint('green', '█'.repeat(full)) + notePaint('dim', '░'.repeat(BAR_LENGTH - full))
    return `${this.elapsed()}  ${bar}  ${this.judged} of ${this.cases} cases${this.brokenWords()}`
  }

  private drillLines(): string[] {
    const { notePaint } = this.terminal
    return DRILLS.map((drill, i) => {
      const text = this.drills.get(drill) ?? ''
      const shown = text === 'played' ? notePaint('green', text) : text
      return `${i === 0 ? this.elapsed() : ' '.repeat(6)}  ${drill.padEnd(NAME_WIDTH)}${shown}`
    })
  }

  private brokenWords(): string {
    return this.broken === 0 ? '' : `, ${this.terminal.notePaint('red', `${this.broken} broken`)}`
  }

  private elapsed(): string {
    return `${((realEnv.monotonic() - this.startedAt) / 1_000).toFixed(1)}s`.padStart(6)
  }
}
