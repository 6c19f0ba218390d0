/** Small builders for tests that speak to a store directly. */
import { realEnv } from '../../src/core/env.js'
import { SPEC_DEFAULTS } from '../../src/core/job.js'
import type { Beat, ClaimRequest, NewJob, Settlement, Storage, WorkerInfo } from '../../src/storage/storage.js'

export function newJob(more: Partial<NewJob> = {}): NewJob {
  return {
    id: realEnv.id(),
    kind: 'kind',
    queue: 'queue',
    priority: 4,
    payload: '{"n":1}',
    spec: SPEC_DEFAULTS,
    due: { delayMs: 0 },
    ...more,
  }
}

export const INFO: WorkerInfo = { name: 'test', queues: ['queue'], concurrency: 10, leaseMs: 10_000, beatMs: 3_000 }

/** A worker as the store sees one: an identity, beats and numbered claims. */
export class TestWorker {
  request = 0
  beats = 0

  constructor(
    readonly storage: Storage,
    readonly id = realEnv.id(),
  ) {}

  static async registered(storage: Storage): Promise<TestWorker> {
    const worker = new TestWorker(storage)
    await worker.beat()
    return worker
  }

  /** The same worker over another handle; its numbers stay with this one. */
  on(storage: Storage): TestWorker {
    return new TestWorker(storage, this.id)
  }

  beat(more: Partial<Beat> = {}) {
    this.beats += 1
    return this.storage.beat({
      worker: this.id,
      n: this.beats,
      known: this.request,
      leases: [],
      started: [],
      mainLagMs: 0,
      info: INFO,
      ...more,
    })
  }

  /** The next claim; with `request` given, a repeat of that one. */
  claim({
    queues,
    ...more
  }: Partial<Omit<ClaimRequest, 'queues'>> & {
    queues?: readonly { queue: string; share: number; turn?: number }[]
  } = {}) {
    if (more.request === undefined) this.request += 1
    const limit = more.limit ?? 100
    return this.storage.claim({
      worker: this.id,
      request: this.request,
      queues: (queues ?? [{ queue: 'queue', share: limit }]).map((queue) => ({ turn: 0, ...queue })),
      limit,
      kinds: ['kind'],
      apart: [],
      suspects: false,
      pollMs: 5_000,
      ...more,
    })
  }
}

export function completed(fence: number, ordinal = 0): Settlement {
  return { fence, ordinal, to: 'completed', history: null, keep: true, startedAfterMs: 1, ranMs: 1 }
}
