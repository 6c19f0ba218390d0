/** The SQL of migrations: as migrate.ts runs it, and printed for those who run it themselves. */
import { migratorsLock } from './migration-waits.js'
import type { ConcurrentIndex, Migration } from './migrations/index.js'
import { literal, type SchemaName, withSchema } from './schema-name.js'
import type { SchemaPlan } from './schema-plan.js'
import { describe, isText, nextStep, type Step, type TransactionStep } from './schema-state.js'

/** The lock that migrators queue up at, and where what was done is recorded. */
export function prologue(schema: SchemaName): string[] {
  return [
    `select pg_advisory_xact_lock(${migratorsLock(schema)})`,
    // IF NOT EXISTS would ask for the right to create schemas also where one was given to us.
    `do $$ begin if not exists (select from pg_namespace where nspname = ${literal(schema.name)}) then create schema ${schema.quoted}; end if; end $$`,
    `create table if not exists ${schema.quoted}.migration (version int primary key, name text not null, oldest_client int not null, applied_at timestamptz not null default clock_timestamp())`,
    // One row: which text of the functions is in.
    `create table if not exists ${schema.quoted}.functions (one boolean primary key default true check (one), revision int not null, digest text not null, applied_at timestamptz not null default clock_timestamp())`,
  ]
}

/** What a step does after the prologue, in the same transaction. */
export function stepStatements(step: TransactionStep, schema: SchemaName, plan: SchemaPlan): string[] {
  return [
    ...step.migrations.flatMap((migration) => [
      ...(isText(migration) ? texts(migration, schema) : [createIndex(migration.index, schema, 'at once')]),
      recordOf(migration, schema),
    ]),
    ...(step.functions === null
      ? []
      : [withSchema(plan.functions.text, schema).trim(), recordOfFunctions(schema, plan)]),
  ]
}

/** `concurrently`: on a table that is in use. It may stand in no transaction. */
export function createIndex(
  { name, table, on, unique }: ConcurrentIndex,
  schema: SchemaName,
  how: 'at once' | 'concurrently',
): string {
  const words = ['create', ...(unique ? ['unique'] : []), 'index', ...(how === 'concurrently' ? [how] : [])]
  return `${words.join(' ')} "${name}" on ${schema.quoted}."${table}" ${withSchema(on, schema)}`
}

export function recordOf({ version, name, oldestClient }: Migration, schema: SchemaName): string {
  return `insert into ${schema.quoted}.migration (version, name, oldest_client) values (${version}, ${literal(name)}, ${oldestClient})`
}

/** The SQL of all steps after a version. Each part may be a transaction, and all of it one where no part says otherwise. */
export function printMigrations(schema: SchemaName, plan: SchemaPlan, from = 0): string {
  const parts: string[] = []
  for (let version = from; ; ) {
    const step = nextStep({ version, oldestClient: 0, functions: undefined }, plan)!
    parts.push(printed(step, schema, plan))
    if (!('index' in step) && step.functions !== null) return parts.join('\n\n')
    version = 'index' in step ? step.index.version : step.migrations.at(-1)!.version
  }
}

function printed(step: Step, schema: SchemaName, plan: SchemaPlan): string {
  const title = `-- ${describe(step).join(', ')}`
  if (!('index' in step)) return [title, ...transaction(stepStatements(step, schema, plan), schema)].join('\n')
  const { index } = step.index
  return [
    `${title}: holds nobody up, and has to stand in no transaction. Where it was cut off an invalid index is left:`,
    `-- drop index concurrently ${schema.quoted}."${index.name}";`,
    `${createIndex(index, schema, 'concurrently')};`,
    ...transaction([recordOf(step.index, schema)], schema),
  ].join('\n')
}

function transaction(statements: readonly string[], schema: SchemaName): string[] {
  // Whoever waits here for long would hold up the other migrator, who may have to wait for all older snapshots.
  const all = [`set local lock_timeout = '10s'`, ...prologue(schema), ...statements]
  return ['begin;', ...all.map((text) => (text.endsWith(';') ? text : `${text};`)), 'commit;']
}

function texts({ text, calls }: { text: string; calls?: string }, schema: SchemaName): string[] {
  return [...(calls === undefined ? [] : [calls]), text].map((each) => withSchema(each, schema).trim())
}

function recordOfFunctions({ quoted }: SchemaName, { functions }: SchemaPlan): string {
  return `insert into ${quoted}.functions (revision, digest) values (${functions.revision}, ${literal(functions.digest)})
  on conflict (one) do update set revision = excluded.revision, digest = excluded.digest, applied_at = excluded.applied_at`
}
