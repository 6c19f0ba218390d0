/** Brings the schema up to date: numbered, locked, each step whole or not at all. Called by connect and `leasehold migrate`. */
import type { Env } from '../../core/env.js'
import type { Difference, Setup } from '../storage.js'
import { readCatalog } from './catalog.js'
import type { Database, Session } from './database.js'
import { differences } from './drift.js'
import { queueError, sqlState } from './failures.js'
import { buildIndex } from './index-build.js'
import { prologue, recordOf, stepStatements } from './migration-text.js'
import {
  MigrationWaits,
  OtherMigrator,
  PATIENCE,
  type Patience,
  SlowBuild,
  type Wait,
  waitOf,
} from './migration-waits.js'
import { MANIFEST } from './schema-manifest.js'
import type { SchemaName } from './schema-name.js'
import { PLAN, type SchemaPlan } from './schema-plan.js'
import {
  describe,
  NOTHING,
  nextStep,
  refuseNewer,
  refuseOlder,
  refuseStrange,
  type SchemaState,
  STRANGE,
  type Step,
  sameStep,
} from './schema-state.js'

/** A migration may have to read a table. */
const STATEMENT_MS_MAX = 3_600_000
/**
 * For so long a step waits for another migrator or for the lock of a table, with all that comes later waiting behind
 * it; then it lets them pass and tries again. Less than the second after which the server looks for deadlocks, so that
 * the migrator is the one that gives way.
 */
const LOCK_MS_MAX = 500
/** Between two tries: as long as they let others pass, and not all at once. */
const PAUSE_MS_MAX = 1_000
/** What is set for the role or the database shall not decide how a migration goes. */
const BEGIN = `begin isolation level read committed read write; set local lock_timeout = ${LOCK_MS_MAX};
  set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0`

export class PostgresSetup implements Setup {
  private readonly where: string
  private readonly waits: MigrationWaits

  constructor(
    private readonly database: Database,
    private readonly schema: SchemaName,
    private readonly env: Env,
    private readonly plan: SchemaPlan = PLAN,
    private readonly patience: Patience = PATIENCE,
  ) {
    this.where = `schema ${schema.quoted}`
    this.waits = new MigrationWaits(database, schema)
  }

  /** Any number of processes may call it at once: they queue up at a lock, and find it done. No DDL when it is. */
  async migrate(): Promise<{ applied: string[] }> {
    try {
      const applied: string[] = []
      for (;;) {
        const state = await this.state()
        refuseStrange(state, this.where)
        refuseNewer(state, this.plan, this.where)
        const step = nextStep(state, this.plan)
        if (step === undefined) return { applied }
        if (await this.patiently(step)) applied.push(...describe(step))
      }
    } catch (error) {
      throw queueError(error, 'migrate')
    }
  }

  async check(): Promise<void> {
    await this.checked()
  }

  async drift(): Promise<Difference[]> {
    const { version, functions } = await this.checked()
    const { plan, schema } = this
    const newer = version > plan.migrations.at(-1)!.version || functions!.revision > plan.functions.revision
    try {
      const found = await readCatalog(this.database, schema)
      const expected = { facts: MANIFEST, functions: plan.functions.text }
      return differences(found, expected, schema, newer ? 'newer' : 'same')
    } catch (error) {
      throw queueError(error, 'compare the schema')
    }
  }

  private async checked(): Promise<SchemaState> {
    let state: SchemaState
    try {
      state = await this.state()
    } catch (error) {
      throw queueError(error, 'check the schema')
    }
    refuseStrange(state, this.where)
    refuseNewer(state, this.plan, this.where)
    refuseOlder(state, this.plan, this.where)
    return state
  }

  private async state(): Promise<SchemaState> {
    try {
      const [row] = await this.database.run({ name: '', text: stateText(this.schema) }, [])
      return stateOf(row!)
    } catch (error) {
      const state = sqlState(error)
      if (state === '42P01' || state === '42703' || state === '3F000') return this.incomplete()
      throw error
    }
  }

  /** Both tables are made in one transaction, so one without the other, or of other columns, is somebody else's. */
  private async incomplete(): Promise<SchemaState> {
    const [row] = await this.database.run({ name: '', text: beginningText(this.schema) }, [])
    if (row!.whole === true) return this.state()
    return row!.some === true ? STRANGE : NOTHING
  }

  /** Applies the step unless another migrator has; false where the schema has moved on meanwhile. */
  private async patiently(step: Step): Promise<boolean> {
    // Each kind of wait counts for itself, from its first time on: two migrators may wait for one table in turn.
    const began = new Map<Wait, number>()
    for (;;) {
      try {
        return await this.apply(step)
      } catch (error) {
        await this.held(step, error, began)
      }
      if (!sameStep(step, nextStep(await this.state(), this.plan))) return false
    }
  }

  /** Lets others pass who came to stand behind; throws when the patience has come to its end. */
  private async held(step: Step, error: unknown, began: Map<Wait, number>): Promise<void> {
    const what = describe(step).join(' and ')
    if (error instanceof SlowBuild) throw await this.waits.slowBuild(what, this.patience.buildMs, error)
    const wait = waitOf(error)
    if (wait === undefined) throw error
    const now = this.env.monotonic()
    const since = began.get(wait) ?? now
    began.set(wait, since)
    const patienceMs = wait === 'for a migrator' ? this.patience.migratorMs : this.patience.lockMs
    if (now - since >= patienceMs) throw await this.waits.givenUp(wait, what, now - since, error)
    await this.env.sleep(PAUSE_MS_MAX * (0.2 + 0.8 * this.env.random()))
  }

  /** One step, under a lock that a transaction holds: a dead migrator leaves nothing that somebody has to clear away. */
  private apply(step: Step): Promise<boolean> {
    return this.database.session(async (session) => {
      // In usual time: whether the server answers at all shows here.
      await session.query(BEGIN)
      const [lock, ...ground] = prologue(this.schema)
      await alone(session.query(lock!, STATEMENT_MS_MAX))
      for (const statement of ground) await session.query(statement, STATEMENT_MS_MAX)
      const { rows } = await session.query(stateText(this.schema))
      const asPlanned = sameStep(step, nextStep(stateOf(rows[0]!), this.plan))
      if (asPlanned) await this.work(step, session)
      await session.query('commit')
      return asPlanned
    })
  }

  private async work(step: Step, session: Session): Promise<void> {
    const { schema, plan, database, patience } = this
    if ('index' in step) await buildIndex(database, session, step.index.index, schema, patience.buildMs)
    const statements = 'index' in step ? [recordOf(step.index, schema)] : stepStatements(step, schema, plan)
    for (const statement of statements) await session.query(statement, STATEMENT_MS_MAX)
  }
}

function stateText({ quoted }: SchemaName): string {
  return `select m.version, m.oldest, f.revision, f.digest
    from (select max(version)::int as version, max(oldest_client)::int as oldest from ${quoted}.migration) m left join ${quoted}.functions f on true`
}

/** `whole`: somebody has made them since. */
function beginningText({ inLiteral }: SchemaName): string {
  const columns = (table: string): string =>
    `(select array_agg(a.attname::text) from pg_attribute a where a.attrelid = to_regclass('${inLiteral}.${table}') and a.attnum > 0)`
  return `select coalesce(m @> '{version,oldest_client}' and f @> '{revision,digest}', false) as whole, m is not null or f is not null as some
    from (select ${columns('migration')} as m, ${columns('functions')} as f) t`
}

function stateOf(row: Record<string, unknown>): SchemaState {
  if (row.version === null) return NOTHING
  const functions =
    row.revision === null ? undefined : { revision: row.revision as number, digest: row.digest as string }
  return { version: row.version as number, oldestClient: row.oldest as number, functions }
}

/** Says of the lock of migrators whose it is. */
async function alone(locked: Promise<unknown>): Promise<void> {
  try {
    await locked
  } catch (error) {
    if (waitOf(error) === undefined) throw error
    throw new OtherMigrator('another migrator is at it', { cause: error })
  }
}
