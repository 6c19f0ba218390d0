/** One worker process: started, heard, told to end, and killed when it does not. Made by crew.ts. */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Env, Timer } from '../../core/env.js'
import type { WorkerStats } from '../../worker/index.js'
import { childEnvironment } from '../demo/child.js'
import type { ProcessMessage, ProcessOrder, ProcessSettings } from './messages.js'

/** Beyond the grace: within a second of it a worker is down, if its main loop answers at all. */
const DRAIN_MARGIN_MS = 6_000
/** Without a grace. */
const END_MS_MAX = 3_000

export type ProcessFailure = Extract<ProcessMessage, { type: 'failed' }>

export interface ProcessEnd {
  code: number | null
  signal: NodeJS.Signals | null
  /** What it said of its end. */
  failure: ProcessFailure | undefined
  stats: WorkerStats | undefined
  livedMs: number
}

export interface ProcessParts {
  readonly env: Env
  readonly settings: ProcessSettings
  readonly graceMs: number
  readonly onMessage: (message: ProcessMessage) => void
  /** It did not end in time. */
  readonly onKilled: (afterMs: number) => void
}

export class WorkerProcess {
  /** It takes jobs. */
  up = false
  readonly ended: Promise<ProcessEnd>
  private readonly child: ChildProcess
  private readonly startedAt: number
  private gone = false
  private failure: ProcessFailure | undefined
  private stats: WorkerStats | undefined
  private patience: Timer | undefined

  constructor(private readonly parts: ProcessParts) {
    this.startedAt = parts.env.monotonic()
    this.child = fork(fileURLToPath(new URL('worker-process.js', import.meta.url)), [], {
      // A session of its own: a Ctrl-C at the terminal is for the supervisor, which tells it to drain, once.
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      env: childEnvironment(parts.settings),
    })
    this.child.on('message', (message) => this.heard(message as ProcessMessage))
    this.ended = new Promise((resolve) => {
      const end = (code: number | null, signal: NodeJS.Signals | null): void => {
        this.gone = true
        this.up = false
        this.patience?.cancel()
        const livedMs = parts.env.monotonic() - this.startedAt
        resolve({ code, signal, failure: this.failure, stats: this.stats, livedMs })
      }
      // Not at its exit: its last words may come after that.
      this.child.on('close', end)
      // It could not be started, or not be told; the second is told by its exit.
      this.child.on('error', () => this.child.pid === undefined && end(null, null))
    })
  }

  get pid(): number | undefined {
    return this.child.pid
  }

  /** Told again it can only hurry. Ends in any case: one that does not obey is killed. */
  order(order: ProcessOrder): void {
    if (this.gone) return
    if (this.child.connected) this.child.send(order, () => {})
    const patienceMs = order === 'end' ? END_MS_MAX : this.parts.graceMs + DRAIN_MARGIN_MS
    this.patience?.cancel()
    this.patience = this.parts.env.timer(patienceMs, () => this.kill(patienceMs))
  }

  private kill(afterMs: number): void {
    // Once it is gone its number may be another's.
    if (this.gone) return
    this.parts.onKilled(afterMs)
    this.child.kill('SIGKILL')
  }

  private heard(message: ProcessMessage): void {
    if (message.type === 'up') this.up = true
    if (message.type === 'failed') this.failure = message
    if (message.type === 'done') this.stats = message.stats
    this.parts.onMessage(message)
  }
}
