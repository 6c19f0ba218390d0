/** The rules by which it is explained why a job does not run: each clause, their order, and what limits add. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { withEstimate } from '../../src/core/estimate.js'
import { CLAUSE_CODES, explain } from '../../src/core/explain.js'
import { SPEC_DEFAULTS } from '../../src/core/job.js'
import type { JobFacts, JobSeen, WorkerSeen } from '../../src/core/job-facts.js'
import { inMainOrder, pick, type QueueOrder } from '../../src/core/priority.js'
import { standingOf, takenBy } from '../../src/core/standing.js'

const NOW = 1_900_000_000_000
const WORKER: WorkerSeen = { id: 'w', name: 'host:1', kinds: ['mail'], concurrency: 2, jobs: 0 }

/** A job that is ready, `ahead` of it as many others, and a worker that is able. */
function facts({ ahead = 0, job, queue, ...more }: Sketch = {}): JobFacts {
  const entries = Array.from({ length: ahead + 1 }, (_, n) => ({ kind: 'mail', dueAt: NOW - 1_000 + n }))
  return {
    nowMs: NOW,
    job: { ...READY, ...job },
    queue: { paused: false, draining: false, order: 'ageing', ...queue },
    workers: [WORKER],
    workersElsewhere: 0,
    lease: null,
    suspectRunning: null,
    lists: [{ range: 'back', priority: 4, entries, own: ahead, cut: false }],
    ...more,
  }
}

type Sketch = Partial<Omit<JobFacts, 'job' | 'queue'>> & {
  ahead?: number
  job?: Partial<JobSeen>
  queue?: Partial<JobFacts['queue']>
}

const READY: JobSeen = {
  id: '0198f1f2-7a53-7c3e-9f2e-2d2f5d2b7c11',
  kind: 'mail',
  queue: 'q',
  priority: 4,
  state: 'ready',
  suspect: false,
  spec: SPEC_DEFAULTS,
  history: null,
  enqueuedAt: NOW - 1_000,
  dueAt: NOW - 1_000,
  startedAt: null,
  endedAt: null,
}

test('a job at the head of its queue goes next; one behind the free slots stands in line', () => {
  const head = explain(facts())
  assert.equal(head.verdict, 'next')
  assert.equal(
    head.clauses[0].sentence,
    'nothing goes before it in queue q, and 2 slots are free: the next claim takes it',
  )
  const third = explain(facts({ ahead: 2 }))
  assert.equal(third.verdict, 'in line')
  assert.equal(third.clauses[0].sentence, '2 jobs go before it in queue q (order ageing); 2 slots are free')
})

test('as many jobs as the limit allows run: it says so, and which', () => {
  const holders = ['a', 'b'].map((id) => ({ id, worker: 'w' }))
  const { verdict, clauses } = explain(facts({ queue: { concurrency: { limit: 5, held: 5, holders } } }))
  assert.equal(verdict, 'held')
  assert.deepEqual(clauses[0], {
    code: 'concurrency',
    sentence: '5 of at most 5 jobs of queue q run: a, b and 3 more',
    limit: 5,
    held: 5,
    holders,
  })
  assert.equal(explain(facts({ queue: { concurrency: { limit: 5, held: 4, holders } } })).verdict, 'next')
})

test('what a limit leaves is what a claim can take', () => {
  const queue = { concurrency: { limit: 5, held: 4, holders: [] } }
  assert.equal(takenBy(facts({ queue }), { limit: 2, turn: 0 }), true)
  assert.equal(takenBy(facts({ ahead: 1, queue }), { limit: 2, turn: 0 }), false)
  assert.equal(explain(facts({ ahead: 1, queue })).verdict, 'in line')
})

test('starts are used up until the next token', () => {
  const { clauses } = explain(facts({ queue: { rate: { tokens: 0, nextAt: NOW + 1_500 } } }))
  assert.equal(clauses[0].code, 'rate')
  assert.match(clauses[0].sentence, /the next start is at 2030-03-17T17:46:41\.500Z \(in 1\.5s\)$/)
  assert.equal(explain(facts({ queue: { rate: { tokens: 1, nextAt: NOW } } })).verdict, 'next')
})

test('clauses come in the order of the table, whatever holds it', () => {
  const everything = explain(
    facts({
      job: { state: 'retrying', dueAt: NOW + 1, suspect: true },
      queue: { paused: true, rate: { tokens: 0, nextAt: NOW + 1 }, concurrency: { limit: 1, held: 1, holders: [] } },
      suspectRunning: { id: 'other', worker: 'w' },
      workers: [{ ...WORKER, kinds: ['rare'] }],
    }),
  ).clauses.map(({ code }) => code)
  assert.deepEqual(everything, ['not due', 'paused', 'concurrency', 'rate', 'suspect running', 'no able worker'])
  assert.deepEqual(
    everything,
    [...everything].sort((a, b) => CLAUSE_CODES.indexOf(a) - CLAUSE_CODES.indexOf(b)),
  )
})

test('what would end a job, or start it late, is noted beside what holds it', () => {
  const spec = { ...SPEC_DEFAULTS, expiresInMs: 61_000 }
  assert.deepEqual(explain(facts({ job: { spec } })).notes, [
    {
      code: 'expires',
      sentence: 'it ends as dead (expired) unless it starts by 2030-03-17T17:47:40.000Z (in 1m)',
      at: NOW + 60_000,
    },
  ])
  const started = {
    attempts: 1,
    crashes: 0,
    crashesAlone: 0,
    snoozes: 0,
    redrives: 0,
    firstStartedAt: NOW,
    entries: [],
  }
  assert.deepEqual(explain(facts({ job: { spec, history: started } })).notes, [])
})

const HOLDER = { name: 'host:1', lastBeatAgoMs: 1_000, mainLagMs: 0, leaseMs: 10_000, beatMs: 3_000 }
const LEASE = { worker: 'w', claimedAt: NOW - 5_000, adopted: false, holder: HOLDER }

function runs(lease: Partial<typeof LEASE> | { holder: null }, job: Partial<JobSeen> = {}, more: Sketch = {}) {
  const told = facts({ job: { state: 'running', ...job }, lease: { ...LEASE, ...lease }, lists: [], ...more })
  const { verdict, clauses, notes } = explain(told)
  assert.deepEqual([verdict, clauses.length], ['running', 1])
  return [clauses[0].sentence, ...notes.map(({ sentence }) => sentence)]
}

test('who runs a job, and how that is known', () => {
  assert.deepEqual(runs({}), [
    'host:1 claimed it 5s ago, attempt 1 of 6; its start was not told yet; its last beat was 1s ago',
  ])
  const started = { startedAt: NOW - 4_000, cancelling: true }
  assert.deepEqual(runs({ holder: { ...HOLDER, mainLagMs: 7_000 } }, started), [
    'host:1 has run it for 4s, attempt 1 of 6; its last beat was 1s ago, and its main loop has not answered for 7s',
    'somebody wants it cancelled: its handler gets its signal within a beat',
    'the time of its attempt ends at 2030-03-17T17:51:36.000Z (in 4m 56s)',
  ])
  assert.deepEqual(runs({ adopted: true }), [
    'host:1 took it over from a worker that died, and decides what becomes of it',
  ])
})

test('a worker that was silent for its lease has lost the job, and it is said whether anybody can take it over', () => {
  const silent = { holder: { ...HOLDER, lastBeatAgoMs: 14_000 } }
  const lost = 'host:1 had it and has been silent for 14s, longer than its lease of 10s: another worker takes it over'
  assert.deepEqual(runs(silent, { startedAt: NOW - 15_000 }), [lost])
  assert.deepEqual(runs(silent, { cancelling: true }, { workers: [] }), [
    `${lost} as soon as one is alive: none is now`,
    'somebody wants it cancelled: it ends when it is taken over',
  ])
  assert.deepEqual(runs({ holder: null }), ['w had it and is not known any more: another worker takes it over'])
})

test('a start is estimated from the pace of the last minute, else of the hour, else not at all', () => {
  const pace = (minute: number, hour: number) => ({
    completedMinute: { count: minute },
    completedHour: { count: hour, exact: true },
  })
  const startsIn = (told: Sketch, ...counts: [number, number]) => {
    const [turn] = withEstimate(explain(facts(told)), pace(...counts)).clauses
    return turn.code === 'its turn' ? turn.startsIn?.ms : undefined
  }
  assert.equal(startsIn({ ahead: 31 }, 60, 3_600), 30_000)
  assert.equal(startsIn({ ahead: 31 }, 0, 360), 300_000)
  assert.equal(startsIn({ ahead: 31 }, 0, 0), undefined)
  assert.equal(startsIn({ ahead: 31, queue: { paused: true } }, 60, 60), undefined)
  assert.equal(startsIn({ ahead: 31, workers: [] }, 60, 60), undefined)
})

const orders = fc.constantFrom<QueueOrder>('ageing', 'strict', 'weighted')
const candidates = fc.array(fc.record({ priority: fc.nat(15), dueAt: fc.nat(3_600_000) }), {
  maxLength: 60,
  size: 'max',
})

test('the first of the main order are those that a claim of so many takes', () => {
  fc.assert(
    fc.property(candidates, orders, fc.nat(60), (given, order, most) => {
      // From turn 0 on an ageing queue reserves nothing before the sixteenth.
      const limit = order === 'ageing' ? most % 16 : most
      const taken = new Set(pick(given, order, 0, limit))
      assert.deepEqual(new Set(inMainOrder(given, order).slice(0, limit)), taken)
    }),
  )
})

test('a rank is exact only where nothing that was not read could go before', () => {
  const [own] = facts().lists
  const later = { range: 'back' as const, priority: 4, entries: [{ kind: 'mail', dueAt: NOW }], cut: true }
  const front = { ...later, range: 'front' as const }
  assert.deepEqual(standingOf({ ...facts(), lists: [own!, front] }).exact, true)
  const earlier = { ...front, entries: [{ kind: 'rare', dueAt: NOW - 9_000 }] }
  assert.deepEqual(standingOf({ ...facts(), lists: [earlier, own!] }).exact, false)
})
