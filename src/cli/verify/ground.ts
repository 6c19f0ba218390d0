/**
 * Where verify works: a schema that was made for it, on the user's own server. It is emptied, its clock is moved, it may
 * be sabotaged, and it goes, however verify ends. Nothing outside of it is read or written. Called by verify.ts.
 */
import { realEnv } from '../../core/env.js'
import { Database } from '../../storage/postgres/database.js'
import { TemporarySchemas } from '../../storage/postgres/drop-schema.js'
import { queueError, sqlState } from '../../storage/postgres/failures.js'
import { openPostgres, type PostgresStorage } from '../../storage/postgres/index.js'
import { literal, type SchemaName, schemaName, withSchema } from '../../storage/postgres/schema-name.js'
import type { StoreFactory } from '../../testing/conformance/index.js'
import { CommandError } from '../failure.js'
import { SABOTAGES, type SabotageName } from './sabotage.js'

export const VERIFY_PREFIX = 'leasehold_verify_'
/** Looks at the clock of one case take far less together, at a microsecond each; a case may not tell such spans apart. */
const DRIFT_MS = 100
/** Each case begins at a whole millisecond, so that what is rounded in it comes out the same in every run. */
const NOW_US = '(extract(epoch from clock_timestamp()) * 1000)::bigint * 1000'
const ADVANCE = `select setval(':schema_text.verify_clock', nextval(':schema_text.verify_clock') + $1::bigint)`
const CALL_MS_MAX = 60_000
const NOT_ALLOWED = '42501'
const DEADLOCK = '40P01'
const TRIES_MAX = 20
const PAUSE_MS = 250

/** What of a schema is emptied for each case of the suite. Few rows are in it, so deleting is cheaper than truncating. */
const TABLES = [
  'ready',
  'delayed',
  'lease',
  'claim_request',
  'revoked',
  'ended',
  'dead',
  'idempotency',
  'queue_limit',
  'fair_lane',
  'permit',
  'expiry',
  'idle',
  'worker',
  'queue',
]

export interface GroundOptions {
  url: string
  /** One that somebody has made for it: it has to be empty, and stays when its contents go. Else one is made. */
  given?: string | undefined
  /** Tells the schemas of one run apart. */
  mark: string
  sabotage?: SabotageName | undefined
}

export class Ground {
  private readonly database: Database
  private readonly schemas: TemporarySchemas
  private made = false

  private constructor(
    private readonly options: GroundOptions,
    readonly schema: SchemaName,
  ) {
    const client = { connectionString: options.url, application_name: 'leasehold' }
    this.database = new Database({ client, connections: 1, callTimeoutMs: CALL_MS_MAX, env: realEnv })
    this.schemas = new TemporarySchemas(options.url, VERIFY_PREFIX)
  }

  /** Throws SCHEMA_REFUSED where no schema may be made, SCHEMA_NOT_EMPTY where the one that was given holds anything. */
  static async open(options: GroundOptions): Promise<Ground> {
    const ground = new Ground(options, schemaName(options.given ?? `${VERIFY_PREFIX}${options.mark}`))
    try {
      await ground.prepare()
      return ground
    } catch (error) {
      // What went wrong first is what the caller has to hear.
      await ground.close().catch(() => {})
      throw error
    }
  }

  /** Another handle to the store, as another process would have. */
  storage(): PostgresStorage {
    return openPostgres({ url: this.options.url, schema: this.schema.name })
  }

  /**
   * From now on its clock stands still but for a microsecond with each look at it, and goes on as the suite moves it: a
   * slow server or a long way to it must not look like a broken promise. Jobs of one call have positions a microsecond
   * apart, so those of the next call have to come after that.
   */
  async moveClock(): Promise<void> {
    await this.sql('create sequence :schema.verify_clock')
    await this.sql(`create or replace function :schema.clock() returns bigint language plpgsql stable as $$
      begin return nextval(':schema_text.verify_clock'); end $$`)
    await this.sql(`create function :schema.verify_pass() returns trigger language plpgsql as $$
      begin perform nextval(':schema_text.verify_clock') from fresh; return null; end $$`)
    await this.sql(`create trigger verify_pass after insert on :schema.ready referencing new table as fresh
      for each statement execute function :schema.verify_pass()`)
  }

  /** Fresh stores for the suite, in this schema one after another. `deaf`: no hints come the way that the URL leads. */
  factory(way: 'hears' | 'deaf'): StoreFactory {
    return async () => {
      await this.empty()
      const opened: PostgresStorage[] = []
      return {
        open: async () => {
          const storage = this.storage()
          opened.push(storage)
          return way === 'deaf' ? Object.create(storage, { wake: { value: undefined } }) : storage
        },
        advance: (ms) => this.sql(ADVANCE, [Math.round(ms * 1_000)]),
        driftMs: DRIFT_MS,
        discard: async () => {
          await Promise.all(opened.map((storage) => storage.close()))
        },
      }
    }
  }

  /** As new: nothing is left of what was done in it, its clock is the server's again. */
  async renew(): Promise<void> {
    await this.clear()
    await this.fill()
  }

  /** The schemas that runs of verify have left which were killed. */
  left(): Promise<string[]> {
    return this.schemas.list()
  }

  async serverVersion(): Promise<string> {
    const [row] = await this.database.ask({ name: '', text: `select current_setting('server_version') as version` }, [])
    return String(row!.version).split(' ')[0]!
  }

  /** What was made goes; what was given is empty again. */
  async close(): Promise<void> {
    try {
      if (this.made) await (this.options.given === undefined ? this.schemas.drop(this.schema.name) : this.clear())
    } finally {
      await Promise.all([this.database.close(), this.schemas.close()])
    }
  }

  private async prepare(): Promise<void> {
    if (this.options.given === undefined) await this.make()
    else await this.refuseFull(this.options.given)
    this.made = true
    await this.fill()
  }

  private async make(): Promise<void> {
    try {
      await this.database.run({ name: '', text: `create schema ${this.schema.quoted}` }, [])
    } catch (error) {
      if (sqlState(error) !== NOT_ALLOWED) throw queueError(error, 'verify')
      throw new CommandError(
        'SCHEMA_REFUSED',
        'the role of this URL may not make a schema, and verify works in one of its own',
        {
          fix: 'grant the role CREATE on the database, or have an empty schema made for it (create schema verify authorization ROLE) and give --schema verify',
          cause: error,
        },
      )
    }
  }

  /** Somebody's jobs could be in it: it must hold nothing at all. */
  private async refuseFull(given: string): Promise<void> {
    const text = `select n.oid is not null as there,
      coalesce(has_schema_privilege(n.oid, 'create'), false) as allowed,
      (select count(*)::int from pg_class c where c.relnamespace = n.oid)
        + (select count(*)::int from pg_proc p where p.pronamespace = n.oid)
        + (select count(*)::int from pg_type t where t.typnamespace = n.oid) as things
      from (select 1) one left join pg_namespace n on n.nspname = $1`
    const [row] = await this.database.ask({ name: '', text }, [given])
    if (row!.there !== true)
      throw new CommandError('SCHEMA_REFUSED', `there is no schema "${given}"`, {
        fix: 'make it first, or leave --schema out: then verify makes one of its own',
      })
    if (row!.allowed !== true)
      throw new CommandError('SCHEMA_REFUSED', `the role of this URL may make nothing in the schema "${given}"`, {
        fix: `alter schema "${given}" owner to the role, or grant it CREATE and USAGE on it`,
      })
    if (Number(row!.things) > 0)
      throw new CommandError(
        'SCHEMA_NOT_EMPTY',
        `the schema "${given}" holds ${row!.things} things, and verify works in an empty one only`,
        {
          fix: 'leave --schema out: then verify makes one of its own; or have an empty one made for it',
        },
      )
  }

  private async fill(): Promise<void> {
    const storage = this.storage()
    try {
      await storage.setup.migrate()
    } finally {
      await storage.close()
    }
    const { sabotage } = this.options
    if (sabotage !== undefined) for (const statement of SABOTAGES[sabotage].statements) await this.sql(statement)
  }

  private async empty(): Promise<void> {
    const deletions = TABLES.map((table, i) => `d${i} as (delete from :schema.${table})`)
    await this.sql(`with ${deletions.join(', ')} select setval(':schema_text.verify_clock', ${NOW_US})`)
  }

  /** All that is in a schema which was empty when verify began. */
  private async clear(): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await this.database.run({ name: '', text: clearing(this.schema) }, [])
        return
      } catch (error) {
        // A statement of a process that was just killed may still run.
        if (sqlState(error) !== DEADLOCK || tries >= TRIES_MAX) throw queueError(error, 'clear the schema')
        await realEnv.sleep(PAUSE_MS)
      }
    }
  }

  private async sql(text: string, values: unknown[] = []): Promise<void> {
    try {
      await this.database.run({ name: '', text: withSchema(text, this.schema) }, values)
    } catch (error) {
      throw queueError(error, 'verify')
    }
  }
}

/** Views and tables take most of the rest along; what is gone by then is passed over. */
function clearing({ name }: SchemaName): string {
  return `do $clear$
declare
  v_name text := ${literal(name)};
  v_schema oid := (select oid from pg_namespace where nspname = v_name);
  v_one record;
begin
  for v_one in
    select format('drop %s if exists %I.%I cascade',
        case c.relkind when 'v' then 'view' when 'S' then 'sequence' when 'c' then 'type' else 'table' end, v_name, c.relname) as statement
      from pg_class c where c.relnamespace = v_schema and c.relkind in ('r', 'p', 'v', 'S', 'c')
      order by case c.relkind when 'v' then 1 when 'p' then 2 when 'r' then 3 else 4 end
  loop execute v_one.statement; end loop;
  for v_one in
    select format('drop function if exists %s cascade', p.oid::regprocedure) as statement from pg_proc p where p.pronamespace = v_schema
  loop execute v_one.statement; end loop;
end $clear$`
}
