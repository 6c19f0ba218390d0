/** What explain.ts answers: a verdict on one job, made of clauses. Given to callers as it is. */
import type { DeadReason, JobState } from './job.js'
import type { HolderSeen } from './job-facts.js'
import type { Rank } from './standing.js'

/** What each clause tells beside its sentence. Instants in epoch milliseconds of the store's clock. */
export interface ClauseFields {
  /** It completed or was cancelled. */
  ended: { state: 'completed' | 'cancelled'; endedAt: number }
  /** It is a dead letter. `needs force`: it may run once only, and may have run. */
  dead: { reason: DeadReason; endedAt: number; redrive: 'ok' | 'needs force' }
  /** A worker has it. `silent`: its lease is over and another worker takes it over; `adopted`: one has done so. */
  running: {
    holder: 'alive' | 'silent' | 'adopted'
    worker: string
    /** Null where the store knows the worker no more. */
    name: string | null
    claimedAt: number
    /** Null: the start has not been told yet. */
    startedAt: number | null
    attempt: number
    lastBeatAgoMs: number | null
    mainLagMs: number | null
  }
  /** Its time has not come: it was delayed, or waits for its next attempt. */
  'not due': { dueAt: number; attempt: number }
  /** Its time has come, and no worker has made it ready yet. `alive`: workers that could. */
  'not promoted': { dueAt: number; alive: number }
  paused: { queue: string }
  /** As many jobs of the queue run as may at once. `holders`: the first of them. */
  concurrency: { limit: number; held: number; holders: readonly HolderSeen[] }
  /** The starts of the queue are used up until then. */
  rate: { nextAt: number }
  /** Its key has no permit for it: those who hold them, or of an order key who goes first. */
  key: {
    key: string
    ordered: boolean
    limit: number | null
    held: number
    holders: readonly string[]
    ahead: string | null
  }
  /** It runs alone, and another suspect of the queue runs. */
  'suspect running': { id: string; worker: string }
  /** No worker that is alive serves the queue. */
  'no worker': { queue: string }
  /** Workers serve the queue, and none of them can run the kind. `workers`: some of them. */
  'no able worker': { kind: string; serving: number; workers: readonly { id: string; name: string; kinds: string[] }[] }
  /** Nothing holds it. `next`: it is so far ahead that the next claim of an able worker takes it. */
  'its turn': Rank & {
    next: boolean
    inLevel: Rank
    priority: number
    able: number
    freeSlots: number
    startsIn?: Estimate
  }
}

/** A reason why the job does not run, or where it is: a code, a sentence for people, and fields of its own. */
export type Clause = { [Code in ClauseCode]: { code: Code; sentence: string } & ClauseFields[Code] }[ClauseCode]

/** One word (or two) for each clause. */
export type ClauseCode = keyof ClauseFields

/** When the job will start, by the pace of its queue. Nothing is promised by it. */
export interface Estimate {
  ms: number
  /** The job is further back than was counted: it takes longer. */
  atLeast: boolean
  /** Of what it was reckoned, in a sentence. */
  basis: string
}

/** Worth knowing, though it holds nobody. */
export interface Note {
  code: 'cancelling' | 'expires' | 'times out' | 'runs alone' | 'draining'
  sentence: string
  /** When it comes, where it has a time. */
  at?: number
}

/** Why a job runs or does not run. */
export interface Explanation {
  id: string
  kind: string
  queue: string
  priority: number
  state: JobState
  /** The store's clock. */
  nowMs: number
  /** `held`: no claim takes it now; `next`, `in line`: nothing holds it but those ahead of it. */
  verdict: 'held' | 'next' | 'in line' | 'running' | 'ended'
  /** All that hold it now, the decisive one first. Of a ready one the last tells its turn. */
  clauses: [Clause, ...Clause[]]
  notes: Note[]
}
