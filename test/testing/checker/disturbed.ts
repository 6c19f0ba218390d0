/** A run of four workers to which something is done, told as a history and judged. Used by the tests of the rules about faults. */
import { check, type Verdict } from '../../../src/testing/checker/check.js'
import type { HistoryEvent, Witnessed } from '../../../src/testing/checker/history.js'

export const LEASE_MS = 10_000
/** Of the fault; the runs go on until a minute later. */
export const BEGUN = 10_000
export const OVER = 24_000
const END = 80_000
export const WORKERS = ['w0', 'w1', 'w2', 'w3'] as const

export interface Shape {
  /** Runs that end in a second, of each worker, while it works. */
  perSecond: number
  /** When a worker does not work. */
  idle: (worker: string, at: number) => boolean
  /** What beats, and when. */
  beats: (worker: string, at: number) => boolean
  outage: boolean
  touches: readonly string[]
  takeOverAt?: number
  waiting: number
  /** Of a second fault, of which the end is not known. */
  againAt?: number
  paceAt?: number
}

export const DURING = (at: number): boolean => at >= BEGUN && at < OVER

const CLEAN: Shape = {
  perSecond: 50,
  idle: (worker, at) => worker === 'w3' && at >= BEGUN && at < OVER + 2_000,
  beats: (worker, at) => worker !== 'w3' || !DURING(at),
  outage: false,
  touches: ['w3'],
  waiting: 20_000,
}

/** Everybody is cut off, and all come back. */
export const OUTAGE: Partial<Shape> = {
  outage: true,
  touches: WORKERS,
  idle: (_, at) => at >= BEGUN && at < OVER + 3_000,
  beats: (_, at) => !DURING(at),
}

export function judged(change: Partial<Shape>): Verdict {
  const shape = { ...CLEAN, ...change }
  const events: Witnessed[] = []
  const say = (process: string, event: HistoryEvent): void => void events.push({ process, event })
  say('driver', { at: 0, what: 'pace', is: 'brisk' })
  if (shape.paceAt !== undefined) say('driver', { at: shape.paceAt, what: 'pace', is: 'slow' })
  const { outage, touches } = shape
  say('driver', { at: BEGUN, what: 'fault', fault: 1, is: 'begun', kind: 'test', touches, outage })
  say('driver', { at: OVER, what: 'fault', fault: 1, is: 'lifting' })
  say('driver', { at: OVER, what: 'fault', fault: 1, is: 'over' })
  if (shape.againAt !== undefined)
    say('driver', { at: shape.againAt, what: 'fault', fault: 2, is: 'begun', kind: 'test', touches, outage: false })
  for (let at = 500; at < END; at += 1_000) say('driver', { at, what: 'waiting', jobs: shape.waiting })
  for (const worker of WORKERS) lived(worker, shape, say)
  const { takeOverAt } = shape
  if (takeOverAt !== undefined)
    say('w0', { at: takeOverAt, what: 'took over', worker: 'w0', deadWorker: 'w3', jobs: 7 })
  return check({ events, leaseMs: LEASE_MS })
}

function lived(worker: string, shape: Shape, say: (process: string, event: HistoryEvent) => void): void {
  say('driver', { at: 0, what: 'spawned', process: worker, role: 'worker' })
  say(worker, { at: 1, what: 'worker', worker, is: 'up' })
  for (let at = 100; at < END; at += 3_000)
    if (shape.beats(worker, at)) say(worker, { at, what: 'worker', worker, is: 'beaten', confirmedAt: at })
  const stepMs = 1_000 / shape.perSecond
  for (let at = 200, n = 0; at < END; at += stepMs, n++) {
    if (shape.idle(worker, at)) continue
    const id = `${worker} ${n}`
    say(worker, { at, what: 'started', n, id, attempt: 1, fence: Math.ceil(at) })
    say(worker, { at: at + 0.1, what: 'effect', n, id, fence: Math.ceil(at) })
    say(worker, { at: at + 0.2, what: 'settled', id, worker, as: 'completed' })
  }
  say('driver', { at: END, what: 'gone', process: worker, code: 0, signal: null })
}
