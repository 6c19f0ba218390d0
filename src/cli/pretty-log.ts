/** Events as lines for somebody who watches a worker. Called by `work` on a terminal; elsewhere logs are lines of JSON. */
import { formatDuration } from '../core/duration.js'
import type { Env } from '../core/env.js'
import type { EventBus, LogLevel, QueueEvent } from '../observe/events.js'
import { levelOf } from '../observe/log.js'
import type { Colour, Paint } from './paint.js'
import { printable, safeJson } from './printable.js'
import type { Terminal } from './terminal.js'
import { LOG_LEVELS } from './values.js'

const COLOURS: Record<LogLevel, Colour> = { debug: 'dim', info: 'cyan', warn: 'yellow', error: 'red' }

export function startPrettyLog(
  events: EventBus,
  { level, env, terminal }: { level: LogLevel; env: Env; terminal: Terminal },
): () => void {
  const loudEnough = LOG_LEVELS.slice(LOG_LEVELS.indexOf(level))
  return events.on((event) => {
    if (loudEnough.includes(levelOf(event))) terminal.answer(prettyLine(event, env.now(), terminal.paint))
  })
}

/** `12:00:01.123Z warn  job.failed     email.send 0198…-… attempt 2 after 1.2s: Error: no route; again in 4s`. */
export function prettyLine(event: QueueEvent, nowMs: number, paint: Paint): string {
  const { type, ...facts } = event as QueueEvent & Record<string, unknown>
  const level = levelOf(event)
  const time = new Date(nowMs).toISOString().slice(11)
  const head = `${paint('dim', time)} ${paint(COLOURS[level], level.padEnd(5))} ${paint('bold', type.padEnd(14))}`
  return `${head} ${'jobId' in event ? jobText(event, facts) : restText(facts, [])}`.trimEnd()
}

type Facts = Record<string, unknown>

/** Told in words of their own, or known from the line's beginning. */
const JOB_FACTS = ['jobId', 'kind', 'queue', 'worker', 'attempt', 'durationMs', 'error', 'retryInMs', 'message']

function jobText(event: QueueEvent & { jobId: string; kind: string }, facts: Facts): string {
  const parts = [event.kind, event.jobId]
  if (typeof facts.attempt === 'number') parts.push(`attempt ${facts.attempt}`)
  if (typeof facts.durationMs === 'number') parts.push(`after ${formatDuration(facts.durationMs)}`)
  const error = facts.error as { name: string; message: string } | undefined
  const message = typeof facts.message === 'string' ? `: ${printable(facts.message)}` : ''
  const failure = error === undefined ? '' : `: ${printable(`${error.name}: ${error.message}`)}`
  const again = typeof facts.retryInMs === 'number' ? `; again in ${formatDuration(facts.retryInMs)}` : ''
  const rest = restText(facts, [...JOB_FACTS, 'level', 'fence'])
  return `${parts.join(' ')}${message}${failure}${again}${rest === '' ? '' : ` ${rest}`}`
}

function restText(facts: Facts, told: readonly string[]): string {
  return Object.entries(facts)
    .filter(([name, value]) => !told.includes(name) && value !== undefined && safeJson(value) !== '{}')
    .map(([name, value]) => restPart(name, value))
    .join(' ')
}

/** Milliseconds end in Ms everywhere; people read units. */
function restPart(name: string, value: unknown): string {
  if (name.endsWith('Ms') && typeof value === 'number') return `${name.slice(0, -2)}=${formatDuration(value)}`
  return `${name}=${typeof value === 'string' && /^[\w.:/-]+$/.test(value) ? value : safeJson(value)}`
}
