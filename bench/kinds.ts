/** The kinds of jobs that are measured, shared by producers and worker processes. */
import { defineJob, type JobItem } from '../src/index.js'

export interface Payload {
  n: number
  to: string
}

export const RECORDS = ['all', 'failures', 'none'] as const
export type Records = (typeof RECORDS)[number]

/** Does nothing, with a payload of some 40 bytes; one kind for each way to keep records. */
export const noop = {
  all: defineJob<Payload>('bench.noop'),
  failures: defineJob<Payload>('bench.noop.failures', { keep: 'failures' }),
  none: defineJob<Payload>('bench.noop.none', { keep: 'none' }),
}

/** Handlers of 0, 1 and 20 ms. Kinds of their own, as workers learn how long a kind runs. */
export const waits = [
  { ms: 0, kind: defineJob<Payload>('bench.wait.0') },
  { ms: 1, kind: defineJob<Payload>('bench.wait.1') },
  { ms: 20, kind: defineJob<Payload>('bench.wait.20') },
] as const

/** Runs until it is aborted. */
export const hold = defineJob<Payload>('bench.hold', { timeout: '1h' })

/** All of them are in the queue of kinds that name none. */
export const QUEUE = 'default'

export function payloadOf(n: number): Payload {
  return { n, to: `user${n}@example.com` }
}

export function* noops(count: number, records: Records = 'all'): Generator<JobItem> {
  for (let n = 0; n < count; n++) yield noop[records].with(payloadOf(n))
}
