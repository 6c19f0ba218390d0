/**
 * A worker as the store sees it, without its handlers: beats, and claims that bring the settlements of the batch before
 * along. What it took is put back by enqueues, so that the backlog stays as deep as it was. Called by backlog.
 */
import { newJobId, type Queue } from '../src/index.js'
import type { Lease, Settlement } from '../src/storage/storage.js'
import { noop, noops, QUEUE } from './kinds.js'

const BEAT_MS = 3_000
const LEASE_MS = 10_000

export class ClaimLoop {
  private readonly worker = newJobId()
  private beats = 0
  private request = 0
  private leases: Lease[] = []
  private beatAt = Number.NEGATIVE_INFINITY

  constructor(
    private readonly queue: Queue,
    private readonly batch: number,
  ) {}

  /** One claim; answers how many milliseconds it took. */
  async turn(): Promise<number> {
    if (performance.now() - this.beatAt > BEAT_MS) await this.beat()
    this.request += 1
    const finished = settlementsOf(this.leases)
    const began = performance.now()
    const claim = await this.queue.connection.storage.claim({
      worker: this.worker,
      request: this.request,
      queues: [{ queue: QUEUE, share: this.batch, turn: this.request * this.batch }],
      limit: this.batch,
      kinds: [noop.all.name],
      apart: [],
      pollMs: 5_000,
      suspects: true,
      finished,
    })
    const ms = performance.now() - began
    this.leases = claim.leases
    this.check(claim.settled, finished.length)
    await this.queue.enqueueMany(noops(this.batch))
    return ms
  }

  private check(settled: readonly string[], expected: number): void {
    const taken = this.leases.reduce((sum, lease) => sum + lease.jobs.length, 0)
    const ok = settled.filter((answer) => answer === 'ok').length
    if (taken !== this.batch || ok !== expected)
      throw new Error(`a claim brought ${taken} of ${this.batch} jobs, and settled ${ok} of ${expected}`)
  }

  private async beat(): Promise<void> {
    this.beats += 1
    this.beatAt = performance.now()
    await this.queue.connection.storage.beat({
      worker: this.worker,
      n: this.beats,
      known: this.request,
      leases: this.leases.map(({ fence }) => fence),
      started: [],
      mainLagMs: 0,
      info: { name: 'bench', queues: [QUEUE], concurrency: this.batch, leaseMs: LEASE_MS, beatMs: BEAT_MS },
    })
  }
}

function settlementsOf(leases: readonly Lease[]): Settlement[] {
  return leases.flatMap(({ fence, jobs }) =>
    jobs.map((_, ordinal) => ({
      fence,
      ordinal,
      to: 'completed' as const,
      history: null,
      keep: true,
      startedAfterMs: 1,
      ranMs: 1,
    })),
  )
}
