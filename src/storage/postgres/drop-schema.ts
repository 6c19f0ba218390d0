/** Schemas that were made for a while, and have to go again. Called by `leasehold bench` and `leasehold verify`. */
import { realEnv } from '../../core/env.js'
import { Database } from './database.js'
import { queueError, sqlState } from './failures.js'
import { schemaName } from './schema-name.js'

/** Only names of one kind are dropped: nothing that holds anybody's jobs has one. This is that of bench. */
export const TEMPORARY_PREFIX = 'leasehold_bench_'
/** A statement of a process that was just killed may still run; the server then sees a deadlock, and it is over soon. */
const TRIES_MAX = 20
const PAUSE_MS = 250
const DROP_MS_MAX = 120_000

export class TemporarySchemas {
  private readonly database: Database

  constructor(
    url: string,
    private readonly prefix = TEMPORARY_PREFIX,
  ) {
    const client = { connectionString: url, application_name: 'leasehold' }
    this.database = new Database({ client, connections: 1, callTimeoutMs: DROP_MS_MAX, env: realEnv })
  }

  /** Those that are there, of whatever run. */
  async list(): Promise<string[]> {
    const text = 'select nspname::text as name from pg_namespace where starts_with(nspname, $1) order by 1'
    const rows = await this.database.ask({ name: '', text }, [this.prefix])
    return rows.map((row) => row.name as string)
  }

  /** With all that is in it. */
  async drop(name: string): Promise<void> {
    if (!name.startsWith(this.prefix)) throw new Error(`"${name}" is no temporary schema`)
    const text = `drop schema if exists ${schemaName(name).quoted} cascade`
    for (let tries = 1; ; tries++) {
      try {
        await this.database.run({ name: '', text }, [])
        return
      } catch (error) {
        if (sqlState(error) !== '40P01' || tries >= TRIES_MAX) throw queueError(error, 'drop the schema')
        await realEnv.sleep(PAUSE_MS)
      }
    }
  }

  close(): Promise<void> {
    return this.database.close()
  }
}
