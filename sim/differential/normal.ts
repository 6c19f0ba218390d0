/**
 * Answers in a form in which two stores can be compared: fences by number, instants to the millisecond. What they may
 * differ in beyond that is in MAY_DIFFER, and nowhere else. Called by play.ts.
 */
import type {
  BeatAnswer,
  Claim,
  ClaimedJob,
  EnqueueOutcome,
  JobView,
  MovedJob,
  TakeOver,
  WorkerView,
} from '../../src/storage/storage.js'

type NumberOf = (fence: number) => number

/** What two right stores may answer differently, and why. Each entry is a place where a fault could hide. */
export const MAY_DIFFER = {
  cursors: 'The `next` of a page is text of the store; a page that is just full may be followed by an empty one.',
  matchOrder: 'Those that match but are not dead come in the order of an index: bulk work has no order to keep.',
  sets: 'Paused queues, lost fences and cancelled jobs are sets, and so is what one call of expire has ended.',
  pruned: 'How much one step of prune, purge or expire does is the pace of a store; all of it together is not.',
  causes: 'The cause of a refusal is the error of a driver; its code is compared.',
  depths: 'What waits is counted as far as a limit, and by that a store says when to try again.',
  microseconds: 'PostgreSQL tells apart what came in one call by microseconds.',
} as const

export function normalOutcome(outcome: EnqueueOutcome): unknown {
  if (outcome.status === 'refused') return { status: outcome.status, code: outcome.code }
  if (outcome.status === 'full') return { status: outcome.status, scope: outcome.scope, limit: outcome.limit }
  if (outcome.status === 'early') return { ...outcome, retryAfterMs: roundedToTens(outcome.retryAfterMs) }
  return outcome
}

export function normalClaim(claim: Claim, numberOf: NumberOf): unknown {
  return {
    ...claim,
    leases: claim.leases.map(({ fence, jobs, ...lease }) => ({
      ...lease,
      fence: numberOf(fence),
      jobs: jobs.map(normalJob),
    })),
    nextDueMs: rounded(claim.nextDueMs),
    nowMs: rounded(claim.nowMs),
    paused: claim.paused.toSorted(),
    limited: claim.limited.toSorted(),
    nextTokenMs: rounded(claim.nextTokenMs),
  }
}

export function normalTakeOver({ leases, nowMs }: TakeOver, numberOf: NumberOf): unknown {
  return {
    leases: leases.map(({ fence, jobs, ...lease }) => ({
      ...lease,
      fence: numberOf(fence),
      jobs: jobs.map(normalJob),
    })),
    nowMs: rounded(nowMs),
  }
}

export function normalBeat({ status, lost, cancel, paused }: BeatAnswer, numberOf: NumberOf): unknown {
  return {
    status,
    lost: lost.map(numberOf).sort((a, b) => a - b),
    cancel: cancel.map(([fence, ordinal]) => [numberOf(fence), ordinal].join()).sort(),
    paused: paused.toSorted(),
  }
}

function normalJob(job: ClaimedJob): unknown {
  return {
    ...job,
    enqueuedAt: rounded(job.enqueuedAt),
    waitedMs: rounded(job.waitedMs),
    expiresInMs: rounded(job.expiresInMs),
  }
}

export function normalView(view: JobView | null): unknown {
  if (view === null) return null
  const { enqueuedAt, dueAt, startedAt, endedAt } = view
  return {
    ...view,
    enqueuedAt: rounded(enqueuedAt),
    dueAt: rounded(dueAt),
    startedAt: rounded(startedAt),
    endedAt: rounded(endedAt),
  }
}

export function normalWorker(view: WorkerView): unknown {
  return { ...view, startedAt: rounded(view.startedAt), lastBeatAgoMs: rounded(view.lastBeatAgoMs) }
}

export function sortedMoves(moved: readonly MovedJob[]): MovedJob[] {
  return moved.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

/** What is reckoned in microseconds and rounded up may be a millisecond more. */
function roundedToTens(ms: number): number {
  return Math.round(ms / 10) * 10
}

export function rounded(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms)
}
