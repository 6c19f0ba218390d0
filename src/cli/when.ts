/** Instants as people read them: ISO with its zone, and how long ago. Called by whatever shows a job or a worker. */
import { formatDuration } from '../core/duration.js'

/** `2030-01-31T09:00:00.000Z`: one zone for all machines, the one that logs have. */
export function isoTime(epochMs: number): string {
  return new Date(epochMs).toISOString()
}

/** Null stays null: for documents. */
export function isoOrNull(epochMs: number | null): string | null {
  return epochMs === null ? null : isoTime(epochMs)
}

/** `3m 10s ago`, `in 5s`, `now`. Of the store's instants by this machine's clock: good for people, and for no rule. */
export function ago(epochMs: number, nowMs: number): string {
  const pastMs = nowMs - epochMs
  if (Math.abs(pastMs) < 500) return 'now'
  return pastMs > 0 ? `${formatDuration(pastMs)} ago` : `in ${formatDuration(-pastMs)}`
}

/** Both, for one line. */
export function moment(epochMs: number, nowMs: number): string {
  return `${isoTime(epochMs)} (${ago(epochMs, nowMs)})`
}
