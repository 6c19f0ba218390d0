/** The jobs of a run as an application would define them: a kind for each sort. Used by producers, workers and the driver. */
import { defineJob, type JobItem, type JobKind } from '../src/index.js'
import { factsOfSort, type PlannedJob, SORT_NAMES, type Sort } from '../src/testing/chaos/plan.js'

/** What a handler needs to know of the plan. */
export interface Work {
  n: number
  workMs: number
  failures: number
}

type ChaosKind = JobKind<Work, Work, unknown>

const ALL: readonly Sort[] = [...SORT_NAMES, 'backlog']

export const KINDS = Object.fromEntries(ALL.map((sort) => [sort, kindOf(sort)])) as Record<Sort, ChaosKind>

export function kindNames(): string[] {
  return ALL.map((sort) => KINDS[sort].name)
}

function kindOf(sort: Sort): ChaosKind {
  if (sort === 'once') return defineJob<Work>('chaos.once', { delivery: 'at-most-once' })
  // Shorter than the default: failures have to come to their end within a run.
  return defineJob<Work>(`chaos.${sort}`, {
    retry: { attempts: factsOfSort(sort).attempts, backoff: { base: '200ms' } },
  })
}

/** `nowMs`: the store's clock, epoch milliseconds, for jobs that are due at an instant. */
export function itemOf(planned: PlannedJob, nowMs: () => number): JobItem {
  const { n, sort, queue, priority, workMs, failures, key } = planned
  return KINDS[sort].with(
    { n, workMs, failures },
    { queue, priority, ...(key === undefined ? {} : { idempotencyKey: key }), ...dueOf(planned, nowMs) },
  )
}

/** Instants are rounded up, so that many jobs come due at once. */
const SHARED_INSTANT_MS = 2_000

function dueOf({ n, delayMs }: PlannedJob, nowMs: () => number): { delay?: number; runAt?: number } {
  if (delayMs === 0) return {}
  if (n % 2 === 0) return { delay: delayMs }
  return { runAt: Math.ceil((nowMs() + delayMs) / SHARED_INSTANT_MS) * SHARED_INSTANT_MS }
}
