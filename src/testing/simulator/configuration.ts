/**
 * What a simulation is made of, as plain data: the seed draws it, a failing one is shrunk in it, and a kept one is
 * replayed from it. Which faults are on and how strong is drawn for each seed anew (swarm testing): a mix of everything
 * hides faults that need one thing often and another never.
 */
import type { QueueLimits } from '../../core/limits.js'
import type { QueueOrder } from '../../core/priority.js'
import { Draws } from './draws.js'

/** How often each thing goes wrong. Parts are of all calls; `…PerMinute` is for each process; 0 is off. */
export interface Faults {
  /** The longest a call is under way in each direction, stalls aside. */
  latencyMs: number
  /** Part of the calls that take up to seconds. */
  stalled: number
  /** Not sent: the caller is told so. */
  unsent: number
  /** Done, and the answer is lost: the caller gets an error, or none at all. */
  unanswered: number
  /** Done twice, the second time at once or much later. */
  doubled: number
  /** The caller gets an error, and it is done later. */
  late: number
  /** Part of the calls in which the process dies: before it is sent, under way, or when it is answered. */
  fatal: number
  killsPerMinute: number
  /** The event loop stops for up to seconds. */
  blocksPerMinute: number
  /** The process is stopped for longer than a lease. */
  freezesPerMinute: number
  clockJumpsPerMinute: number
  /** Of the whole run. */
  storeRestarts: number
  readOnlySpells: number
  /** Part of the hints that are lost; as many are late, and as many doubled. */
  hintsLost: number
  /** A worker is stopped in order and started again. */
  deploysPerMinute: number
}

export const FAULT_NAMES = [
  'latencyMs',
  'stalled',
  'unsent',
  'unanswered',
  'doubled',
  'late',
  'fatal',
  'killsPerMinute',
  'blocksPerMinute',
  'freezesPerMinute',
  'clockJumpsPerMinute',
  'storeRestarts',
  'readOnlySpells',
  'hintsLost',
  'deploysPerMinute',
] as const satisfies readonly (keyof Faults)[]

/** What a job does, in a word. */
export const SORTS = [
  'plain',
  'failing',
  'hopeless',
  'delayed',
  'keyed',
  'chosen',
  'once',
  'expiring',
  'overtime',
  'long',
  'snoozed',
  'postponed',
  'rejected',
  'poison',
  'unkept',
] as const
export type Sort = (typeof SORTS)[number]

export interface QueueSettings {
  name: string
  order: QueueOrder
  /** Between the queues of one worker. */
  weight: number
  /** None where it is absent. */
  limits?: Partial<QueueLimits>
  /** Whom its jobs are of; the first one floods it. Of nobody where it is absent. */
  tenants?: TenantSettings[]
}

export interface TenantSettings {
  name: string
  weight: number
}

/** Of every worker. */
export interface WorkerSettings {
  concurrency: number
  leaseMs: number
  beatMs: number
  pollMs: number
  prefetchWindowMs: number
  claimBatch: number
  graceMs: number
}

/** What a simulation is made of, as plain data: drawn by a seed, replayed from JSON. */
export interface Configuration {
  seed: number
  jobs: number
  /** The jobs are enqueued within so long, and faults end after it. */
  stormMs: number
  producers: number
  workers: number
  /** People who steer: they cancel, retry, redrive, discard, pause, drain, purge. */
  operators: number
  /** Of each of them. */
  actsPerMinute: number
  /** So many of the workers run a part of the sorts only; never all of them. */
  specialists: number
  /** Who sends beats: the main loop, or a thread that goes on when that is blocked. */
  beats: 'loop' | 'thread'
  /** For how long records of ended jobs are kept; longer than the run where it is absent. */
  keptMs?: number
  worker: WorkerSettings
  queues: QueueSettings[]
  /** How often each sort comes. */
  sorts: Record<Sort, number>
  faults: Faults
}

/** Nothing goes wrong. */
export const CALM: Faults = {
  latencyMs: 5,
  stalled: 0,
  unsent: 0,
  unanswered: 0,
  doubled: 0,
  late: 0,
  fatal: 0,
  killsPerMinute: 0,
  blocksPerMinute: 0,
  freezesPerMinute: 0,
  clockJumpsPerMinute: 0,
  storeRestarts: 0,
  readOnlySpells: 0,
  hintsLost: 0,
  deploysPerMinute: 0,
}

/** All that one seed decides before the first event. */
export function configurationOf(seed: number): Configuration {
  const draws = new Draws(seed).fork('configuration')
  const leaseMs = draws.pick([3_000, 5_000, 10_000, 10_000, 20_000])
  return {
    seed,
    jobs: draws.whole(5, draws.pick([30, 60, 120])),
    stormMs: draws.whole(20, 90) * 1_000,
    producers: draws.whole(1, 3),
    workers: draws.whole(1, draws.pick([3, 8, 12])),
    operators: draws.pick([0, 0, 1, 1, 2]),
    actsPerMinute: draws.between(2, 20),
    specialists: draws.pick([0, 0, 0, 1, 3]),
    beats: draws.pick(['loop', 'thread'] as const),
    ...(draws.chance(0.1) ? { keptMs: draws.whole(1, 20) * 1_000 } : {}),
    worker: {
      concurrency: draws.pick([1, 2, 5, 10]),
      leaseMs,
      beatMs: Math.round(leaseMs * draws.between(0.15, 0.45)),
      pollMs: draws.pick([500, 1_000, 5_000, 5_000]),
      prefetchWindowMs: draws.pick([0, 100, 100, 1_000]),
      claimBatch: draws.pick([1, 5, 500]),
      graceMs: draws.pick([0, 1_000, 10_000]),
    },
    queues: queuesOf(draws, draws.fork('limits'), draws.fork('tenants')),
    sorts: sortsOf(draws),
    faults: faultsOf(draws),
  }
}

function queuesOf(draws: Draws, ofLimits: Draws, ofTenants: Draws): QueueSettings[] {
  return Array.from({ length: draws.whole(1, 3) }, (_, i) => ({
    name: `queue-${i + 1}`,
    order: draws.pick(['ageing', 'ageing', 'strict', 'weighted'] as const),
    weight: draws.whole(1, 3),
    ...(ofLimits.chance(0.2) ? { limits: limitsOf(ofLimits) } : {}),
    ...(ofTenants.chance(0.3) ? { tenants: tenantsOf(ofTenants) } : {}),
  }))
}

/** Never so tight that the end of the calm is not enough for what is left. */
function limitsOf(draws: Draws): Partial<QueueLimits> {
  const perSecond = draws.whole(2, 20)
  return {
    ...(draws.chance(0.7) ? { concurrency: draws.pick([1, 2, 3, 5]) } : {}),
    ...(draws.chance(0.4) ? { rate: { limit: perSecond, perMs: 1_000, burst: draws.pick([1, perSecond]) } } : {}),
  }
}

function tenantsOf(draws: Draws): TenantSettings[] {
  return Array.from({ length: draws.pick([2, 3, 5]) }, (_, i) => ({
    name: `tenant-${i + 1}`,
    weight: draws.pick([0.5, 1, 1, 1, 2, 3]),
  }))
}

/** Some seeds have a few sorts only, so that many of one kind meet. */
function sortsOf(draws: Draws): Record<Sort, number> {
  const few = draws.chance(0.3)
  const weight = (sort: Sort): number => {
    if (sort === 'plain') return 3
    if (sort === 'poison') return draws.chance(0.3) ? 0.1 : 0
    return draws.chance(few ? 0.2 : 0.7) ? draws.between(0.2, 2) : 0
  }
  return Object.fromEntries(SORTS.map((sort) => [sort, weight(sort)])) as Record<Sort, number>
}

function faultsOf(draws: Draws): Faults {
  const mood = draws.pick(['calm', 'crashes', 'answers', 'some', 'some', 'some', 'all'] as const)
  const on = (name: keyof Faults): boolean => {
    const drawn = draws.fraction()
    if (mood === 'all') return true
    if (mood === 'calm') return false
    if (mood === 'crashes') return name === 'killsPerMinute' || name === 'fatal'
    if (mood === 'answers') return ['unsent', 'unanswered', 'doubled', 'late'].includes(name)
    return drawn < 0.4
  }
  const strong: Faults = {
    latencyMs: draws.pick([1, 20, 200]),
    stalled: draws.between(0.001, 0.03),
    unsent: draws.between(0.005, 0.2),
    unanswered: draws.between(0.005, 0.2),
    doubled: draws.between(0.005, 0.2),
    late: draws.between(0.005, 0.1),
    fatal: draws.between(0.0005, 0.005),
    killsPerMinute: draws.between(0.2, 2),
    blocksPerMinute: draws.between(0.5, 4),
    freezesPerMinute: draws.between(0.2, 1.5),
    clockJumpsPerMinute: draws.between(0.5, 5),
    storeRestarts: draws.whole(1, 2),
    readOnlySpells: draws.whole(1, 2),
    hintsLost: draws.between(0.05, 0.6),
    deploysPerMinute: draws.between(0.3, 2),
  }
  return Object.fromEntries(
    FAULT_NAMES.map((name) => [name, on(name) ? strong[name] : CALM[name]]),
  ) as unknown as Faults
}
