/**
 * What can be done to a running system, as plain data: kills of processes, and faults that begin and end. Planned by
 * the forms, performed by the driver of chaos.
 */

/** Calls of a worker to its store in the middle of which it can be killed. */
export const CUT_OPERATIONS = ['claim', 'settle', 'takeOver', 'promote'] as const
export type CutOperation = (typeof CUT_OPERATIONS)[number]

/** The points of a call: nothing was sent; it is under way; it is answered, and nobody has read the answer. */
export const CUTS = ['before', 'during', 'after'] as const
export type Cut = (typeof CUTS)[number]

/** When a kill meets its victim. */
export type Moment =
  /** Whatever it does just then. */
  | { at: 'any' }
  /** So long after its process was started, while it connects and registers. */
  | { at: 'start'; afterMs: number }
  /** In the next call of this operation. */
  | { at: 'call'; operation: CutOperation; cut: Cut }
  /** So long after a SIGTERM, while it finishes and gives back. */
  | { at: 'stop'; afterMs: number }

/** `seats` are places of workers (from 0); a worker that ends is followed by another one in its seat. */
export type Kill = {
  /** From the beginning of the chaos. */
  atMs: number
  /** The backlog is let loose just before: then batches are large and buffers full. */
  flood: boolean
} & ({ act: 'kill worker'; seats: readonly number[]; moment: Moment } | { act: 'kill producer'; producer: number })

/** Places of workers and of producers, from 0. */
export interface Whom {
  workers: readonly number[]
  producers: readonly number[]
}

/** What becomes of a network. A direction: only what goes that way disappears, and nobody is told. */
export const CUT_WAYS = ['close', 'refuse', 'delay', 'swallow', 'swallow requests', 'swallow answers'] as const
export type CutWay = (typeof CUT_WAYS)[number]

/**
 * `kill`: every process of the server at once, and recovery at the next start. `crash`: one of its sessions, upon which
 * the server ends all others and recovers by itself. `stop`: an orderly end. `sessions`: the server stays, every
 * connection ends.
 */
export const RESTART_WAYS = ['kill', 'crash', 'stop', 'sessions'] as const
export type RestartWay = (typeof RESTART_WAYS)[number]

/** `kill`: it is gone without a word. `stop`: it lets queries end. `servers`: it stays, its server connections end. */
export const POOLER_WAYS = ['kill', 'stop', 'servers'] as const
export type PoolerWay = (typeof POOLER_WAYS)[number]

/** What goes on for `ms` and is over then; a jump of clocks is over at once. */
export type Fault = {
  /** Of its beginning, at the earliest: one fault at a time, and the one before has to be made good. */
  atMs: number
  ms: number
  /** The backlog is let loose just before. */
  flood: boolean
} & (
  | { act: 'freeze'; whom: Whom }
  /** `delayMs`: each way, where the way is to delay. */
  | { act: 'cut'; whom: Whom; way: CutWay; delayMs: number }
  | { act: 'restart'; way: RestartWay }
  /** `sessions`: those there are stay, or end. `back`: who may write again at the end: all, or new sessions only. */
  | { act: 'read-only'; sessions: 'stay' | 'end'; back: 'all' | 'new' }
  /** The clocks of these go wrong by so much. */
  | { act: 'skew'; whom: Whom; offsetMs: number }
  | { act: 'pooler'; way: PoolerWay }
)

export type Act = Kill | Fault

export function isFault(act: Act): act is Fault {
  return act.act !== 'kill worker' && act.act !== 'kill producer'
}

/** Whom a form can meet. */
export interface Cast {
  workers: number
  producers: number
}
