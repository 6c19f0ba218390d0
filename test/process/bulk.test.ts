/** A bulk redrive whose process is killed: the next one goes on with the rest, and nothing is done twice. */
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { connect, type Queue } from '../../src/index.js'
import { type Scratch, scratch } from '../support/postgres.js'
import type { BulkSettings } from './bulk-child.js'

const CHILD = fileURLToPath(new URL('./bulk-child.js', import.meta.url))
const LETTERS = 1_000

let store: Scratch
let queue: Queue
before(async () => {
  store = await scratch()
  queue = await connect(store.url, { schema: store.schema })
})
after(async () => {
  await queue.close()
  await store.drop()
})

async function letters(name: string): Promise<void> {
  const [made] = await store.sql('select :s.ensure_queue($1, 4) as id', [name])
  const history = { attempts: 1, crashes: 0, crashesAlone: 0, snoozes: 0, redrives: 0, entries: [] }
  await store.sql(
    `insert into :s.dead (id, queue, level, kind, reason, enqueued, ended, payload, history)
      select gen_random_uuid(), $1, 4, 'kind', 'failed', now(), now() - n * interval '1 ms', '{}', $2 from generate_series(1, $3::int) n`,
    [made!.id, JSON.stringify(history), LETTERS],
  )
}

/** Killed by SIGKILL as soon as it has told of so many done; answers how many it told of. */
async function killedAfter(name: string, least: number): Promise<number> {
  const { url, schema } = store
  const settings: BulkSettings = { url, schema, queue: name, rate: 2_000 }
  const child: ChildProcess = fork(CHILD, [JSON.stringify(settings)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  let told = 0
  child.on('message', (done) => {
    told = Number(done)
    if (told >= least) child.kill('SIGKILL')
  })
  const [, signal] = (await once(child, 'exit')) as [number | null, string | null]
  assert.equal(signal, 'SIGKILL', 'it came to its end before it was killed')
  return told
}

test('killed three times in the middle, a redrive of a thousand goes on each time, and each comes back once', async () => {
  await letters('killed')
  let told = 0
  for (const least of [40, 100, 160]) {
    told += await killedAfter('killed', least)
    // A batch whose statement was under way when the process died may still commit.
    await quiet()
    const { dead, ready } = await queue.counts('killed')
    assert.equal(dead.count + ready.count, LETTERS, 'none is lost')
    assert(ready.count >= told && ready.count < LETTERS, `${ready.count} are back, ${told} were told of`)
  }
  const { ready } = await queue.counts('killed')
  const rest = await queue.redriveAll({ queue: 'killed' })
  assert.deepEqual([rest.done, rest.ended, rest.answers], [LETTERS - ready.count, 'all', { ok: LETTERS - ready.count }])
  const rounds = await store.sql(
    `select (history ->> 'redrives')::int as redrives, count(*)::int as jobs, count(distinct id)::int as ids from :s.ready group by 1`,
  )
  assert.deepEqual(rounds, [{ redrives: 1, jobs: LETTERS, ids: LETTERS }])
})

test('two runs at once share the work, and each letter comes back once', async () => {
  await letters('shared')
  const runs = [1, 2].map(() => queue.redriveAll({ queue: 'shared' }, { batch: 30 }))
  const [one, other] = (await Promise.all(runs)) as [Awaited<(typeof runs)[0]>, Awaited<(typeof runs)[0]>]
  assert.equal(one.done + other.done, LETTERS)
  const [row] = await store.sql(
    `select count(*)::int as jobs, max((history ->> 'redrives')::int) as redrives from :s.ready where lane / 64 = (select id from :s.queue where name = 'shared')`,
  )
  assert.deepEqual(row, { jobs: LETTERS, redrives: 1 })
})

/** No statement of the killed process is under way any more. */
async function quiet(): Promise<void> {
  for (;;) {
    const [row] = await store.sql(
      `select count(*)::int as n from pg_stat_activity where state = 'active' and pid <> pg_backend_pid() and query like '%' || $1 || '%'`,
      [store.schema],
    )
    if (row!.n === 0) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
