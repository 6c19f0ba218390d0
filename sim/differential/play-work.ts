/** Plays the operations of producers and workers on one stage. Called by play.ts. */

import type { JobSpec } from '../../src/core/job.js'
import { keyOf } from '../../src/core/keys.js'
import type { Outcome } from '../../src/core/settlement.js'
import type { Beat, ClaimRequest, NewJob, Settlement } from '../../src/storage/storage.js'
import { after, afterCrash } from '../../src/testing/conformance/worker.js'
import {
  BAD_PAYLOADS,
  BEAT_MS,
  type BeatSketch,
  CALL_MAX,
  type ClaimSketch,
  delayMsOf,
  EXACT_DELAY_MS,
  JOB_KEYS,
  type JobSketch,
  KEYS,
  KINDS,
  LEASE_MS,
  LEVELS,
  QUEUES,
  RETENTIONS_MS,
  type SettlementSketch,
  SHARED_QUEUE,
  SHARES,
  SPECS,
} from './commands.js'
import { normalBeat, normalClaim, normalOutcome, normalTakeOver } from './normal.js'
import type { Seat, Slot, Stage } from './stage.js'

export async function enqueue(stage: Stage, sketches: readonly JobSketch[]): Promise<unknown> {
  const single = sketches.length === 1
  const ids = new Set<string>()
  const jobs = sketches.map((sketch, nth) => {
    const job = newJob(stage, sketch, single ? 'single' : nth)
    // One id twice in one call: refused by each store, and which of the two is left to the store.
    const own = ids.has(job.id) ? { ...job, id: stage.newId() } : job
    ids.add(own.id)
    return own
  })
  const outcomes = await stage.store.enqueue(jobs.map((job) => withoutTie(job, jobs)))
  return outcomes.map(normalOutcome)
}

export async function claim(stage: Stage, sketch: ClaimSketch): Promise<unknown> {
  const seat = stage.seats[sketch.worker]!
  const request = { next: seat.request + 1, again: seat.request, older: seat.request - 1, skipping: seat.request + 2 }
  const number = Math.max(1, request[sketch.which])
  seat.request = Math.max(seat.request, number)
  const kinds = seat.kinds.get(number) ?? sketch.kinds
  seat.kinds.set(number, kinds)
  const { settlements, slots } = resolved(stage, sketch.finished)
  const answer = await stage.store.claim(claimRequest(seat.id, number, { ...sketch, kinds: [...kinds] }, settlements))
  for (const slot of slots) slot.done = true
  stage.takes(seat, answer)
  return normalClaim(answer, (fence) => stage.numberOf(fence))
}

export async function settle(stage: Stage, sketches: readonly SettlementSketch[]): Promise<unknown> {
  const { settlements, slots } = resolved(stage, sketches)
  const answers = await stage.store.settle(settlements)
  for (const slot of slots) slot.done = true
  return answers
}

export async function beat(stage: Stage, sketch: BeatSketch): Promise<unknown> {
  const seat = stage.seats[sketch.worker]!
  const { lastBeat } = seat
  if (sketch.which === 'again' && lastBeat !== null) return send(stage, lastBeat)
  if (sketch.which === 'stale' && lastBeat !== null && lastBeat.n > 1)
    return send(stage, { ...lastBeat, n: lastBeat.n - 1 })
  if (sketch.forgets > 0) seat.holding.splice(sketch.forgets - 1, 1)
  return send(stage, nextBeat(stage, seat, sketch))
}

/** A beat as a worker sends it when all is well. */
export async function plainBeat(stage: Stage, worker: number): Promise<unknown> {
  const sketch = { worker, which: 'next', forgets: 0, behind: false, strange: 0, started: 0, lagMs: 0 } as const
  return send(stage, nextBeat(stage, stage.seats[worker]!, sketch))
}

/** A new process takes the seat. Whoever sat there before beats no more. */
export async function register(stage: Stage, worker: number): Promise<unknown> {
  stage.seats[worker] = stage.newSeat()
  return plainBeat(stage, worker)
}

export async function unregister(stage: Stage, worker: number): Promise<unknown> {
  return stage.store.unregister(stage.seats[worker]!.id)
}

export async function takeOver(stage: Stage, worker: number, limit: number): Promise<unknown> {
  const seat = stage.seats[worker]!
  const answer = await stage.store.takeOver({ worker: seat.id, limit })
  stage.adopts(seat, answer)
  return normalTakeOver(answer, (fence) => stage.numberOf(fence))
}

/** All that the seat has adopted is judged, as the worker that took it over would. */
export async function judge(stage: Stage, worker: number): Promise<unknown> {
  const { id, holding } = stage.seats[worker]!
  const adopted = stage.slots.filter((slot) => !slot.done && slot.crash !== null && holding.includes(slot.fence))
  const held = adopted.map((slot) => ({ ...slot, nowMs: stage.side.nowMs() }))
  const answers = await stage.store.settle(held.map((slot, nth) => apart(afterCrash(slot), nth % CALL_MAX)))
  for (const slot of adopted) slot.done = true
  return { id, answers }
}

/**
 * Jobs of one call that go by two statements may tie with each other, where they are of two levels of one queue: told
 * as an instant it goes by the other statement.
 */
function withoutTie(job: NewJob, call: readonly NewJob[]): NewJob {
  const others = call.filter((other) => other.queue === job.queue && !isPlain(other))
  return isPlain(job) && others.length > 0 ? { ...job, due: { atMs: 0 } } : job
}

/** In a store that has a cheaper way for those. */
function isPlain({ chosen, idempotency, spec, due }: NewJob): boolean {
  return (
    !chosen &&
    idempotency === undefined &&
    spec.expiresInMs === undefined &&
    spec.tenant === undefined &&
    keyOf(spec) === undefined &&
    'delayMs' in due &&
    due.delayMs === 0
  )
}

/** `nth`: of its call, or that it is a call of its own. */
function newJob(stage: Stage, sketch: JobSketch, nth: number | 'single'): NewJob {
  const key = sketch.key === 0 ? undefined : KEYS[sketch.key - 1]!
  const share = sketch.queue === SHARED_QUEUE ? SHARES[sketch.tenant]! : {}
  const own = sketch.queue === 0 ? {} : JOB_KEYS[sketch.jobKey]!
  const spec = { ...SPECS[sketch.spec]!, ...share, ...own } as JobSpec
  return {
    id: sketch.id < 2 ? stage.newId() : stage.idAt(sketch.id - 2),
    ...(sketch.id === 0 ? {} : { chosen: true }),
    kind: KINDS[sketch.kind]!,
    queue: QUEUES[sketch.queue]!,
    priority: LEVELS[sketch.level]!,
    payload: sketch.bad === 0 ? JSON.stringify({ text: sketch.text }) : BAD_PAYLOADS[sketch.bad - 1]!,
    spec: key === undefined ? spec : { ...spec, idempotencyKey: key },
    due: dueOf(stage, sketch, nth),
    ...(key === undefined
      ? {}
      : { idempotency: { key, payloadHash: `hash of ${sketch.text}`, retentionMs: RETENTIONS_MS[sketch.retention]! } }),
  }
}

function dueOf(stage: Stage, { level, delay, due }: JobSketch, nth: number | 'single'): NewJob['due'] {
  const exact = nth === 'single' && delay > 0 && LEVELS[level] === 15
  const delayMs = exact ? EXACT_DELAY_MS : delayMsOf(delay, nth === 'single' ? 0 : nth)
  if (due === 'delay') return { delayMs }
  return { atMs: stage.side.nowMs() + (due === 'past' ? -1 - delayMs : delayMs) }
}

function claimRequest(worker: string, request: number, sketch: ClaimSketch, finished: Settlement[]): ClaimRequest {
  return {
    worker,
    request,
    queues: sketch.queues.map(({ queue, share, turn }) => ({ queue: QUEUES[queue]!, share, turn })),
    limit: sketch.limit,
    kinds: sketch.kinds.map((kind) => KINDS[kind]!),
    apart: sketch.apart.map((kind) => KINDS[kind]!),
    pollMs: 5_000,
    suspects: sketch.suspects,
    finished,
  }
}

function send(stage: Stage, beat: Beat): Promise<unknown> {
  return stage.store.beat(beat).then((answer) => normalBeat(answer, (fence) => stage.numberOf(fence)))
}

function nextBeat(stage: Stage, seat: Seat, sketch: BeatSketch): Beat {
  seat.n += 1
  const open = stage.slots.filter((slot) => !slot.done && seat.holding.includes(slot.fence))
  seat.holding = seat.holding.filter((fence) => open.some((slot) => slot.fence === fence))
  const seenMs = stage.side.nowMs() - sketch.lagMs
  for (const slot of open.slice(0, sketch.started)) slot.startedAtMs ??= Math.max(slot.nowMs, seenMs - 7)
  const strange = sketch.strange === 0 ? [] : stage.fences.slice(-sketch.strange).slice(0, 1)
  seat.lastBeat = {
    worker: seat.id,
    n: seat.n,
    known: sketch.behind ? Math.max(0, seat.request - 1) : seat.request,
    leases: [...new Set([...seat.holding, ...strange])],
    started: open
      .filter((slot) => slot.startedAtMs !== null)
      .map((slot) => [slot.fence, slot.ordinal, Math.round(Math.max(0, seenMs - slot.startedAtMs!))]),
    mainLagMs: sketch.lagMs,
    info: { name: 'host:1', queues: [...QUEUES], concurrency: 10, leaseMs: LEASE_MS, beatMs: BEAT_MS },
  }
  return seat.lastBeat
}

/** The settlements of a call. A start is told before an end: a worker never tells it after. */
function resolved(stage: Stage, sketches: readonly SettlementSketch[]): { settlements: Settlement[]; slots: Slot[] } {
  const found = sketches.flatMap((sketch) => {
    const slot = stage.slotAt(sketch)
    return slot === undefined ? [] : [{ slot, sketch }]
  })
  const [starts, ends] = [found.filter(isStart), found.filter((each) => !isStart(each))]
  return {
    settlements: [...starts, ...ends].map(({ slot, sketch }, nth) => settlement(stage, slot, sketch, nth)),
    slots: ends.map(({ slot }) => slot),
  }
}

/** What was taken over is judged by its crash alone. */
function isStart({ slot, sketch }: { slot: Slot; sketch: SettlementSketch }): boolean {
  return sketch.outcome === 'started' && slot.crash === null
}

function settlement(stage: Stage, slot: Slot, sketch: SettlementSketch, nth: number): Settlement {
  const held = { ...slot, nowMs: stage.side.nowMs() }
  if (slot.crash !== null) return apart(afterCrash(held), nth)
  if (sketch.outcome === 'started') return { fence: slot.fence, ordinal: slot.ordinal, to: 'started' }
  const settled = apart(after(held, outcomeOf(sketch)), nth)
  const times = 'ranMs' in settled ? { startedAfterMs: sketch.started } : {}
  if (settled.to === 'completed') return { ...settled, ...times, keep: sketch.keep && settled.keep }
  return { ...settled, ...times }
}

/** No two of a call wait for one instant. */
function apart(settled: Settlement, nth: number): Settlement {
  return settled.to === 'delayed' && settled.delayMs > 0 ? { ...settled, delayMs: settled.delayMs + nth } : settled
}

/** The text differs with the slot, so that dead letters fall into groups. */
function outcomeOf({ outcome, delay, slot }: SettlementSketch): Outcome {
  const error = { name: 'Error', message: slot % 2 === 0 ? 'it broke' : 'it gave way' }
  const [delayMs, ranMs] = [delayMsOf(delay, 0), 5]
  switch (outcome) {
    case 'threw':
      return delay === 0 ? { type: 'threw', error, ranMs } : { type: 'threw', error, ranMs, delayMs }
    case 'rejected':
      return { type: 'rejected', error, ranMs }
    case 'snoozed':
      return { type: 'snoozed', delayMs, ranMs }
    case 'given back':
      return { type: 'given back', note: 'shutdown' }
    case 'aborted':
      return { type: 'given back', note: 'shutdown', ranMs }
    case 'cancelled':
      return { type: 'cancelled', ranMs }
    case 'expired':
      return { type: 'expired' }
    default:
      return delay % 2 === 0 ? { type: 'returned', ranMs } : { type: 'returned', ranMs, result: '[1]' }
  }
}
