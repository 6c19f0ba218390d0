/** A managed server: no superuser, no extension, and now and then a right too few. Workers as users run them. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect, defineJob, type QueueEvent, retryAfter, worker } from '../../src/index.js'
import { type OwnDatabase, ownDatabase } from '../support/database.js'
import { TcpProxy } from '../support/proxy.js'
import { quoted, type Role, Roles } from '../support/roles.js'
import { until } from '../support/until.js'

let database: OwnDatabase
let roles: Roles
before(async () => {
  database = await ownDatabase()
  roles = new Roles(database)
})
after(async () => {
  await roles.drop(database.sql)
  await database.drop()
})

const kind = defineJob<{ how: 'well' | 'again' | 'badly' }>('managed', {
  queue: 'managed',
  retry: { attempts: 2, backoff: { base: '50ms', cap: '50ms' } },
})
const handler = kind.handle(({ how }, { attempt }) => {
  if (how === 'badly') throw new Error('as always')
  return how === 'again' && attempt === 1 ? retryAfter('50ms') : how
})

/** What a role may at the start, and whose the schema is. */
const BEGINNINGS: Readonly<Record<string, (role: Role, schema: string) => string>> = {
  'may only create in the database': (role) => `grant create on database ${databaseName()} to ${quoted(role.name)}`,
  'may only create in a schema that somebody made': (role, schema) =>
    `create schema ${quoted(schema)}; grant create, usage on schema ${quoted(schema)} to ${quoted(role.name)}`,
}

function databaseName(): string {
  return new URL(database.url).pathname.slice(1)
}

for (const [may, sql] of Object.entries(BEGINNINGS))
  test(`B130: a role that ${may} migrates, and runs producers and workers with all their duties`, async () => {
    const role = await roles.make('managed')
    const schema = `Managed ${may.length}`
    await database.sql(sql(role, schema))
    const events: QueueEvent[] = []
    const queue = await connect(role.url, { schema, log: (event) => void events.push(event) })
    const running = worker(queue, [handler], { signals: false, completedRetention: '1s', deadRetention: '1s' })
    await running.start()
    const jobs = [
      await queue.enqueue(kind, { how: 'well' }, { idempotencyKey: 'well', delay: '100ms' }),
      await queue.enqueue(kind, { how: 'again' }),
      await queue.enqueue(kind, { how: 'badly' }, { expiresIn: '1h' }),
    ]
    const results = await Promise.allSettled(jobs.map((job) => job.result({ timeout: '30s' })))
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'fulfilled', 'rejected'],
    )
    await queue.pause('managed')
    await queue.resume('managed')
    const { upkeep } = queue.connection.storage
    await upkeep.expire(10)
    await upkeep.prune({ completedMs: 1_000, deadMs: 1_000, limit: 10 })
    await until('it is well', () => running.health().status === 'ok')
    assert.deepEqual(
      events.filter(({ type }) => type === 'store.unavailable'),
      [],
    )
    await running.stop()
    // The schema is up to date: who comes next needs no right to make anything.
    await database.sql(`revoke create on database ${databaseName()} from ${quoted(role.name)}`)
    const again = await connect(role.url, { schema })
    await Promise.all([queue.close(), again.close()])
    await database.sql(`drop schema ${quoted(schema)} cascade; drop owned by ${quoted(role.name)}`)
  })

test('B36: claims that fail at once, as a right was taken away: fewer than two a second, told as often, and work goes on', async () => {
  const owner = await connect(database.url, { schema: 'rights' })
  const role = await roles.make('worker')
  await database.sql(`grant usage on schema rights to ${quoted(role.name)};
    grant all on all tables in schema rights to ${quoted(role.name)}; grant all on all sequences in schema rights to ${quoted(role.name)}`)
  const [claim] = await database.sql(
    `select oid::regprocedure::text as name from pg_proc where proname = 'claim_jobs' and pronamespace = 'rights'::regnamespace`,
  )
  const proxy = await TcpProxy.to(role.url)
  const events: QueueEvent[] = []
  const queue = await connect(proxy.url, { schema: 'rights', migrate: false, log: (event) => void events.push(event) })
  const running = worker(queue, [handler], { signals: false, upkeep: false, poll: '100ms' })
  await running.start()
  await (await owner.enqueue(kind, { how: 'well' })).result({ timeout: '20s' })
  await database.sql(`revoke execute on function ${claim!.name} from public`)
  await until('claims fail', () => running.health().failing.includes('claim'))
  const claims = (): number => proxy.sent.filter((statement) => statement.startsWith('lh_claim')).length
  const before = claims()
  const cpu = process.cpuUsage()
  await sleep(10_000)
  const { user, system } = process.cpuUsage(cpu)
  assert.ok(claims() - before <= 20, `${claims() - before} claims`)
  const told = events.filter((event) => event.type === 'store.unavailable' && event.operation === 'claim')
  assert.ok(told.length <= 25, `told ${told.length} times`)
  assert.ok((user + system) / 1_000 < 5_000, `${(user + system) / 1_000} ms of work in 10 s`)
  assert.match(JSON.stringify(told.at(-1)), /permission denied for function claim_jobs/)
  await database.sql(`grant execute on function ${claim!.name} to public`)
  await (await owner.enqueue(kind, { how: 'well' })).result({ timeout: '20s' })
  await until('it is well', () => running.health().status === 'ok')
  await running.stop()
  await Promise.all([queue.close(), owner.close()])
  await proxy.close()
  await database.sql(`drop schema rights cascade; drop owned by ${quoted(role.name)}`)
})
