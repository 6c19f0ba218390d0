/**
 * What this worker holds: leases and the jobs in them, from the claim until the store confirmed their settlements.
 * Filled by the fetcher, read by the heartbeat (a lease that is not named in a beat is given back by the store).
 */
import type { StopReason } from '../core/handler.js'
import type { Json } from '../core/job.js'
import type { ClaimedJob, Lease } from '../storage/storage.js'

export interface HeldLease {
  readonly fence: number
  readonly alone: boolean
  /** The worker id it was claimed under. */
  readonly worker: string
  /** When the claim was answered, by the local clock, and what the store's clock said then. */
  readonly claimedAt: number
  readonly storeNowMs: number
  readonly jobs: HeldJob[]
  /** Jobs whose settlement the store has not confirmed. */
  open: number
}

/** A job in hand. `ended`: its outcome is with the settler or was dropped; its code may still run. */
export class HeldJob {
  state: 'waiting' | 'starting' | 'running' | 'ended' = 'waiting'
  /** By the local clock; -1 while the handler has not started. */
  startedAt = -1
  /** Why its signal fired, if it did. */
  stop: StopReason | undefined
  /** Made when the handler first asks for its signal. */
  controller: AbortController | undefined
  progress: Json | undefined

  constructor(
    readonly lease: HeldLease,
    readonly ordinal: number,
    readonly job: ClaimedJob,
  ) {}
}

/** What a beat says of them. */
export interface Named {
  leases: number[]
  /** Fence, ordinal, and for how many ms the handler has run. */
  started: [number, number, number][]
}

export class Holdings {
  private readonly leases = new Map<number, HeldLease>()

  /** Leases that are not wholly settled. */
  get size(): number {
    return this.leases.size
  }

  get(fence: number): HeldLease | undefined {
    return this.leases.get(fence)
  }

  /** Takes a lease in hand. A job may be missing from the answer to a repeated claim: it was settled by somebody else. */
  add(lease: Lease, claim: { worker: string; claimedAt: number; storeNowMs: number }): HeldJob[] {
    const held: HeldLease = { ...claim, fence: lease.fence, alone: lease.alone, jobs: [], open: 0 }
    for (let ordinal = 0; ordinal < lease.jobs.length; ordinal++) {
      const job: ClaimedJob | null = lease.jobs[ordinal]!
      if (job) held.jobs.push(new HeldJob(held, ordinal, job))
    }
    held.open = held.jobs.length
    if (held.open > 0) this.leases.set(held.fence, held)
    return held.jobs
  }

  /** The store confirmed the settlement of one of its jobs, or refused it because the lease is lost. */
  close(lease: HeldLease): void {
    lease.open -= 1
    if (lease.open <= 0) this.leases.delete(lease.fence)
  }

  /** The store has it no more. */
  drop(fence: number): void {
    this.leases.delete(fence)
  }

  /** Ends every lease, as the worker was written off. Answers those that were held. */
  clear(): HeldLease[] {
    const all = [...this.leases.values()]
    this.leases.clear()
    return all
  }

  all(): Iterable<HeldLease> {
    return this.leases.values()
  }

  /** `now`: by the local clock. */
  named(now: number): Named {
    const named: Named = { leases: [], started: [] }
    for (const lease of this.leases.values()) {
      named.leases.push(lease.fence)
      for (const { startedAt, ordinal } of lease.jobs)
        if (startedAt >= 0) named.started.push([lease.fence, ordinal, Math.round(now - startedAt)])
    }
    return named
  }
}
