/** A job in full, for people: head, timeline, payload, result, last error. Called by `jobs show` and `dead show`. */
import { formatDuration } from '../core/duration.js'
import { type Backoff, type JobSpec, TIERS } from '../core/job.js'
import type { JobView } from '../storage/storage.js'
import { attemptsUsed } from './documents.js'
import { printable, printableLines, safeJson } from './printable.js'
import type { TableView } from './table.js'
import { isCut, timeline } from './timeline.js'
import { isoTime, moment } from './when.js'

/** Below the text of a line of the timeline. */
const DETAIL_INDENT = ' '.repeat(38)

interface PageFacts {
  /** Of the workers that are alive, by id. */
  names: ReadonlyMap<string, string>
  nowMs: number
  view: TableView
}

export function jobPage(job: JobView, facts: PageFacts): string {
  const sections = [
    head(job, facts),
    timelineSection(job, facts),
    section('Payload', safeJson(job.payload, 2), facts),
    job.history?.progress === undefined ? '' : section('Progress', safeJson(job.history.progress, 2), facts),
    job.result === undefined ? '' : section('Result', safeJson(job.result, 2), facts),
    errorSection(job, facts),
  ]
  return sections.filter((text) => text !== '').join('\n\n')
}

function head(job: JobView, { names, nowMs, view }: PageFacts): string {
  const at = (ms: number | null): string | undefined => (ms === null ? undefined : moment(ms, nowMs))
  const facts: [string, string | undefined][] = [
    ['kind', job.kind],
    ['state', stateText(job, view)],
    ['queue', `${job.queue}, priority ${priorityText(job.priority)}`],
    ['partition', job.partition === undefined ? undefined : printable(job.partition)],
    ['enqueued', at(job.enqueuedAt)],
    ['due', at(job.dueAt)],
    ['started', at(job.startedAt)],
    ['ended', at(job.endedAt)],
    ['worker', job.worker === null ? undefined : workerText(job.worker, names)],
    ['key', optional(job.spec.idempotencyKey)],
    ['order key', optional(job.spec.orderKey)],
    ['limit key', optional(job.spec.limitKey)],
    ['tenant', optional(job.spec.tenant)],
    ['attempts', attemptsText(job)],
    ['policy', policyText(job.spec)],
  ]
  const lines = facts.flatMap(([name, text]) =>
    text === undefined ? [] : [`  ${view.paint('dim', name.padEnd(10))} ${text}`],
  )
  return [view.paint('bold', `Job ${job.id}`), ...lines].join('\n')
}

function optional(text: string | undefined): string | undefined {
  return text === undefined ? undefined : printable(text)
}

function stateText(job: JobView, { paint }: TableView): string {
  const reason = job.reason === undefined ? '' : ` (${job.reason})`
  const text = `${job.state}${reason}${job.cancelling ? ', somebody wants it cancelled' : ''}`
  if (job.state === 'dead') return paint('red', text)
  return job.state === 'completed' ? paint('green', text) : text
}

/** With the name of its tier, where it has one. */
export function priorityText(priority: number): string {
  const tier = Object.entries(TIERS).find(([, level]) => level === priority)?.[0]
  return tier === undefined ? String(priority) : `${priority} (${tier})`
}

function workerText(worker: string, names: ReadonlyMap<string, string>): string {
  const name = names.get(worker)
  return name === undefined ? `${worker} (not alive)` : `${printable(name)} (${worker})`
}

function attemptsText(job: JobView): string {
  const { history } = job
  const parts = [`${attemptsUsed(job)} of ${job.spec.attempts} used`]
  if (history?.snoozes) parts.push(`snoozed ${times(history.snoozes)}`)
  if (history?.crashes)
    parts.push(
      history.crashes === 1 ? '1 worker died while it held it' : `${history.crashes} workers died while they held it`,
    )
  if (history?.redrives) parts.push(`redriven ${times(history.redrives)}`)
  return parts.join(', ')
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`
}

function policyText(spec: JobSpec): string {
  const parts = [
    spec.delivery,
    `timeout ${formatDuration(spec.timeoutMs)}`,
    `backoff ${backoffText(spec.backoff)}`,
    `keeps ${spec.keep === 'all' ? 'every record' : spec.keep === 'none' ? 'no record' : 'records of failures'}`,
  ]
  if (spec.expiresInMs !== undefined) parts.push(`expires ${formatDuration(spec.expiresInMs)} after the enqueue`)
  return parts.join(', ')
}

function backoffText(backoff: Backoff): string {
  const base = formatDuration(backoff.baseMs)
  const jitter = backoff.jitter === 0 ? '' : ` ± ${Math.round(backoff.jitter * 100)} %`
  if (backoff.type === 'fixed') return `${base}${jitter}`
  const growth = backoff.type === 'linear' ? `${base} × n` : `${base} × ${backoff.factor}ⁿ⁻¹`
  return `${growth}${jitter}, at most ${formatDuration(backoff.capMs)}`
}

function timelineSection(job: JobView, { names, view }: PageFacts): string {
  const { paint } = view
  const lines = timeline(job, (worker) => names.get(worker) ?? worker).map(({ atMs, text, detail, tone }) => {
    const at = atMs === null ? 'time not known'.padEnd(24) : isoTime(atMs)
    const offset = (atMs === null ? '' : `+${formatDuration(Math.max(0, atMs - job.enqueuedAt))}`).padStart(9)
    const told = printable(text)
    const painted = tone === undefined ? told : paint(tone === 'bad' ? 'red' : 'green', told)
    const below = detail === undefined ? '' : `\n${DETAIL_INDENT}${paint('dim', printable(detail))}`
    return `  ${paint('dim', at)} ${offset}  ${painted}${below}`
  })
  if (isCut(job)) lines.splice(1, 0, `  ${paint('dim', '… earlier attempts are not kept')}`)
  return [paint('bold', 'Timeline'), ...lines].join('\n')
}

function section(title: string, text: string, { view }: PageFacts): string {
  return [view.paint('bold', title), ...text.split('\n').map((line) => `  ${line}`)].join('\n')
}

/** The stack of the last failure; its message stands in the timeline already. */
function errorSection(job: JobView, facts: PageFacts): string {
  const last = job.history?.entries.findLast((entry) => entry.error !== undefined)?.error
  if (last === undefined || job.state === 'completed') return ''
  return section('Last error', printableLines(last.stack ?? `${last.name}: ${last.message}`), facts)
}
