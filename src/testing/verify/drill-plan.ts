/**
 * What `leasehold verify` plays against a store: five drills, the jobs of each, and how each of them has to end. Pure,
 * so that the processes of a drill and its judge need no common list. Called by the command and by drill-judge.ts.
 */
import type { Expectation } from '../checker/expectation.js'

export const DRILLS = ['kill', 'stall', 'saturate', 'poison', 'hopeless'] as const
export type DrillName = (typeof DRILLS)[number]

/** What happens in it, for people. */
export const DRILL_TITLES: Record<DrillName, string> = {
  kill: 'a worker is killed in mid-job',
  stall: 'a worker stands still for longer than its lease',
  saturate: 'more jobs come than slots can work on',
  poison: 'a job kills every worker that starts it',
  hopeless: 'a job always fails',
}

/**
 * `work`: take your time and return. `block`: hold up the whole process, once, until somebody else has the job. `poison`:
 * kill the process. `fail`: throw.
 */
export type Act = 'work' | 'block' | 'poison' | 'fail'

/** What a handler is told; the payload of its job. */
export interface DrillWork {
  n: number
  act: Act
  workMs: number
}

export interface DrillJob extends DrillWork {
  key?: string
  expected: Expectation
}

/** How fast it goes: leases are short, as every recovery waits for the end of one. */
export interface Pace {
  leaseMs: number
  beatMs: number
  /** Jobs of the saturated queue. */
  backlog: number
}

export const PACES = {
  quick: { leaseMs: 2_000, beatMs: 500, backlog: 400 },
  whole: { leaseMs: 5_000, beatMs: 1_000, backlog: 2_000 },
} as const satisfies Record<string, Pace>

/** The workers of a drill. `perWorker`: slots of each. */
export interface Crew {
  workers: number
  perWorker: number
  /** Whether one that has ended is followed by another, as a supervisor does it. */
  replaced: boolean
}

export const CREWS: Record<DrillName, Crew> = {
  kill: { workers: 2, perWorker: 5, replaced: false },
  stall: { workers: 2, perWorker: 3, replaced: false },
  saturate: { workers: 1, perWorker: 4, replaced: false },
  poison: { workers: 3, perWorker: 4, replaced: true },
  hopeless: { workers: 1, perWorker: 4, replaced: false },
}

export const ATTEMPTS: Record<DrillName, number> = { kill: 6, stall: 6, saturate: 6, poison: 10, hopeless: 3 }

/** Between two attempts: a drill has no time for the default. */
export const BACKOFF_MS = 100
/** Each job of the saturated queue works so long; short enough that a worker prefetches. */
export const SATURATED_WORK_MS = 20
export const PREFETCH_WINDOW_MS = 100

const KILL_JOBS = 12
const STALL_JOBS = 4
/** Enqueued once the stalled worker is awake: it shall take some of them. */
const STALL_JOBS_AFTER = 30
const NEIGHBOURS = 9
const HOPELESS_JOBS = 2

/** A round has room for so many jobs, and each of its drills for a tenth of them. */
const ROUND_SIZE = 100_000
const DRILL_SIZE = ROUND_SIZE / 10

export function queueOf(drill: DrillName): string {
  return `verify-${drill}`
}

/** The drill that a job belongs to; undefined for a number that nobody gave. */
export function drillOf(n: number): DrillName | undefined {
  return n < 0 ? undefined : DRILLS[Math.floor((n % ROUND_SIZE) / DRILL_SIZE)]
}

/** The jobs of a drill in a round (from 0), in the order in which they are enqueued. */
export function jobsOf(drill: DrillName, round: number, pace: Pace): DrillJob[] {
  const first = round * ROUND_SIZE + DRILLS.indexOf(drill) * DRILL_SIZE
  return worksOf(drill, pace).map((work, i) => jobOf(drill, { ...work, n: first + i }))
}

function worksOf(drill: DrillName, { beatMs, backlog }: Pace): Omit<DrillWork, 'n'>[] {
  switch (drill) {
    case 'kill':
      // Long enough for a beat to report the start before the kill comes.
      return many(KILL_JOBS, { act: 'work', workMs: 3 * beatMs })
    case 'stall':
      return [
        { act: 'block', workMs: 2 * beatMs },
        ...many(STALL_JOBS - 1, { act: 'work', workMs: beatMs }),
        ...many(STALL_JOBS_AFTER, { act: 'work', workMs: beatMs / 2 }),
      ]
    case 'saturate':
      return many(backlog, { act: 'work', workMs: SATURATED_WORK_MS })
    case 'poison':
      return [...many(NEIGHBOURS, { act: 'work', workMs: 2 * beatMs }), { act: 'poison', workMs: 0 }]
    case 'hopeless':
      return many(HOPELESS_JOBS, { act: 'fail', workMs: 0 })
  }
}

function many(count: number, work: Omit<DrillWork, 'n'>): Omit<DrillWork, 'n'>[] {
  return new Array<Omit<DrillWork, 'n'>>(count).fill(work)
}

function jobOf(drill: DrillName, work: DrillWork): DrillJob {
  const key = drill === 'hopeless' ? `hopeless ${work.n}` : undefined
  const expected: Expectation = {
    sort: work.act === 'work' ? drill : work.act,
    ends: ENDS[work.act],
    queue: queueOf(drill),
    attempts: ATTEMPTS[drill],
    delayMs: 0,
    delivery: 'at-least-once',
    keep: 'all',
    ...(key === undefined ? {} : { key }),
  }
  return { ...work, expected, ...(key === undefined ? {} : { key }) }
}

const ENDS: Record<Act, Expectation['ends'] & object> = {
  work: ['completed'],
  block: ['completed'],
  poison: ['poison'],
  fail: ['failed'],
}

/** Those of the stall that wait until the stalled worker is awake again. */
export function afterStall(jobs: readonly DrillJob[]): { before: DrillJob[]; after: DrillJob[] } {
  return { before: jobs.slice(0, STALL_JOBS), after: jobs.slice(STALL_JOBS) }
}

/** What a worker of the saturated queue may hold: its slots, and what starts within the window when jobs run as short as they can. */
export function heldMax(perWorker: number): number {
  // A timer may be a millisecond early.
  return perWorker + Math.floor((perWorker * PREFETCH_WINDOW_MS) / (SATURATED_WORK_MS - 1))
}
