/** Structured logs: one line of JSON for each event, with the same keys everywhere. Started by connect and the CLI. */
import { inspect } from 'node:util'
import type { Env } from '../core/env.js'
import type { EventBus, LogLevel, QueueEvent } from './events.js'

const LEVEL_RANK: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 }

/** How loud each event is. `job.log` carries the level that its handler chose. */
export const EVENT_LEVELS: Record<Exclude<QueueEvent['type'], 'job.log'>, LogLevel> = {
  'job.enqueued': 'debug',
  'job.refused': 'warn',
  'job.duplicate': 'debug',
  'job.cancelled': 'info',
  'job.cancel requested': 'info',
  'job.retried': 'info',
  'job.redriven': 'info',
  'job.discarded': 'warn',
  'job.promoted': 'debug',
  'job.expired': 'warn',
  'job.claimed': 'debug',
  'job.started': 'debug',
  'job.progressed': 'debug',
  'job.completed': 'info',
  'job.failed': 'warn',
  'job.timed out': 'warn',
  'job.snoozed': 'info',
  'job.given back': 'info',
  'job.crashed': 'error',
  'job.dead': 'error',
  'job.quarantined': 'error',
  'job.lost': 'warn',
  'worker.started': 'info',
  'worker.draining': 'info',
  'worker.stopped': 'info',
  'worker.written off': 'error',
  'worker.leases lost': 'error',
  'worker.loop blocked': 'warn',
  'worker.slot stuck': 'error',
  'worker.took over': 'warn',
  'store.unavailable': 'error',
  'store.recovered': 'info',
  'queue.paused': 'info',
  'queue.resumed': 'info',
  'queue.draining': 'info',
  'queue.purged': 'warn',
}

/** A longer line is shortened: its error, progress or fields are cut. */
const LINE_LENGTH_MAX = 16_384
const CUT_VALUE_LENGTH = 1_000

export interface LogOptions {
  /** Quieter events are left out. */
  level: LogLevel
  env: Pick<Env, 'now'>
  /** Takes a line, newline included. */
  write: (line: string) => void
}

/** Writes a line for each event from now on. Returns the function that ends it. */
export function startLog(events: EventBus, { level, env, write }: LogOptions): () => void {
  return events.on((event) => {
    if (LEVEL_RANK[levelOf(event)] >= LEVEL_RANK[level]) write(`${logLine(event, env.now())}\n`)
  })
}

export function levelOf(event: QueueEvent): LogLevel {
  return event.type === 'job.log' ? event.level : EVENT_LEVELS[event.type]
}

/** The keys that come first, in this order, where an event has them; then the event's own. */
const FIRST_KEYS = ['jobId', 'kind', 'queue', 'worker', 'attempt', 'durationMs'] as const

/** One line of JSON: `{"at":"…Z","level":"info","event":"job.completed","jobId":…}`. Never throws. */
export function logLine(event: QueueEvent, atMs: number): string {
  const { type, ...facts }: QueueEvent & Record<string, unknown> = { ...event }
  const line: Record<string, unknown> = { at: new Date(atMs).toISOString(), level: levelOf(event), event: type }
  for (const key of FIRST_KEYS) if (facts[key] !== undefined) line[key] = facts[key]
  // Microseconds will do; a reader stumbles over 0.22398300000003246.
  for (const [key, value] of Object.entries(facts))
    if (key.endsWith('Ms') && typeof value === 'number') facts[key] = Math.round(value * 1_000) / 1_000
  const text = encoded({ ...line, ...facts })
  return text.length <= LINE_LENGTH_MAX ? text : encoded(shortened({ ...line, ...facts }))
}

/** A handler may log what JSON cannot hold; the line has to be written all the same. */
function encoded(line: Record<string, unknown>): string {
  try {
    return JSON.stringify(line)
  } catch {
    const safe = Object.entries(line).map(([key, value]) => [key, typeof value === 'object' ? shown(value) : value])
    return JSON.stringify(Object.fromEntries(safe))
  }
}

function shortened(line: Record<string, unknown>): Record<string, unknown> {
  const short = Object.entries(line).map(([key, value]) => [key, cut(typeof value === 'object' ? shown(value) : value)])
  return Object.fromEntries(short)
}

function shown(value: unknown): string {
  try {
    return inspect(value, { depth: 3, maxStringLength: CUT_VALUE_LENGTH, customInspect: false, showProxy: true })
  } catch {
    return '(a value that cannot be shown)'
  }
}

function cut(value: unknown): unknown {
  return typeof value === 'string' && value.length > CUT_VALUE_LENGTH ? `${value.slice(0, CUT_VALUE_LENGTH)}…` : value
}
