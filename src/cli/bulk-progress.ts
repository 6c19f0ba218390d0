/** How a bulk change goes on: redrawn on a terminal, a line now and then elsewhere. Called by bulk.ts. */
import { formatDuration } from '../core/duration.js'
import type { Env } from '../core/env.js'
import { grouped } from '../core/show.js'
import { LiveBlock } from './live-block.js'
import type { Terminal } from './terminal.js'

const REDRAW_MS = 100
/** Where nobody watches: enough for a log that is read later. */
const LINE_MS = 30_000
const BAR_LENGTH = 20

export class BulkProgress {
  private readonly block: LiveBlock
  private readonly startedAt: number
  private shownAt: number

  constructor(
    private readonly terminal: Terminal,
    private readonly env: Env,
    /** `redriven`; and how many there are to do, where they were counted. */
    private readonly facts: { word: string; total: number | undefined },
  ) {
    this.block = new LiveBlock(terminal)
    this.startedAt = env.monotonic()
    // The first line of a log comes after a while, the first drawing at once.
    this.shownAt = terminal.redraws ? Number.NEGATIVE_INFINITY : this.startedAt
  }

  show(done: number): void {
    const { terminal, env } = this
    const now = env.monotonic()
    if (now - this.shownAt < (terminal.redraws ? REDRAW_MS : LINE_MS)) return
    this.shownAt = now
    if (terminal.redraws) this.block.show([this.line(done, now)])
    else terminal.note(this.line(done, now))
  }

  end(): void {
    this.block.end()
  }

  private line(done: number, now: number): string {
    const { word, total } = this.facts
    const seconds = (now - this.startedAt) / 1_000
    const perSecond = done / Math.max(0.001, seconds)
    const pace = seconds < 1 ? '' : `  ${grouped(Math.round(perSecond))}/s`
    if (total === undefined || total === 0) return `${grouped(done)} ${word}${pace}`
    const leftMs = ((total - done) / Math.max(0.001, perSecond)) * 1_000
    const left = seconds < 1 || done >= total ? '' : `  ${formatDuration(leftMs)} left`
    return `${this.bar(done / total)}${grouped(done)} of ${grouped(total)} ${word}${pace}${left}`
  }

  private bar(share: number): string {
    const { redraws, notePaint } = this.terminal
    if (!redraws) return ''
    const full = Math.min(BAR_LENGTH, Math.floor(share * BAR_LENGTH))
    return `${notePaint('green', '█'.repeat(full))}${notePaint('dim', '░'.repeat(BAR_LENGTH - full))}  `
  }
}
