/** What a supervisor tells: each event once as a line of JSON, once for people. Made by crew.ts and supervise.ts. */
import type { LogLevel } from '../../observe/events.js'
import type { Colour } from '../paint.js'
import { printable, safeJson } from '../printable.js'
import type { Terminal } from '../terminal.js'
import { LOG_LEVELS } from '../values.js'
import { isWatched } from '../worker-run.js'

export interface SupervisorEvent {
  /** `scaled` becomes `supervisor.scaled`. */
  event: 'scaled' | 'process up' | 'process ended' | 'process died' | 'process killed' | 'stopped'
  level: LogLevel
  /** For people. */
  text: string
  /** For scripts: durations in milliseconds. */
  facts: Record<string, unknown>
}

export type TellEvent = (event: SupervisorEvent) => void

const COLOURS: Record<LogLevel, Colour> = { debug: 'dim', info: 'cyan', warn: 'yellow', error: 'red' }

/** Lines beside those of the workers, in their form. */
export function eventTeller(terminal: Terminal, level: LogLevel, now: () => number): TellEvent {
  const loudEnough = LOG_LEVELS.slice(LOG_LEVELS.indexOf(level))
  return (event) => {
    if (!loudEnough.includes(event.level)) return
    terminal.answer(isWatched(terminal) ? lineForPeople(event, now(), terminal) : lineForScripts(event, now()))
  }
}

function lineForPeople({ level, text }: SupervisorEvent, nowMs: number, { paint }: Terminal): string {
  const time = new Date(nowMs).toISOString().slice(11)
  return `${paint('dim', time)} ${paint(COLOURS[level], level.padEnd(5))} ${paint('bold', 'supervisor'.padEnd(14))} ${printable(text)}`
}

function lineForScripts({ event, level, facts }: SupervisorEvent, nowMs: number): string {
  return safeJson({ at: new Date(nowMs).toISOString(), level, event: `supervisor.${event}`, ...facts })
}
