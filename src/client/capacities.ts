/** What queues have to do, asked for once a second at most. Called by the queue, and before enqueues that depend on it. */
import { drainPerSecond, expectedWaitMs } from '../core/capacity.js'
import { name } from '../core/options.js'
import type { Connection } from '../storage/connection.js'
import type { CapacityFacts, Count } from '../storage/storage.js'
import { need } from './need.js'

/** For so long an answer is used again. What this process sends meanwhile is added to it. */
export const CAPACITY_MS = 1_000
/** An enqueue waits for no longer than this to learn it; then nothing is known. */
const PATIENCE_MS = 2_000
/** Queues that are remembered: a program that makes names of its own must not fill the memory by it. */
const QUEUES_MAX = 1_000

/** What a queue has to do, and how fast. Durations in milliseconds. */
export interface Capacity {
  queue: string
  /** Workers that are alive and serve the queue. */
  workers: number
  /** Their slots, also where they serve other queues, and how many of them were taken at the last beats. */
  slots: number
  busy: number
  /** Jobs that are ready, and all that wait: delayed and retrying ones, too. */
  ready: Count
  depth: Count
  /** How many may wait; null: no limit. */
  depthLimit: number | null
  /** Jobs completed each second, by records of the last minute, 200 at most; null when there is none. */
  drainPerSecond: number | null
  /** How long a job that comes now would wait for its start; null when nobody knows. */
  expectedWaitMs: number | null
}

interface Known {
  facts: CapacityFacts | undefined
  /** By the monotonic clock. */
  at: number
  /** What this process has sent since, and the facts do not count. */
  sent: number
}

export class Capacities {
  private readonly known = new Map<string, Known>()
  private readonly asking = new Map<string, Promise<Known>>()

  constructor(private readonly connection: Connection) {}

  /** As it is now. */
  async capacity(queue: string): Promise<Capacity> {
    const facts = await this.facet('asking for the capacity of a queue').capacity(name(queue, 'queue'))
    const { workers, slots, busy, ready, depth, drained, limits } = facts
    return {
      queue,
      workers,
      slots,
      busy,
      ready,
      depth,
      depthLimit: limits.depth?.limit ?? null,
      drainPerSecond: drainPerSecond(drained),
      expectedWaitMs: waitMs(facts, 0),
    }
  }

  /** How long a job would wait, by what was known within the last second; null when nobody knows. */
  wait(queue: string): number | null | Promise<number | null> {
    const known = this.fresh(queue)
    return known instanceof Promise ? known.then(waitOf) : waitOf(known)
  }

  /** How much of the depth limit is taken, from 0 to 1; 0 where there is none. */
  async fullness(queue: string): Promise<number> {
    const { facts, sent } = await this.fresh(queue)
    const limit = facts?.limits.depth?.limit
    return facts === undefined || limit === undefined ? 0 : Math.min(1, (facts.depth.count + sent) / limit)
  }

  /** A job is on its way there. */
  sending(queue: string): void {
    const known = this.known.get(queue)
    if (known !== undefined) known.sent += 1
  }

  private fresh(queue: string): Known | Promise<Known> {
    const known = this.known.get(queue)
    if (known !== undefined && this.connection.env.monotonic() - known.at < CAPACITY_MS) return known
    let asking = this.asking.get(queue)
    if (asking === undefined) {
      asking = this.ask(queue).finally(() => this.asking.delete(queue))
      this.asking.set(queue, asking)
    }
    return asking
  }

  /** A store that does not answer is not said to be slow: the enqueue itself will tell what is wrong with it. */
  private async ask(queue: string): Promise<Known> {
    const { env } = this.connection
    const inspect = this.facet('an expected wait')
    const answered = new AbortController()
    const unknown = env.sleep(PATIENCE_MS, answered.signal).then(() => undefined)
    const facts = await Promise.race([inspect.capacity(queue).catch(() => undefined), unknown])
    answered.abort()
    const known = { facts, at: env.monotonic(), sent: 0 }
    if (this.known.size >= QUEUES_MAX) this.known.clear()
    this.known.set(queue, known)
    return known
  }

  private facet(purpose: string) {
    return need(this.connection.storage, 'inspect', purpose)
  }
}

function waitOf({ facts, sent }: Known): number | null {
  return facts === undefined ? null : waitMs(facts, sent)
}

function waitMs({ ready, limits, ...load }: CapacityFacts, sent: number): number | null {
  return expectedWaitMs({ ...load, ready: ready.count + sent, concurrency: limits.concurrency, rate: limits.rate })
}
