/**
 * How long deliveries waited, how fast they went, how soon a dead worker's were taken up. Pure; called by proof.ts.
 * Receiver, demo and store run on one machine, so their clocks are one.
 */
import type { DemoRecord } from './files.js'
import { groupedBy } from './grouping.js'
import { percentiles } from './percentiles.js'
import type { Case, JobFacts, Proof } from './proof.js'

/**
 * As the receiver saw it; where nobody was there to see it, as the store says. The history's own instant is the worker's
 * estimate of the store's clock, and may be early by as long as the answer to its claim took.
 */
export function firstStartOf(found: Case): number | undefined {
  return firstSeenOf(found) ?? found.job?.history?.firstStartedAt ?? found.job?.startedAt ?? undefined
}

/** When its first request arrived. */
export function firstSeenOf({ requests }: Case): number | undefined {
  return requests.reduce<number | undefined>((first, { at }) => Math.min(first ?? at, at), undefined)
}

export function dueAtOf({ delivery, job }: Case): number | undefined {
  return job === undefined ? undefined : job.enqueuedAt + delivery.delayMs
}

export function waitsOf(cases: readonly Case[]): Pick<Proof, 'waits' | 'waitsByPriority'> {
  const waits = cases.flatMap((found) => {
    const startedAt = firstStartOf(found)
    const dueAt = dueAtOf(found)
    if (startedAt === undefined || dueAt === undefined) return []
    return [{ priority: found.delivery.priority, waitMs: Math.max(0, startedAt - dueAt) }]
  })
  const groups = groupedBy(waits, ({ priority }) => priority)
  const byPriority = [...groups].map(([priority, found]) => [priority, percentiles(found.map(({ waitMs }) => waitMs))])
  return {
    waits: percentiles(waits.map(({ waitMs }) => waitMs)),
    waitsByPriority: Object.fromEntries(byPriority),
  }
}

/** From the SIGKILL until the last job that the worker held had started again. */
export function killsOf({ killed }: DemoRecord, cases: readonly Case[]): Proof['kills'] {
  return killed.map(({ number, id, at }) => {
    const held = cases.filter(({ job }) => crashOn(job, id) !== undefined)
    const restarts = held.flatMap((found) => restartOf(found, id, at) ?? [])
    const recoveryMs = restarts.length === 0 ? null : Math.round(Math.max(...restarts) - at)
    return { worker: number, held: held.length, recoveryMs }
  })
}

function crashOn(job: JobFacts | undefined, worker: string): number | undefined {
  const at = job?.history?.entries.findIndex((entry) => entry.outcome === 'crashed' && entry.worker === worker)
  return at === undefined || at < 0 ? undefined : at
}

/** When the attempt after the crash began: as the receiver saw it, or as that attempt's own record says. */
function restartOf({ job, requests }: Case, worker: string, killedAt: number): number | undefined {
  const crash = crashOn(job, worker)
  if (crash === undefined) return undefined
  const noticedAt = job!.history!.entries[crash]!.at
  const seen = requests.find(({ at }) => at >= Math.floor(noticedAt) && at > killedAt)
  if (seen !== undefined) return seen.at
  const next = job!.history!.entries[crash + 1]
  return next === undefined ? undefined : next.at - (next.ranMs ?? 0)
}

export function paceOf(
  { enqueueStartedAt }: DemoRecord,
  cases: readonly Case[],
): Pick<Proof, 'seconds' | 'jobsPerSecond' | 'busiestSecond'> {
  const ends = cases.flatMap(({ job }) => job?.endedAt ?? [])
  if (ends.length === 0) return { seconds: 0, jobsPerSecond: 0, busiestSecond: 0 }
  const lastAt = ends.reduce((last, at) => Math.max(last, at), 0)
  const seconds = (lastAt - enqueueStartedAt) / 1_000
  const bySecond = groupedBy(ends, (at) => Math.floor(at / 1_000))
  return {
    seconds: Math.round(seconds * 10) / 10,
    jobsPerSecond: Math.round(ends.length / Math.max(seconds, 0.001)),
    busiestSecond: [...bySecond.values()].reduce((most, { length }) => Math.max(most, length), 0),
  }
}
