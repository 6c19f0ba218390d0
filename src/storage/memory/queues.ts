/** Queues and what operators have set on them. A queue is there from its first enqueue, claim or setting on. */
import type { QueueView } from '../storage.js'
import { entryOf } from './entry.js'

export class QueueTable {
  private readonly rows = new Map<string, QueueView>()
  private readonly numbers = new Map<string, number>()

  /** As it is; one that nobody has seen yet has the defaults. */
  get(queue: string): Readonly<QueueView> {
    return this.rows.get(queue) ?? defaults(queue)
  }

  /** For writing: it is there from now on. */
  ensure(queue: string): QueueView {
    return entryOf(this.rows, queue, () => {
      this.numbers.set(queue, this.numbers.size + 1)
      return defaults(queue)
    })
  }

  /** From 1 on, in the order in which they came to be. */
  numberOf(queue: string): number {
    return this.numbers.get(queue)!
  }

  /** By name. */
  all(): QueueView[] {
    return [...this.rows.values()].sort((a, b) => (a.queue < b.queue ? -1 : 1)).map((row) => ({ ...row }))
  }
}

function defaults(queue: string): QueueView {
  return { queue, paused: false, draining: false, order: 'ageing' }
}
