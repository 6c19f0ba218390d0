/** What queues have to do, asked for once a second at most. Called by the queue, and before enqueues that depend on it. */
import { drainPerSecond, expectedWaitMs } from '../core/capacity.js'
import { name } from '../core/options.js'
import type { Connection } from '../storage/connection.js'
import type { CapacityFacts, Count, NewJob } from '../storage/storage.js'
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

  /** How long the job would wait, by what was known within the last second; null when nobody knows. */
  wait(job: NewJob): number | null | Promise<number | null> {
    const known = this.fresh(job)
    return known instanceof Promise ? known.then(waitOf) : waitOf(known)
  }

  /** How much of the depth limit is taken where the job goes, from 0 to 1; 0 where there is none. */
  async fullness(job: NewJob): Promise<number> {
    const { facts, sent } = await this.fresh(job)
    const limit = facts?.limits.depth?.limit
    return facts === undefined || limit === undefined ? 0 : Math.min(1, (facts.depth.count + sent) / limit)
  }

  /** The job is on its way. */
  sending(job: NewJob): void {
    if (this.known.size === 0) return
    const known = this.known.get(this.placeOf(job))
    if (known !== undefined) known.sent += 1
  }

  /** Its queue, and the store it goes to where there are several: one that is full says nothing of the others. */
  placeOf(job: NewJob): string {
    const home = this.connection.storage.partitions?.homeOf(job)
    return home === undefined ? job.queue : `${job.queue} ${home.name}`
  }

  private fresh(job: NewJob): Known | Promise<Known> {
    const place = this.placeOf(job)
    const known = this.known.get(place)
    if (known !== undefined && this.connection.env.monotonic() - known.at < CAPACITY_MS) return known
    let asking = this.asking.get(place)
    if (asking === undefined) {
      asking = this.ask(job, place).finally(() => this.asking.delete(place))
      this.asking.set(place, asking)
    }
    return asking
  }

  /** A store that does not answer is not said to be slow: the enqueue itself will tell what is wrong with it. */
  private async ask(job: NewJob, place: string): Promise<Known> {
    const { env, storage } = this.connection
    const home = storage.partitions?.homeOf(job)
    const inspect = home?.storage.inspect ?? this.facet('an expected wait')
    const answered = new AbortController()
    const unknown = env.sleep(PATIENCE_MS, answered.signal).then(() => undefined)
    const facts = await Promise.race([inspect.capacity(job.queue).catch(() => undefined), unknown])
    answered.abort()
    const known = { facts, at: env.monotonic(), sent: 0 }
    if (this.known.size >= QUEUES_MAX) this.known.clear()
    this.known.set(place, known)
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
