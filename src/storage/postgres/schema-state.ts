/** What a schema has come to, what is the next step from there, and who may use it. Pure. Called by migrate.ts. */
import { QueueError } from '../../core/errors.js'
import type { IndexMigration, Migration, TextMigration } from './migrations/index.js'
import type { SchemaPlan } from './schema-plan.js'

/** As the schema tells it of itself. Version 0: nothing is there. */
export interface SchemaState {
  readonly version: number
  readonly oldestClient: number
  readonly functions: { readonly revision: number; readonly digest: string } | undefined
}

export const NOTHING: SchemaState = { version: 0, oldestClient: 0, functions: undefined }

/**
 * Tables of that name which no release has made. Whatever a release makes has its functions recorded from the first
 * moment on; drafts before 0.1.0 numbered them among the migrations, and their numbers mean other things.
 */
export const STRANGE: SchemaState = { version: 1, oldestClient: 0, functions: undefined }

/** What is done and recorded together: in one transaction, or one index beside all transactions. */
export type Step = TransactionStep | IndexStep

export interface TransactionStep {
  readonly migrations: readonly Migration[]
  /** The text of all functions, of this revision; null: they are left as they are. */
  readonly functions: number | null
}

export interface IndexStep {
  readonly index: IndexMigration
}

/** Undefined when nothing is left to do. */
export function nextStep(state: SchemaState, plan: SchemaPlan): Step | undefined {
  const { revision } = plan.functions
  const [first, ...later] = plan.migrations.filter(({ version }) => version > state.version)
  if (first === undefined) return functionsDiffer(state, plan) ? { migrations: [], functions: revision } : undefined
  // Nobody uses what is not there yet: a new schema comes into being whole, its indexes too.
  if (state.version === 0) return { migrations: [first, ...later], functions: revision }
  if ('index' in first) return { index: first }
  // The last one takes the functions along, so that they fit each other. The ones before have to suit the old functions.
  return { migrations: [first], functions: later.length === 0 ? revision : null }
}

export function sameStep(one: Step | undefined, other: Step | undefined): boolean {
  return (one && describe(one).join()) === (other && describe(other).join())
}

/** What was done, in words for people. */
export function describe(step: Step): string[] {
  if ('index' in step) return [`${step.index.version} ${step.index.name}`]
  return [
    ...step.migrations.map(({ version, name }) => `${version} ${name}`),
    ...(step.functions === null ? [] : [`functions ${step.functions}`]),
  ]
}

export function isText(migration: Migration): migration is TextMigration {
  return 'text' in migration
}

/** A later revision is left alone: it was made to serve this client, too, or the schema refuses it by protocol. */
function functionsDiffer({ functions }: SchemaState, plan: SchemaPlan): boolean {
  if (functions === undefined || functions.revision < plan.functions.revision) return true
  return functions.revision === plan.functions.revision && functions.digest !== plan.functions.digest
}

/** Throws where the schema no longer serves clients of this age: they neither use nor migrate it. */
export function refuseNewer({ oldestClient }: SchemaState, plan: SchemaPlan, where: string): void {
  if (oldestClient > plan.protocol)
    throw new QueueError(
      'SCHEMA_OUTDATED',
      `${where} serves clients from protocol ${oldestClient} on, this one speaks ${plan.protocol}; update the package`,
    )
}

/** Throws where nobody knows what is there: nothing is made of it, and nothing is put beside it. */
export function refuseStrange({ version, functions }: SchemaState, where: string): void {
  if (version > 0 && functions === undefined)
    throw new QueueError(
      'SCHEMA_OUTDATED',
      `${where} was made by no release: a draft from before 0.1.0, or a table "migration" of something else. There is no upgrade from it; take another schema, or finish its jobs with the version that made it and drop it`,
    )
}

/** Throws where something is missing that this client needs. */
export function refuseOlder(state: SchemaState, plan: SchemaPlan, where: string): void {
  if (state.version === 0)
    throw new QueueError(
      'SCHEMA_MISSING',
      `${where} has no queue in it; run "leasehold migrate" or connect with migrate: true`,
    )
  const lack = lackOf(state, plan)
  if (lack !== undefined) throw new QueueError('SCHEMA_OUTDATED', `${where} ${lack}; run "leasehold migrate"`)
}

function lackOf(state: SchemaState, plan: SchemaPlan): string | undefined {
  const needed = plan.migrations.at(-1)!.version
  if (state.version < needed) return `is at version ${state.version}, this client needs ${needed}`
  if (!functionsDiffer(state, plan)) return undefined
  const { revision, digest } = plan.functions
  return state.functions?.revision === revision
    ? `has another text of the functions of revision ${revision} than this client (${digest})`
    : `has its functions at revision ${state.functions?.revision ?? 0}, this client needs ${revision}`
}
