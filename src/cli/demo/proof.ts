/**
 * The judge of a demo: reads only what was enqueued, what the receiver wrote down and what the store says of each job,
 * and finds what was lost, doubled or done too early. Pure; called by the demo and by a recount.
 */
import type { DeadReason, HistoryEntry, JobHistory, JobState } from '../../core/job.js'
import type { DemoRecord, EnqueuedDelivery, ReceivedRequest } from './files.js'
import { groupedBy } from './grouping.js'
import type { Waits } from './percentiles.js'
import type { Endpoint } from './plan.js'
import { dueAtOf, firstSeenOf, killsOf, paceOf, waitsOf } from './timing.js'

/** The receiver's clock shows whole milliseconds, the store's parts of them. */
const CLOCK_STEP_MS = 1

/** What the store knows of a job, as far as it counts here. Instants in epoch milliseconds. */
export interface JobFacts {
  id: string
  state: JobState
  reason?: DeadReason
  enqueuedAt: number
  startedAt: number | null
  endedAt: number | null
  history: JobHistory | null
}

export interface Evidence {
  record: DemoRecord
  deliveries: readonly EnqueuedDelivery[]
  requests: readonly ReceivedRequest[]
  jobs: readonly JobFacts[]
}

/** A delivery and what is wrong with it. */
export interface Finding {
  key: string
  jobId: string
  why: string
}

/** A delivery that the receiver was sent more than once, and why, from the history of its job. */
export interface Redelivery {
  key: string
  jobId: string
  requests: number
  causes: string[]
}

export interface Proof {
  enqueued: number
  /** By the store; those of them without an effect are lost. */
  completed: number
  /** Of the completed ones. */
  withoutEffect: number
  dead: number
  lost: Finding[]
  doubled: Finding[]
  /** Sent before they were due. */
  early: Finding[]
  /** Jobs and effects that nobody enqueued. */
  strays: Finding[]
  redelivered: Redelivery[]
  /** Repeats that the receiver knew by their key. */
  deduplicated: number
  /** Those that are dead in the same way, together. */
  deadLetters: { endpoint: Endpoint; reason: DeadReason; attempts: number; error: string; count: number }[]
  /** From due to the first start. */
  waits: Waits
  waitsByPriority: Record<string, Waits>
  kills: { worker: number; held: number; recoveryMs: number | null }[]
  seconds: number
  jobsPerSecond: number
  busiestSecond: number
  /** Nothing is lost, doubled, early, stray, or repeated without a reason. */
  holds: boolean
}

/** All that is known of one delivery. */
export interface Case {
  delivery: EnqueuedDelivery
  job: JobFacts | undefined
  requests: ReceivedRequest[]
}

export function prove(evidence: Evidence): Proof {
  const cases = casesOf(evidence)
  const lost = cases.flatMap(lossOf)
  const doubled = cases.flatMap(doublingOf)
  const early = cases.flatMap(earlinessOf)
  const strays = straysIn(evidence)
  const redelivered = cases.filter(({ requests }) => requests.length > 1).map(redeliveryOf)
  const unexplained = redelivered.filter(({ causes }) => causes.length === 0)
  const faults = [lost, doubled, early, strays, unexplained]
  return {
    enqueued: cases.length,
    completed: cases.filter(isCompleted).length,
    withoutEffect: cases.filter((found) => isCompleted(found) && !hasEffect(found)).length,
    dead: cases.filter(({ job }) => job?.state === 'dead').length,
    lost,
    doubled,
    early,
    strays,
    redelivered,
    deduplicated: evidence.requests.filter(({ effect }) => effect === 'repeat').length,
    deadLetters: deadLettersOf(cases),
    ...waitsOf(cases),
    kills: killsOf(evidence.record, cases),
    ...paceOf(evidence.record, cases),
    holds: faults.every((found) => found.length === 0),
  }
}

function casesOf({ deliveries, requests, jobs }: Evidence): Case[] {
  const jobById = new Map(jobs.map((job) => [job.id, job]))
  const requestsByKey = groupedBy(requests, ({ key }) => key)
  return deliveries.map((delivery) => ({
    delivery,
    job: jobById.get(delivery.jobId),
    requests: requestsByKey.get(delivery.key) ?? [],
  }))
}

function finding({ delivery }: Case, why: string): Finding {
  return { key: delivery.key, jobId: delivery.jobId, why }
}

function isCompleted({ job }: Case): boolean {
  return job?.state === 'completed'
}

function hasEffect({ requests }: Case): boolean {
  return requests.some(({ effect }) => effect === 'applied')
}

/** A delivery is safe when its job is completed and its effect written down, or when it is dead and so is its URL. */
function lossOf(found: Case): Finding[] {
  const { delivery, job } = found
  if (job === undefined) return [finding(found, 'the store does not know its job')]
  if (job.state === 'completed')
    return hasEffect(found) ? [] : [finding(found, 'completed, and the receiver has no effect of it')]
  if (job.state !== 'dead') return [finding(found, `its job is ${job.state}, and was to have ended`)]
  return delivery.endpoint === 'live' ? [finding(found, `dead (${job.reason}), and its URL is alive`)] : []
}

function doublingOf(found: Case): Finding[] {
  const effects = found.requests.filter(({ effect }) => effect === 'applied').length
  return effects > 1 ? [finding(found, `its effect was applied ${effects} times`)] : []
}

function earlinessOf(found: Case): Finding[] {
  const seenAt = firstSeenOf(found)
  const dueAt = dueAtOf(found)
  if (seenAt === undefined || dueAt === undefined || seenAt + CLOCK_STEP_MS >= dueAt) return []
  return [finding(found, `its first request came ${Math.round(dueAt - seenAt)} ms before it was due`)]
}

function straysIn({ deliveries, requests, jobs }: Evidence): Finding[] {
  const ids = new Set(deliveries.map(({ jobId }) => jobId))
  const keys = new Set(deliveries.map(({ key }) => key))
  const why = 'nobody enqueued it'
  return [
    ...jobs.filter(({ id }) => !ids.has(id)).map(({ id }) => ({ key: '', jobId: id, why })),
    ...requests.filter(({ key }) => !keys.has(key)).map(({ key, jobId }) => ({ key, jobId, why })),
  ]
}

// Redeliveries.

function redeliveryOf({ delivery, job, requests }: Case): Redelivery {
  const entries = job?.history?.entries ?? []
  return {
    key: delivery.key,
    jobId: delivery.jobId,
    requests: requests.length,
    causes: [...new Set(entries.flatMap(causeOf))],
  }
}

/** Why an attempt was followed by another one. Empty for entries that end the job, or say nothing of an attempt. */
function causeOf({ outcome, error, delayMs }: HistoryEntry): string[] {
  switch (outcome) {
    case 'crashed':
      return ['its worker was killed']
    case 'given back':
      return ['given back by a worker that stopped']
    case 'timed out':
      return delayMs === undefined ? [] : ['no answer within the timeout']
    case 'failed':
      return delayMs === undefined ? [] : [error?.message ?? 'failed']
    default:
      return []
  }
}

function deadLettersOf(cases: readonly Case[]): Proof['deadLetters'] {
  const letters = cases.flatMap(({ delivery, job }) =>
    job?.state === 'dead' ? [letterOf(delivery.endpoint, job)] : [],
  )
  return [...groupedBy(letters, (letter) => JSON.stringify(letter))].map(([, found]) => ({
    ...found[0]!,
    count: found.length,
  }))
}

function letterOf(endpoint: Endpoint, { reason, history }: JobFacts): Omit<Proof['deadLetters'][number], 'count'> {
  const error = history?.entries.findLast((entry) => entry.error !== undefined)?.error
  return {
    endpoint,
    reason: reason ?? 'failed',
    attempts: history?.attempts ?? 0,
    error: error?.message ?? 'no error is known',
  }
}
