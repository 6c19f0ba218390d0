/** A queue over stores of two servers, of two versions. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { connect } from '../../src/connect.js'
import { dead } from '../../src/core/handler.js'
import { defineJob } from '../../src/core/kind.js'
import { worker } from '../../src/worker/index.js'
import { type Scratch, scratch } from '../support/postgres.js'

const mail = defineJob<{ n: number }>('mail', { queue: 'mail' })
const TENANTS = Array.from({ length: 40 }, (_, n) => `tenant ${n}`)

let newer: Scratch
let older: Scratch
before(async () => {
  newer = await scratch({ major: 18 })
  older = await scratch({ major: 15 })
})
after(async () => {
  await newer.drop()
  await older.drop()
})

const open = () =>
  connect({
    by: 'tenant',
    partitions: [
      { name: 'newer', url: newer.url, schema: newer.schema },
      { name: 'older', url: older.url, schema: older.schema },
    ],
  })

test('two servers are one queue: jobs, workers, dead letters, redrive', async () => {
  await using queue = await open()
  await queue.enqueueMany(TENANTS.map((tenant, n) => mail.with({ n }, { tenant })))
  let broken = true
  const runs = worker(
    queue,
    [
      mail.handle(() => {
        if (broken) return dead('no such user')
      }),
    ],
    { signals: false },
  )
  await runs.runUntilEmpty()
  assert.deepEqual((await queue.counts('mail')).dead, { count: TENANTS.length, exact: true })
  const { groups } = await queue.deadGroups()
  assert.deepEqual([groups.length, groups[0]!.count.count], [1, TENANTS.length])
  broken = false
  assert.equal((await queue.redriveAll({ queue: 'mail' })).done, TENANTS.length)
  assert.equal((await runs.runUntilEmpty()).completed, TENANTS.length)
})

test('a transaction of one server takes no job of the other, and goes on', async () => {
  const client = await newer.client()
  await using queue = await open()
  await client.query('begin')
  const results = await queue.enqueueMany(
    TENANTS.map((tenant, n) => mail.with({ n }, { tenant })),
    { tx: client },
  )
  const of = (status: string) => results.filter((one) => one.status === status)
  const codes = results.flatMap((one) => (one.status === 'refused' ? [one.error.code] : []))
  assert.deepEqual(new Set(codes), new Set(['WRONG_PARTITION']))
  assert.equal(of('created').length + codes.length, TENANTS.length)
  await client.query('commit')
  const [stored] = await newer.sql('select count(*)::int as n from :s.ready')
  const [strange] = await older.sql('select count(*)::int as n from :s.ready')
  assert.deepEqual([stored!.n, strange!.n], [of('created').length, 0])
})
