/** Options of a whole enqueue call, beside those of its jobs. Read by the producer. */

import { type HeldShared, JOB_CHOICES, SHARED_CHOICES } from '../core/choices.js'
import {
  badRelation,
  type Check,
  duration,
  type Given,
  type Held,
  type OptionTable,
  object,
  optionReader,
} from '../core/options.js'
import { adaptive } from './adaptive.js'

/** A client that is inside a transaction of yours, such as a `pg` client after BEGIN. A pool is none. */
export interface TransactionClient {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>
}

const anyClient = object<TransactionClient>('a client with query(text, values), inside a transaction of yours')

/** A pool has `query`, too, and sends each statement over any of its connections: outside of the transaction. */
const client: Check<TransactionClient, TransactionClient> = (value, field) => {
  const given = anyClient(value, field)
  if (isPool(given)) throw badRelation(field, 'a pool has no transaction; take a client: await pool.connect()')
  return given
}

/** By shape: there are several copies of `pg`, and pools that are like its own. */
function isPool(value: object): boolean {
  const { connect, totalCount, idleCount } = value as { connect?: unknown; totalCount?: unknown; idleCount?: unknown }
  return typeof connect === 'function' && typeof totalCount === 'number' && typeof idleCount === 'number'
}

const CALL = {
  /**
   * Enqueue inside this transaction: the jobs are there when it commits, and never when it does not. The client has to
   * be between its BEGIN and its COMMIT; outside of them the jobs are there at once, whatever becomes of the rest.
   */
  tx: { check: client },
  /** How long the store may take, instead of the storeTimeout of the connection. */
  storeTimeout: { check: duration({ minMs: 1, maxMs: 3_600_000 }) },
  /**
   * Slowed instead of refused: true, or `{ upTo, slowest }`. It waits before it sends as the queue fills, and tries again what
   * is refused as QUEUE_FULL, WAIT_TOO_LONG or RATE_LIMITED. Not with tx.
   */
  adaptive: { check: adaptive },
  /** Ends the waits of an adaptive enqueue. */
  signal: { check: object<AbortSignal>('an AbortSignal') },
} satisfies OptionTable

const ENQUEUE_OPTIONS = { ...JOB_CHOICES, ...CALL } satisfies OptionTable
const ENQUEUE_MANY_OPTIONS = { ...SHARED_CHOICES, ...CALL } satisfies OptionTable

// Interfaces with a member of their own: see bulk-options.ts.

/** The options of `enqueue`. */
export interface EnqueueOptions extends Given<typeof ENQUEUE_OPTIONS> {
  /** Enqueue inside this transaction: the jobs are there when it commits, and never when it does not. */
  tx?: TransactionClient
}
/** The options of `enqueueMany` and `enqueueStream`: those of a job hold for each item that does not say otherwise. */
export interface EnqueueManyOptions extends Given<typeof ENQUEUE_MANY_OPTIONS> {
  /** Enqueue inside this transaction: the jobs are there when it commits, and never when it does not. */
  tx?: TransactionClient
}

export type HeldEnqueue = Held<typeof ENQUEUE_OPTIONS>
export type HeldMany = Held<typeof ENQUEUE_MANY_OPTIONS>

export const readEnqueue = optionReader(ENQUEUE_OPTIONS)
export const readMany = optionReader(ENQUEUE_MANY_OPTIONS)
const readChoices = optionReader(JOB_CHOICES)

/** Most calls say nothing of their own: nothing is read for them. */
export const NOTHING_SAID: HeldEnqueue = Object.freeze(readEnqueue(undefined))

/** What an item says goes before what its batch says. */
export function merged(shared: HeldShared, given: unknown): HeldEnqueue {
  if (given === undefined) return { ...NOTHING_SAID, ...shared }
  const own = readChoices(given)
  const choices: Record<string, unknown> = { ...NOTHING_SAID, ...shared }
  // Two ways to say when: an item's own one replaces either of the batch.
  if (own.delay !== undefined || own.runAt !== undefined) choices.delay = choices.runAt = undefined
  for (const [name, value] of Object.entries(own)) if (value !== undefined) choices[name] = value
  return choices as HeldEnqueue
}
