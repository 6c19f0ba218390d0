/**
 * Calls and transactions that begin on a schema of a release and end on that of this version. Declared for a server by the
 * tests of each version of PostgreSQL.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import type { PostgresStorage } from '../../src/storage/postgres/index.js'
import { migrationSql, openPostgres } from '../../src/storage/postgres/index.js'
import { PLAN } from '../../src/storage/postgres/schema-plan.js'
import type { Claim, Storage } from '../../src/storage/storage.js'
import { completed, newJob, TestWorker } from '../support/jobs.js'
import { serverUrl } from '../support/postgres.js'
import { until } from '../support/until.js'
import { factsOf, loadRelease, RELEASES, releaseClient } from './release.js'

/** The last step of the upgrade: it changes what claims and beats are in the middle of. */
const LONG_NUMBERS = 15

interface Stage {
  schema: string
  admin: pg.Client
  /** The store as the release opens it. */
  old: Storage
  present: PostgresStorage
}

let counter = 0

/** A schema of the release with all migrations but the last, and the functions of the release. */
async function staged(release: string, major: 15 | 18, run: (stage: Stage) => Promise<void>): Promise<void> {
  counter += 1
  const schema = `under_way_${process.pid}_${counter}`
  await loadRelease(release, schema, { major })
  const admin = new pg.Client(serverUrl(major))
  await admin.connect()
  const client = releaseClient(release)
  const module = new URL('./storage/postgres/index.js', client.entry).href
  const released = (await import(module)) as { openPostgres: typeof openPostgres }
  const old = released.openPostgres({ url: serverUrl(major), schema }) as unknown as Storage
  const present = openPostgres({ url: serverUrl(major), schema })
  try {
    const parts = partsFrom(schema, factsOf(release).version)
    for (const part of parts.slice(0, -1)) await admin.query(part)
    await run({ schema, admin, old, present })
  } finally {
    await Promise.all([old.close(), present.close()])
    client.remove()
    await admin.query(`drop schema ${schema} cascade`)
    await admin.end()
  }
}

/** Each is one step: a transaction, the building of an index, the record of it. */
function partsFrom(schema: string, version: number): string[] {
  return migrationSql({ schema, from: version }).split(/(?<=^create index concurrently .*;)\n|\n\n(?=-- \d+ )/m)
}

const LAST = PLAN.migrations.at(-1)!.version

/** Two workers of the release that have done all of it before, so that their sessions have plans for it. */
async function seasoned(old: Storage): Promise<[TestWorker, TestWorker]> {
  const workers: [TestWorker, TestWorker] = [await TestWorker.registered(old), await TestWorker.registered(old)]
  for (let round = 0; round < 8; round++) {
    await old.enqueue([newJob({ queue: 'seasoned' }), newJob({ queue: 'seasoned' })])
    await Promise.all(workers.map((worker) => once(worker)))
  }
  return workers
}

const OF_ITS_OWN = { queues: [{ queue: 'seasoned', share: 1 }], limit: 1 } as const

async function once(worker: TestWorker): Promise<void> {
  const { leases } = await worker.claim(OF_ITS_OWN)
  const finished = leases.map(({ fence }) => completed(fence))
  await worker.claim({ ...OF_ITS_OWN, limit: 0, finished })
  await Promise.all([worker.beat(), worker.storage.takeOver({ worker: worker.id, limit: 1 })])
}

export function callsUnderWayOn(major: 15 | 18): void {
  for (const release of RELEASES.filter((each) => factsOf(each).version < LONG_NUMBERS)) {
    test(`B128: calls of workers of ${release} that wait at the lock of the upgrade go on behind it, on PostgreSQL ${major}, and nothing is lost or taken twice`, () =>
      staged(release, major, async ({ schema, admin, old, present }) => {
        assert.equal(LAST, LONG_NUMBERS)
        const [holder, asker] = await seasoned(old)
        await old.enqueue(Array.from({ length: 6 }, () => newJob({ queue: 'seasoned' })))
        const held = (await holder.claim({ ...OF_ITS_OWN, limit: 2 })).leases[0]!
        const late = (await asker.claim(OF_ITS_OWN)).leases[0]!
        await admin.query(`begin; lock table ${schema}.worker in access exclusive mode`)
        const calls = Promise.all([
          holder.claim({ ...OF_ITS_OWN, finished: [completed(held.fence)] }),
          asker.claim(OF_ITS_OWN),
          asker.beat({ known: asker.request - 1, leases: [late.fence] }),
          old.takeOver({ worker: holder.id, limit: 10 }),
        ])
        await until('all of them wait', async () => (await waiting(admin, schema)) === 4)
        await admin.query(partsFrom(schema, factsOf(release).version).at(-1)!)
        const [finishing, asking, beat, takeOver] = await calls
        assert.deepEqual(finishing.settled, ['ok'])
        for (const claim of [finishing, asking]) assert.equal(claim.leases[0]?.jobs.length, 1)
        assert.deepEqual([beat.status, beat.lost, takeOver.leases], ['ok', [], []])
        assert.deepEqual(await present.setup.migrate(), { applied: [] })
        await goesOn(holder, held.fence, finishing)
        await goesOn(asker, late.fence, asking)
        for (const fence of [held.fence, late.fence, finishing.leases[0]!.fence, asking.leases[0]!.fence])
          assert.ok(['ok', 'already'].includes((await present.settle([completed(fence)]))[0]!))
      }))

    test(`B128: a transaction that began before the upgrade of ${release} sees what runs, and stores no job of an id again`, () =>
      staged(release, major, async ({ schema, old, present }) => {
        const worker = await TestWorker.registered(old)
        const job = newJob({ queue: 'chosen', chosen: true })
        await old.enqueue([job])
        const claim = await worker.claim({ queues: [{ queue: 'chosen', share: 1 }] })
        assert.equal(claim.leases[0]!.jobs[0]!.id, job.id)
        const client = new pg.Client(serverUrl(major))
        await client.connect()
        try {
          await client.query('begin isolation level repeatable read; select 1')
          assert.notDeepEqual((await present.setup.migrate()).applied, [])
          // A table that was rewritten would be empty to it.
          const { rows: seen } = await client.query(
            `select count(*)::int as n from ${schema}.lease where $1 = any(ids)`,
            [job.id],
          )
          assert.deepEqual(seen, [{ n: 1 }])
          const [outcome] = await present.enqueue([job], { tx: client })
          assert.equal(outcome!.status, 'refused')
        } finally {
          await client.end()
        }
      }))
  }
}

async function waiting(admin: pg.Client, schema: string): Promise<number> {
  const { rows } = await admin.query(
    `select count(*)::int as n from pg_locks where relation = $1::regclass and not granted`,
    [`${schema}.worker`],
  )
  return rows[0].n
}

/** Its leases are still its own; the claim that was under way and the next one are answered with the same jobs each time. */
async function goesOn(worker: TestWorker, fence: number, claimed: Claim): Promise<void> {
  const { request } = worker
  const { leases } = await worker.claim(OF_ITS_OWN)
  assert.equal(leases.length, 1)
  for (const [number, answer] of [[request, claimed.leases] as const, [request + 1, leases] as const])
    assert.deepEqual((await worker.claim({ ...OF_ITS_OWN, request: number })).leases, answer)
  const kept = [fence, claimed.leases[0]!.fence]
  const beat = await worker.beat({ leases: [...kept, leases[0]!.fence] })
  assert.deepEqual([beat.status, beat.lost], ['ok', []])
  // Known and not named the next one goes back.
  await worker.beat({ leases: kept })
  assert.deepEqual(await worker.storage.settle([completed(leases[0]!.fence)]), ['lost'])
}
