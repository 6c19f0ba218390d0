/** The job that is measured: it does nothing, with a payload of some 40 bytes. Shared with the worker process. */
import { defineJob, type JobItem } from '../../core/kind.js'

export const noop = defineJob<{ n: number; to: string }>('bench.noop')

export function payloadOf(n: number): { n: number; to: string } {
  return { n, to: `user${n}@example.com` }
}

export function* noops(count: number): Generator<JobItem> {
  for (let n = 0; n < count; n++) yield noop.with(payloadOf(n))
}
