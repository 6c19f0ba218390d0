/** Queues and what operators have set on them. A queue is there from its first enqueue, claim or setting on. */
import { type Bucket, NO_LIMITS } from '../../core/limits.js'
import type { QueueView } from '../storage.js'
import { entryOf } from './entry.js'

/** A queue, and how full the buckets of its rate and of its intake are. */
export interface QueueRow extends QueueView {
  starts: Bucket
  arrivals: Bucket
}

export const FULL: Bucket = Object.freeze({ takenUntil: Number.NEGATIVE_INFINITY })

export class QueueTable {
  private readonly rows = new Map<string, QueueRow>()
  private readonly numbers = new Map<string, number>()

  /** As it is; one that nobody has seen yet has the defaults. */
  get(queue: string): Readonly<QueueRow> {
    return this.rows.get(queue) ?? defaults(queue)
  }

  /** For writing: it is there from now on. */
  ensure(queue: string): QueueRow {
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
    const rows = [...this.rows.values()].sort((a, b) => (a.queue < b.queue ? -1 : 1))
    return rows.map(({ starts: _, arrivals: __, ...view }) => structuredClone(view))
  }
}

function defaults(queue: string): QueueRow {
  return {
    queue,
    paused: false,
    draining: false,
    order: 'ageing',
    limits: { ...NO_LIMITS },
    starts: FULL,
    arrivals: FULL,
  }
}
