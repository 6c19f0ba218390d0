/**
 * The worker processes of a supervisor: as many as are wanted, each in a numbered place. One that ends by itself is
 * started again, later each time; one that is not wanted any more drains. Called by supervise.ts.
 */
import { formatDuration } from '../../core/duration.js'
import type { Env, Timer } from '../../core/env.js'
import type { Backoff } from '../../core/job.js'
import { retryDelayMs } from '../../core/retry.js'
import { statsText } from '../worker-run.js'
import type { TellEvent } from './events.js'
import type { ProcessMessage, ProcessOrder, ProcessSettings } from './messages.js'
import { type ProcessEnd, type ProcessFailure, WorkerProcess } from './process.js'

/** Half a second at first, at most half a minute: a process that dies at once costs next to nothing. */
export const RESTART: Backoff = { type: 'exponential', baseMs: 500, factor: 2, capMs: 30_000, jitter: 0.25 }
/** One that lived for so long was well: its end is the first of its kind. */
const WELL_MS = 60_000
/** So many ends in a row are told louder than one. */
const ROW_TOLD_MIN = 3

export interface CrewParts {
  readonly env: Env
  readonly graceMs: number
  /** Of the process in that place; `first` of all that were ever started there. */
  readonly settings: (place: number, first: boolean) => ProcessSettings
  readonly tell: TellEvent
  readonly onMessage: (place: number, message: ProcessMessage) => void
  /** None of them has ever come up, and this is why: a new one would fail the same way. */
  readonly onFatal: (failure: ProcessFailure) => void
}

interface Place {
  readonly number: number
  process: WorkerProcess | undefined
  /** Until it is started again. */
  restart: Timer | undefined
  starts: number
  /** Ends in a row that nobody asked for. */
  ends: number
}

export class Crew {
  private readonly places = new Map<number, Place>()
  /** All that live, also those that drain. */
  private readonly alive = new Set<WorkerProcess>()
  /** One of them took jobs: the module and the options are well. */
  private proven = false

  constructor(private readonly parts: CrewParts) {}

  /** Wanted processes. */
  get size(): number {
    return this.places.size
  }

  /** Wanted ones that take jobs. */
  get up(): number {
    return [...this.places.values()].filter(({ process }) => process?.up).length
  }

  /** From now on so many. The places with the highest numbers go first. */
  want(count: number): void {
    for (let number = 1; this.places.size < count; number++) if (!this.places.has(number)) this.open(number)
    const numbers = [...this.places.keys()].sort((a, b) => b - a)
    for (const number of numbers.slice(0, Math.max(0, numbers.length - count))) this.close(number)
  }

  /** None any more. Resolves when the last one is gone; called again with `end` it hurries. */
  async end(order: ProcessOrder): Promise<void> {
    for (const number of [...this.places.keys()]) this.close(number)
    for (const process of this.alive) process.order(order)
    await this.gone()
  }

  /** Resolves when no process is left. */
  async gone(): Promise<void> {
    await Promise.all([...this.alive].map(({ ended }) => ended))
  }

  private open(number: number): void {
    const place: Place = { number, process: undefined, restart: undefined, starts: 0, ends: 0 }
    this.places.set(number, place)
    this.start(place)
  }

  private close(number: number): void {
    const place = this.places.get(number)!
    this.places.delete(number)
    place.restart?.cancel()
    place.process?.order('drain')
  }

  private start(place: Place): void {
    const { env, graceMs, settings, tell } = this.parts
    const { number } = place
    place.restart = undefined
    const process = new WorkerProcess({
      env,
      graceMs,
      settings: settings(number, place.starts === 0),
      onMessage: (message) => this.heard(place, process, message),
      onKilled: (afterMs) =>
        tell({
          event: 'process killed',
          level: 'error',
          text: `worker ${number} (pid ${process.pid}) had not ended after ${formatDuration(afterMs)}, and was killed`,
          facts: { place: number, pid: process.pid, afterMs },
        }),
    })
    place.starts += 1
    place.process = process
    this.alive.add(process)
    void process.ended.then((end) => this.onEnd(place, process, end))
  }

  private heard(place: Place, process: WorkerProcess, message: ProcessMessage): void {
    if (message.type === 'up') {
      this.proven = true
      const text = `worker ${place.number} (pid ${process.pid}) takes jobs`
      const facts = { place: place.number, pid: process.pid }
      this.parts.tell({ event: 'process up', level: 'info', text, facts })
    }
    this.parts.onMessage(place.number, message)
  }

  private onEnd(place: Place, process: WorkerProcess, end: ProcessEnd): void {
    this.alive.delete(process)
    place.process = undefined
    const asked = this.places.get(place.number) !== place
    if (asked) this.tellEnd(place, process, end)
    else if (end.failure !== undefined && !this.proven && isFatal(end.failure)) this.parts.onFatal(end.failure)
    else this.startAgain(place, process, end)
  }

  private startAgain(place: Place, process: WorkerProcess, end: ProcessEnd): void {
    place.ends = end.livedMs >= WELL_MS ? 1 : place.ends + 1
    const restartInMs = retryDelayMs(RESTART, place.ends, this.parts.env.random())
    place.restart = this.parts.env.timer(restartInMs, () => this.start(place))
    this.tellDeath(place, process, { ...end, restartInMs })
  }

  private tellEnd({ number }: Place, { pid }: WorkerProcess, { code, signal, stats }: ProcessEnd): void {
    const did = stats === undefined ? '' : `: ${statsText(stats)}`
    const text = `worker ${number} (pid ${pid}) has ended${did}`
    const facts = { place: number, pid, code, ...(signal === null ? {} : { signal }) }
    this.parts.tell({ event: 'process ended', level: 'info', text, facts })
  }

  private tellDeath(
    { number, ends }: Place,
    { pid }: WorkerProcess,
    { code, signal, failure, livedMs, restartInMs }: ProcessEnd & { restartInMs: number },
  ): void {
    const how = signal ?? (pid === undefined ? 'it could not be started' : `exit code ${code}`)
    const why = failure === undefined ? how : `${failure.message} (${failure.code})`
    const row = ends < 2 ? '' : `, for the ${ordinal(ends)} time in a row`
    const who = `worker ${number}${pid === undefined ? '' : ` (pid ${pid})`}`
    const ended = code === 0 ? 'ended by itself' : 'died'
    const text = `${who} ${ended} after ${formatDuration(livedMs)}${row}: ${why}; it starts again in ${formatDuration(restartInMs)}`
    const facts = { place: number, pid, code, signal, endsInARow: ends, livedMs: Math.round(livedMs), restartInMs }
    const error = failure === undefined ? {} : { error: { code: failure.code, message: failure.message } }
    const level = ends >= ROW_TOLD_MIN ? 'error' : 'warn'
    this.parts.tell({ event: 'process died', level, text, facts: { ...facts, ...error } })
  }
}

/** What a later start may find in order: the store. All else is the same then. */
function isFatal({ code }: ProcessFailure): boolean {
  return code !== 'STORE_UNAVAILABLE'
}

function ordinal(n: number): string {
  const ending = n % 100 >= 11 && n % 100 <= 13 ? undefined : { 1: 'st', 2: 'nd', 3: 'rd' }[n % 10]
  return `${n}${ending ?? 'th'}`
}
