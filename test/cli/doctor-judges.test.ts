/** What the doctor makes of figures: which are well, which are a warning, which a failure. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findingOf, type Verdict, worstOf } from '../../src/cli/doctor/finding.js'
import { judgeDays, judgeGrowth, judgeHolders, judgeVacuum, size } from '../../src/cli/doctor/judge-growth.js'
import {
  judgeAccess,
  judgeClock,
  judgeConnections,
  judgeDrift,
  judgeDurability,
  judgeHints,
  judgeIsolation,
  judgePools,
  judgeServer,
} from '../../src/cli/doctor/judge-server.js'
import { fittingLease, fittingTimeout, judgeLeases, judgeTimeouts } from '../../src/cli/doctor/judge-times.js'
import {
  judgeAbility,
  judgeCrashes,
  judgePromotion,
  judgeQueues,
  judgeWorkers,
} from '../../src/cli/doctor/judge-work.js'
import { NO_LIMITS } from '../../src/core/limits.js'
import type {
  DatabaseSettings,
  KindRuns,
  SnapshotHolder,
  TableFacts,
  WaitingKind,
  WorkerView,
} from '../../src/storage/storage.js'

const SETTINGS: DatabaseSettings = {
  version: '18.4',
  versionNumber: 180_004,
  readOnly: false,
  fsync: true,
  fullPageWrites: true,
  synchronousCommit: 'on',
  isolation: 'read committed',
  autovacuum: true,
}
const WORKER: WorkerView = {
  id: 'w1',
  name: 'host/1',
  queues: ['mail'],
  kinds: ['mail.send'],
  concurrency: 10,
  connections: 8,
  leaseMs: 10_000,
  beatMs: 3_000,
  startedAt: 0,
  lastBeatAgoMs: 1_000,
  mainLagMs: 5,
  leases: 0,
  jobs: 0,
}
const exactly = (count: number): { count: number; exact: boolean } => ({ count, exact: true })

function table(name: string, facts: Partial<TableFacts> = {}): TableFacts {
  return {
    table: name,
    liveRows: 10,
    deadRows: 0,
    bytes: 8_192,
    vacuumedAgoMs: 0,
    autovacuum: true,
    vacuumFrom: 50_000,
    ...facts,
  }
}

test('the worst verdict counts, and what could not be looked at is no fault', () => {
  const worst: [Verdict[], Verdict][] = [
    [['ok', 'unknown'], 'unknown'],
    [['unknown', 'warn', 'ok'], 'warn'],
    [['warn', 'fail', 'unknown'], 'fail'],
    [[], 'ok'],
  ]
  for (const [verdicts, expected] of worst) assert.equal(worstOf(verdicts), expected)
  const fault = { verdict: 'warn', text: 'a', fix: 'do' } as const
  assert.deepEqual(findingOf([fault, { ...fault, text: 'b' }], 'well', {}), {
    verdict: 'warn',
    text: 'a; b',
    measured: {},
    fix: 'do',
  })
})

test('an old server, a standby and a long way to it are told', () => {
  assert.equal(judgeServer({ settings: SETTINGS, roundTripMs: 0.4 }).text, 'PostgreSQL 18.4 answers within 0.4ms')
  assert.equal(judgeServer({ settings: { ...SETTINGS, versionNumber: 140_011 }, roundTripMs: 1 }).verdict, 'fail')
  assert.equal(judgeServer({ settings: { ...SETTINGS, readOnly: true }, roundTripMs: 1 }).verdict, 'fail')
  assert.equal(judgeServer({ settings: SETTINGS, roundTripMs: 80 }).verdict, 'warn')
})

test('settings by which confirmed jobs can be lost are told by name', () => {
  assert.equal(judgeDurability(SETTINGS).verdict, 'ok')
  assert.match(judgeDurability({ ...SETTINGS, fsync: false }).text, /fsync is off/)
  assert.equal(judgeDurability({ ...SETTINGS, fsync: false }).verdict, 'fail')
  assert.equal(judgeDurability({ ...SETTINGS, fullPageWrites: false }).verdict, 'fail')
  assert.equal(judgeDurability({ ...SETTINGS, synchronousCommit: 'off' }).verdict, 'warn')
  assert.equal(judgeDurability({ ...SETTINGS, synchronousCommit: 'remote_apply' }).verdict, 'ok')
  assert.equal(judgeIsolation(SETTINGS).verdict, 'ok')
  assert.equal(judgeIsolation({ ...SETTINGS, isolation: 'repeatable read' }).verdict, 'fail')
})

test('a clock is judged by the look with the shortest round trip, and never beyond what that look can tell', () => {
  const slow = { sentMs: 0, receivedMs: 9_000, storeMs: 8_900 }
  const quick = { sentMs: 10_000, receivedMs: 10_002, storeMs: 10_001 }
  assert.equal(judgeClock([slow, quick]).verdict, 'ok')
  assert.equal(judgeClock([slow]).verdict, 'ok', 'nine seconds of travel excuse nearly five of difference')
  const ahead = judgeClock([{ sentMs: 3_700_000, receivedMs: 3_700_002, storeMs: 100_001 }])
  assert.equal(ahead.verdict, 'warn')
  assert.match(ahead.text, /clock is 1h ahead of the store's/)
  assert.deepEqual(ahead.measured, { skewMs: 3_600_000, uncertainMs: 1 })
  assert.match(judgeClock([{ sentMs: 0, receivedMs: 2, storeMs: 60_001 }]).text, /1m behind/)
})

test('connections are counted against every limit, and with what the workers may still open', () => {
  const server = { scope: 'server', max: 100, open: 20 } as const
  assert.equal(judgeConnections([server], [WORKER]).verdict, 'ok')
  assert.equal(judgeConnections([{ ...server, open: 80 }], []).verdict, 'warn')
  assert.equal(judgeConnections([{ ...server, open: 96 }], []).verdict, 'fail')
  const role = judgeConnections([server, { scope: 'role', max: 10, open: 9 }], [])
  assert.match(role.text, /9 of 10 connections of this role/)
  const many = judgeConnections(
    [server],
    Array.from({ length: 13 }, () => WORKER),
  )
  assert.match(many.text, /workers may open 104 connections, and the server has 100/)
  assert.equal(judgePools([WORKER]).verdict, 'ok')
  assert.match(judgePools([{ ...WORKER, connections: 3 }]).text, /has 1 connection for 10 slots/)
  const { connections: _, ...silent } = WORKER
  assert.equal(judgePools([silent]).verdict, 'ok')
})

test('hints that do not arrive, and rights that are missing, are warnings', () => {
  assert.equal(judgeHints('arrive').verdict, 'ok')
  assert.match(judgeHints('do not arrive').text, /pooler in transaction mode/)
  assert.equal(judgeAccess({ role: 'app', missing: [] }).verdict, 'ok')
  const missing = judgeAccess({ role: 'app', missing: ['use schema "s"'] })
  assert.deepEqual([missing.verdict, missing.items], ['warn', ['use schema "s"']])
})

test("a schema that lacks something fails; somebody's additions matter where they can refuse what is written", () => {
  const extra = { kind: 'extra', about: 'index dead_mine', sentence: 'index dead_mine is not of this version' } as const
  assert.equal(judgeDrift([], 's').verdict, 'ok')
  assert.match(judgeDrift([extra], 's').text, /1 addition/)
  assert.equal(judgeDrift([{ ...extra, about: 'trigger ready.audit' }], 's').verdict, 'warn')
  const missing = judgeDrift([{ kind: 'missing', about: 'index ready_id', sentence: 'index ready_id is missing' }], 's')
  assert.deepEqual([missing.verdict, missing.items], ['fail', ['index ready_id is missing']])
})

test('whoever keeps old rows is told by time or by what has died since, with what ends it', () => {
  const holder: SnapshotHolder = {
    what: 'connection',
    name: '77',
    application: 'psql\u001b[2J',
    user: 'ada',
    state: 'idle in transaction',
    openMs: 1_000,
    transactions: 5,
  }
  assert.equal(judgeHolders([holder]).verdict, 'ok')
  const old = judgeHolders([{ ...holder, openMs: 600_000 }])
  assert.equal(old.verdict, 'warn')
  assert.deepEqual(old.items, ['pid 77 (psql\\u001b[2J, ada) idle in transaction for 10m 5 transactions ago'])
  assert.match(old.fix!, /pg_terminate_backend/)
  assert.equal(judgeHolders([{ ...holder, openMs: null, transactions: 100_000 }]).verdict, 'warn')
  assert.equal(judgeHolders([{ ...holder, openMs: 7_200_000 }]).verdict, 'fail')
  const slot = judgeHolders([
    { ...holder, what: 'replication slot', name: 'standby1', openMs: null, transactions: 9_000_000 },
  ])
  assert.deepEqual([slot.verdict, slot.items![0]!.startsWith('replication slot standby1')], ['fail', true])
  assert.match(slot.fix!, /pg_drop_replication_slot/)
})

test('vacuum: switched off, disabled for a hot table, or behind by several times its threshold', () => {
  assert.equal(judgeVacuum([table('ready')], SETTINGS).verdict, 'ok')
  assert.equal(judgeVacuum([], { ...SETTINGS, autovacuum: false }).verdict, 'fail')
  assert.match(judgeVacuum([table('ready', { autovacuum: false })], SETTINGS).text, /disabled for table ready/)
  assert.equal(judgeVacuum([table('ended_20300101', { autovacuum: false })], SETTINGS).verdict, 'ok')
  assert.equal(judgeVacuum([table('ready', { deadRows: 199_999 })], SETTINGS).verdict, 'ok')
  assert.equal(judgeVacuum([table('ready', { deadRows: 200_000 })], SETTINGS).verdict, 'warn')
  assert.equal(judgeVacuum([table('ready', { deadRows: 6_000_000 })], SETTINGS).verdict, 'fail')
  assert.equal(judgeVacuum([table('worker', { deadRows: 90_000, vacuumFrom: 500 })], SETTINGS).verdict, 'ok')
})

test('growth: room that nothing lies in is told, room that rows fill is not', () => {
  const gigabytes = 3 * 1024 ** 3
  assert.equal(judgeGrowth([table('ready', { bytes: gigabytes, liveRows: 3_000_000 })]).verdict, 'ok')
  const empty = judgeGrowth([table('ready', { bytes: gigabytes, liveRows: 12 })])
  assert.deepEqual([empty.verdict, empty.text], ['warn', 'table ready takes 3 GB for 12 rows'])
  const days = judgeGrowth([table('ended_20300101', { bytes: gigabytes }), table('dead')])
  assert.deepEqual(
    [days.verdict, days.text],
    ['ok', '3 GB in all: ready 0 B, records 3 GB in 1 day, dead letters 8 kB'],
  )
  for (const [bytes, text] of [
    [0, '0 B'],
    [1_023, '1023 B'],
    [1_536, '1.5 kB'],
    [5e8, '477 MB'],
  ] as const)
    assert.equal(size(bytes), text)
})

test('day tables: none for today, few ahead, detaches that were not finished, days that should be gone', () => {
  const days = {
    today: '2030-02-01',
    attached: ['2030-01-31', '2030-02-01', '2030-02-02', '2030-02-03'],
    pending: [],
    detached: [],
  }
  const day = 86_400_000
  assert.equal(judgeDays(days, day).verdict, 'ok')
  assert.match(judgeDays({ ...days, today: '2030-02-09' }, undefined).text, /no day table for today/)
  assert.match(judgeDays({ ...days, today: '2030-02-02' }, undefined).text, /made for 1 day ahead only/)
  assert.match(judgeDays({ ...days, pending: ['2030-01-30'] }, day).text, /2030-01-30 was begun and not finished/)
  assert.match(judgeDays({ ...days, detached: ['2030-01-30'] }, day).text, /detached and not dropped/)
  const old = { ...days, attached: ['2030-01-20', ...days.attached] }
  assert.match(judgeDays(old, day).text, /1 day should have been dropped, from 2030-01-20 on/)
  assert.equal(judgeDays(old, 30 * day).verdict, 'ok')
  assert.equal(judgeDays(old, undefined).verdict, 'ok', 'no worker says for how long records are kept')
})

const RUNS: KindRuns = {
  kind: 'charge',
  queue: 'pay',
  completed: 500,
  p50Ms: 100,
  p95Ms: 900,
  p99Ms: 2_000,
  maxMs: 3_000,
  timeoutMs: 300_000,
  timedOut: 0,
}

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000

test("W7: the time-out that fits is advised with its reason, and told where today's does not", () => {
  assert.deepEqual(fittingTimeout(RUNS), { ms: 10_000, why: '3 × p99' })
  assert.deepEqual(fittingTimeout({ p99Ms: 0, maxMs: 0 }), { ms: 1_000, why: 'the least' })
  assert.deepEqual(fittingTimeout({ p99Ms: 100, maxMs: 20_000 }), { ms: 30_000, why: '1.5 × the longest, 20s' })
  assert.equal(fittingTimeout({ p99Ms: 9 * HOUR_MS, maxMs: 1 }).ms, 48 * HOUR_MS)
  const well = judgeTimeouts([RUNS])
  assert.equal(well.verdict, 'ok')
  assert.deepEqual(well.items, ['charge (pay): p95 900ms, p99 2s, time-out 5m; 10s would fit (3 × p99)'])
  const near = judgeTimeouts([{ ...RUNS, timeoutMs: 1_000 }])
  assert.deepEqual([near.verdict, near.fix], ['warn', "defineJob('charge', { timeout: '10s' })"])
  assert.match(near.text, /p95 900ms of 1s/)
  assert.equal(judgeTimeouts([{ ...RUNS, timeoutMs: 1_000, completed: 19 }]).verdict, 'ok', 'too few to tell')
  const slow = judgeTimeouts([{ ...RUNS, timeoutMs: 2_200, maxMs: 2_100 }])
  assert.equal(slow.text, 'the slowest attempts of charge are near its time-out: p99 2s of 2.2s')
  assert.equal(judgeTimeouts([{ ...RUNS, timeoutMs: 2_300, maxMs: 2_100 }]).verdict, 'ok')
  assert.match(judgeTimeouts([{ ...RUNS, timeoutMs: 1_500 }]).text, /p99 2s of 1.5s/, 'it was longer once')
  assert.equal(judgeTimeouts([]).verdict, 'ok')
})

test('W7: a time-out far above what is measured is told, the default never', () => {
  const hangs = judgeTimeouts([{ ...RUNS, timeoutMs: 12 * HOUR_MS }])
  assert.match(hangs.text, /hangs holds its slot for 12h, and p99 is 2s/)
  assert.equal(hangs.fix, "defineJob('charge', { timeout: '10s' })")
  assert.equal(judgeTimeouts([{ ...RUNS, p99Ms: 10, maxMs: 20 }]).verdict, 'ok')
  assert.equal(judgeTimeouts([{ ...RUNS, timeoutMs: 10 * MINUTE_MS }]).verdict, 'warn')
  assert.equal(judgeTimeouts([{ ...RUNS, timeoutMs: 10 * MINUTE_MS, p99Ms: 15_000 }]).verdict, 'ok')
})

test('W7: attempts that timed out are told with a time-out to try, as how long they would have run nobody knows', () => {
  const cut = judgeTimeouts([{ ...RUNS, timedOut: 30 }])
  assert.equal(cut.text, '30 attempts of charge timed out after 5m, 6 % of what was seen')
  assert.equal(cut.fix, "defineJob('charge', { timeout: '10m' }), or make its attempts shorter")
  assert.equal(judgeTimeouts([{ ...RUNS, timedOut: 1 }]).verdict, 'ok', 'one of five hundred')
  const only = judgeTimeouts([{ ...RUNS, completed: 0, timedOut: 2 }])
  assert.deepEqual([only.verdict, only.items], ['warn', ['charge (pay): none completed of time-out 5m, 2 timed out']])
})

test('W7: the lease that fits is advised from what keeps main loops from answering and what a mistake would cost', () => {
  const why = 'the default: main loops answer in time'
  assert.deepEqual(fittingLease(5, []), { ms: 10_000, why })
  assert.deepEqual(fittingLease(5, [RUNS]), { ms: 10_000, why: `${why}, and attempts take 2s at most (p99, charge)` })
  assert.deepEqual(fittingLease(6_000, [RUNS]), { ms: 30_000, why: '4 × the 6s that its main loop did not answer' })
  const hours = { ...RUNS, kind: 'report', p99Ms: HOUR_MS }
  assert.deepEqual(fittingLease(5, [RUNS, hours]), {
    ms: MINUTE_MS,
    why: 'attempts of report run for 1h (p99), and a mistake runs them again',
  })
  assert.equal(
    fittingLease(5, [{ ...hours, p99Ms: 40 * HOUR_MS }]).ms,
    2 * MINUTE_MS,
    'a dead one is found all the same',
  )
  assert.equal(fittingLease(5, [{ ...hours, completed: 19 }]).ms, 10_000, 'too few to tell')
})

test("W7: today's lease and beat are judged by the lag of main loops, the runs, and how long a dead worker's jobs wait", () => {
  const pays: WorkerView = { ...WORKER, queues: ['pay'], kinds: ['charge', 'report'] }
  const well = judgeLeases([pays, { ...pays, name: 'host/2', mainLagMs: 9 }], [RUNS])
  assert.equal(well.verdict, 'ok')
  assert.deepEqual(well.items, [
    '2 workers: lease 10s, beat 3s; lease 10s and beat 3s would fit (the default: main loops answer in time, and attempts take 2s at most (p99, charge))',
  ])
  const blocked = judgeLeases([{ ...pays, mainLagMs: 6_000 }], [])
  assert.deepEqual([blocked.verdict, blocked.measured.fittingLeaseMs], ['warn', 30_000])
  assert.match(blocked.fix!, /lease: '30s', beat: '9s'/)
  const long = judgeLeases([{ ...pays, leaseMs: HOUR_MS }], [])
  assert.match(long.text, /when host\/1 dies its jobs wait for 1h/)
  assert.match(long.fix!, /^lease: '10s', beat: '3s' would do/)
  const hours = { ...RUNS, kind: 'report', p99Ms: HOUR_MS }
  const short = judgeLeases([pays], [RUNS, hours])
  assert.equal(
    short.text,
    'host/1 has a lease of 10s, and attempts of report run for 1h (p99): to be out of touch for 10s runs them again',
  )
  assert.equal(short.fix, "lease: '1m', beat: '18s'")
  assert.equal(judgeLeases([{ ...pays, leaseMs: MINUTE_MS, beatMs: 18_000 }], [hours]).verdict, 'ok')
  assert.equal(judgeLeases([{ ...pays, kinds: ['charge'] }], [hours]).verdict, 'ok', 'it does not run them')
  assert.equal(judgeLeases([{ ...pays, queues: ['mail'] }], [hours]).verdict, 'ok', 'nor of that queue')
  const beats = judgeLeases([{ ...pays, beatMs: 4_000 }], [])
  assert.equal(
    beats.text,
    'host/1 beats each 4s of a lease of 10s: one lost beat, and a late one, and its jobs are taken over',
  )
  assert.equal(beats.fix, "beat: '3s'")
  assert.deepEqual((short.measured.kinds as object[])[1], { kind: 'report', queue: 'pay', fittingLeaseMs: MINUTE_MS })
  assert.equal(judgeLeases([], [hours]).verdict, 'ok')
})

test('traces of dead workers', () => {
  const none = { leasesEnded: exactly(3), suspects: exactly(0), poison: exactly(0), lost: exactly(0) }
  assert.equal(judgeCrashes(none).verdict, 'ok', 'one deploy that was killed leaves some')
  assert.match(judgeCrashes({ ...none, leasesEnded: { count: 10_000, exact: false } }).text, /at least 10,000 leases/)
  assert.match(judgeCrashes({ ...none, suspects: exactly(1) }).text, /1 suspect waiting to run alone/)
  assert.match(judgeCrashes({ ...none, poison: exactly(2) }).fix!, /leasehold dead list --reason poison/)
  assert.equal(judgeCrashes({ ...none, lost: exactly(1) }).verdict, 'warn')
})

const WAITING: WaitingKind = { queue: 'mail', kind: 'mail.send', count: exactly(4), oldestMs: 60_000 }
const OPEN = { queue: 'mail', paused: false, draining: false, order: 'ageing', limits: NO_LIMITS } as const

test('a pause is told when something has waited for long, a drain always', () => {
  assert.equal(judgeQueues([OPEN], [WAITING]).verdict, 'ok')
  assert.equal(judgeQueues([{ ...OPEN, paused: true }], [WAITING]).verdict, 'ok')
  const long = judgeQueues([{ ...OPEN, paused: true }], [{ ...WAITING, oldestMs: 3_600_000 }])
  assert.deepEqual([long.verdict, long.text], ['warn', 'mail is paused, and a job has been due in it for 1h'])
  assert.match(judgeQueues([{ ...OPEN, draining: true }], []).text, /refuses new jobs/)
})

test('jobs that nobody can run: no worker, none of the queue, none with a handler', () => {
  const judged = (workers: WorkerView[], waiting = [WAITING], queue: { paused: boolean } = OPEN): string => {
    const { verdict, items } = judgeAbility(waiting, { queues: [{ ...OPEN, ...queue }], workers })
    return verdict === 'ok' ? 'ok' : items![0]!.replace(/^.*: /, '')
  }
  assert.equal(judged([WORKER]), 'ok')
  assert.equal(judged([]), 'no worker is alive')
  assert.equal(judged([{ ...WORKER, queues: ['other'] }]), 'no worker works on the queue')
  assert.equal(judged([{ ...WORKER, kinds: ['mail.sned'] }]), 'no worker of the queue has a handler of the kind')
  const { kinds: _, ...older } = WORKER
  assert.equal(judged([older]), 'ok', 'one that does not say may be able')
  assert.equal(judged([], [{ ...WAITING, oldestMs: 5_000 }]), 'ok', 'one may be starting')
  assert.equal(judged([], [WAITING], { paused: true }), 'ok', 'that is the pause')
})

test('promotion and workers', () => {
  assert.equal(judgePromotion({ count: exactly(0), oldestMs: 0 }).verdict, 'ok')
  assert.match(judgePromotion({ count: exactly(3), oldestMs: 90_000 }).text, /^3 delayed jobs .* up to 1m 30s ago/)
  assert.equal(judgeWorkers([WORKER]).verdict, 'ok')
  assert.equal(judgeWorkers([]).verdict, 'ok')
  assert.match(judgeWorkers([{ ...WORKER, lastBeatAgoMs: 7_000 }]).text, /has not been heard of for 7s/)
  assert.match(judgeWorkers([{ ...WORKER, mainLagMs: 1_500 }]).text, /lags by 1.5s/)
})
