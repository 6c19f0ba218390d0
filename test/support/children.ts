/** Worker processes of a test: started, killed by their own id, and gone when the test ends. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { WorkerHealth } from '../../src/index.js'
import type { ChildSettings } from '../process/worker-child.js'

const CHILD = fileURLToPath(new URL('../process/worker-child.js', import.meta.url))

export class Children {
  private readonly dir = mkdtempSync(join(tmpdir(), 'leasehold-children-'))
  readonly effects = join(this.dir, 'effects.log')
  private readonly running = new Set<ChildProcess>()

  constructor(private readonly store: { url: string; schema: string }) {
    writeFileSync(this.effects, '')
  }

  async start(options: Record<string, unknown> = {}): Promise<ChildProcess> {
    const { url, schema } = this.store
    const settings: ChildSettings = { url, schema, effects: this.effects, options }
    const child = fork(CHILD, [JSON.stringify(settings)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    this.running.add(child)
    child.once('exit', () => this.running.delete(child))
    const gone = once(child, 'exit').then(([code, signal]) => {
      throw new Error(`a process ended before it was up (${code ?? signal})`)
    })
    gone.catch(() => {})
    await Promise.race([once(child, 'message'), gone])
    return child
  }

  /** Starts a new one whenever one is gone, as a supervisor does, until `stop`. */
  async keep(count: number, options: Record<string, unknown> = {}): Promise<() => void> {
    let on = true
    const again = async (): Promise<void> => {
      const child = await this.start(options).catch((error: Error) => {
        if (on) throw error
      })
      child?.once('exit', () => on && void again())
    }
    await Promise.all(Array.from({ length: count }, again))
    return () => {
      on = false
    }
  }

  async kill(child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL'): Promise<number | null> {
    const exit = once(child, 'exit')
    child.kill(signal)
    return ((await exit) as [number | null])[0]
  }

  /** What the worker of that process says of itself. */
  async health(child: ChildProcess): Promise<WorkerHealth> {
    const answer = once(child, 'message')
    child.send('health')
    return ((await answer) as [WorkerHealth])[0]
  }

  lines(prefix = ''): string[] {
    return readFileSync(this.effects, 'utf8')
      .split('\n')
      .filter((line) => line !== '' && line.startsWith(prefix))
  }

  /** Resolves when the file holds so many lines of the prefix. */
  async until(prefix: string, count: number): Promise<string[]> {
    for (;;) {
      const lines = this.lines(prefix)
      if (lines.length >= count) return lines
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  async end(): Promise<void> {
    const all = [...this.running]
    await Promise.all(all.map((child) => this.kill(child)))
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 20 })
  }
}
