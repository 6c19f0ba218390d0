/** A caller's own transaction: what it has to be, and where it runs. Called by enqueue.ts and by the store. */
import { QueueError } from '../../core/errors.js'
import type { Database, Statement } from './database.js'

/** The caller's transaction: a `pg` client, or anything with its `query(text, values)`. */
export interface TransactionClient {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>
}

/** Throws INVALID_OPTION for what cannot be one. */
export function transactionClient(tx: unknown): TransactionClient {
  if (typeof (tx as Partial<TransactionClient>)?.query === 'function') return tx as TransactionClient
  const message = 'tx: give a client with query(text, values), such as a pg client inside BEGIN'
  throw new QueueError('INVALID_OPTION', message, { field: 'tx' })
}

/** No two servers started in one microsecond, and of one server no two databases have one number. Everybody may ask. */
const WHERE: Statement = {
  name: 'lh_where',
  text: `select pg_postmaster_start_time()::text || ' ' || oid::text as place from pg_database where datname = current_database()`,
}

/** Whether both lead to one database. Asked each time: a server that took over is another one. */
export async function ownsTransaction(database: Database, tx: unknown): Promise<boolean> {
  const theirs = await transactionClient(tx).query(WHERE.text)
  const ours = await database.ask(WHERE, [])
  return theirs.rows[0]?.place === ours[0]?.place
}
