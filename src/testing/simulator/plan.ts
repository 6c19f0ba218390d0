/** What each job of a simulation is, known for its number alone. Called by producers, handlers and whoever expects an end. */
import { type Configuration, type QueueSettings, SORTS, type Sort, type TenantSettings } from './configuration.js'
import { Draws } from './draws.js'

/** Durations in milliseconds. */
export interface PlannedJob {
  n: number
  sort: Sort
  queue: string
  priority: number
  tenant: TenantSettings | undefined
  /** Not due before this, from its enqueue. */
  delayMs: number
  /** How long its handler works. */
  workMs: number
  /** Attempts that go wrong before one may succeed. */
  failures: number
  /** How often it may start and fail. */
  attempts: number
  timeoutMs: number
  /** An overtime job that takes no notice of its signal goes on for so long. */
  deafMs: number
  key: string | undefined
  /** When it is sent, from the beginning. */
  sentAtMs: number
}

/** What the workers in a seat can run. The first seat's run everything; whoever is no specialist does, too. */
export function sortsOfSeat({ seed, workers, specialists }: Configuration, seat: number): readonly Sort[] {
  if (seat === 0 || seat < workers - specialists) return SORTS
  const draws = new Draws(seed).fork('specialist', seat)
  const some = SORTS.filter(() => draws.chance(0.6))
  return some.length === 0 ? SORTS : some
}

/** Crashes use attempts up: two while it is no suspect, one while it runs alone; from then on its worker is spared. */
const SPARE_ATTEMPTS = 4

export function plannedJob(configuration: Configuration, n: number): PlannedJob {
  const { seed, queues, sorts, stormMs, keptMs } = configuration
  const draws = new Draws(seed).fork('job', n)
  const drawn = draws.weighted(sorts)
  // An id may be sent again for as long as there is a record of it.
  const sort = drawn === 'chosen' && keptMs !== undefined ? 'plain' : drawn
  const failures = failuresOf(sort, draws.fraction())
  const overtime = sort === 'overtime'
  const queue = draws.pick(queues)
  const level = draws.pick([0, 4, 4, 4, 8, 12, 15])
  const share = shareOf(configuration, queue, n)
  return {
    n,
    sort,
    queue: queue.name,
    priority: share?.level ?? level,
    tenant: share?.tenant,
    delayMs: sort === 'delayed' ? draws.whole(100, 40_000) : 0,
    workMs: workMs(sort, draws),
    failures,
    attempts: sort === 'once' ? 1 : sort === 'hopeless' ? draws.whole(1, 4) : failures + 1 + SPARE_ATTEMPTS,
    timeoutMs: overtime ? draws.whole(500, 3_000) : 300_000,
    deafMs: overtime && draws.chance(0.5) ? draws.whole(100, 9_000) : 0,
    key: sort === 'keyed' ? `key-${n}` : undefined,
    sentAtMs: share?.sentAtMs ?? draws.between(0, stormMs * 0.9),
  }
}

/** A flood comes within so long, and most of the others within so long from its begin. */
const FLOOD_MS = 300
const BESIDE_MS = 3_000
const NORMAL = 4

/** Whom a job of a shared queue is of, and when it is sent. Most come as one flood, or soon after it has begun. */
function shareOf({ seed, stormMs }: Configuration, { name, tenants }: QueueSettings, n: number) {
  if (tenants === undefined) return undefined
  const floodAtMs = new Draws(seed).fork('flood', name).between(0, stormMs * 0.8)
  const draws = new Draws(seed).fork('tenant', n)
  // Turns are taken inside a level, so most are of one.
  const level = draws.chance(0.8) ? NORMAL : undefined
  if (draws.chance(0.5)) return { tenant: tenants[0]!, level, sentAtMs: floodAtMs + draws.between(0, FLOOD_MS) }
  const sentAtMs = draws.chance(0.7) ? floodAtMs + draws.between(0, BESIDE_MS) : draws.between(0, stormMs * 0.9)
  return { tenant: draws.pick(tenants), level, sentAtMs }
}

function failuresOf(sort: Sort, fraction: number): number {
  if (sort === 'hopeless') return Number.MAX_SAFE_INTEGER
  if (sort === 'overtime' || sort === 'postponed') return 1
  return sort === 'failing' ? 1 + Math.floor(fraction * 2) : 0
}

function workMs(sort: Sort, draws: Draws): number {
  if (sort === 'long') return draws.whole(2_000, 25_000)
  if (sort === 'snoozed') return draws.whole(500, 15_000)
  if (sort === 'overtime') return draws.whole(0, 100)
  // Most do nothing: then claims and settlements are what a fault meets.
  return draws.chance(0.5) ? 0 : draws.whole(1, draws.pick([50, 500, 3_000]))
}
