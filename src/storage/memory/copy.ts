/** What goes in and out is copied, so that nobody outside holds a part of the store. Called by the operations. */
import type { JobHistory, JobSpec } from '../../core/job.js'

export function copyOfSpec(spec: JobSpec): JobSpec {
  return { ...spec, backoff: { ...spec.backoff } }
}

export function copyOfHistory(history: JobHistory | null): JobHistory | null {
  return history === null ? null : structuredClone(history)
}
