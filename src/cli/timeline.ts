/** What happened to a job, as lines in the order of time. Pure; called by `jobs show`. */
import { formatDuration } from '../core/duration.js'
import { HISTORY_ENTRIES_MAX, type HistoryEntry } from '../core/job.js'
import type { JobView } from '../storage/storage.js'

const ERROR_LENGTH_MAX = 300

export interface TimelineLine {
  /** Null: it is not known, and nothing that is comes after it. */
  atMs: number | null
  text: string
  /** Where it was, and what came of it. */
  detail?: string
  tone?: 'good' | 'bad'
}

/** `nameOf` gives a worker its name, for those that are alive. */
export function timeline(job: JobView, nameOf: (worker: string) => string): TimelineLine[] {
  const lines: TimelineLine[] = [{ atMs: job.enqueuedAt, text: `enqueued into queue ${job.queue}` }]
  const entries = job.history?.entries ?? []
  for (const entry of entries) lines.push(entryLine(entry, nameOf))
  const now = presentLine(job, nameOf)
  // What ended it comes before the end. Workers reckon the store's clock to a few milliseconds, so instants do not decide.
  if (now !== undefined && job.endedAt !== null) return [...lines.sort(byTime), now]
  if (now !== undefined) lines.push(now)
  return lines.sort(byTime)
}

/** Of one instant, the order in which they were pushed stays. */
function byTime(a: TimelineLine, b: TimelineLine): number {
  return (a.atMs ?? Number.POSITIVE_INFINITY) - (b.atMs ?? Number.POSITIVE_INFINITY) || 0
}

/** Older entries of a long life are not kept; whoever reads the timeline has to know. */
export function isCut(job: JobView): boolean {
  return (job.history?.entries.length ?? 0) >= HISTORY_ENTRIES_MAX
}

const OUTCOME_WORDS: Record<HistoryEntry['outcome'], { text: string; tone?: TimelineLine['tone'] }> = {
  failed: { text: 'failed', tone: 'bad' },
  'timed out': { text: 'timed out', tone: 'bad' },
  crashed: { text: 'its worker died', tone: 'bad' },
  'given back': { text: 'given back' },
  snoozed: { text: 'snoozed' },
  retried: { text: 'started early by an operator' },
  rejected: { text: 'rejected by its handler', tone: 'bad' },
  expired: { text: 'expired: it was not started in time', tone: 'bad' },
  lost: { text: 'lost: its worker died, and it may run once only', tone: 'bad' },
  cancelled: { text: 'cancelled' },
  completed: { text: 'completed', tone: 'good' },
  redriven: { text: 'redriven: brought back with fresh attempts' },
}

/** Those that say nothing of an attempt. */
const WITHOUT_ATTEMPT = new Set<HistoryEntry['outcome']>(['retried', 'expired', 'redriven'])

function entryLine(entry: HistoryEntry, nameOf: (worker: string) => string): TimelineLine {
  const { text, tone } = OUTCOME_WORDS[entry.outcome]
  const what = WITHOUT_ATTEMPT.has(entry.outcome) ? text : `attempt ${entry.attempt}: ${text}`
  const ran = entry.ranMs === undefined ? '' : ` after ${formatDuration(entry.ranMs)}`
  const error = entry.error === undefined ? '' : `: ${cut(`${entry.error.name}: ${entry.error.message}`)}`
  const details = [
    entry.worker === undefined ? '' : `on ${nameOf(entry.worker)}`,
    entry.note ?? '',
    entry.delayMs === undefined ? '' : `again in ${formatDuration(entry.delayMs)}`,
  ].filter((part) => part !== '')
  return {
    atMs: entry.at,
    text: `${what}${ran}${error}`,
    ...(details.length === 0 ? {} : { detail: details.join('; ') }),
    ...(tone === undefined ? {} : { tone }),
  }
}

/** The last error stands in full below; of earlier ones the beginning tells enough. */
function cut(text: string): string {
  return text.length <= ERROR_LENGTH_MAX ? text : `${text.slice(0, ERROR_LENGTH_MAX)}…`
}

/** What the columns say beside the history: the attempt that runs, the end, or what it waits for. */
function presentLine(job: JobView, nameOf: (worker: string) => string): TimelineLine | undefined {
  const attempt = (job.history?.attempts ?? 0) + 1
  const on = job.worker === null ? {} : { detail: `on ${nameOf(job.worker)}` }
  switch (job.state) {
    case 'running':
      return startOf(job) === null
        ? { atMs: null, text: `attempt ${attempt}: claimed; its start is not reported yet`, ...on }
        : { atMs: startOf(job), text: `attempt ${attempt}: running`, ...on }
    case 'completed':
      return tellsEnd(job, 'completed') ? undefined : completedLine(job, on)
    case 'dead':
      return { atMs: job.endedAt ?? job.enqueuedAt, text: `dead (${job.reason})`, tone: 'bad' }
    case 'cancelled':
      return tellsEnd(job, 'cancelled') ? undefined : { atMs: job.endedAt ?? job.enqueuedAt, text: 'cancelled' }
    default:
      return { atMs: job.dueAt ?? job.enqueuedAt, text: job.state === 'ready' ? 'due, waits for a worker' : 'due' }
  }
}

/** Of the attempt that runs. One before the last entry is that of an earlier attempt: this one was not reported yet. */
function startOf({ startedAt, history }: JobView): number | null {
  const lastAt = history?.entries.at(-1)?.at ?? Number.NEGATIVE_INFINITY
  return startedAt === null || startedAt < lastAt ? null : startedAt
}

/** Whether the history has it already: that of a job which went well at once has nothing to tell. */
function tellsEnd({ history }: JobView, outcome: HistoryEntry['outcome']): boolean {
  return history?.entries.at(-1)?.outcome === outcome
}

function completedLine(job: JobView, on: { detail?: string }): TimelineLine {
  const endedAt = job.endedAt ?? job.enqueuedAt
  const ran = job.startedAt === null ? '' : ` after ${formatDuration(Math.max(0, endedAt - job.startedAt))}`
  return { atMs: endedAt, text: `attempt 1: completed${ran}`, ...on, tone: 'good' }
}
