/** The judge of the demo: it passes a clean run, and sees each thing that may go wrong. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { behaviourOf } from '../../src/cli/demo/behaviour.js'
import type { EnqueuedDelivery, ReceivedRequest } from '../../src/cli/demo/files.js'
import { percentiles } from '../../src/cli/demo/percentiles.js'
import { plan } from '../../src/cli/demo/plan.js'
import { type Evidence, type JobFacts, type Proof, prove } from '../../src/cli/demo/proof.js'
import { proofLine, proofText } from '../../src/cli/demo/report.js'
import { plain } from '../../src/cli/paint.js'
import { emptyHistory, type HistoryEntry } from '../../src/core/job.js'

const AT = 1_700_000_000_000
const KILLED = 'killed-worker'

function delivery(number: number, more: Partial<EnqueuedDelivery> = {}): EnqueuedDelivery {
  const key = `delivery:${number}`
  return {
    number,
    key,
    jobId: `job-${number}`,
    customer: 'c',
    endpoint: 'live',
    priority: 'normal',
    delayMs: 0,
    ...more,
  }
}

function job(number: number, more: Partial<JobFacts> = {}): JobFacts {
  const times = { enqueuedAt: AT, startedAt: AT + 100, endedAt: AT + 200 }
  return { id: `job-${number}`, state: 'completed', history: null, ...times, ...more }
}

function request(number: number, more: Partial<ReceivedRequest> = {}): ReceivedRequest {
  const own = { key: `delivery:${number}`, jobId: `job-${number}` }
  return { at: AT + 101, attempt: 1, fence: 1, customer: 'c', effect: 'applied', status: 200, ...own, ...more }
}

function history(...entries: Partial<HistoryEntry>[]): JobFacts['history'] {
  const whole = entries.map((entry) => ({ at: AT, attempt: 1, outcome: 'failed' as const, ...entry }))
  return { ...emptyHistory(), attempts: entries.length, entries: whole }
}

/** Three deliveries: one at once, one that a killed worker held, one that is dead as its URL is. */
function clean(): Evidence {
  const crashed = history(
    { outcome: 'crashed', worker: KILLED, at: AT + 11_000 },
    { outcome: 'completed', at: AT + 11_200, ranMs: 50 },
  )
  const failed = history({ outcome: 'failed', ranMs: 5, error: { name: 'Error', message: 'no connection' } })
  return {
    record: {
      seed: 1,
      jobs: 3,
      repeated: 0,
      duplicates: 0,
      enqueueStartedAt: AT,
      enqueueEndedAt: AT + 50,
      killed: [{ number: 1, id: KILLED, at: AT + 1_000 }],
      stopped: [],
    },
    deliveries: [delivery(1), delivery(2), delivery(3, { endpoint: 'refused' })],
    jobs: [
      job(1),
      job(2, { startedAt: AT + 11_150, endedAt: AT + 11_200, history: crashed }),
      job(3, { state: 'dead', reason: 'failed', history: failed }),
    ],
    requests: [request(1), request(2, { at: AT + 900 }), request(2, { at: AT + 11_151, effect: 'repeat', fence: 2 })],
  }
}

function changed(change: (evidence: { -readonly [Key in keyof Evidence]: Evidence[Key] }) => void): Proof {
  const evidence = clean()
  change(evidence)
  return prove(evidence)
}

test('a clean run holds, with every figure accounted for', () => {
  const proof = prove(clean())
  assert.equal(proof.holds, true)
  assert.deepEqual([proof.enqueued, proof.completed, proof.dead, proof.deduplicated], [3, 2, 1, 1])
  assert.deepEqual(proof.kills, [{ worker: 1, held: 1, recoveryMs: 10_151 }])
  assert.deepEqual(proof.redelivered, [
    { key: 'delivery:2', jobId: 'job-2', requests: 2, causes: ['its worker was killed'] },
  ])
  assert.deepEqual(proof.deadLetters, [
    { endpoint: 'refused', reason: 'failed', attempts: 1, error: 'no connection', count: 1 },
  ])
  assert.deepEqual([proof.waits.p50Ms, proof.waits.maxMs], [101, 900])
  assert.deepEqual([proof.seconds, proof.busiestSecond], [11.2, 2])
  assert.match(proofText(proof, clean().record, plain), /Proven from the log/)
})

const FAULTS: [string, 'lost' | 'doubled' | 'early' | 'strays', Parameters<typeof changed>[0]][] = [
  ['a job that the store does not know', 'lost', (it) => (it.jobs = it.jobs.slice(1))],
  ['a job that has not ended', 'lost', (it) => (it.jobs = [job(1, { state: 'retrying' }), ...it.jobs.slice(1)])],
  ['a completed job without an effect', 'lost', (it) => (it.requests = it.requests.slice(1))],
  [
    'a dead letter whose URL is alive',
    'lost',
    (it) => (it.jobs = [job(1, { state: 'dead', reason: 'failed' }), ...it.jobs.slice(1)]),
  ],
  [
    'an effect applied twice',
    'doubled',
    (it) => (it.requests = [...it.requests, request(1, { at: AT + 150, fence: 9 })]),
  ],
  [
    'a request before it was due',
    'early',
    (it) => (it.deliveries = [delivery(1, { delayMs: 5_000 }), ...it.deliveries.slice(1)]),
  ],
  ['a job that nobody enqueued', 'strays', (it) => (it.jobs = [...it.jobs, job(9)])],
  ['an effect that nobody enqueued', 'strays', (it) => (it.requests = [...it.requests, request(9)])],
]

for (const [what, where, change] of FAULTS)
  test(`it sees ${what}`, () => {
    const proof = changed(change)
    assert.equal(proof.holds, false)
    assert.equal(proof[where].length, 1)
    assert.equal(proofLine(proof).holds, false)
    assert.match(proofText(proof, clean().record, plain), /What is wrong\n.+\n\nNOT proven/)
  })

test('only what had its effect is counted as such', () => {
  const lossy = { ...clean(), requests: clean().requests.slice(1) }
  const proof = prove(lossy)
  assert.deepEqual([proof.completed, proof.withoutEffect, proof.lost.length], [2, 1, 1])
  assert.match(proofText(proof, lossy.record, plain), /completed {7}1 {3}each with its effect .*; 1 more without one$/m)
  assert.match(proofText(prove(clean()), clean().record, plain), /completed {7}2 {3}each with its effect .* log$/m)
})

test('it sees a repeat for which the history gives no reason', () => {
  const proof = changed((it) => {
    it.requests = [...it.requests, request(1, { at: AT + 150, effect: 'repeat' })]
  })
  assert.equal(proof.holds, false)
  assert.equal(proofLine(proof).unexplained, 1)
})

test('percentiles are values that were there', () => {
  assert.deepEqual(percentiles([5, 1, 4, 2, 3]), { count: 5, p50Ms: 3, p95Ms: 5, p99Ms: 5, maxMs: 5 })
  assert.deepEqual(percentiles([]), { count: 0, p50Ms: 0, p95Ms: 0, p99Ms: 0, maxMs: 0 })
})

test('the same seed plans the same deliveries and the same faults', () => {
  const planned = plan({ jobs: 1_000, seed: 7 })
  assert.deepEqual(plan({ jobs: 1_000, seed: 7 }), planned)
  assert.notDeepEqual(plan({ jobs: 1_000, seed: 8 }), planned)
  assert.equal(planned.filter(({ customer }) => customer === 'customer-01').length, 600)
  assert.equal(new Set(planned.map(({ key }) => key)).size, 1_000)
  assert.deepEqual(new Set(planned.map(({ endpoint }) => endpoint)), new Set(['live', 'refused', 'broken', 'gone']))
  assert.deepEqual(behaviourOf(7, 'k', 1), behaviourOf(7, 'k', 1))
  for (let n = 0; n < 500; n++) assert.equal(behaviourOf(7, `k${n}`, 3).fault, 'none')
})
