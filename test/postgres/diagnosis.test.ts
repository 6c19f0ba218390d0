/** What the store tells of its pace and of endings: right at the edges, bounded, and complete also for what commits late. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { EndedJobs } from '../../src/cli/ended-jobs.js'
import { realEnv } from '../../src/core/env.js'
import type { Statement } from '../../src/storage/postgres/database.js'
import { diagnosisStatements } from '../../src/storage/postgres/diagnosis-sql.js'
import type { Ending, EndingsRequest } from '../../src/storage/storage.js'
import { held } from '../support/held.js'
import { completed, newJob, TestWorker } from '../support/jobs.js'
import { type Scratch, scratch, withYesterday } from '../support/postgres.js'

let store: Scratch

before(async () => {
  store = await scratch()
  await withYesterday(store)
})
after(() => store.drop())

/** Records of completed jobs, so many, the last one so long ago. */
async function records(queue: string, count: number, agoMs: number, spreadMs = 0): Promise<void> {
  await store.sql(
    `insert into :s.ended (id, queue, state, level, kind, enqueued, started, ran_ms, ended, payload)
      select gen_random_uuid(), :s.ensure_queue($1, 4), 1, 4, 'kind', at, at, n % 100, at, '1'
      from generate_series(0, $2::int - 1) n, lateral (select :s.instant(:s.clock()) - ($3::float8 + n * $4::float8 / $2) * interval '1 millisecond' as at) t`,
    [queue, count, agoMs, spreadMs],
  )
}

test('the pace of a queue: what was completed in its minute and hour, and for how long the first one has waited', async () => {
  const { diagnose } = store.storage
  assert.deepEqual(await diagnose.pace('nobody'), {
    oldestReadyMs: null,
    completedMinute: { count: 0, exact: true },
    completedHour: { count: 0, exact: true },
  })
  assert.deepEqual(await store.sql(`select from :s.queue where name = 'nobody'`), [], 'it is not made by asking')
  await records('paced', 3, 1_000)
  await records('paced', 4, 120_000)
  await records('paced', 5, 2 * 3_600_000)
  const pace = await diagnose.pace('paced')
  assert.deepEqual(
    [pace.completedMinute, pace.completedHour],
    [
      { count: 3, exact: true },
      { count: 7, exact: true },
    ],
  )
  await store.storage.enqueue([newJob({ queue: 'paced', priority: 0 })])
  await store.advance(5_000)
  await store.storage.enqueue([
    newJob({ queue: 'paced', priority: 12 }),
    newJob({ queue: 'paced', due: { delayMs: 60_000 } }),
  ])
  const { oldestReadyMs } = await diagnose.pace('paced')
  assert.ok(oldestReadyMs! >= 5_000 && oldestReadyMs! < 60_000, `${oldestReadyMs}`)
})

test('of many the minute is an estimate by the newest ones, and the hour says at least so many', async () => {
  await records('busy', 12_000, 0, 30_000)
  const { completedMinute, completedHour } = await store.storage.diagnose.pace('busy')
  assert.deepEqual(completedHour, { count: 10_000, exact: false })
  assert.equal(completedMinute.exact, false)
  // 10,000 in 25 seconds, and the time of the test itself.
  assert.ok(completedMinute.count > 10_000 && completedMinute.count <= 24_100, `${completedMinute.count}`)
})

test('endings come in the order of time, from every queue and state, page by page', async () => {
  const { storage } = store
  const worker = await TestWorker.registered(storage)
  const jobs = Array.from({ length: 5 }, () => newJob({ queue: 'ends' }))
  await storage.enqueue(jobs)
  const { leases } = await worker.claim({ queues: [{ queue: 'ends', share: 5 }] })
  const fence = leases[0]!.fence
  const error = { name: 'E', message: 'nul \0 and half \ud800' }
  const history = {
    attempts: 2,
    crashes: 0,
    crashesAlone: 0,
    snoozes: 0,
    redrives: 0,
    entries: [{ at: 1, attempt: 2, outcome: 'failed' as const, error: { ...error, stack: 'x' } }],
  }
  await storage.settle([completed(fence, 0)])
  await storage.settle([{ fence, ordinal: 1, to: 'dead', reason: 'failed', history }])
  await storage.settle([completed(fence, 2)])
  await storage.settle([{ fence, ordinal: 3, to: 'cancelled', history }])
  const ask = async (more: Partial<EndingsRequest>): Promise<Ending[]> => {
    const found: Ending[] = []
    const states = ['completed', 'cancelled', 'dead'] as const
    let request: EndingsRequest = { states, queue: 'ends', backMs: 3_600_000, limit: 3, ...more }
    for (;;) {
      const { endings, next } = await storage.diagnose.endings(request)
      found.push(...endings)
      if (next === null) return found
      request = { ...request, after: next, backMs: 0 }
    }
  }
  const all = await ask({})
  assert.deepEqual(
    all.map(({ id, state }) => [id, state]),
    [0, 1, 2, 3].map((n) => [jobs[n]!.id, ['completed', 'dead', 'completed', 'cancelled'][n]]),
  )
  assert.deepEqual([all[1]!.reason, all[1]!.attempts, all[1]!.error], ['failed', 2, error])
  assert.deepEqual(await ask({ limit: 1 }), all)
  assert.deepEqual(
    (await ask({ states: ['dead'] })).map(({ id }) => id),
    [jobs[1]!.id],
  )
  assert.deepEqual(await ask({ kind: 'another' }), [])
  assert.deepEqual(
    (await ask({ after: all[1]!.cursor, backMs: 0 })).map(({ id }) => id),
    [jobs[2]!.id, jobs[3]!.id],
  )
})

test('what commits late is told late, once; nothing is told twice', async () => {
  const read = (request: { after?: string; backMs: number; limit: number }) =>
    store.storage.diagnose.endings({ states: ['completed'], queue: 'late', ...request })
  const fromMs = (await store.storage.diagnose.clock()).nowMs
  const endings = new EndedJobs(read, realEnv, { sinceMs: 0, fromMs })
  const told: string[] = []
  const round = async (): Promise<string[]> => {
    const from = told.length
    await endings.round(({ id }) => told.push(id), new AbortController().signal)
    return told.slice(from)
  }
  await store.sql(`select :s.ensure_queue('late', 4)`)
  const insert = `insert into :s.ended (id, queue, state, level, kind, enqueued, ended, payload)
    select $1, :s.ensure_queue('late', 4), 1, 4, 'kind', :s.instant(:s.clock()), :s.instant(:s.clock()), '1'`
  const [first, late, later] = [realEnv.id(), realEnv.id(), realEnv.id()]
  await store.sql(insert, [first])
  const open = await held(store, insert, [late])
  await store.sql(insert, [later])
  assert.deepEqual(await round(), [first, later])
  await open.commit()
  assert.deepEqual(await round(), [late])
  assert.deepEqual(await round(), [])
})

test('run times are percentiles by kind, with its time-out and the attempts that met it', async () => {
  const { storage } = store
  await records('timed', 100, 1_000)
  const worker = await TestWorker.registered(storage)
  const spec = { ...newJob().spec, timeoutMs: 5_000 }
  await storage.enqueue([newJob({ queue: 'timed', kind: 'slow', spec })])
  const { leases } = await worker.claim({ queues: [{ queue: 'timed', share: 1 }], kinds: ['slow'] })
  const entry = { at: 1, attempt: 1, outcome: 'timed out' as const, ranMs: 5_000 }
  const history = { attempts: 1, crashes: 0, crashesAlone: 0, snoozes: 0, redrives: 0, entries: [entry] }
  await storage.settle([
    { fence: leases[0]!.fence, ordinal: 0, to: 'delayed', delayMs: 60_000, suspect: false, history },
  ])
  const runs = (await storage.diagnose.runs()).filter(({ queue }) => queue === 'timed')
  assert.deepEqual(runs, [
    {
      kind: 'kind',
      queue: 'timed',
      completed: 100,
      p50Ms: 49,
      p95Ms: 94,
      p99Ms: 98,
      maxMs: 99,
      timeoutMs: 300_000,
      timedOut: 0,
    },
    {
      kind: 'slow',
      queue: 'timed',
      completed: 0,
      p50Ms: 0,
      p95Ms: 0,
      p99Ms: 0,
      maxMs: 0,
      timeoutMs: 5_000,
      timedOut: 1,
    },
  ])
})

test('what waits is sampled at the heads of lanes: more than is looked at is told as at least so many', async () => {
  await store.storage.enqueue(Array.from({ length: 230 }, () => newJob({ queue: 'long' })))
  await store.storage.enqueue([newJob({ queue: 'long', kind: 'other', priority: 12 })])
  const waiting = (await store.storage.diagnose.waiting()).filter(({ queue }) => queue === 'long')
  assert.deepEqual(
    waiting.map(({ kind, count }) => [kind, count]),
    [
      ['kind', { count: 200, exact: false }],
      ['other', { count: 1, exact: true }],
    ],
  )
  const kinds = async (...queues: string[]): Promise<string[]> =>
    (await store.storage.diagnose.waiting(queues)).map(({ queue, kind }) => `${kind} in ${queue}`)
  assert.deepEqual(await kinds('long', 'nobody'), ['kind in long', 'other in long'], 'of the queues that are named')
  assert.deepEqual([await kinds('nobody'), await kinds()], [[], []])
})

test('no statement reads all records, whatever else has ended', async () => {
  await records('other queue', 30_000, 0, 600_000)
  await store.sql('analyze :s.ended; analyze :s.queue')
  const { pace, endings, runs } = diagnosisStatements(store.quoted)
  const today = `ended_${new Date().toISOString().slice(0, 10).replaceAll('-', '')}`
  const plans: [Statement, unknown[]][] = [
    [pace, ['late']],
    [endings, ['late', null, '{completed,cancelled,dead}', null, null, 5_000_000, 500]],
    [endings, [null, null, '{completed}', null, null, 5_000_000, 500]],
    [runs, []],
  ]
  for (const [{ name, text }, values] of plans) {
    const [row] = await store.sql(`explain (format json) ${text}`, values)
    const scans = nodesOf((row!['QUERY PLAN'] as [{ Plan: Node }])[0].Plan).filter(
      (node) => node['Relation Name'] === today,
    )
    assert.ok(scans.length > 0, name)
    for (const scan of scans) assert.match(scan['Node Type'], /^Index/, `${name}: ${scan['Node Type']}`)
  }
})

interface Node {
  'Node Type': string
  'Relation Name'?: string
  Plans?: Node[]
}

function nodesOf(node: Node): Node[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)]
}
