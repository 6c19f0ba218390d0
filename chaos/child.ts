/** A process of a run, as those of the demo are; it can also be told things, and frozen before it is killed. Made by the crew. */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Child as DemoChild } from '../src/cli/demo/child.js'

/** For every thread of a frozen process to have stopped. */
const FREEZE_MS_MAX = 500

export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
  /** The end of what it wrote to stderr. */
  errors: string
}

export class Child<Message> extends DemoChild<Message> {
  /** `preload`: modules that run in it before all others, also in its threads. */
  constructor(name: string, script: string, settings: unknown, preload: readonly string[] = []) {
    const url = (path: string): string => new URL(path, import.meta.url).href
    super(
      name,
      url(script),
      settings,
      preload.flatMap((path) => ['--import', url(path)]),
    )
  }

  /** How it ended; undefined while it lives. */
  get exit(): Exit | undefined {
    if (this.alive) return undefined
    return { code: this.process.exitCode, signal: this.process.signalCode, errors: this.errors.trim() }
  }

  send(order: object): void {
    // What it does not read any more it need not.
    if (this.alive && this.process.connected) this.process.send(order, () => {})
  }

  signal(signal: NodeJS.Signals): void {
    // Once it is gone its number may be another's.
    if (this.alive) this.process.kill(signal)
  }

  /** Resolves when it stands still, at whatever point of whatever it was doing. */
  async freeze(): Promise<void> {
    this.signal('SIGSTOP')
    for (let ms = 0; ms < FREEZE_MS_MAX && this.alive && !this.stands(); ms++) await sleep(1)
  }

  private stands(): boolean {
    try {
      // "pid (name) state …"; where there is no such file, a moment has to do.
      const stat = readFileSync(`/proc/${this.process.pid}/stat`, 'utf8')
      return /^\) [TtZX]/.test(stat.slice(stat.lastIndexOf(')')))
    } catch {
      return process.platform !== 'linux'
    }
  }
}
