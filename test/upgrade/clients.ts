/** Client processes of a test, of this release and of older ones, and what they have written down. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { ClientSettings } from './client-child.js'

const CHILD = fileURLToPath(new URL('./client-child.js', import.meta.url))
/** The client of this tree. */
export const PRESENT = new URL('../../src/index.js', import.meta.url).href

export type ClientSketch = Pick<ClientSettings, 'name' | 'entry' | 'role'> & Partial<ClientSettings>

export class Clients {
  private readonly dir = mkdtempSync(join(tmpdir(), 'leasehold-clients-'))
  private readonly effects = join(this.dir, 'effects.log')
  private readonly running = new Set<ChildProcess>()

  constructor(private readonly store: { url: string; schema: string }) {
    writeFileSync(this.effects, '')
  }

  async start(sketch: ClientSketch): Promise<ChildProcess> {
    const { url, schema } = this.store
    const settings: ClientSettings = { url, schema, effects: this.effects, ...sketch }
    const child = fork(CHILD, [JSON.stringify(settings)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    this.running.add(child)
    child.once('exit', () => this.running.delete(child))
    await Promise.race([once(child, 'message'), died(child, sketch.name)])
    return child
  }

  /** Asks it to end, and waits for that. */
  async stop(child: ChildProcess): Promise<void> {
    const exit = once(child, 'exit')
    child.kill('SIGTERM')
    const [code] = await exit
    if (code !== 0) throw new Error(`a client ended with ${code}`)
  }

  /** What follows these words in the lines of the clients. */
  after(prefix: string): string[] {
    return readFileSync(this.effects, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith(`${prefix} `))
      .map((line) => line.slice(prefix.length + 1))
  }

  /** Resolves when so many more lines of the prefix have come than there are now. */
  async more(prefix: string, count: number): Promise<void> {
    const enough = this.after(prefix).length + count
    while (this.after(prefix).length < enough) await sleep(20)
  }

  async end(): Promise<void> {
    await Promise.all(
      [...this.running].map((child) => {
        child.kill('SIGKILL')
        return once(child, 'exit')
      }),
    )
    rmSync(this.dir, { recursive: true, force: true })
  }
}

async function died(child: ChildProcess, name: string): Promise<never> {
  const [code] = await once(child, 'exit')
  throw new Error(`${name} ended before it was up, with ${code}`)
}
