/** Shows how a demo goes: redrawn on a terminal, a plain line every two seconds elsewhere. Called by the scenario. */
import type { Env } from '../../core/env.js'
import { grouped } from '../../core/show.js'
import { LiveBlock } from '../live-block.js'
import type { Terminal } from '../terminal.js'
import type { DemoWorker } from './stage.js'

export interface DemoCounts {
  ready: number
  delayed: number
  retrying: number
  running: number
  dead: number
  /** Neither completed nor dead. */
  left: number
  ended: number
}

const PLAIN_EVERY_MS = 2_000
const BAR_LENGTH = 30

export class Progress {
  private readonly block: LiveBlock
  private readonly startedAt: number
  private shownAt = Number.NEGATIVE_INFINITY

  constructor(
    private readonly terminal: Terminal,
    private readonly env: Env,
    private readonly jobs: number,
  ) {
    this.block = new LiveBlock(terminal)
    this.startedAt = env.monotonic()
  }

  /** Something that happened, and stays to be read. */
  note(text: string): void {
    const line = `${this.terminal.notePaint('dim', this.elapsed())}  ${text}`
    if (this.terminal.redraws) this.block.note(line)
    else this.terminal.note(line)
  }

  show(counts: DemoCounts, workers: readonly DemoWorker[]): void {
    if (this.terminal.redraws) this.block.show(this.lines(counts, workers))
    else this.plain(counts)
  }

  /** Wipes the redrawn lines out; what comes next stands apart. */
  end(): void {
    this.block.end()
    this.terminal.note('')
  }

  private lines(counts: DemoCounts, workers: readonly DemoWorker[]): string[] {
    const { notePaint } = this.terminal
    const share = counts.ended / this.jobs
    const full = Math.min(BAR_LENGTH, Math.floor(share * BAR_LENGTH))
    const bar = notePaint('green', '█'.repeat(full)) + notePaint('dim', '░'.repeat(BAR_LENGTH - full))
    return [
      '',
      `${this.elapsed()}  ${bar}  ${grouped(counts.ended)} of ${grouped(this.jobs)} ended`,
      `        ${waitingWords(counts)}`,
      ...workers.map((worker) => `        ${this.workerLine(worker)}`),
    ]
  }

  private workerLine({ name, alive, endExpected, last }: DemoWorker): string {
    const { notePaint } = this.terminal
    const done = `${grouped(last?.completed ?? 0)} completed`.padEnd(16)
    if (!alive) return `${name}  ${done} ${notePaint('dim', 'gone')}`
    if (endExpected) return `${name}  ${done} ${notePaint('yellow', 'draining')}`
    return `${name}  ${done} ${last?.running ?? 0} running`
  }

  private plain(counts: DemoCounts): void {
    const now = this.env.monotonic()
    if (now - this.shownAt < PLAIN_EVERY_MS) return
    this.shownAt = now
    this.terminal.note(
      `${this.elapsed()}  ${grouped(counts.ended)} of ${grouped(this.jobs)} ended; ${waitingWords(counts)}`,
    )
  }

  private elapsed(): string {
    return `${((this.env.monotonic() - this.startedAt) / 1_000).toFixed(1)}s`.padStart(6)
  }
}

function waitingWords({ ready, running, delayed, retrying, dead }: DemoCounts): string {
  return `${ready} ready  ${running} running  ${delayed} delayed  ${retrying} retrying  ${dead} dead`
}
