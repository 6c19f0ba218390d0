/** How a worker is, for probes: on one store, and on several together. Made by worker.ts and life.ts. */

/**
 * Why a worker does not do all of its work. `draining`: it takes no new jobs and will stop. `unregistered`: the store has
 * not answered a beat of it yet. `leases doubtful`: no beat was confirmed for a whole lease, so nothing starts. `no claim
 * answered`: it has room for jobs, and for longer than a poll and three seconds no claim was answered. `store failing`:
 * the last try of the operations in `failing` failed. `slots stuck`: code goes on although its attempt has ended.
 */
export type HealthReason =
  | 'draining'
  | 'unregistered'
  | 'leases doubtful'
  | 'no claim answered'
  | 'store failing'
  | 'slots stuck'

/** How a worker is on one store. `degraded`: it is up and does not do all of its work; `why` says why not. */
export interface StoreHealth {
  status: 'ok' | 'degraded' | 'stopped'
  /** Every reason there is, the first ones explaining the others; empty unless it is degraded. */
  why: HealthReason[]
  id: string | undefined
  /** It takes no new jobs and will stop. */
  draining: boolean
  /** Null while no claim was answered. Grows while all slots are busy. */
  lastClaimAgoMs: number | null
  /** For how long it has had room for jobs and no answer to a claim; 0 while all slots are busy. */
  noClaimAnsweredForMs: number
  /** For how long the leases are unconfirmed; null while no beat was answered. */
  lastBeatAgoMs: number | null
  /** For how long the store has failed some operation; 0 when it does not. */
  storeFailingForMs: number
  /** The operations that it fails, such as `claim`, `beat`, `settle` or `prune`. */
  failing: string[]
  /** Slots taken. */
  running: number
  concurrency: number
  /** Claimed jobs that wait for a slot. */
  prefetched: number
  /** Outcomes that the store has not confirmed yet. */
  unconfirmed: number
  /** Slots whose code goes on although their attempts have ended. */
  stuck: number
}

/**
 * How a worker is. On a queue over several stores it is the worst and the sum of what it is on each, which `partitions` tells
 * by name.
 */
export interface WorkerHealth extends StoreHealth {
  partitions?: Record<string, StoreHealth>
}

/** The sum and the worst of all. */
export function healthTogether(each: Record<string, StoreHealth>): WorkerHealth {
  const all = Object.values(each)
  const sum = (of: (one: StoreHealth) => number): number => all.reduce((total, one) => total + of(one), 0)
  const most = (of: (one: StoreHealth) => number): number => Math.max(...all.map(of))
  const longest = (of: (one: StoreHealth) => number | null): number | null => {
    const known = all.map(of)
    return known.includes(null) ? null : Math.max(...(known as number[]))
  }
  const why = [...new Set(all.flatMap((one) => one.why))]
  const on = all.some(({ status }) => status !== 'stopped')
  return {
    status: on ? (why.length === 0 ? 'ok' : 'degraded') : 'stopped',
    why,
    id: all[0]!.id,
    draining: all.some(({ draining }) => draining),
    lastClaimAgoMs: longest(({ lastClaimAgoMs }) => lastClaimAgoMs),
    noClaimAnsweredForMs: most(({ noClaimAnsweredForMs }) => noClaimAnsweredForMs),
    lastBeatAgoMs: longest(({ lastBeatAgoMs }) => lastBeatAgoMs),
    storeFailingForMs: most(({ storeFailingForMs }) => storeFailingForMs),
    failing: [...new Set(all.flatMap(({ failing }) => failing))],
    running: sum(({ running }) => running),
    concurrency: sum(({ concurrency }) => concurrency),
    prefetched: sum(({ prefetched }) => prefetched),
    unconfirmed: sum(({ unconfirmed }) => unconfirmed),
    stuck: sum(({ stuck }) => stuck),
    partitions: each,
  }
}
