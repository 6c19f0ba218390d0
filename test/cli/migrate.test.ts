/** `leasehold migrate`: makes, checks and prints the schema. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import pg from 'pg'
import { serverUrl } from '../support/postgres.js'
import { type Ended, parsed, run } from './command.js'

const schema = `cli_migrate_${process.pid}`
const env = { LEASEHOLD_URL: serverUrl(), LEASEHOLD_SCHEMA: schema }

async function migrate(...args: string[]): Promise<Ended> {
  return run(['migrate', ...args], { env })
}

async function sql(text: string): Promise<void> {
  const client = new pg.Client(serverUrl())
  await client.connect()
  await client.query(text)
  await client.end()
}

after(() => sql(`drop schema if exists "${schema}" cascade`))

test('a missing schema is named by every command, made once, and then up to date', async () => {
  const list = await run(['jobs', 'list'], { env })
  assert.equal(list.code, 1)
  assert.match(list.stderr, /leasehold migrate.*\(SCHEMA_MISSING\)/)
  assert.equal((await migrate('--check')).code, 1)
  const made = await migrate('--json')
  assert.equal(made.code, 0)
  const document = parsed<{ status: string; applied: string[] }>(made.stdout)
  assert.equal(document.status, 'migrated')
  assert.match(document.applied[0]!, /^1 /)
  assert.equal((await migrate()).stdout, 'the schema is up to date\n')
  assert.equal((await migrate('--check')).code, 0)
})

test('a schema of a later version is refused, not touched', async () => {
  await sql(`insert into "${schema}".migration (version, name, oldest_client) values (9999, 'later', 9999)`)
  for (const args of [[], ['--check']]) {
    const { code, stderr } = await migrate(...args)
    assert.equal(code, 1)
    assert.match(stderr, /\(SCHEMA_OUTDATED\)/)
  }
  await sql(`delete from "${schema}".migration where version = 9999`)
})

test('the printed SQL makes a schema that the check accepts; it needs no store', async () => {
  const other = `${schema}_printed`
  const { code, stdout } = await run(['migrate', '--print', '--schema', other])
  assert.equal(code, 0)
  await sql(stdout)
  const checked = await run(['migrate', '--check', '--schema', other], { env: { LEASEHOLD_URL: serverUrl() } })
  assert.equal(checked.code, 0)
  await sql(`drop schema "${other}" cascade`)
})

test('B130: the printed grants are what the owner of the schema runs; a wrong role is named', async () => {
  const to = `cli "worker" ${process.pid}`
  const quoted = `"${to.replaceAll('"', '""')}"`
  await sql(`create role ${quoted}`)
  try {
    const { code, stdout } = await run(['migrate', '--print-grants', 'worker', '--to', to, '--schema', schema])
    assert.equal(code, 0)
    await sql(stdout)
    await sql(`set role ${quoted}; select count(*) from "${schema}".ready`)
  } finally {
    await sql(`drop owned by ${quoted}; drop role ${quoted}`)
  }
  const wrong = await migrate('--print-grants', 'workers', '--to', to)
  assert.equal(wrong.code, 2)
  assert.match(wrong.stderr, /"workers" is none of worker, producer, reader; did you mean "worker"\?/)
  for (const args of [
    ['--to', to],
    ['--print-grants', 'worker'],
    ['--print', '--check'],
  ])
    assert.equal((await migrate(...args)).code, 2)
})
