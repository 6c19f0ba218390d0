/** The parent's side of a worker process: asks, and gets answers. Used by the scenarios. */
import { type ChildProcess, fork } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { WorkerOptions } from '../src/index.js'
import type { Place } from './setting.js'
import type { Drained, Leftovers, Report, Request, Telling } from './worker-process.js'

const MODULE = fileURLToPath(new URL('./worker-process.js', import.meta.url))

type Message =
  | { up: true }
  | { started: [n: number, atUs: number] }
  | { id: number; value?: unknown; error?: undefined }
  | { id: number; error: string }

interface Waiter {
  resolve(value: unknown): void
  reject(error: Error): void
}

export class WorkerChild {
  private readonly waiters = new Map<number, Waiter>()
  private readonly telling = new EventEmitter<{ started: [n: number, atUs: number] }>()
  private asked = 0
  private ended = false

  private constructor(private readonly child: ChildProcess) {
    child.on('message', (message: Message) => this.hear(message))
    child.once('exit', (code, signal) => this.end(`the worker process has ended (${signal ?? `code ${code}`})`))
  }

  /** A process that is up and does nothing yet. */
  static async spawn(): Promise<WorkerChild> {
    // Structured clones carry the numbers of many starts as they are.
    const child = fork(MODULE, [], { serialization: 'advanced', stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    const up = new WorkerChild(child)
    await once(child, 'message')
    return up
  }

  /** One that works in the place, started. */
  static async started(place: Place, options: WorkerOptions = {}, telling: Telling = 'count'): Promise<WorkerChild> {
    const child = await WorkerChild.spawn()
    await child.open(place, options, telling)
    await child.start()
    return child
  }

  async open(
    place: Pick<Place, 'url' | 'schema'>,
    options: WorkerOptions = {},
    telling: Telling = 'count',
  ): Promise<void> {
    await this.ask({ do: 'open', url: place.url, schema: place.schema, options, telling })
  }

  async start(): Promise<void> {
    await this.ask({ do: 'start' })
  }

  /** Runs until the queue is empty; `jobs` only says where the marks of the way are. */
  drain(jobs: number): Promise<Drained> {
    return this.ask({ do: 'drain', jobs }) as Promise<Drained>
  }

  /** Resolves when so many handlers have started since it was opened. */
  async ran(count: number): Promise<void> {
    await this.ask({ do: 'await ran', count })
  }

  report(): Promise<Report> {
    return this.ask({ do: 'report' }) as Promise<Report>
  }

  /** Of one that keeps them: number and instant of each start in turns. */
  starts(): Promise<Float64Array> {
    return this.ask({ do: 'starts' }) as Promise<Float64Array>
  }

  /** Stops the worker and closes its queue; the process stays. */
  stop(): Promise<Report> {
    return this.ask({ do: 'stop' }) as Promise<Report>
  }

  leftovers(): Promise<Leftovers> {
    return this.ask({ do: 'leftovers' }) as Promise<Leftovers>
  }

  /** The next start, of one that tells them at once. */
  async nextStart(): Promise<{ n: number; atUs: number }> {
    const [n, atUs] = (await once(this.telling, 'started')) as [number, number]
    return { n, atUs }
  }

  onStart(listener: (n: number, atUs: number) => void): () => void {
    this.telling.on('started', listener)
    return () => this.telling.off('started', listener)
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (this.ended) return
    const exit = once(this.child, 'exit')
    this.child.kill(signal)
    await exit
  }

  private ask(request: Request): Promise<unknown> {
    const id = ++this.asked
    return new Promise((resolve, reject) => {
      if (this.ended) {
        reject(new Error(`${request.do}: the worker process has ended`))
        return
      }
      this.waiters.set(id, { resolve, reject })
      this.child.send({ id, request })
    })
  }

  private hear(message: Message): void {
    if ('up' in message) return
    if ('started' in message) {
      this.telling.emit('started', ...message.started)
      return
    }
    const waiter = this.waiters.get(message.id)
    this.waiters.delete(message.id)
    if (message.error === undefined) waiter?.resolve(message.value)
    else waiter?.reject(new Error(`in the worker process: ${message.error}`))
  }

  private end(reason: string): void {
    this.ended = true
    for (const waiter of this.waiters.values()) waiter.reject(new Error(reason))
    this.waiters.clear()
  }
}

/** Runs `work` with so many processes, and ends them whatever becomes of it. */
export async function withChildren<T>(count: number, work: (children: WorkerChild[]) => Promise<T>): Promise<T> {
  const children = await Promise.all(Array.from({ length: count }, () => WorkerChild.spawn()))
  try {
    return await work(children)
  } finally {
    await Promise.all(children.map((child) => child.kill()))
  }
}
