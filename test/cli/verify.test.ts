/** What `leasehold verify` refuses, and what it needs. A whole run of it is in test/long/verify.test.ts. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Ground } from '../../src/cli/verify/ground.js'
import type { VerifyReport } from '../../src/cli/verify/report.js'
import { CASES, runCase } from '../../src/testing/index.js'
import { type OwnDatabase, ownDatabase } from '../support/database.js'
import { quoted, type Role, Roles } from '../support/roles.js'
import { parsed, run } from './command.js'

interface Failure {
  error: { code: string; message: string; fix: string }
}

test('a memory store is held to the suite; it has no drills, and says why', async () => {
  const { code, stdout } = await run(['verify', '--url', 'memory:', '--json'])
  const { verdict, cases, withoutDrills, drills } = parsed<VerifyReport>(stdout)
  assert.deepEqual([code, verdict, cases.kept, drills], [0, 'kept', CASES.length, undefined])
  assert.match(withoutDrills!, /gone with its process/)
  const text = await run(['verify', '--url', 'memory:'])
  assert.match(
    text.stdout,
    /^What memory promises, and what was seen\n\nEnqueue\n {2}kept {8}Nothing of a job is changed/,
  )
  assert.match(text.stdout, /No drills: a memory store.*\n\nKept: \d+ of \d+ cases\.\n$/)
  assert.match(text.stderr, /holding the store to its promises: \d+ cases/)
})

const MISTAKES: [string[], RegExp][] = [
  [['--url', 'redis://x'], /verify works on postgres:\/\/…, embedded:… and memory:/],
  [['--url', 'memory:', '--sabotage', 'fence'], /--sabotage are for postgres:/],
  [['--sabotage', 'fense'], /did you mean "fence"\?/],
  [['--seconds', '0'], /--seconds: 0 is not allowed/],
  [['--log', 'x', '--quick'], /--quick is of a store, and --log judges a file/],
  [['--lease', '5s', '--url', 'memory:'], /--lease and --shared-clock are of --log/],
]

for (const [args, message] of MISTAKES)
  test(`verify ${args.join(' ')} is a mistake, and nothing is done`, async () => {
    const { code, stdout, stderr } = await run(['verify', ...args])
    assert.deepEqual([code, stdout], [2, ''])
    assert.match(stderr, message)
  })

/** A database of its own, and a role that may do nothing in it. */
async function poorRole(t: TestContext): Promise<{ database: OwnDatabase; role: Role }> {
  const database = await ownDatabase()
  const roles = new Roles(database)
  const role = await roles.make('poor')
  t.after(async () => {
    await database.sql('drop schema if exists given cascade')
    await roles.drop(database.sql)
    await database.drop()
  })
  return { database, role }
}

test('a role that may make no schema hears what it needs, and of the other way', async (t) => {
  const { role } = await poorRole(t)
  const { code, stdout } = await run(['verify', '--json'], { env: { LEASEHOLD_URL: role.url } })
  const { error } = parsed<Failure>(stdout)
  assert.deepEqual([code, error.code], [1, 'SCHEMA_REFUSED'])
  assert.match(error.fix, /CREATE on the database.*--schema verify/)
})

test('in a schema that was made for it a poor role verifies; it is empty before and after, and stays', async (t) => {
  const { database, role } = await poorRole(t)
  await database.sql(`create schema given authorization ${quoted(role.name)}`)
  const ground = await Ground.open({ url: role.url, given: 'given', mark: 'unused' })
  await ground.moveClock()
  for (const one of CASES.slice(0, 3))
    assert.deepEqual(await runCase(one, ground.factory('hears')), { status: 'passed' })
  await ground.renew()
  const store = ground.storage()
  assert.deepEqual(await store.setup.drift(), [], 'the drills find it as it is made')
  await store.close()
  await ground.close()
  const things = await database.sql(`select relname from pg_class where relnamespace = 'given'::regnamespace
    union all select proname from pg_proc where pronamespace = 'given'::regnamespace`)
  assert.deepEqual(things, [])
})

test('a schema that holds anything is refused and left as it is; so is one that is not there', async (t) => {
  const { database } = await poorRole(t)
  await database.sql('create schema given')
  await database.sql('create table given.orders as select 1 as n')
  const given = await run(['verify', '--schema', 'given', '--json'], { env: { LEASEHOLD_URL: database.url } })
  assert.deepEqual([given.code, parsed<Failure>(given.stdout).error.code], [2, 'SCHEMA_NOT_EMPTY'])
  assert.deepEqual(await database.sql('select n from given.orders'), [{ n: 1 }])
  const absent = await run(['verify', '--schema', 'absent', '--json'], { env: { LEASEHOLD_URL: database.url } })
  assert.deepEqual([absent.code, parsed<Failure>(absent.stdout).error.code], [1, 'SCHEMA_REFUSED'])
})
