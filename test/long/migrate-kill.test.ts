/** Migrators that are killed, at every statement, and many of them at once. In databases of their own. */
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openPostgres } from '../../src/storage/postgres/index.js'
import { type OwnDatabase, ownDatabase } from '../support/database.js'
import { startPooler } from '../support/pgbouncer.js'
import { catalogOf } from '../upgrade/catalog.js'
import { RELEASES, releaseSql } from '../upgrade/release.js'

const CHILD = fileURLToPath(new URL('../postgres/migrator-child.js', import.meta.url))
const SCHEMA = 'app_jobs'

/** From nothing, and from each kept release. */
const STARTS: readonly [string, (database: OwnDatabase) => Promise<void>][] = [
  ['an empty database', async () => {}],
  ...RELEASES.map((release): [string, (database: OwnDatabase) => Promise<void>] => [
    `a schema of ${release}`,
    async (database) => void (await database.sql(releaseSql(release, SCHEMA))),
  ]),
]

for (const [start, begin] of STARTS) {
  test(`B127: killed at each statement that changes ${start}, a migrator is followed by one that finishes`, () =>
    own(async (database) => {
      await begin(database)
      await killerAt(database)
      let kills = 0
      for (let at = 1; ; at++) {
        const before = await versionOf(database)
        await database.sql(`select setval('killer.count', 1, false)`)
        await database.sql('update killer.target set at = $1', [at])
        if (await migrated(database)) break
        kills += 1
        // Each step is whole or not there: after one more was recorded, the statements are counted anew.
        if ((await versionOf(database)) !== before) at = 0
      }
      assert.ok(kills > 40, `it was killed at ${kills} statements`)
      await database.sql('drop event trigger killer')
      await isAsNew(database)
    }))

  test(`B131: 20 processes come up at once over ${start}; each step is applied once; the one that holds the lock is killed`, () =>
    own(async (database) => {
      await begin(database)
      await sleeperAt(database, 5)
      const children = await started(database.url, 20)
      for (const child of children.values()) child.send('begin')
      const holder = await holderOf(database)
      const rest = [...children].filter(([name]) => name !== holder).map(([, child]) => answerOf(child))
      children.get(holder)!.kill('SIGKILL')
      const answers = await Promise.all(rest)
      assert.deepEqual(
        answers.flatMap(({ error }) => error ?? []),
        [],
      )
      const applied = answers.flatMap((answer) => answer.applied!)
      assert.equal(new Set(applied).size, applied.length)
      await database.sql('drop event trigger sleeper')
      await isAsNew(database)
    }))
}

for (const [start, begin] of STARTS)
  test(`B131: through a transaction pooler with 3 sessions 20 processes come up over ${start}`, () =>
    own(async (database) => {
      await begin(database)
      const pooler = await startPooler(database.url, { servers: 3 })
      try {
        const children = await started(pooler.url, 20)
        const answers = [...children.values()].map(answerOf)
        for (const child of children.values()) child.send('begin')
        const applied = (await Promise.all(answers)).flatMap(({ applied, error }) => applied ?? [error])
        assert.equal(new Set(applied).size, applied.length, applied.join())
      } finally {
        await pooler.stop()
      }
      await isAsNew(database)
    }))

async function own(run: (database: OwnDatabase) => Promise<void>): Promise<void> {
  const database = await ownDatabase()
  try {
    await run(database)
  } finally {
    await database.drop()
  }
}

/** Ends the session that runs the so-many-th statement of DDL, right after it. The count outlives what is rolled back. */
async function killerAt(database: OwnDatabase): Promise<void> {
  await database.sql(`create schema killer; create sequence killer.count; create table killer.target (at int);
    insert into killer.target values (0);
    create function killer.kill() returns event_trigger language plpgsql as $$
    begin
      if nextval('killer.count') = (select at from killer.target) then perform pg_terminate_backend(pg_backend_pid()); end if;
    end $$;
    create event trigger killer on ddl_command_end execute function killer.kill()`)
}

/** Who comes to the so-many-th statement first stops there for a while. */
async function sleeperAt(database: OwnDatabase, at: number): Promise<void> {
  await database.sql(`create schema sleeper; create sequence sleeper.count;
    create function sleeper.sleep() returns event_trigger language plpgsql as $$
    begin
      if nextval('sleeper.count') = ${at} then perform pg_sleep(3); end if;
    end $$;
    create event trigger sleeper on ddl_command_end execute function sleeper.sleep()`)
}

async function migrated(database: OwnDatabase): Promise<boolean> {
  const storage = openPostgres({ url: database.url, schema: SCHEMA })
  try {
    await storage.setup.migrate()
    await storage.setup.check()
    return true
  } catch {
    return false
  } finally {
    await storage.close()
  }
}

async function versionOf(database: OwnDatabase): Promise<unknown> {
  const [row] = await database.sql(`select to_regclass('${SCHEMA}.migration') is not null as made`)
  if (row!.made !== true) return 0
  return (await database.sql(`select max(version) as version from ${SCHEMA}.migration`))[0]!.version
}

/** In all that the server knows of it, and every index is valid. */
async function isAsNew(database: OwnDatabase): Promise<void> {
  const storage = openPostgres({ url: database.url, schema: 'untouched' })
  await storage.setup.migrate()
  await storage.close()
  assert.deepEqual(await catalogOf(database.sql, SCHEMA), await catalogOf(database.sql, 'untouched'))
}

async function started(through: string, count: number): Promise<Map<string, ChildProcess>> {
  const children = new Map<string, ChildProcess>()
  for (let n = 0; n < count; n++) {
    const name = `migrator ${n}`
    const url = new URL(through)
    url.searchParams.set('application_name', name)
    children.set(name, fork(CHILD, [url.href, SCHEMA], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }))
  }
  await Promise.all([...children.values()].map((child) => once(child, 'message')))
  return children
}

async function holderOf(database: OwnDatabase): Promise<string> {
  for (;;) {
    const [row] = await database.sql(
      `select application_name as name from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()`,
    )
    if (row !== undefined) return row.name as string
    await sleep(20)
  }
}

async function answerOf(child: ChildProcess): Promise<{ applied?: string[]; error?: string }> {
  const [answer] = await once(child, 'message')
  return answer
}
