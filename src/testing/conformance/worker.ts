/** A worker as the store sees one: it counts its beats and requests, and knows what it holds. Made by the kit. */
import { strict as assert } from 'node:assert'
import { type Crash, fateOfCrash, fateOfOutcome, type Outcome } from '../../core/settlement.js'
import type {
  Beat,
  BeatAnswer,
  Claim,
  ClaimedJob,
  ClaimRequest,
  Lease,
  SettleAnswer,
  Settlement,
  Storage,
  TakeOver,
} from '../../storage/storage.js'

export const LEASE_MS = 60_000
export const BEAT_MS = 20_000

/** A job in a lease, and how to name it. */
export interface Held {
  fence: number
  ordinal: number
  alone: boolean
  job: ClaimedJob
  /** Of one taken over. */
  crash: Crash | null
  /** The store's clock when it was handed out. */
  nowMs: number
}

/** A claim as a case describes it: everything has a default. */
export type ClaimSketch = Partial<Omit<ClaimRequest, 'queues'>> & {
  queues?: readonly { queue: string; share: number; turn?: number }[]
  /** Of all queues that name none. */
  turn?: number
}

/** A worker as a store sees one: an identity, beats and numbered claims. */
export class TestWorker {
  n = 0
  request = 0
  turn = 0
  /** Fences that its beats name. */
  holding: number[] = []

  constructor(
    readonly store: Storage,
    readonly id: string,
  ) {}

  /** The next beat, unless `n` is given. */
  async beat(sketch: Partial<Beat> = {}): Promise<BeatAnswer> {
    if (sketch.n === undefined) this.n += 1
    return this.store.beat({
      worker: this.id,
      n: this.n,
      known: this.request,
      leases: this.holding,
      started: [],
      mainLagMs: 0,
      info: { name: 'host:1', queues: ['q'], concurrency: 10, leaseMs: LEASE_MS, beatMs: BEAT_MS },
      ...sketch,
    })
  }

  /** The next claim, unless `request` is given. What it gets is held from now on. */
  async claim(sketch: ClaimSketch = {}): Promise<Claim> {
    if (sketch.request === undefined) this.request += 1
    const claim = await this.store.claim(this.claimRequest(sketch))
    this.holding = [...new Set([...this.holding, ...claim.leases.map(({ fence }) => fence)])]
    return claim
  }

  /** As `claim`, for a case that wants nothing but the jobs. */
  async take(limit = 1, sketch: ClaimSketch = {}): Promise<Held[]> {
    const claim = await this.claim({ limit, ...sketch })
    assert.equal(claim.status, 'ok')
    return heldIn(claim)
  }

  async takeOne(sketch: ClaimSketch = {}): Promise<Held> {
    const [held] = await this.take(1, sketch)
    assert(held, 'the claim gave no job')
    return held
  }

  claimRequest({ turn = 0, queues, ...sketch }: ClaimSketch = {}): ClaimRequest {
    const limit = sketch.limit ?? 10
    return {
      worker: this.id,
      request: this.request,
      queues: (queues ?? [{ queue: 'q', share: limit }]).map((queue) => ({ turn, ...queue })),
      limit,
      kinds: ['work', 'other'],
      apart: [],
      pollMs: 5_000,
      suspects: false,
      ...sketch,
    }
  }

  async settle(...settlements: Settlement[]): Promise<SettleAnswer[]> {
    return this.store.settle(settlements)
  }

  /** What it adopts, as jobs that are still open. */
  async takeOver(limit = 1_000): Promise<Held[]> {
    const answer = await this.store.takeOver({ worker: this.id, limit })
    return recoveredIn(answer)
  }
}

export function heldIn({ leases, nowMs }: { leases: readonly Lease[]; nowMs: number }): Held[] {
  return leases.flatMap(({ fence, alone, jobs }) =>
    jobs.map((job, ordinal) => ({ fence, ordinal, alone, job, crash: null, nowMs })),
  )
}

export function recoveredIn({ leases, nowMs }: TakeOver): Held[] {
  return leases
    .flatMap(({ fence, alone, jobs, crashes }) =>
      jobs.map((job, ordinal) => ({ fence, ordinal, alone, job, crash: crashes[ordinal] ?? null, nowMs })),
    )
    .filter(({ crash }) => crash !== null)
}

export function idsOf(jobs: readonly Held[]): string[] {
  return jobs.map(({ job }) => job.id)
}

/** The settlement that a worker sends after an outcome. */
export function after(held: Held, outcome: Outcome): Settlement {
  const { fence, ordinal, job, nowMs } = held
  const ranMs = 'ranMs' in outcome ? outcome.ranMs : undefined
  const fate = fateOfOutcome({ ...job, worker: 'some worker', nowMs, random: 0.5 }, outcome)
  const times = ranMs === undefined ? {} : { startedAfterMs: 0, ranMs }
  if (fate.to === 'completed') return { fence, ordinal, ...fate, ...times, keep: job.spec.keep === 'all' }
  return { fence, ordinal, ...fate, ...times }
}

/** The settlement of one that was taken over. */
export function afterCrash(held: Held): Settlement {
  const { fence, ordinal, job, crash, nowMs } = held
  assert(crash, 'it was not taken over')
  const fate = fateOfCrash({ ...job, worker: 'some worker', nowMs, random: 0.5 }, crash)
  assert(fate.to !== 'completed')
  return { fence, ordinal, ...fate }
}

export function started({ fence, ordinal }: Held): Settlement {
  return { fence, ordinal, to: 'started' }
}

export function returned(held: Held, result?: string): Settlement {
  return after(held, { type: 'returned', ranMs: 5, ...(result === undefined ? {} : { result }) })
}

export function threw(held: Held, delayMs?: number): Settlement {
  const error = { name: 'Error', message: 'it broke' }
  return after(held, { type: 'threw', error, ranMs: 5, ...(delayMs === undefined ? {} : { delayMs }) })
}

export function snoozed(held: Held, delayMs: number): Settlement {
  return after(held, { type: 'snoozed', delayMs, ranMs: 5 })
}

export function givenBack(held: Held): Settlement {
  return after(held, { type: 'given back', note: 'shutdown' })
}

export function rejected(held: Held): Settlement {
  return after(held, { type: 'rejected', error: { name: 'Error', message: 'never' }, ranMs: 5 })
}

export function cancelled(held: Held): Settlement {
  return after(held, { type: 'cancelled', ranMs: 5 })
}

/** One of each fate, by name. */
export const FATES: Record<string, (held: Held) => Settlement> = {
  completed: returned,
  delayed: (held) => threw(held, 30_000),
  ready: givenBack,
  dead: rejected,
  cancelled,
}
