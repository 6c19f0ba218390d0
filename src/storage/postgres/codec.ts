/** How values cross the wire: array literals, lanes, times, specs. Called by every file of this adapter. */
import { type Backoff, type JobHistory, type JobSpec, type Json, SPEC_DEFAULTS } from '../../core/job.js'
import type { ClaimedJob } from '../storage.js'
import { readHistory } from './odd-text.js'

/** See the table `ready`: lane = queue * 64 + range * 16 + level. */
export function laneOf(queueId: number, level: number): number {
  return queueId * 64 + level
}

export function queueOfLane(lane: number): number {
  return Math.floor(lane / 64)
}

export function levelOfLane(lane: number): number {
  return lane & 15
}

/** Whether positions of the lane are instants (the backlog), so that a cursor may be moved by the clock. */
export function isBacklog(lane: number): boolean {
  return (lane & 48) === 0
}

/** Whether it is the fair list of its level: positions are virtual times. */
export function isFairLane(lane: number): boolean {
  return (lane & 48) === 48
}

/** An array literal of numbers, booleans or uuids: nothing in it needs quotes. */
export function plainArray(values: readonly (number | boolean | string | null)[]): string {
  let text = '{'
  for (let i = 0; i < values.length; i++) {
    const value = values[i]
    if (i > 0) text += ','
    text += value === null || value === undefined ? 'NULL' : value
  }
  return `${text}}`
}

/** An array literal of any texts (JSON among them). */
export function textArray(values: readonly (string | null)[]): string {
  let text = '{'
  for (let i = 0; i < values.length; i++) {
    const value = values[i]
    if (i > 0) text += ','
    text += value === null || value === undefined ? 'NULL' : quoted(value)
  }
  return `${text}}`
}

const TO_ESCAPE = /["\\]/g

function quoted(value: string): string {
  return `"${value.includes('"') || value.includes('\\') ? value.replace(TO_ESCAPE, '\\$&') : value}"`
}

/** Microseconds, as the schema counts. */
export function microseconds(ms: number): number {
  return Math.round(ms * 1_000)
}

/** The stored form of a spec: only what differs from the defaults; null when nothing does. */
export function specText(spec: JobSpec): string | null {
  const known = specTexts.get(spec)
  if (known !== undefined) return known
  const text = encodeSpec(spec)
  specTexts.set(spec, text)
  return text
}

/** A kind hands the same spec object with each of its jobs, so its text is made once. */
const specTexts = new WeakMap<JobSpec, string | null>()

function encodeSpec(spec: JobSpec): string | null {
  const changed = Object.entries(spec).filter(
    ([key, value]) => value !== undefined && !same(value, SPEC_DEFAULTS[key as keyof JobSpec]),
  )
  return changed.length === 0 ? null : JSON.stringify(Object.fromEntries(changed))
}

function same(a: unknown, b: unknown): boolean {
  return a === b || (typeof a === 'object' && JSON.stringify(a) === JSON.stringify(b))
}

export function decodeSpec(stored: Partial<JobSpec> | null): JobSpec {
  return stored === null
    ? { ...SPEC_DEFAULTS }
    : { ...SPEC_DEFAULTS, ...stored, backoff: (stored.backoff ?? SPEC_DEFAULTS.backoff) as Backoff }
}

/** A job as claim and take-over write it: [id, kind, lane, pos, due, enqueued, payload, spec, history]. */
export type WireJob = [
  id: string,
  kind: string,
  lane: number,
  pos: number,
  due: number | null,
  enqueued: number | null,
  payload: Json,
  spec: Partial<JobSpec> | null,
  history: JobHistory | null,
]

/** `text` is what the job was parsed from. */
export function decodeJob(
  wire: WireJob,
  claimedUs: number,
  nameOf: (queueId: number) => string,
  text: string,
): ClaimedJob {
  const [id, kind, lane, pos, due, enqueued, payload, stored, written] = wire
  const history = readHistory(written, text)
  const spec = decodeSpec(stored)
  const enqueuedUs = enqueued ?? pos
  // Brought back from the dead it does not expire again: its enqueue lies long behind.
  const started = history !== null && (history.firstStartedAt !== undefined || history.redrives > 0)
  return {
    id,
    kind,
    queue: nameOf(queueOfLane(lane)),
    priority: levelOfLane(lane),
    payload,
    spec,
    history,
    enqueuedAt: enqueuedUs / 1_000,
    waitedMs: Math.max(0, (claimedUs - (due ?? pos)) / 1_000),
    expiresInMs: spec.expiresInMs === undefined || started ? null : spec.expiresInMs - (claimedUs - enqueuedUs) / 1_000,
  }
}

/** Microseconds of an instant that may be left open. */
export function instant(ms: number | undefined): number | null {
  return ms === undefined ? null : microseconds(ms)
}

/** Before every uuid. */
export const FIRST_ID = '00000000-0000-0000-0000-000000000000'
export const INT_MAX = 2_147_483_647
