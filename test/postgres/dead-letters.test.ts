/** Dead letters in numbers, and those of an older version, on PostgreSQL. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Queue } from '../../src/client/queue.js'
import { realEnv } from '../../src/core/env.js'
import { EventBus } from '../../src/observe/events.js'
import { LocalHints } from '../../src/storage/connection.js'
import { type Scratch, scratch } from '../support/postgres.js'

let store: Scratch
let queue: Queue
before(async () => {
  store = await scratch()
  queue = new Queue({ storage: store.storage, env: realEnv, events: new EventBus(), hints: new LocalHints() })
})
after(() => store.drop())

const HISTORY = JSON.stringify({
  attempts: 6,
  crashes: 0,
  crashesAlone: 0,
  snoozes: 0,
  redrives: 0,
  entries: [{ at: 1, attempt: 6, outcome: 'failed', error: { name: 'Error', message: 'it broke' } }],
})

/** Letters as the store keeps them; `print` and `ended` are SQL over n. */
async function insert(name: string, count: number, { print = `''`, ended = 'now()' } = {}): Promise<void> {
  const [made] = await store.sql('select :s.ensure_queue($1, 4) as id', [name])
  await store.sql(
    `insert into :s.dead (id, queue, level, kind, reason, fingerprint, enqueued, ended, payload, spec, history)
      select gen_random_uuid(), $1, 4, 'kind', 'failed', ${print}, now(), ${ended}, '{}', '{"idempotencyKey":"key"}', $2
      from generate_series(1, ${count}) n`,
    [made!.id, HISTORY],
  )
}

test('letters of an older version have no fingerprint: they are one group by their reason, and can be redriven', async () => {
  const [made] = await store.sql(`select :s.ensure_queue('old', 4) as id`)
  await store.sql(
    `insert into :s.dead (id, queue, level, kind, reason, enqueued, ended, payload, history)
      select gen_random_uuid(), $1, 4, 'kind', case when n < 4 then 'failed' else 'rejected' end, now(), now(), '{}', $2
      from generate_series(1, 5) n`,
    [made!.id, HISTORY],
  )
  const { groups } = await queue.deadGroups({ queue: 'old' })
  const seen = groups.map(({ reason, fingerprint, count, sample }) => [
    reason,
    fingerprint,
    count.count,
    sample.error?.message,
  ])
  assert.deepEqual(seen.sort(), [
    ['failed', null, 3, 'it broke'],
    ['rejected', null, 2, 'it broke'],
  ])
  const result = await queue.redriveAll({ queue: 'old', fingerprint: 'none', reason: 'failed' })
  assert.deepEqual([result.done, (await queue.counts('old')).ready.count], [3, 3])
  const listed = await queue.list({ state: 'dead', queue: 'old', fingerprint: 'none' })
  assert.equal(listed.jobs.length, 2)
})

test('the count of a large group stops at a bound, and says so', async () => {
  await insert('large', 10_500, { print: `'aaaaaaaaaaaa'` })
  const [group] = (await queue.deadGroups({ queue: 'large' })).groups
  assert.deepEqual(group?.count, { count: 5_000, exact: false })
})

test('where there are more groups than are looked at it says so, and the newest are among them', async () => {
  await insert('many', 3_000, { print: `substr(md5(n::text), 1, 12)`, ended: `now() - n * interval '1 s'` })
  const newest = async () => {
    const { groups, complete } = await queue.deadGroups({ queue: 'many', limit: 5 })
    const [{ prints }] = (await store.sql(
      `select array_agg(fingerprint order by n) as prints from (select substr(md5(n::text), 1, 12) as fingerprint, n from generate_series(1, 5) n) x`,
    )) as [{ prints: string[] }]
    assert.deepEqual(
      groups.map(({ fingerprint }) => fingerprint),
      prints,
    )
    return complete
  }
  assert.equal(await newest(), false)
  const all = await queue.deadGroups({ queue: 'many', limit: 1_000 })
  assert.deepEqual([all.groups.length, all.complete], [1_000, false])
})

test('thousands are redriven in the order in which they died, and discarded', async () => {
  await insert('thousands', 5_000, { print: `'bbbbbbbbbbbb'`, ended: `now() - n * interval '1 ms'` })
  const order = (await store.sql(`select id from :s.dead where fingerprint = 'bbbbbbbbbbbb' order by ended`)) as {
    id: string
  }[]
  const redriven = await queue.redriveAll({ queue: 'thousands' }, { limit: 3_000 })
  assert.deepEqual([redriven.done, redriven.ended], [3_000, 'limit'])
  const ready = (await store.sql(
    `select id from :s.ready where lane / 64 = (select id from :s.queue where name = 'thousands') order by lane, pos`,
  )) as { id: string }[]
  assert.deepEqual(ready, order.slice(0, 3_000))
  const discarded = await queue.discardAll({ queue: 'thousands', kind: 'kind' })
  assert.deepEqual([discarded.done, discarded.ended], [2_000, 'all'])
  assert.deepEqual((await queue.deadGroups({ queue: 'thousands' })).groups, [])
})

test('looking at a queue that nobody has seen makes none', async () => {
  const name = 'nobody'
  assert.equal((await queue.counts(name)).ready.count, 0)
  assert.equal(await queue.purge(name), 0)
  assert.equal((await queue.cancelAll({ queue: name })).matched, 0)
  assert.deepEqual(await queue.deadGroups({ queue: name }), { groups: [], complete: true })
  assert.equal((await queue.list({ state: 'ready', queue: name })).jobs.length, 0)
  assert.deepEqual(await store.sql('select from :s.queue where name = $1', [name]), [])
})
