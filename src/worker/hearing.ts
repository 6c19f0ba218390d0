/** Hints that there may be work: from the store, and from this very process. Feeds the fetcher; run by session.ts. */
import type { Connection } from '../storage/connection.js'
import type { Fetcher } from './fetcher.js'
import type { StoreCalls } from './store-calls.js'

export class Hearing {
  private readonly stopping = new AbortController()
  private readonly queues: ReadonlySet<string>
  private endLocal: () => void = () => {}
  private listening: Promise<void> = Promise.resolve()
  /** Of the newest try to listen. */
  private end: (() => Promise<void>) | undefined
  private tries = 0

  constructor(
    private readonly connection: Connection,
    private readonly calls: StoreCalls,
    queues: readonly string[],
    private readonly fetcher: Fetcher,
  ) {
    this.queues = new Set(queues)
  }

  start(): void {
    this.endLocal = this.connection.hints.on((queue) => {
      if (this.queues.has(queue)) this.fetcher.hint()
    })
    this.listening = this.listen()
  }

  async stop(): Promise<void> {
    this.stopping.abort()
    this.endLocal()
    await this.listening
    await this.hush()
  }

  /** Until a first hint was heard, and where the store cannot tell, polling is all there is. */
  private async listen(): Promise<void> {
    const { wake } = this.connection.storage
    if (!wake) return
    try {
      const heard = (): void => {
        if (!this.stopping.signal.aborted) this.fetcher.hint('store')
      }
      const deaf = (): void => {
        if (!this.stopping.signal.aborted) this.fetcher.deaf()
      }
      const listen = (): Promise<() => Promise<void>> => wake.listen([...this.queues], heard, deaf)
      await this.calls.repeated('listen', () => this.listenOnce(listen), this.stopping.signal)
    } catch {
      // Stopped first, or a store that refuses to listen (a pooler): polling stays.
    }
  }

  /** One that is answered when it was given up already is ended: nobody else would, and its connection would stay. */
  private async listenOnce(listen: () => Promise<() => Promise<void>>): Promise<void> {
    const number = ++this.tries
    void this.hush()
    const end = await listen()
    if (number === this.tries && !this.stopping.signal.aborted) this.end = end
    else await end().catch(() => {})
  }

  private async hush(): Promise<void> {
    const { end } = this
    this.end = undefined
    if (end) await this.calls.once(end).catch(() => {})
  }
}
