/** How jobs come in. Called by MemoryStorage. */
import { QueueError } from '../../core/errors.js'
import { type Early, type Full, retryAfterMs, taken, tokensAt, untilToken } from '../../core/limits.js'
import type { EnqueueOptions, EnqueueOutcome, NewJob } from '../storage.js'
import { copyOfSpec } from './copy.js'
import type { JobRow } from './jobs.js'
import type { KeyRow } from './keys.js'
import { drained } from './pace.js'
import type { MemoryState } from './state.js'

export function enqueue(state: MemoryState, jobs: readonly NewJob[], options: EnqueueOptions): EnqueueOutcome[] {
  if (options.tx !== undefined)
    throw new QueueError('CAPABILITY_MISSING', 'the memory store has no transactions: leave out { tx }')
  const now = state.now()
  for (const job of jobs) if (job.spec.tenant !== undefined) state.jobs.lanes.fair.mark(job)
  return jobs.map((job) => enqueueOne(state, job, now))
}

/**
 * After what no store could take the key comes first, then a known id: a call that is sent again after a lost answer has to hear of the job that it
 * made, also when the queue is being drained, or has become full, meanwhile.
 */
function enqueueOne(state: MemoryState, job: NewJob, now: number): EnqueueOutcome {
  const { idempotency } = job
  state.queues.ensure(job.queue)
  const fault = payloadFault(job.payload)
  if (fault !== undefined) return { status: 'refused', code: 'STORE_REJECTED', cause: fault }
  const known = idempotency && livingKey(state, job.kind, idempotency.key, now)
  if (known !== undefined)
    return { status: known.payloadHash === idempotency?.payloadHash ? 'duplicate' : 'mismatch', id: known.id }
  if (state.jobs.get(job.id) !== undefined)
    return { status: 'refused', code: 'DUPLICATE_ID', cause: new Error(`a job with the id ${job.id} exists`) }
  if (state.queues.get(job.queue).draining) return { status: 'draining' }
  const full = fullOf(state, job, now)
  if (full !== undefined) return { status: 'full', ...full }
  const early = withoutToken(state, job, now)
  if (early !== undefined) return { status: 'early', ...early }
  store(state, job, now)
  return { status: 'created' }
}

/** The limit of the whole queue first, then that of the kind, then that of the tenant. */
function fullOf(state: MemoryState, { queue, kind, spec }: NewJob, now: number): Full | undefined {
  const { depth: limits } = state.queues.get(queue).limits
  if (limits === null) return undefined
  const scopes = [
    { scope: 'queue', depth: state.jobs.waiting(queue), limit: limits.limit },
    { scope: 'kind', depth: state.jobs.waiting(queue, kind), limit: limits.kinds[kind] ?? Infinity },
    { scope: 'tenant', depth: state.jobs.waitingOf(queue, spec.tenant), limit: limits.perTenant ?? Infinity },
  ] as const
  const reached = scopes.find(({ depth, limit }) => depth >= limit)
  return reached && { ...reached, retryAfterMs: retryAfterMs(reached, drained(state, queue, now)) }
}

/** Takes a token of the queue's intake, where it has one. */
function withoutToken(state: MemoryState, { queue }: NewJob, now: number): Early | undefined {
  const row = state.queues.ensure(queue)
  const { intake } = row.limits
  if (intake === null) return undefined
  if (tokensAt(row.arrivals, intake, now) === 0)
    return { limit: intake.limit, perMs: intake.perMs, retryAfterMs: Math.ceil(untilToken(row.arrivals, intake, now)) }
  row.arrivals = taken(row.arrivals, intake, now, 1)
  return undefined
}

function store(state: MemoryState, job: NewJob, now: number): void {
  const row = newRow(state, job, now)
  if (job.idempotency !== undefined) state.keys.add(job, job.idempotency, row.dueAt)
  state.jobs.insert(row, now)
  // Told of a delayed one too: the listener may be asleep until long after its due time.
  state.hints.tell(job.queue)
}

/** The record of a key, unless its retention is over and its job has ended for good: then the key is free. */
function livingKey(state: MemoryState, kind: string, key: string, now: number): KeyRow | undefined {
  const row = state.keys.get(kind, key)
  if (row === undefined || row.until > now || mayRun(state.jobs.get(row.id))) return row
  state.keys.delete(row)
  return undefined
}

/** A dead letter too: a redrive may bring it back, beside another job of its key. */
export function mayRun(job: JobRow | undefined): boolean {
  return job !== undefined && job.place !== 'ended'
}

function payloadFault(payload: string): unknown {
  try {
    JSON.parse(payload)
    return undefined
  } catch (fault) {
    return fault
  }
}

/** Each digit of sixteen as far from the last one as it was from the first. */
function mirrored(id: string): string {
  return id.replace(/[\da-f]/gi, (digit) => (15 - Number.parseInt(digit, 16)).toString(16))
}

function newRow(state: MemoryState, job: NewJob, now: number): JobRow {
  const { expiresInMs } = job.spec
  // An instant that is past does not put the job ahead of those that have waited since.
  const dueAt = 'delayMs' in job.due ? now + job.due.delayMs : Math.max(now, job.due.atMs)
  const enqueuedNth = state.jobs.nextNth()
  return {
    id: job.id,
    kind: job.kind,
    queue: job.queue,
    priority: job.priority,
    payload: job.payload,
    spec: copyOfSpec(job.spec),
    enqueuedAt: now,
    history: null,
    place: 'ready',
    state: 'ready',
    dueAt,
    expiresAt: expiresInMs === undefined ? null : now + expiresInMs,
    suspect: false,
    front: false,
    fairPlace: null,
    dueNth: dueAt > now ? 0 : enqueuedNth,
    enqueuedNth,
    queueNumber: state.queues.numberOf(job.queue),
    mirroredId: mirrored(job.id),
    position: 0,
    claimedAt: null,
    startedAt: null,
    endedAt: null,
    worker: null,
    result: null,
    reason: null,
    ranMs: null,
    cancelling: false,
  }
}
