/** What operators do to jobs and queues: the `control` facet. */
import { emptyHistory } from '../../core/job.js'
import { isSameRate } from '../../core/limits.js'
import type {
  CancelAnswer,
  Control,
  DeadBefore,
  DiscardAnswer,
  InStates,
  MovedOn,
  OpenState,
  RedriveAnswer,
  RetryAnswer,
} from '../storage.js'
import type { JobRow } from './jobs.js'
import { FULL } from './queues.js'
import { endCancelled, type MemoryState, release, toFronts, withEntry } from './state.js'

export function controlOf(state: MemoryState): Control {
  return {
    cancel: async (ids, only) => cancelAll(state, ids, only),
    retry: async (ids, only) =>
      inOrder(
        state,
        ids,
        ({ dueAt }) => dueAt,
        (job) => retry(state, job, only),
      ),
    redrive: async (ids, options) =>
      inOrder(
        state,
        ids,
        ({ endedAt }) => endedAt ?? 0,
        (job) => redrive(state, job, options),
      ),
    discard: async (ids, only) => ids.map((id) => discard(state, state.jobs.get(id), only)),
    pause: async (queue) => {
      state.queues.ensure(queue).paused = true
    },
    resume: async (queue) => {
      Object.assign(state.queues.ensure(queue), { paused: false, draining: false })
      state.hints.tell(queue)
    },
    refuse: async (queue) => {
      state.queues.ensure(queue).draining = true
    },
    limit: async (queue, limits) => {
      const row = state.queues.ensure(queue)
      if (limits.rate !== undefined && !isSameRate(limits.rate, row.limits.rate)) row.starts = FULL
      if (limits.intake !== undefined && !isSameRate(limits.intake, row.limits.intake)) row.arrivals = FULL
      row.limits = { ...row.limits, ...limits }
      // What a lower limit of keys has blocked.
      if (limits.perKey !== undefined)
        toFronts(
          state,
          state.jobs.permits.free(() => row.limits.perKey, queue),
        )
      state.hints.tell(queue)
    },
    purge: async (queue, limit) => purge(state, queue, limit),
    order: async (queue, order) => {
      state.queues.ensure(queue).order = order
    },
  }
}

/** What comes back in one call comes in the order of its ages, whatever the order of the ids. Answers in that of the ids. */
function inOrder<Answer>(
  state: MemoryState,
  ids: readonly string[],
  ageOf: (job: JobRow) => number,
  change: (job: JobRow | undefined) => Answer,
): Answer[] {
  const answers: Answer[] = []
  const jobs = ids.map((id, at) => ({ at, job: state.jobs.get(id) }))
  const age = (job: JobRow | undefined): number => (job === undefined ? 0 : ageOf(job))
  jobs.sort((a, b) => age(a.job) - age(b.job) || ((a.job?.id ?? '') < (b.job?.id ?? '') ? -1 : 1))
  for (const { at, job } of jobs) answers[at] = change(job)
  return answers
}

function cancel(state: MemoryState, job: JobRow | undefined, only?: InStates<OpenState>): CancelAnswer | MovedOn {
  switch (job?.place) {
    case undefined:
      return 'unknown'
    case 'ready':
    case 'delayed':
    case 'blocked':
      if (!isIn(job!, only)) return 'moved on'
      endCancelled(state, job!, state.now())
      return 'cancelled'
    case 'leased':
      if (!isIn(job!, only)) return 'moved on'
      job!.cancelling = true
      return 'signalled'
    case 'ended':
    case 'dead':
      return 'ended'
  }
}

/** Permits are free when all of the call have ended: none of them comes to life between. */
function cancelAll(state: MemoryState, ids: readonly string[], only?: InStates<OpenState>): (CancelAnswer | MovedOn)[] {
  const jobs = ids.map((id) => state.jobs.get(id))
  const answers = jobs.map((job) => cancel(state, job, only))
  release(
    state,
    jobs.filter((job) => job !== undefined).filter((_, at) => answers[at] === 'cancelled'),
  )
  return answers
}

function isIn({ state }: JobRow, only: InStates<OpenState> | undefined): boolean {
  return only === undefined || (only.states as readonly string[]).includes(state)
}

function retry(state: MemoryState, job: JobRow | undefined, only?: InStates<OpenState>): RetryAnswer | MovedOn {
  switch (job?.place) {
    case undefined:
      return 'unknown'
    case 'ready':
      return 'ready'
    case 'blocked':
      return 'blocked'
    case 'leased':
      return 'running'
    case 'ended':
    case 'dead':
      return 'ended'
    case 'delayed':
      if (!isIn(job!, only)) return 'moved on'
      job!.history = withEntry(job!, { outcome: 'retried' }, state.now())
      // Its due time lies ahead and would put it behind the backlog; it goes by when it came in.
      state.jobs.toFront(job!, job!.enqueuedAt, job!.enqueuedNth)
      state.hints.tell(job!.queue)
      return 'ok'
  }
}

/** As new, but for its history: neither the age of its first start nor an expiry that is past may end it again. */
function redrive(
  state: MemoryState,
  job: JobRow | undefined,
  { force, ...only }: { force: boolean } & DeadBefore,
): RedriveAnswer | MovedOn {
  if (job === undefined) return 'unknown'
  if (job.place !== 'dead') return 'not dead'
  if (!endedBefore(job, only)) return 'moved on'
  if (job.reason === 'lost' && !force) return 'needs force'
  const now = state.now()
  const { firstStartedAt: _, ...history } = { ...emptyHistory(), ...job.history }
  job.history = { ...history, attempts: 0, crashes: 0, crashesAlone: 0, redrives: history.redrives + 1 }
  job.history = withEntry(job, { outcome: 'redriven' }, now)
  job.expiresAt = null
  job.suspect = false
  state.jobs.toBack(job, now, state.jobs.nextNth())
  state.hints.tell(job.queue)
  return 'ok'
}

/** As if it had never been: its key may be used again. */
function discard(state: MemoryState, job: JobRow | undefined, only: DeadBefore = {}): DiscardAnswer | MovedOn {
  if (job === undefined) return 'unknown'
  if (job.place !== 'dead') return 'not dead'
  if (!endedBefore(job, only)) return 'moved on'
  freeKey(state, job)
  state.jobs.remove(job)
  release(state, [job])
  return 'discarded'
}

function endedBefore(job: JobRow, { endedBefore: instant }: DeadBefore): boolean {
  return instant === undefined || job.endedAt! < instant
}

function purge(state: MemoryState, queue: string, limit: number): { deleted: number; more: boolean } {
  const waiting: JobRow[] = []
  for (const place of ['ready', 'delayed', 'retrying', 'blocked'] as const) {
    for (const job of state.jobs.inState(place).items()) if (job.queue === queue) waiting.push(job)
  }
  const deleted = waiting.slice(0, limit)
  for (const job of deleted) {
    freeKey(state, job)
    state.jobs.remove(job)
  }
  release(state, deleted)
  return { deleted: deleted.length, more: waiting.length > deleted.length }
}

function freeKey(state: MemoryState, job: JobRow): void {
  const key = job.spec.idempotencyKey
  const row = key === undefined ? undefined : state.keys.get(job.kind, key)
  if (row?.id === job.id) state.keys.delete(row)
}
