/**
 * The shapes of what a history tells, once it is folded: a story for each job that somebody enqueued, a trace for each
 * job of the store, a hold for each time that a worker had it, and the scene for what is no job's alone. Filled by
 * stories.ts, read by the rules.
 */
import type { DeadReason } from '../../core/job.js'
import type { QueueOrder } from '../../core/priority.js'
import type { Expectation } from './expectation.js'
import type { Disturbances } from './faults.js'
import type {
  FinishedAs,
  JobOperation,
  QueueOperation,
  Settled,
  StoreRecord,
  ToldOutcome,
  TransactionState,
} from './history.js'

export interface Told {
  at: number
  outcome: ToldOutcome
  id: string | undefined
  transaction: string | undefined
  code: string | undefined
}

/** What a worker was told about a job. */
export interface Settlement {
  process: string
  at: number
  as: Settled
  reason: DeadReason | undefined
  /** The wait before it may run again, where one is known. */
  againInMs: number | undefined
}

/** A worker that took over found the job with a dead one. */
export interface CrashNote {
  at: number
  deadWorker: string
  started: boolean
  alone: boolean
}

/** The answer of a claim, as far as it is about one job. */
export interface ClaimFacts {
  at: number
  worker: string
  queue: string
  kind: string | undefined
  priority: number | undefined
  waitedMs: number | undefined
  claimedAt: number | undefined
  /** The call that brought it; undefined where calls were not written down. */
  call: ClaimCall | undefined
  alone: boolean
}

/** One worker has the job, from its claim to what it was told of the end. In a take-over there is a crash, and no fence. */
export interface Hold {
  process: string
  /** Undefined in a take-over. */
  fence: number | undefined
  attempt: number | undefined
  claimed: ClaimFacts | undefined
  crash: CrashNote | undefined
  startedAt: number | undefined
  effectAt: number | undefined
  /** When its code ended without an effect. */
  finishedAt: number | undefined
  finishedAs: FinishedAs | undefined
  /** Usually one; an attempt that failed for the last time is told as failed, and then as dead. */
  told: Settlement[]
}

/** A hold whose handler started. */
export type Run = Hold & { fence: number; startedAt: number }

/** What an operator wanted of a job. */
export interface JobAsk {
  operation: JobOperation['operation']
  askedAt: number
  /** Undefined when there was none: it may have been done or not. */
  answer: JobOperation['answer'] | undefined
  answeredAt: number | undefined
}

/** One job of the store, by its id. */
export interface Trace {
  id: string
  n: number | undefined
  /** In the order of their fences; take-overs come after, in the order of time. */
  holds: Hold[]
  /** Of the holds, those that started, in the order of their starts. */
  runs: Run[]
  /** In the order of time. */
  settlements: Settlement[]
  crashes: CrashNote[]
  asks: JobAsk[]
  /** When somebody was told that it was not started in time. */
  expiredAt: number | undefined
  records: StoreRecord[]
}

/** One job that somebody enqueued, and every job of the store that came of it: more than one is a fault. */
export interface Story {
  n: number
  /** Undefined when nobody planned it, or nobody knows. */
  expected: Expectation | undefined
  /** When it was first sent; undefined when it never was. */
  sentAt: number | undefined
  /** How often it was sent. What was sent and never answered may be done at any time. */
  sendings: number
  told: Told[]
  traces: Trace[]
}

export interface ProcessLife {
  role: 'worker' | 'producer'
  killedAt?: number
  /** Whichever way it ended, and how. */
  goneAt?: number
  end?: { code: number | null; signal: string | null; errors: string }
}

export interface TakeOver {
  /** The process that took over. */
  process: string
  at: number
  deadWorker: string
  jobs: number
}

/** One request of a worker for jobs, asked until it was answered. */
export interface ClaimCall {
  process: string
  worker: string
  /** When it was first sent. */
  askedAt: number
  /** The last time; undefined when it never was, or was asked again since: it may have taken jobs or not. */
  answeredAt: number | undefined
  /** How often it was sent: of a repeated one waits are told as they were at the first. */
  sendings: number
  /** When a beat was confirmed that named the request as answered: what a repeat may have taken has gone back by then. */
  forgottenAt: number | undefined
  /** As they were answered. */
  fences: { fence: number; at: number }[]
}

/** What an operator wanted of a queue. */
export interface QueueAsk {
  operation: QueueOperation
  queue: string
  askedAt: number
  answeredAt: number | undefined
  deleted: number | undefined
  order: QueueOrder | undefined
}

/** What is no job's alone. */
export interface Scene {
  leaseMs: number
  clocks: 'shared' | 'apart'
  covers: 'everything' | 'workers'
  retention: 'all kept' | 'pruned'
  orders: Readonly<Record<string, QueueOrder>>
  limits: Readonly<Record<string, number>>
  /** Which evidence there is at all. */
  has: Evidence
  traces: Map<string, Trace>
  transactions: Map<string, TransactionState>
  processes: Map<string, ProcessLife>
  /** The process behind each identity of a worker. */
  workers: Map<string, string>
  /** The identities of each process. */
  identities: Map<string, string[]>
  /** What each identity can run, where it is known. */
  kinds: Map<string, ReadonlySet<string>>
  /** Since when each identity has been on its way to its end, by its own word. */
  draining: Map<string, number>
  /** Of each process, how many handlers may run in it at once. */
  slots: Map<string, number>
  /** When each identity came to its end: it said good bye, or was taken over. */
  ends: Map<string, number>
  /** For each identity of a worker, when it was surely alive to the store. */
  beats: Map<string, number[]>
  /** Of each process: when a beat of it failed, and when its event loop did nothing. */
  failedBeats: Map<string, number[]>
  blocks: Map<string, { from: number; to: number }[]>
  takeOvers: TakeOver[]
  calls: ClaimCall[]
  queueAsks: QueueAsk[]
  kills: { process: string; at: number; moment: string }[]
  spared: number
  /** What was done to the system beside the kills, and how its throughput went around it. */
  disturbances: Disturbances
}

export interface Evidence {
  expectations: boolean
  records: boolean
  /** Handlers wrote down their effects. */
  effects: boolean
  /** The processes that wrote down what they claimed, and what they started. */
  claiming: Set<string>
  starting: Set<string>
}

export interface Stories {
  stories: Story[]
  scene: Scene
}

/** Whether it is or was in the store, as far as anybody can tell. */
export function exists({ records, holds, settlements }: Trace): boolean {
  return records.length > 0 || holds.length > 0 || settlements.length > 0
}

/** The ids that a caller may rely on. A duplicate is a promise too: that the job it names is there. */
export function acceptedIds({ told }: Story, { transactions }: Scene): Set<string> {
  const ids = new Set<string>()
  for (const { outcome, id, transaction } of told) {
    if (id === undefined) continue
    const done = transaction === undefined || transactions.get(transaction) === 'committed'
    if (outcome === 'duplicate' || (outcome === 'created' && done)) ids.add(id)
  }
  return ids
}

/** A job that was accepted, or is there although nobody was told. A duplicate is another one's job. */
export function isThere(story: Story, scene: Scene): boolean {
  if (story.traces.some(exists)) return true
  return acceptedIds(story, scene).size > 0 && story.told.some(({ outcome }) => outcome === 'created')
}

/** What the worker was told of a run first. */
export function toldOf({ told }: Hold): Settlement | undefined {
  return told[0]
}

/** Whether an ask of this kind was or may have been done: not, if its answer was another one. */
export function mayHaveBeen(ask: JobAsk, operation: JobAsk['operation'], ...answers: JobAsk['answer'][]): boolean {
  return ask.operation === operation && (ask.answer === undefined || answers.includes(ask.answer))
}

/** Without an answer, or as a repeat that came after the answer, it may have taken jobs of which nobody was told. */
export function mayTakeUnseen({ answeredAt, sendings, forgottenAt }: ClaimCall): boolean {
  return answeredAt === undefined || (sendings > 1 && forgottenAt === undefined)
}
