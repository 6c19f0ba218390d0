/** A queue over several stores, at the command line: one of the stores may be away. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { connect } from '../../src/connect.js'
import { defineJob } from '../../src/core/kind.js'
import { serverUrl } from '../support/postgres.js'
import { type CliStore, cliStore, handlerModule, run, scratchFolder } from './command.js'

const mail = defineJob<{ n: number }>('k', { queue: 'mail' })

let one: CliStore
let two: CliStore
let line: string
/** With a third store, at which nobody listens. */
let broken: string

before(async () => {
  one = await cliStore('part1')
  two = await cliStore('part2')
  const at = (store: CliStore): string => `${serverUrl()}#${store.env.LEASEHOLD_SCHEMA}`
  line = `by=tenant,one=${at(one)},two=${at(two)}`
  broken = `${line},gone=postgres://nobody@127.0.0.1:1/nothing`
  await using queue = await connect(line)
  await queue.enqueueMany(Array.from({ length: 30 }, (_, n) => mail.with({ n }, { tenant: `tenant ${n}` })))
})
after(async () => {
  const client = new pg.Client(serverUrl())
  await client.connect()
  await client.query(`drop schema if exists "part_fresh_${process.pid}" cascade`)
  await client.end()
  await one.drop()
  await two.drop()
})

const json = async <T>(...args: string[]): Promise<T> => {
  const { code, stdout, stderr } = await run([...args, '--json'], { env: { LEASEHOLD_URL: line } })
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout) as T
}

test('lists and counts show the stores as one, and say where each job is', async () => {
  const { queues } = await json<{ queues: { queue: string; counts: { ready: unknown } }[] }>('queues', 'list')
  assert.deepEqual(
    queues.map(({ queue, counts }) => [queue, counts.ready]),
    [['mail', { count: 30, exact: true }]],
  )
  const { jobs } = await json<{ jobs: { id: string; partition: string }[] }>('jobs', 'list', '--limit', '100')
  assert.equal(jobs.length, 30)
  assert.deepEqual(new Set(jobs.map(({ partition }) => partition)), new Set(['one', 'two']))
  const shown = await run(['jobs', 'show', jobs[0]!.id], { env: { LEASEHOLD_URL: line } })
  assert.match(shown.stdout, new RegExp(`partition +${jobs[0]!.partition}`))
  const { queues: stats } = await json<{ queues: { counts: { ready: { count: number } } }[] }>('stats')
  assert.equal(stats[0]!.counts.ready.count, 30)
  const table = await run(['jobs', 'list'], { env: { LEASEHOLD_URL: line } })
  assert.match(table.stdout, /PARTITION/)
})

test('--url may be given for each store', async () => {
  const urls = line.split(',').flatMap((word) => ['--url', word])
  const { code, stdout } = await run(['partitions', ...urls])
  assert.equal(code, 0)
  assert.match(stdout, /PARTITION +STATUS +READY/)
  assert.match(stdout, /one +open +\d+/)
})

test('partitions tells which of them answer, and what each has', async () => {
  const { code, stdout, stderr } = await run(['partitions', '--json'], {
    env: { LEASEHOLD_URL: `${broken},draining=two` },
  })
  assert.equal(code, 0)
  const { partitions } = JSON.parse(stdout) as {
    partitions: { partition: string; status: string; counts?: { ready: { count: number } } }[]
  }
  assert.deepEqual(
    partitions.map(({ partition, status }) => [partition, status]),
    [
      ['one', 'open'],
      ['two', 'draining'],
      ['gone', 'away'],
    ],
  )
  assert.equal(partitions[0]!.counts!.ready.count + partitions[1]!.counts!.ready.count, 30)
  assert.match(stderr, /without what it holds: partition "gone": /)
})

test('what a store holds that is away is said to be missing, and the rest is shown', async () => {
  const { code, stdout, stderr } = await run(['queues', 'list', '--json'], { env: { LEASEHOLD_URL: broken } })
  assert.equal(code, 0)
  const { queues } = JSON.parse(stdout) as { queues: { counts: { ready: unknown } }[] }
  assert.deepEqual(queues[0]!.counts.ready, { count: 30, exact: false })
  assert.match(stderr, /partition "gone": /)
  assert.doesNotMatch(stderr, /nobody:/)
})

test('migrate brings each store up to date, and refuses where one does not answer', async () => {
  const fresh = `${serverUrl()}#part_fresh_${process.pid}`
  const both = `by=kind,one=${serverUrl()}#${one.env.LEASEHOLD_SCHEMA},fresh=${fresh}`
  const missing = await run(['migrate', '--check'], { env: { LEASEHOLD_URL: both } })
  assert.equal(missing.code !== 0 && /SCHEMA_MISSING/.test(missing.stderr), true, missing.stderr)
  const done = await run(['migrate'], { env: { LEASEHOLD_URL: both } })
  assert.deepEqual([done.code, /fresh: /.test(done.stdout), /one: /.test(done.stdout)], [0, true, false])
  assert.equal((await run(['migrate', '--check'], { env: { LEASEHOLD_URL: both } })).code, 0)
  const refused = await run(['migrate', '--check'], { env: { LEASEHOLD_URL: broken } })
  assert.match(refused.stderr, /partition "gone": /)
})

test('what works on one store says so', async () => {
  for (const command of ['verify', 'bench']) {
    const { code, stderr } = await run([command], { env: { LEASEHOLD_URL: line } })
    assert.notEqual(code, 0)
    assert.match(stderr, /works on one store, and several were named/)
  }
  const { code, stderr } = await run(['partitions'], {
    env: { LEASEHOLD_URL: serverUrl(), LEASEHOLD_SCHEMA: one.env.LEASEHOLD_SCHEMA! },
  })
  assert.notEqual(code, 0)
  assert.match(stderr, /this queue has one store/)
})

test('doctor looks at each store, tail follows all of them, and a worker works on all', async (t) => {
  const doctor = await run(['doctor', '--json'], { env: { LEASEHOLD_URL: line } })
  const { checks } = JSON.parse(doctor.stdout) as { checks: { measured: { partition: string } }[] }
  assert.deepEqual(new Set(checks.map(({ measured }) => measured.partition)), new Set(['one', 'two']))
  const module = await handlerModule(
    await scratchFolder(t),
    `export default defineJob('k', { queue: 'mail' }).handle(() => {})`,
  )
  const worked = await run(['work', module, '--queues', 'mail', '--until-empty', '--json'], {
    env: { LEASEHOLD_URL: line },
  })
  assert.equal(worked.code, 0, worked.stderr)
  const tail = await run(['tail', '--no-follow', '--json', '--since', '1h'], { env: { LEASEHOLD_URL: line } })
  assert.equal(tail.stdout.trim().split('\n').length, 30)
})
