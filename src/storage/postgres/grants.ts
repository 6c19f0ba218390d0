/**
 * The rights of roles that do not own the schema, as SQL for its owner to run. A new table, sequence or function belongs
 * into one of these lists; the tests of roles fail where it is missing. Called by index.ts.
 */
import { QueueError } from '../../core/errors.js'
import { nearest } from '../../core/suggest.js'
import type { SchemaName } from './schema-name.js'
import type { SchemaPlan } from './schema-plan.js'

/**
 * `worker`: runs jobs, enqueues, and does what operators do. `producer`: enqueues, and can read nothing of what others have
 * enqueued, but how many wait. `reader`: looks, as a dashboard does.
 */
export type SchemaRole = 'worker' | 'producer' | 'reader'

/** Who uses the schema looks first whether it fits. */
const STATE = ['migration', 'functions']
const VIEWS = ['job']
const JOBS = ['ready', 'delayed', 'lease', 'ended', 'dead']
const BESIDE = [
  'queue',
  'queue_limit',
  'fair_lane',
  'permit',
  'worker',
  'claim_request',
  'revoked',
  'idempotency',
  'expiry',
  'idle',
]
const SEQUENCES = ['fence', 'front']

type Grants = (schema: SchemaName, plan: SchemaPlan) => string[]

const GRANTS: Readonly<Record<SchemaRole, Grants>> = {
  worker: ({ quoted }, plan) => [
    `select on ${named(quoted, [...STATE, ...VIEWS])}`,
    `select, insert, update, delete on ${named(quoted, [...JOBS, ...BESIDE])}`,
    `usage on sequence ${named(quoted, SEQUENCES)}`,
    `execute on function ${named(quoted, functionsOf(plan))}`,
  ],
  producer: ({ quoted }) => [
    `select on ${named(quoted, [...STATE, 'idle'])}`,
    // Queues and levels are made where they are missing; whether one is paused is none of its business.
    `select (id, name, levels, draining, bounded, fair, keyed), insert, update (levels) on ${named(quoted, ['queue'])}`,
    `insert on ${named(quoted, ['ready', 'delayed', 'expiry'])}`,
    `select, insert, delete on ${named(quoted, ['idempotency'])}`,
    // Whether an id is known, and whether the job of a key has ended.
    `select (id) on ${named(quoted, ['ready', 'delayed', 'ended', 'dead'])}`,
    `select (ids, open) on ${named(quoted, ['lease'])}`,
    `execute on function ${named(quoted, ENQUEUE_FUNCTIONS)}`,
  ],
  reader: ({ quoted }) => [
    `select on ${named(quoted, [...STATE, ...VIEWS, ...JOBS, ...BESIDE])}`,
    `execute on function ${named(quoted, ['clock', 'instant', 'capacity_of'])}`,
  ],
}

const ENQUEUE_FUNCTIONS = [
  'clock',
  'instant',
  'ensure_queue',
  'ensure_fair',
  'fair_positions',
  'ensure_keyed',
  'hint',
  'enqueue_ready',
  'enqueue_mixed',
  'enqueue_plain',
  'enqueue_any',
  'overflow',
  'without_token',
  'take_intake',
  'must_have_tokens',
  'capacity_of',
  'is_known',
  'is_leased',
  'free_expired_keys',
]

/** One statement for each line; run again after an upgrade they add what is new. */
export function grantStatements(schema: SchemaName, plan: SchemaPlan, role: SchemaRole, to: string): string {
  const { [role]: grants } = GRANTS as Record<string, Grants | undefined>
  if (grants === undefined) throw unknownRole(role)
  if (to === '' || to.includes('\0') || Buffer.byteLength(to) > 63)
    throw new QueueError('INVALID_OPTION', `to: ${JSON.stringify(to)} is no name of a role in the database`, {
      field: 'to',
    })
  const grantee = `"${to.replaceAll('"', '""')}"`
  return [`usage on schema ${schema.quoted}`, ...grants(schema, plan)]
    .map((rights) => `grant ${rights} to ${grantee};`)
    .join('\n')
}

function unknownRole(role: string): QueueError {
  const known = Object.keys(GRANTS)
  const found = nearest(role, known)
  const hint = found === undefined ? '' : `; did you mean "${found}"?`
  return new QueueError('INVALID_OPTION', `role: "${role}" is none of ${known.join(', ')}${hint}`, { field: 'role' })
}

function named(quoted: string, names: readonly string[]): string {
  return names.map((name) => `${quoted}."${name}"`).join(', ')
}

function functionsOf({ functions }: SchemaPlan): string[] {
  return [...functions.text.matchAll(/^create or replace function :schema\.(\w+)/gm)].map(([, name]) => name!)
}
