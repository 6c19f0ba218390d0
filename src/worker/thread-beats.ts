/** Starts, feeds, restarts and ends the thread that beats. Called by heartbeat.ts where the store has a beat source. */
import { Worker as Thread } from 'node:worker_threads'
import type { Timer } from '../core/env.js'
import { jittered } from '../core/polling.js'
import type { BeatSource } from '../storage/storage.js'
import { type Beats, type BeatsParts, inlineBeats } from './beats.js'
import type { ThreadData, ToMain, ToThread } from './heartbeat-thread.js'

const RESTART_MS = 200
/** Threads that die so often in a row without a word cannot work here (a bundle without the file, no memory). */
const SILENT_DEATHS_MAX = 3
/** For the thread to close its connection; then it is terminated. */
const STOP_MS_MAX = 500

export class ThreadBeats implements Beats {
  private thread: Thread | undefined
  /** Beats go inline once threads have turned out not to work. */
  private inline: Beats | undefined
  private restart: Timer | undefined
  private silentDeaths = 0
  private stopped = false

  constructor(
    private readonly parts: BeatsParts,
    private readonly source: BeatSource,
  ) {}

  start(): void {
    const { module, data } = this.source
    const workerData: ThreadData = { module, data, beatMs: this.parts.beatMs, resume: this.parts.resume() }
    const thread = new Thread(new URL('./heartbeat-thread.js', import.meta.url), { workerData })
    // A worker that was forgotten must not keep its process alive.
    thread.unref()
    thread.on('message', (message: ToMain) => this.heard(thread, message))
    thread.on('error', (error) => this.parts.tell({ type: 'failed', error }))
    thread.on('exit', () => this.died(thread))
    this.thread = thread
  }

  now(): void {
    if (this.inline) this.inline.now()
    else if (this.thread) post(this.thread, { type: 'now' })
  }

  async stop(): Promise<void> {
    this.stopped = true
    this.restart?.cancel()
    await this.inline?.stop()
    const { thread } = this
    this.thread = undefined
    if (!thread) return
    const ended = new Promise<void>((resolve) => thread.once('exit', () => resolve()))
    post(thread, { type: 'stop' })
    const patience = this.parts.env.timer(STOP_MS_MAX, () => void thread.terminate())
    // Waiting for it has to hold the process, or it would end with the connection half open.
    thread.ref()
    await ended
    patience.cancel()
  }

  private heard(thread: Thread, message: ToMain): void {
    if (this.stopped) return
    if (message.type === 'ask') post(thread, { type: 'snapshot', snapshot: this.parts.snapshot() })
    else {
      this.silentDeaths = 0
      this.parts.tell(message.told)
    }
  }

  private died(thread: Thread): void {
    if (this.stopped || this.thread !== thread) return
    this.thread = undefined
    this.silentDeaths += 1
    if (this.silentDeaths >= SILENT_DEATHS_MAX) {
      this.inline = inlineBeats(this.parts)
      this.inline.start()
      return
    }
    this.parts.tell({ type: 'failed', error: new Error('the thread that beats ended; another one is started') })
    this.restart = this.parts.env.timer(jittered(RESTART_MS, this.parts.env.random()), () => this.start())
  }
}

function post(thread: Thread, message: ToThread): void {
  thread.postMessage(message)
}
