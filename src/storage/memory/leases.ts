/**
 * Who holds what: leases by fence and by worker, and the fences that died. Called by claim, settle, beat and
 * take-over.
 */
import { assert } from '../../core/errors.js'
import type { JobHistory } from '../../core/job.js'
import type { Crash } from '../../core/settlement.js'
import { DEAD_FENCE_MS } from '../storage.js'
import { entryOf } from './entry.js'
import type { JobRow } from './jobs.js'

/** A job in a lease. */
export interface Slot {
  readonly job: JobRow
  readonly ordinal: number
  /** The job's own, as it was when it was claimed: it may have been settled, and claimed again. */
  readonly history: JobHistory | null
  /** How long the job had been due when it was claimed. */
  readonly waitedMs: number
  /** At its claim; null where it does not expire. */
  readonly expiresInMs: number | null
  /** Not settled yet. Whoever clears it moves the job, and nobody else. */
  open: boolean
  /** Its handler is known to have started: by a settlement or, of an adopted one, by the last beat of the dead. */
  started: boolean
  /** Of an adopted one: what is known of the crash. Kept when the adopter dies too, as nothing ran since. */
  crash: Crash | null
}

export interface LeaseRow {
  readonly fence: number
  readonly worker: string
  /** The claim request it answered; null for an adopted one, which no beat gives back. */
  readonly request: number | null
  readonly alone: boolean
  readonly claimedAt: number
  readonly slots: readonly Slot[]
}

interface DeadFence {
  diedAt: number
  /** What was open when it died; the others had been settled under it. */
  open: ReadonlySet<number>
}

export class LeaseTable {
  private readonly byFence = new Map<number, LeaseRow>()
  private readonly byWorker = new Map<string, Set<LeaseRow>>()
  private readonly byJob = new Map<JobRow, { lease: LeaseRow; ordinal: number }>()
  /** Queues in which a suspect runs. */
  private readonly alone = new Set<string>()
  private readonly dead = new Map<number, DeadFence>()
  private fences = 0

  get(fence: number): LeaseRow | undefined {
    return this.byFence.get(fence)
  }

  /** By rising fence. */
  of(worker: string): LeaseRow[] {
    return [...(this.byWorker.get(worker) ?? [])]
  }

  /** Who holds the job, and where in the lease it is. */
  holding(job: JobRow): { lease: LeaseRow; ordinal: number } | undefined {
    return this.byJob.get(job)
  }

  /** All that hold leases, who has the oldest one first. */
  holders(): string[] {
    return [...new Set([...this.byFence.values()].map(({ worker }) => worker))]
  }

  /** Whether a suspect of the queue is leased, to anybody. */
  runsAlone(queue: string): boolean {
    return this.alone.has(queue)
  }

  /** The suspect of the queue that is leased. */
  suspectOf(queue: string): { job: JobRow; worker: string } | undefined {
    if (!this.alone.has(queue)) return undefined
    for (const { alone, worker, slots } of this.byFence.values())
      if (alone && slots[0]!.job.queue === queue) return { job: slots[0]!.job, worker }
    return undefined
  }

  /** Draws the fence: larger than every one before. */
  add(lease: Omit<LeaseRow, 'fence'>): LeaseRow {
    const row = { ...lease, fence: ++this.fences }
    this.byFence.set(row.fence, row)
    entryOf(this.byWorker, row.worker, () => new Set<LeaseRow>()).add(row)
    if (row.alone) this.alone.add(row.slots[0]!.job.queue)
    for (const { job, ordinal } of openSlots(row)) this.byJob.set(job, { lease: row, ordinal })
    return row
  }

  /** The job is settled; the lease ends with its last one. */
  close(lease: LeaseRow, slot: Slot): void {
    assert(slot.open, `job ${slot.job.id} was settled already`)
    slot.open = false
    this.byJob.delete(slot.job)
    if (openSlots(lease).length === 0) this.delete(lease)
  }

  /** The lease ends by somebody else's hand: late settlements hear `lost`. Answers the slots that were open. */
  revoke(lease: LeaseRow, now: number): Slot[] {
    const open = openSlots(lease)
    this.dead.set(lease.fence, { diedAt: now, open: new Set(open.map((slot) => slot.ordinal)) })
    this.delete(lease)
    return open
  }

  isDead(fence: number): boolean {
    return this.dead.has(fence)
  }

  /** For those who look at all that is there. */
  deadFences(): { fence: number; open: number[]; diedAt: number }[] {
    return [...this.dead].map(([fence, { open, diedAt }]) => ({ fence, open: [...open], diedAt }))
  }

  /** Whether the job was open under this fence when it died. */
  diedOpen(fence: number, ordinal: number): boolean {
    return this.dead.get(fence)?.open.has(ordinal) ?? false
  }

  /** Forgets fences that died long ago. */
  prune(now: number): void {
    for (const [fence, { diedAt }] of this.dead) {
      if (now - diedAt <= DEAD_FENCE_MS) return // they died in this order
      this.dead.delete(fence)
    }
  }

  private delete(lease: LeaseRow): void {
    for (const { job } of openSlots(lease)) this.byJob.delete(job)
    this.byFence.delete(lease.fence)
    const leases = this.byWorker.get(lease.worker)!
    leases.delete(lease)
    if (leases.size === 0) this.byWorker.delete(lease.worker)
    if (lease.alone) this.alone.delete(lease.slots[0]!.job.queue)
  }
}

/** Nothing of it is settled. */
export function isWhole(lease: LeaseRow): boolean {
  return lease.slots.every((slot) => slot.open)
}

export function openSlots(lease: LeaseRow): Slot[] {
  return lease.slots.filter((slot) => slot.open)
}
