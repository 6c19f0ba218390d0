/**
 * Builds an index on a table that is in use. It can be cut off at any point and begun anew: what was left half done is
 * removed, what is still being done is waited for. Called by migrate.ts, under the lock of migrators.
 */
import { cut } from './connections.js'
import type { Database, Session } from './database.js'
import { Unanswered } from './failures.js'
import { createIndex } from './migration-text.js'
import { OtherMigrator, SlowBuild } from './migration-waits.js'
import type { ConcurrentIndex } from './migrations/index.js'
import type { SchemaName } from './schema-name.js'

export async function buildIndex(
  database: Database,
  look: Session,
  index: ConcurrentIndex,
  schema: SchemaName,
  buildMs: number,
): Promise<void> {
  const { valid, busy } = await found(look, index, schema)
  if (valid === true) return
  if (valid === false) {
    // The server goes on with the statement of a migrator that died: until it is done, nothing can be told of its index.
    if (busy) throw new OtherMigrator(`index "${index.name}" is being built by another session`)
    await alone(database, `drop index concurrently ${schema.quoted}."${index.name}"`, buildMs)
  }
  await alone(database, createIndex(index, schema, 'concurrently'), buildMs)
}

/**
 * `valid` null: there is no such index. `busy`: somebody holds the table as builders of indexes do. So does a vacuum,
 * which is soon over.
 */
async function found(
  look: Session,
  { name, table }: ConcurrentIndex,
  schema: SchemaName,
): Promise<{ valid: boolean | null; busy: boolean }> {
  const { rows } = await look.query(
    `select (select i.indisvalid from pg_index i join pg_class c on c.oid = i.indexrelid where i.indrelid = t.oid and c.relname = '${name}') as valid,
        exists (select from pg_locks l where l.locktype = 'relation' and l.relation = t.oid and l.mode = 'ShareUpdateExclusiveLock' and l.granted
          and l.database = (select d.oid from pg_database d where d.datname = current_database())) as busy
      from pg_class t where t.oid = to_regclass('${schema.inLiteral}."${table}"')`,
  )
  return rows[0] as { valid: boolean | null; busy: boolean }
}

/** On a connection beside that which holds the lock, whose transaction it may not stand in. */
async function alone(database: Database, text: string, ms: number): Promise<void> {
  const client = database.separate()
  try {
    await client.connect()
    await database.bounded(client.query(text), ms)
  } catch (error) {
    if (error instanceof Unanswered) throw new SlowBuild(text, { cause: error })
    throw error
  } finally {
    cut(client)
  }
}
