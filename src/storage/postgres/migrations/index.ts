/**
 * The migrations in their order: the shape of the data and nothing else. A released one is never changed, only followed.
 * Functions are no part of them: their present text lies in ../functions. Called by schema-plan.ts.
 */
import { CLOCK } from '../functions/clock.js'
import { TABLES } from './0001-tables.js'
import { FINGERPRINTS } from './0002-fingerprints.js'
import { NO_PARALLEL } from './0005-no-parallel.js'
import { QUEUE_LIMITS } from './0006-queue-limits.js'
import { DEPTH_LIMITS } from './0007-depth-limits.js'
import { TENANTS } from './0008-tenants.js'
import { TENANT_DEPTHS } from './0010-tenant-depths.js'
import { INTAKES } from './0011-intakes.js'
import { KEYS } from './0012-keys.js'
import { LONG_NUMBERS } from './0015-long-numbers.js'

interface Numbered {
  readonly version: number
  readonly name: string
  /** The oldest client protocol that may go on using the schema after it. */
  readonly oldestClient: number
}

/** Runs in one transaction. It takes its locks for moments only, so nothing in it may read or rewrite a large table. */
export interface TextMigration extends Numbered {
  readonly text: string
  /** Functions that its views and indexes call, in their present form. */
  readonly calls?: string
}

/** Builds an index on a table that is in use, in no transaction and without holding up who writes there. */
export interface IndexMigration extends Numbered {
  readonly index: ConcurrentIndex
}

/** Tables with partitions cannot have one. */
export interface ConcurrentIndex {
  readonly name: string
  readonly table: string
  /** What follows the table's name: `(queue, ended) where …`. */
  readonly on: string
  readonly unique?: true
}

export type Migration = TextMigration | IndexMigration

export const MIGRATIONS: readonly Migration[] = [
  { version: 1, name: 'tables', text: TABLES, oldestClient: 1, calls: CLOCK },
  { version: 2, name: 'fingerprints', text: FINGERPRINTS, oldestClient: 1 },
  {
    version: 3,
    name: 'dead letters by group',
    oldestClient: 1,
    index: { name: 'dead_group', table: 'dead', on: '(queue, fingerprint, kind, reason, ended, id)' },
  },
  {
    version: 4,
    name: 'retries by queue',
    oldestClient: 1,
    index: { name: 'delayed_retrying', table: 'delayed', on: '(lane, due, id) where history is not null' },
  },
  { version: 5, name: 'no parallel reads', text: NO_PARALLEL, oldestClient: 1 },
  { version: 6, name: 'limits of queues', text: QUEUE_LIMITS, oldestClient: 1 },
  { version: 7, name: 'limits of what may wait', text: DEPTH_LIMITS, oldestClient: 1 },
  { version: 8, name: 'fair shares of tenants', text: TENANTS, oldestClient: 1 },
  {
    version: 9,
    name: 'ready by tenant',
    oldestClient: 1,
    index: {
      name: 'ready_tenant',
      table: 'ready',
      on: "(lane, coalesce(spec ->> 'tenant', ''), pos) where lane & 48 = 48",
    },
  },
  { version: 10, name: 'limits of what may wait of a tenant', text: TENANT_DEPTHS, oldestClient: 1 },
  { version: 11, name: 'limits of what comes in', text: INTAKES, oldestClient: 1 },
  // Together with the functions: those of before do not suit it.
  { version: 12, name: 'keys', text: KEYS, oldestClient: 1 },
  {
    version: 13,
    name: 'ready by order key',
    oldestClient: 1,
    index: {
      name: 'ready_order_key',
      table: 'ready',
      on: "((lane / 64), (spec ->> 'orderKey'), coalesce(due, pos), id) where spec ->> 'orderKey' is not null",
    },
  },
  {
    version: 14,
    name: 'blocked by key',
    oldestClient: 1,
    index: {
      name: 'delayed_blocked',
      table: 'delayed',
      on: "((lane / 64), coalesce('o' || (spec ->> 'orderKey'), 'l' || (spec ->> 'limitKey')), due, id) where lane & 16 = 16",
    },
  },
  { version: 15, name: 'long numbers', text: LONG_NUMBERS, oldestClient: 1 },
]

/**
 * What this code speaks. Raised when it needs something of the schema that older ones lack, or no longer needs what they
 * have. 2: claims and beats by functions whose numbers have 64 bits.
 */
export const CLIENT_PROTOCOL = 2
