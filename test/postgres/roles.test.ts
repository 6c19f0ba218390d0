/** Who may do what: an owner without privileges, and roles that have what they need and nothing more. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { connect, defineJob, QueueError, worker } from '../../src/index.js'
import { grantSql, openPostgres, type PostgresStorage, type SchemaRole } from '../../src/storage/postgres/index.js'
import { type OwnDatabase, ownDatabase } from '../support/database.js'
import { quoted, type Role, Roles } from '../support/roles.js'
import { OPERATIONS, type Site } from './port-walk.js'

const SCHEMA = 'The "Queue"'
const NAMES = ['owner', 'worker', 'producer', 'reader', 'waiter', 'nobody'] as const
const MAY: Readonly<Record<string, (operation: string) => boolean>> = {
  owner: () => true,
  worker: () => true,
  producer: (operation) => FREE.has(operation) || operation === 'enqueue' || operation === 'inspect.capacity',
  reader: (operation) => FREE.has(operation) || /^(inspect|diagnose)\./.test(operation),
  // A producer that waits for results.
  waiter: (operation) => MAY.producer!(operation) || MAY.reader!(operation),
  nobody: (operation) => NEEDS_NOTHING.has(operation),
}

/** What the server tells everybody, and hints, which are the database's. */
const NEEDS_NOTHING = new Set([
  'wake.listen',
  'diagnose.hints',
  ...['settings', 'connections', 'holders', 'tables', 'access'].map((fact) => `diagnose.database.${fact}`),
])
/** And whether the schema fits, and its clock: for everybody who is let in. */
const FREE = new Set([
  ...NEEDS_NOTHING,
  ...['setup.check', 'setup.migrate', 'setup.drift', 'diagnose.clock', 'diagnose.database.days'],
])

let database: OwnDatabase
let roles: Roles
const role = {} as Record<(typeof NAMES)[number], Role>
const stores = new Map<string, PostgresStorage>()

before(async () => {
  database = await ownDatabase()
  roles = new Roles(database)
  for (const name of NAMES) role[name] = await roles.make(name)
  const [row] = await database.sql('select current_database() as name')
  await database.sql(`grant create on database ${row!.name} to ${quoted(role.owner.name)}`)
  for (const name of NAMES) stores.set(name, openPostgres({ url: role[name].url, schema: SCHEMA }))
  await stores.get('owner')!.setup.migrate()
  await asOwner(`create table ${quoted(SCHEMA)}.test_clock as select 0::bigint as us; grant all on ${quoted(SCHEMA)}.test_clock to public;
    create or replace function ${quoted(SCHEMA)}.clock() returns bigint language plpgsql stable as $$
    begin return (extract(epoch from clock_timestamp()) * 1000000)::bigint + (select us from ${quoted(SCHEMA)}.test_clock); end $$`)
  for (const name of ['worker', 'producer', 'reader'] as const) await asOwner(grants(name))
  for (const name of ['producer', 'reader'] as const) await asOwner(grants(name, 'waiter'))
})
after(async () => {
  for (const store of stores.values()) await store.close()
  await database.sql(`drop schema ${quoted(SCHEMA)} cascade`)
  await database.sql(`drop owned by ${NAMES.map((name) => quoted(role[name].name)).join(', ')}`)
  await roles.drop(database.sql)
  await database.drop()
})

function grants(rights: SchemaRole, to: (typeof NAMES)[number] = rights): string {
  return grantSql({ schema: SCHEMA, role: rights, to: role[to].name })
}

async function as(who: Role, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(who.url)
  await client.connect()
  try {
    const result = await client.query(text)
    return result.rows
  } finally {
    await client.end()
  }
}

const asOwner = (text: string) => as(role.owner, text)

function site(name: string): Site {
  return {
    store: stores.get(name)!,
    owner: stores.get('owner')!,
    advance: async (ms) => {
      await database.sql(`update ${quoted(SCHEMA)}.test_clock set us = us + ${Math.round(ms * 1_000)}`)
    },
  }
}

for (const name of NAMES)
  test(`B130: as ${name} each operation of the port goes through, or is refused by name of what it may not`, async () => {
    for (const [operation, run] of OPERATIONS)
      if (MAY[name]!(operation)) await run(site(name)).catch((error) => assert.fail(`${operation}: ${error}`))
      else await assert.rejects(run(site(name)), (error) => isRefusal(error, operation), operation)
  })

/** As callers see it, or as a worker does, whose calls tell the driver's own error. */
function isRefusal(error: unknown, operation: string): true {
  const { cause = error } = error as { cause?: unknown }
  assert.equal((cause as { code?: string }).code, '42501', `${operation}: ${error}`)
  if (error instanceof QueueError) assert.equal(error.code, 'STORE_REJECTED', operation)
  assert.match((error as Error).message, /permission denied for (schema|table|function|sequence|view) \S+/, operation)
  return true
}

test('B130: nobody owns anything but the owner, who is no superuser', async () => {
  const rows = await database.sql(
    `select distinct pg_get_userbyid(c.relowner) as owner from pg_class c where c.relnamespace = $1::regnamespace
      union select pg_get_userbyid(p.proowner) from pg_proc p where p.pronamespace = $1::regnamespace`,
    [quoted(SCHEMA)],
  )
  assert.deepEqual(rows, [{ owner: role.owner.name }])
  const [extensions] = await database.sql(`select count(*)::int as n from pg_extension where extname <> 'plpgsql'`)
  assert.equal(extensions!.n, 0)
})

test('B130: what a role lacks to work is named, table by table', async () => {
  for (const [name, lack] of [
    ['owner', []],
    ['worker', []],
    ['reader', ['read and write dead', 'use sequence fence', 'call function drop_day']],
    ['nobody', [`use schema ${quoted(SCHEMA)}`, 'read and write job', 'read and write migration']],
  ] as const) {
    const { missing, role: who } = await stores.get(name)!.diagnose.database.access()
    assert.equal(who, role[name].name)
    assert.deepEqual(
      lack.filter((each) => !missing.includes(each)),
      [],
    )
    assert.equal(missing.length === 0, lack.length === 0, `${name}: ${missing}`)
  }
})

test('B130: PUBLIC may nothing, even where everybody may use the schema', async () => {
  const days = ['ensure_day', 'drop_day'].map((name) => `select ${quoted(SCHEMA)}.${name}(current_date - 10)`)
  await asOwner(`grant usage on schema ${quoted(SCHEMA)} to public`)
  try {
    const tables = await database.sql(
      `select c.oid::regclass::text as name from pg_class c where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p', 'v') and c.relname <> 'test_clock'`,
      [quoted(SCHEMA)],
    )
    assert.ok(tables.length > 15)
    for (const statement of [...tables.map(({ name }) => `select from ${name}`), ...days])
      await assert.rejects(as(role.nobody, statement), { code: '42501' }, statement)
  } finally {
    await asOwner(`revoke usage on schema ${quoted(SCHEMA)} from public`)
  }
})

test('B130: a producer stores jobs, and can neither read, change nor delete what is stored', async () => {
  const queue = await connect(role.producer.url, { schema: SCHEMA })
  const client = new pg.Client(role.producer.url)
  await client.connect()
  try {
    const secret = defineJob<{ n: number }>('secret', { queue: 'of-producers' })
    await queue.enqueue(secret, { n: 1 }, { idempotencyKey: 'one' })
    await queue.enqueueMany([secret.with({ n: 2 }), secret.with({ n: 3 }, { delay: '1h', priority: 'high' })])
    await client.query('begin')
    await queue.enqueue(secret, { n: 4 }, { tx: client, idempotencyKey: 'four' })
    await client.query('commit')
  } finally {
    await client.end()
    await queue.close()
  }
  const schema = quoted(SCHEMA)
  for (const statement of [
    `select payload from ${schema}.ready`,
    `select from ${schema}.job`,
    `update ${schema}.ready set priority = 15`,
    `delete from ${schema}.delayed`,
    `update ${schema}.queue set paused = true`,
    `insert into ${schema}.dead select from ${schema}.ready`,
    `select ${schema}.ensure_day(current_date - 10)`,
    `select ${schema}.drop_day(current_date - 10)`,
  ])
    await assert.rejects(as(role.producer, statement), (error: { code?: string }) =>
      /^42(501|703|601)$/.test(error.code!),
    )
})

test('B130: a worker runs what a producer waits for, and start-up changes nothing', async () => {
  const before = await catalog()
  const queue = await connect(role.worker.url, { schema: SCHEMA })
  const waiting = await connect(role.waiter.url, { schema: SCHEMA })
  try {
    const ran = defineJob<{ fail: boolean }>('ran', { queue: 'of-workers', retry: { attempts: 1 } })
    const handler = ran.handle(({ fail }) => {
      if (fail) throw new Error('as told')
    })
    const running = worker(queue, [handler], { upkeep: false })
    await running.start()
    await (await waiting.enqueue(ran, { fail: false })).result({ timeout: '30s' })
    const bad = await waiting.enqueue(ran, { fail: true })
    await assert.rejects(bad.result({ timeout: '30s' }), { code: 'JOB_ENDED_BADLY' })
    await running.stop()
  } finally {
    await waiting.close()
    await queue.close()
  }
  assert.deepEqual(await catalog(), before)
})

test('B130: a worker makes a day that is missing and drops one that is over; both are the owner’s', async () => {
  const schema = quoted(SCHEMA)
  await site('owner').advance(400 * 86_400_000)
  const { settle, 'upkeep.prune': prune } = Object.fromEntries(OPERATIONS) as Record<
    string,
    (site: Site) => Promise<void>
  >
  const before = await days()
  await settle!(site('worker'))
  const made = (await days()).filter((day) => !before.includes(day))
  assert.ok(made.length > 0)
  await prune!(site('worker'))
  assert.deepEqual(
    (await days()).filter((day) => before.includes(day)),
    [],
  )
  const owners = await database.sql(
    `select distinct pg_get_userbyid(c.relowner) as owner from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = $1::regclass and c.relkind = 'r'`,
    [`${schema}.ended`],
  )
  assert.deepEqual(owners, [{ owner: role.owner.name }])
})

test('B130: what runs with the owner’s rights does not look for its functions where the caller says', async () => {
  await database.sql(`create schema if not exists evil; grant usage on schema evil to public; create table evil.calls (who text);
    grant insert on evil.calls to public;
    create function evil.to_char(date, text) returns text language plpgsql as $$
    begin insert into evil.calls values (current_user); return pg_catalog.to_char($1, $2); end $$`)
  const schema = quoted(SCHEMA)
  const searched = `set search_path = evil, pg_catalog; select to_char(current_date, 'YYYY')`
  await as(
    role.worker,
    `${searched}; select ${schema}.ensure_day(current_date + 700), ${schema}.drop_day(current_date - 700)`,
  )
  assert.deepEqual(
    await database.sql('select who from evil.calls'),
    [{ who: role.worker.name }],
    'but where it asked itself',
  )
  await database.sql('drop schema evil cascade')
})

async function days(): Promise<string[]> {
  const rows = await database.sql(
    `select c.relname from pg_class c where c.relnamespace = $1::regnamespace and c.relkind = 'r' and c.relname ~ '^ended_[0-9]{8}$'`,
    [quoted(SCHEMA)],
  )
  return rows.map(({ relname }) => relname as string)
}

async function catalog(): Promise<unknown> {
  return database.sql(
    `select c.relname, c.xmin::text, c.relacl::text from pg_class c where c.relnamespace = $1::regnamespace and not c.relispartition order by 1`,
    [quoted(SCHEMA)],
  )
}
