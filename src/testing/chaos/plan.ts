/**
 * What a run of chaos enqueues: jobs of every sort, by seed. Pure, and known for each number by itself, so that
 * producers, workers and the checker need no common list. Called by the producers, the handlers and the driver.
 */
import { chance } from '../../core/chance.js'
import type { End, Expectation } from '../checker/expectation.js'

/** How a sort of jobs behaves, and how each of them has to end. */
export interface SortFacts {
  /** Of a hundred varied jobs, so many. */
  share: number
  /** `completed or lost`: an at-most-once job that a kill met is dead (lost), and that is right. */
  ends: 'completed' | 'dead' | 'completed or lost'
  /** How often a job of it may start and fail; what a job needs plus what kills may use up. */
  attempts: number
}

/** Every sort but the backlog. A crash uses an attempt up where the start was reported, so each has some to spare. */
export const SORTS = {
  /** Does its work and returns. */
  plain: { share: 31, ends: 'completed', attempts: 6 },
  /** Fails once or twice, then works. */
  failing: { share: 12, ends: 'completed', attempts: 6 },
  /** Always fails: dead after exactly its attempts. */
  hopeless: { share: 8, ends: 'dead', attempts: 3 },
  /** Due later, half of them at instants that many share. */
  delayed: { share: 14, ends: 'completed', attempts: 6 },
  /** Enqueued by every producer, under one idempotency key. */
  keyed: { share: 12, ends: 'completed', attempts: 6 },
  /** At most once. */
  once: { share: 6, ends: 'completed or lost', attempts: 1 },
  /** Runs for seconds, so that kills meet it. */
  long: { share: 2, ends: 'completed', attempts: 6 },
  /** Snoozes until its hour. */
  snoozed: { share: 5, ends: 'completed', attempts: 6 },
  /** Asks for its retry itself. */
  postponed: { share: 4, ends: 'completed', attempts: 6 },
  /** Enqueued inside a transaction of the caller that stays open for seconds, and is committed or rolled back. */
  transactional: { share: 6, ends: 'completed', attempts: 6 },
} as const satisfies Record<string, SortFacts>

export type VariedSort = keyof typeof SORTS
/** `backlog`: cheap jobs that wait before and behind all others. */
export type Sort = VariedSort | 'backlog'

export const SORT_NAMES = Object.keys(SORTS) as VariedSort[]

const BACKLOG: SortFacts = { share: 0, ends: 'completed', attempts: 6 }

export function factsOfSort(sort: Sort): SortFacts {
  return sort === 'backlog' ? BACKLOG : SORTS[sort]
}

export const QUEUES = ['chaos-one', 'chaos-two'] as const
export type ChaosQueue = (typeof QUEUES)[number]

/** One job of the plan. Durations in milliseconds. */
export interface PlannedJob {
  /** From 0; the varied ones first, then the backlog. */
  n: number
  sort: Sort
  queue: ChaosQueue
  priority: number
  /** Not due before this, from its enqueue. */
  delayMs: number
  /** How long its handler works; a snoozed one: how long after its enqueue it gives in. */
  workMs: number
  /** Attempts that fail before one may succeed. */
  failures: number
  key: string | undefined
}

export interface PlanSize {
  seed: number
  /** Varied jobs. */
  jobs: number
  /** Cheap ones. */
  backlog: number
}

/** Undefined for a number that nobody planned. */
export function plannedJob({ seed, jobs, backlog }: PlanSize, n: number): PlannedJob | undefined {
  if (!Number.isSafeInteger(n) || n < 0 || n >= jobs + backlog) return undefined
  const queue = QUEUES[n % QUEUES.length]!
  if (n >= jobs) return { n, sort: 'backlog', queue, priority: 0, delayMs: 0, workMs: 0, failures: 0, key: undefined }
  const draw = (word: string): number => chance(seed, n, word)
  const sort = sortOf(draw('sort'))
  return {
    n,
    sort,
    queue,
    priority: priorityOf(draw('priority')),
    delayMs: sort === 'delayed' ? within(draw('delay'), 500, 12_000) : 0,
    workMs: workMs(sort, draw('work')),
    failures: failuresOf(sort, draw('failures')),
    key: sort === 'keyed' ? `key-${n}` : undefined,
  }
}

/** What the checker has to know of it. */
export function expectationOf({ sort, queue, priority, delayMs, key }: PlannedJob): Expectation {
  const { ends, attempts } = factsOfSort(sort)
  const delivery = sort === 'once' ? 'at-most-once' : 'at-least-once'
  const unique = key === undefined ? {} : { key: `${sort} ${key}` }
  return { sort, ends: ENDS[ends], queue, priority, attempts, delayMs, delivery, ...unique }
}

const ENDS: Record<SortFacts['ends'], readonly End[]> = {
  completed: ['completed'],
  dead: ['failed'],
  'completed or lost': ['completed', 'lost'],
}

/** Undefined for a number that nobody planned. */
export function expected(size: PlanSize, n: number): Expectation | undefined {
  const planned = plannedJob(size, n)
  return planned && expectationOf(planned)
}

function sortOf(fraction: number): VariedSort {
  let left = fraction * 100
  for (const sort of SORT_NAMES) {
    left -= SORTS[sort].share
    if (left < 0) return sort
  }
  return 'plain'
}

/** Ahead of a backlog of the lowest priority for as long as kills go on: ageing takes a minute for each level. */
function priorityOf(fraction: number): number {
  if (fraction < 0.05) return 4
  return fraction < 0.85 ? 12 : 15
}

function workMs(sort: VariedSort, fraction: number): number {
  switch (sort) {
    case 'long':
      return within(fraction, 1_500, 4_000)
    case 'once':
      return within(fraction, 0, 1_500)
    case 'snoozed':
      return within(fraction, 500, 4_000)
    case 'hopeless':
    case 'postponed':
      return within(fraction, 0, 20)
    default:
      // Most do nothing: then claims and settlements are what a kill meets.
      return fraction < 0.8 ? 0 : within(fraction, 5, 50)
  }
}

function failuresOf(sort: VariedSort, fraction: number): number {
  if (sort === 'hopeless') return Number.MAX_SAFE_INTEGER
  if (sort === 'postponed') return 1
  return sort === 'failing' ? 1 + Math.floor(fraction * 2) : 0
}

/** A transaction of a producer: how many of its transactional jobs go into it, and what becomes of it. */
export interface PlannedTransaction {
  jobs: number
  openMs: number
  end: 'commit' | 'roll back'
}

/** The transaction that begins with the job `n`. */
export function plannedTransaction(seed: number, n: number): PlannedTransaction {
  return {
    jobs: 1 + Math.floor(chance(seed, n, 'transaction jobs') * 10),
    openMs: within(chance(seed, n, 'transaction open'), 1_000, 5_000),
    end: chance(seed, n, 'transaction end') < 0.3 ? 'roll back' : 'commit',
  }
}

export function within(fraction: number, min: number, max: number): number {
  return Math.round(min + fraction * (max - min))
}
