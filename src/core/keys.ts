/**
 * Keys: jobs of a queue that may not run as they like beside each other. Of an order key one runs at a time, in the order in
 * which they became due; it keeps its turn until it has ended, also while it waits for its next attempt. Of a limit key as
 * many run at once as the queue allows for it. Who runs holds a permit of its key, by its id: so nothing is counted twice,
 * given back twice, or forgotten. A job that finds no permit is blocked until one is free. Pure; called by the memory store,
 * mirrored by the SQL of the PostgreSQL store (functions/keys.ts).
 */
import type { JobSpec } from './job.js'

export const KEY_BYTES_MAX = 256
/** Keys of one queue with a limit of their own. */
export const KEY_LIMITS_MAX = 1_000

/** How many jobs of a limit key may run at once: of each key, and of single ones by name. */
export interface KeyLimit {
  limit: number
  keys: Readonly<Record<string, number>>
}

/** The key of a job. */
export interface JobKey {
  key: string
  /** It is an order key. */
  ordered: boolean
}

export function keyOf({ orderKey, limitKey }: Pick<JobSpec, 'orderKey' | 'limitKey'>): JobKey | undefined {
  if (orderKey !== undefined) return { key: orderKey, ordered: true }
  return limitKey === undefined ? undefined : { key: limitKey, ordered: false }
}

/** Permits that a key has. */
export function permitsOf({ key, ordered }: JobKey, limit: KeyLimit | null): number {
  if (ordered) return 1
  if (limit === null) return Number.POSITIVE_INFINITY
  return Object.hasOwn(limit.keys, key) ? limit.keys[key]! : limit.limit
}

/** Whether a job goes on holding the permit of its key when it waits again, or is dead. */
export function keepsPermit(
  { orderKey, afterDead }: Pick<JobSpec, 'orderKey' | 'afterDead'>,
  to: 'completed' | 'cancelled' | 'dead' | 'ready' | 'delayed',
): boolean {
  if (orderKey === undefined) return false
  return to === 'ready' || to === 'delayed' || (to === 'dead' && afterDead === 'block')
}
