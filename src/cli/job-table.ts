/** The table of jobs. Called by `jobs list` and `dead list`. */
import type { JobState } from '../core/job.js'
import type { JobView } from '../storage/storage.js'
import { attemptsUsed } from './documents.js'
import type { Colour } from './paint.js'
import { printable, safeJson } from './printable.js'
import { type Column, type TableView, table } from './table.js'
import { ago, isoTime } from './when.js'
import { broken } from './width.js'

/** A payload may be a megabyte; a line shows its beginning. */
const ABOUT_LENGTH_MAX = 400

const COLOURS: Partial<Record<JobState, Colour>> = {
  running: 'cyan',
  retrying: 'yellow',
  blocked: 'yellow',
  dead: 'red',
  completed: 'green',
}

/** Columns from which on an error has room beside all else; below, it stands under its job. */
const ERROR_BESIDE_WIDTH = 200
const INDENT = '    '
const ERROR_LINES_MAX = 3

export function jobTable(jobs: readonly JobView[], nowMs: number, view: TableView): string {
  const { width, paint } = view
  if (width === undefined || width >= ERROR_BESIDE_WIDTH) return table(columns(jobs, nowMs, about), jobs, view)
  const below = (job: JobView): string[] => {
    const error = errorOf(job)
    if (error === undefined) return []
    return broken(error, width - INDENT.length, ERROR_LINES_MAX).map((line) => `${INDENT}${paint('red', line)}`)
  }
  const beside = (job: JobView): string => (errorOf(job) === undefined ? about(job) : '')
  // Where every job has its error below, nothing is left to stand beside it.
  const all = columns(jobs, nowMs, beside)
  return table(jobs.every((job) => beside(job) === '') ? all.slice(0, -1) : all, jobs, view, below)
}

const PARTITION: Column<JobView> = {
  head: 'PARTITION',
  cell: ({ partition = '' }) => printable(partition),
  flexible: true,
}

function columns(jobs: readonly JobView[], nowMs: number, about: (job: JobView) => string): Column<JobView>[] {
  const partitioned = jobs.some(({ partition }) => partition !== undefined)
  return [
    { head: 'STATE', cell: stateWord, colour: ({ state }) => COLOURS[state] },
    { head: 'ID', cell: ({ id }) => id },
    { head: 'KIND', cell: ({ kind }) => kind, flexible: true },
    { head: 'QUEUE', cell: ({ queue }) => queue, fromWidth: 100 },
    ...(partitioned ? [PARTITION] : []),
    { head: 'PRIO', cell: ({ priority }) => String(priority), align: 'right', fromWidth: 120 },
    { head: 'TRIES', cell: (job) => `${attemptsUsed(job)}/${job.spec.attempts}`, align: 'right', fromWidth: 90 },
    { head: 'TIME', cell: (job) => isoTime(momentOf(job)), fromWidth: 150 },
    { head: 'WHEN', cell: (job) => whenWord(job, nowMs) },
    { head: 'ABOUT', cell: about, flexible: true, fromWidth: 120 },
  ]
}

function stateWord({ state, reason, cancelling }: JobView): string {
  if (reason !== undefined) return `${state}: ${reason}`
  return cancelling ? `${state}, cancelling` : state
}

/** The instant that counts in its state. */
function momentOf(job: JobView): number {
  return job.endedAt ?? (job.state === 'running' ? job.startedAt : job.dueAt) ?? job.enqueuedAt
}

function whenWord(job: JobView, nowMs: number): string {
  const word = ago(momentOf(job), nowMs)
  if (job.state === 'running') return job.startedAt === null ? 'starting' : `since ${word.replace(/ ago$/, '')}`
  return job.state === 'ready' || job.state === 'delayed' || job.state === 'retrying' || job.state === 'blocked'
    ? `due ${word}`
    : word
}

/** What it died of, or will be tried again after; undefined where there is no such error. */
function errorOf(job: JobView): string | undefined {
  const failing = job.state === 'dead' || job.state === 'retrying'
  const error = failing ? job.history?.entries.findLast((entry) => entry.error)?.error : undefined
  return error && printable(`${error.name}: ${error.message}`)
}

/** The last error where there is one, else the payload. */
function about(job: JobView): string {
  const text = errorOf(job) ?? (job.payload === null ? '' : safeJson(job.payload))
  return text.length <= ABOUT_LENGTH_MAX ? text : `${text.slice(0, ABOUT_LENGTH_MAX)}…`
}
