/** The lives of operators: people and scripts who steer jobs and queues while all else goes on. Called by the simulation. */
import { Queue } from '../../client/queue.js'
import { QueueError } from '../../core/errors.js'
import { Draws } from './draws.js'
import { connectionOf, type Life, type LifeParts } from './lives.js'

/** What an operator may do, and how often beside the others. */
const ACTS = {
  cancel: 4,
  retry: 2,
  redrive: 3,
  discard: 1,
  pause: 2,
  drain: 1,
  purge: 0.3,
  order: 0.5,
  bulk: 0.5,
  look: 2,
} as const
type Act = keyof typeof ACTS

const SHUT_MS_MAX = 8_000
/** What was sent before the storm ended has come to the store by then, stalled or not. */
const SETTLED_MS = 15_000
const RESUME_MS = 500
const ORDERS = ['ageing', 'strict', 'weighted'] as const

export class OperatorLife implements Life {
  readonly process: LifeParts['process']
  readonly link: LifeParts['link']
  private readonly queue: Queue
  private readonly draws: Draws

  constructor(
    private readonly parts: LifeParts,
    private readonly stormLeftMs: () => number,
  ) {
    this.process = parts.process
    this.link = parts.link
    this.queue = new Queue(connectionOf(this.process, this.link, parts.record))
    this.draws = new Draws(parts.configuration.seed).fork('acts', this.process.name)
  }

  /** Acts while the storm lasts; then opens every queue, for whoever was killed before he could. */
  async run(): Promise<void> {
    const gapMs = 60_000 / this.parts.configuration.actsPerMinute
    while (this.stormLeftMs() > 0) {
      await this.process.sleep(Math.min(this.stormLeftMs() + 1, this.draws.between(0, 2 * gapMs)))
      if (this.stormLeftMs() > 0) await this.act(this.draws.weighted(ACTS)).catch(onlyOfStore)
    }
    await this.process.sleep(SETTLED_MS)
    for (const { name } of this.parts.configuration.queues) await this.open(name)
    await this.queue.close()
  }

  async stop(): Promise<void> {}

  private async act(act: Act): Promise<void> {
    const { queue, draws } = this
    const name = draws.pick(this.parts.configuration.queues).name
    switch (act) {
      case 'cancel':
        await queue.cancel(this.some())
        return
      case 'retry':
        await queue.retry(await this.waiting(name))
        return
      case 'redrive':
        await queue.redrive(await this.dead(name), { force: draws.chance(0.1) })
        return
      case 'discard':
        await queue.discard(await this.dead(name))
        return
      case 'pause':
        return this.shut(name, () => queue.pause(name))
      case 'drain':
        return this.shut(name, () => queue.drain(name, { timeout: draws.whole(1, SHUT_MS_MAX) }))
      case 'purge':
        await queue.purge(name)
        return
      case 'order':
        await queue.order(name, draws.pick(ORDERS))
        return
      case 'bulk':
        return this.bulk(name)
      case 'look':
        await Promise.all([queue.counts(name), queue.workers(), queue.deadGroups({ queue: name }), queue.queues()])
    }
  }

  /** By a filter, in batches. */
  private async bulk(queue: string): Promise<void> {
    const how = this.draws.pick(['cancel', 'retry', 'redrive', 'discard'] as const)
    if (how === 'cancel') await this.queue.cancelAll({ queue, kind: 'sim.plain' })
    else if (how === 'retry') await this.queue.retryAll({ queue })
    else if (how === 'redrive') await this.queue.redriveAll({ queue, reason: 'failed' })
    else await this.queue.discardAll({ queue, reason: 'expired' })
  }

  /** Of the jobs that anybody was told of: they may be anywhere by now. */
  private some(): string[] {
    const { known } = this.parts.record
    return Array.from({ length: Math.min(known.length, this.draws.whole(1, 4)) }, () => this.draws.pick(known))
  }

  private async waiting(queue: string): Promise<string[]> {
    const page = await this.queue.list({ state: this.draws.pick(['delayed', 'retrying'] as const), queue, limit: 3 })
    return [...page.jobs.map(({ id }) => id), ...this.some().slice(0, 1)]
  }

  private async dead(queue: string): Promise<string[]> {
    const page = await this.queue.list({ state: 'dead', queue, limit: this.draws.whole(1, 4) })
    return page.jobs.map(({ id }) => id)
  }

  private async shut(name: string, how: () => Promise<void>): Promise<void> {
    try {
      await how()
      await this.process.sleep(this.draws.between(0, SHUT_MS_MAX))
    } finally {
      await this.queue.resume(name)
    }
  }

  private async open(name: string): Promise<void> {
    for (;;) {
      try {
        await this.queue.resume(name)
        return
      } catch (error) {
        onlyOfStore(error)
        await this.process.sleep(RESUME_MS)
      }
    }
  }
}

/** What a store in trouble, or a drain that took too long, tells an operator. Anything else is a fault. */
function onlyOfStore(error: unknown): void {
  const expected = error instanceof QueueError && ['STORE_UNAVAILABLE', 'WAIT_TIMEOUT'].includes(error.code)
  if (!expected) throw error
}
