/** What was done to a schema by hand is found and named; what was added beside it does no harm. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { differences, functionsIn } from '../../src/storage/postgres/drift.js'
import { openPostgres, type PostgresStorage } from '../../src/storage/postgres/index.js'
import { MANIFEST } from '../../src/storage/postgres/schema-manifest.js'
import { schemaName } from '../../src/storage/postgres/schema-name.js'
import { PLAN } from '../../src/storage/postgres/schema-plan.js'
import { type OwnDatabase, ownDatabase } from '../support/database.js'
import { scratch } from '../support/postgres.js'
import { freshFacts } from './fresh-facts.js'

/** A schema without the clock that tests move: that would be a change, too. */
let database: OwnDatabase
let storage: PostgresStorage

before(async () => {
  database = await ownDatabase()
  storage = openPostgres({ url: database.url })
  await storage.setup.migrate()
})
after(async () => {
  await storage.close()
  await database.drop()
})

/** Done in a database of its own, found, and undone. */
const DEEDS: readonly [done: string, undone: string, found: readonly string[]][] = [
  [
    'drop index leasehold.ready_claim',
    'create index ready_claim on leasehold.ready (lane, pos)',
    ['missing: index ready_claim is missing (btree on ready (lane, pos))'],
  ],
  [
    'drop index leasehold.ready_claim; create index ready_claim on leasehold.ready (pos, lane)',
    'drop index leasehold.ready_claim; create index ready_claim on leasehold.ready (lane, pos)',
    ['changed: index ready_claim is "btree on ready (pos, lane)", and should be "btree on ready (lane, pos)"'],
  ],
  [
    `update pg_index set indisvalid = false where indexrelid = 'leasehold.dead_list'::regclass`,
    `update pg_index set indisvalid = true where indexrelid = 'leasehold.dead_list'::regclass`,
    [
      'changed: index dead_list is "btree on dead (queue, ended), not valid", and should be "btree on dead (queue, ended)"',
    ],
  ],
  [
    'alter table leasehold.revoked alter column at type numeric; alter table leasehold.revoked alter column at drop not null',
    'alter table leasehold.revoked alter column at type bigint; alter table leasehold.revoked alter column at set not null',
    ['changed: column revoked.at is "numeric", and should be "bigint not null"'],
  ],
  [
    'alter table leasehold.worker alter column known drop default',
    'alter table leasehold.worker alter column known set default 0',
    ['changed: column worker.known is "bigint not null", and should be "bigint not null default 0"'],
  ],
  [
    'alter table leasehold.idle set unlogged',
    'alter table leasehold.idle set logged',
    ['changed: table idle is "ordinary, unlogged", and should be "ordinary"'],
  ],
  [
    'alter table leasehold.expiry rename to expired',
    'alter table leasehold.expired rename to expiry',
    // Told as one: not each column and constraint of it.
    [
      'missing: table expiry is missing (ordinary)',
      'extra: table expired is not of this version',
      'changed: index expiry_pkey is "unique, btree on expired (at, id)", and should be "unique, btree on expiry (at, id)"',
    ],
  ],
  [
    'alter table leasehold.dead rename column reason to why',
    'alter table leasehold.dead rename column why to reason',
    [
      'missing: column dead.reason is missing (text not null)',
      'extra: column dead.why is not of this version (text not null)',
      'changed: index dead_group is "btree on dead (queue, fingerprint, kind, why, ended, id)", and should be "btree on dead (queue, fingerprint, kind, reason, ended, id)"',
    ],
  ],
  [
    'alter table leasehold.queue drop constraint queue_ordering_check',
    `alter table leasehold.queue add constraint queue_ordering_check check (ordering in ('ageing', 'strict', 'weighted'))`,
    [
      `missing: constraint queue.queue_ordering_check is missing (CHECK ((ordering = ANY (ARRAY['ageing'::text, 'strict'::text, 'weighted'::text]))))`,
    ],
  ],
  [
    `create index mine on leasehold.ended (kind); create view leasehold.my_view as select 1 as one; create table leasehold.my_table (id int)`,
    'drop index leasehold.mine; drop view leasehold.my_view; drop table leasehold.my_table',
    [
      'extra: index mine is not of this version (btree on ended (kind))',
      'extra: view my_view is not of this version',
      'extra: table my_table is not of this version',
    ],
  ],
  [
    `create function leasehold.mine() returns trigger language plpgsql as $$ begin return null; end $$;
      create trigger watch before insert on leasehold.ready for each row execute function leasehold.mine()`,
    'drop trigger watch on leasehold.ready; drop function leasehold.mine()',
    [
      'extra: trigger ready.watch is not of this version (on ready)',
      'extra: function mine of 0 arguments is not of this version',
    ],
  ],
  [
    `create or replace function leasehold.is_known(p_id uuid) returns boolean language sql stable as 'select false'`,
    'functions',
    ['changed: function is_known of 1 arguments has another text than this version gives it'],
  ],
  ['drop function leasehold.unregister(uuid)', 'functions', ['missing: function unregister of 1 arguments is missing']],
  [
    'alter function leasehold.drop_day(date) security invoker; alter function leasehold.ensure_day(date) reset search_path',
    'functions',
    [
      'changed: function ensure_day of 1 arguments runs with the settings "", and should with "search_path=pg_catalog,pg_temp"',
      'changed: function drop_day of 1 arguments runs with the rights of its caller, and should with those of its owner',
    ],
  ],
]

test('a new schema has not drifted, on any server', async () => {
  assert.deepEqual(await storage.setup.drift(), [])
})

test('the manifest is what the migrations make; write-manifest.ts writes it anew', async () => {
  assert.deepEqual(await freshFacts(18), MANIFEST)
})

for (const [done, undone, found] of DEEDS)
  test(`drift: ${found[0]}`, async () => {
    await database.sql(done)
    try {
      const told = (await storage.setup.drift()).map(({ kind, sentence }) => `${kind}: ${sentence}`)
      assert.deepEqual(told.sort(), [...found].sort())
    } finally {
      await undo(undone)
    }
    assert.deepEqual(await storage.setup.drift(), [])
  })

/** Functions as after a dump that was restored in part: the record of them is older than they are. */
async function undo(undone: string): Promise<void> {
  if (undone !== 'functions') return void (await database.sql(undone))
  await database.sql('update leasehold.functions set revision = 0')
  await storage.setup.migrate()
}

test('a schema of a later version has drifted only where it lacks or changes what this one needs', () => {
  const schema = schemaName('leasehold')
  const functions = functionsIn(PLAN.functions.text, schema)
  const facts = { ...MANIFEST, 'column dead.later': 'text', 'column dead.reason': 'integer' }
  const found = { facts, functions: functions.slice(1).map((each) => ({ ...each, body: 'later' })) }
  const told = differences(found, { facts: MANIFEST, functions: PLAN.functions.text }, schema, 'newer')
  assert.deepEqual(
    told.map(({ kind, about }) => `${kind} ${about}`),
    ['changed column dead.reason', 'missing function clock of 0 arguments'],
  )
})

test('every function of the text is found in it, with its settings', async () => {
  const found = functionsIn(PLAN.functions.text, schemaName('leasehold'))
  assert.equal(found.length, PLAN.functions.text.match(/^create or replace function/gm)!.length)
  assert.deepEqual(found.find(({ name }) => name === 'settle')?.settings, [
    'plan_cache_mode=force_generic_plan',
    'enable_seqscan=off',
    'enable_bitmapscan=off',
  ])
})

test('drift of a schema that is missing or outdated is told as such', async () => {
  const store = await scratch()
  try {
    await store.sql('update :s.functions set revision = 0')
    await assert.rejects(store.storage.setup.drift(), { code: 'SCHEMA_OUTDATED' })
    await assert.rejects(store.open({ schema: 'of nobody' }).setup.drift(), { code: 'SCHEMA_MISSING' })
  } finally {
    await store.drop()
  }
})
