/** The rules about what was done to a system: each is kept by a history of faults, and broken by one change to it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check, type Verdict } from '../../src/testing/checker/check.js'
import type { HistoryEvent } from '../../src/testing/checker/history.js'
import { BEGUN, DURING, judged, LEASE_MS, OUTAGE, OVER, WORKERS } from './checker/disturbed.js'

function broken({ findings }: Verdict): string[] {
  return [...new Set(findings.map(({ rule }) => rule))]
}

function judgedBy({ rules }: Verdict, name: string): number {
  return rules.find(({ rule }) => rule === name)!.judged
}

test('a worker that was away and works again two seconds after breaks nothing, and is measured', () => {
  const verdict = judged({})
  assert.deepEqual(broken(verdict), [])
  // Three of four work for 1.6 s of the window, and all for the rest of it: four fifths.
  assert.ok(verdict.slowestReturnMs >= 300 && verdict.slowestReturnMs <= 500, String(verdict.slowestReturnMs))
  const [back] = verdict.facts.returns
  assert.ok(back!.before > 190 && back!.before < 210)
  assert.equal(judgedBy(verdict, 'throughput comes back'), 1)
  assert.equal(judgedBy(verdict, 'whoever is up consumes'), WORKERS.length)
})

test('one worker of four that does not come back breaks both: it consumes nothing, and a quarter is missing', () => {
  const verdict = judged({ idle: (worker, at) => worker === 'w3' && at >= BEGUN })
  assert.deepEqual(broken(verdict).sort(), ['throughput comes back', 'whoever is up consumes'])
  assert.deepEqual(verdict.findings.find(({ rule }) => rule === 'whoever is up consumes')!.ids, ['w3'])
  assert.equal(verdict.otherFaults, 2)
  assert.ok(verdict.slowestReturnMs >= 14_900)
})

test('throughput that is back after 14 seconds is in time, after 16 it is not', () => {
  const until = (ms: number) => (_: string, at: number) => at >= BEGUN && at < OVER + ms
  assert.deepEqual(broken(judged({ idle: until(14_000) })), [])
  assert.deepEqual(broken(judged({ idle: until(18_500) })), ['throughput comes back'])
})

test('where the work had come to its end nothing has to come back, and nothing is judged', () => {
  const verdict = judged({ idle: (_, at) => at >= BEGUN, waiting: 13 })
  assert.deepEqual(broken(verdict), [])
  assert.equal(judgedBy(verdict, 'throughput comes back'), 0)
})

test('a worker that consumes nothing is seen although the others do its work', () => {
  const verdict = judged({ perSecond: 50, idle: (worker, at) => worker === 'w3' && at >= 0 })
  assert.deepEqual(broken(verdict), ['whoever is up consumes'])
})

test('nobody has to consume when nothing waits', () => {
  const verdict = judged({ waiting: 3, idle: (worker) => worker === 'w3' })
  assert.deepEqual(broken(verdict), [])
  assert.equal(judgedBy(verdict, 'whoever is up consumes'), 0)
})

test('whoever is met again meanwhile is not judged for the first time', () => {
  const verdict = judged({ againAt: OVER + 5_000, idle: (worker, at) => worker === 'w3' && at >= BEGUN })
  assert.deepEqual(broken(verdict), [])
  assert.equal(judgedBy(verdict, 'whoever is up consumes'), WORKERS.length - 1)
  assert.equal(verdict.facts.returns[0]!.is, 'unknown')
})

test('throughput is not compared over a change of pace', () => {
  const verdict = judged({ paceAt: BEGUN + 1, idle: (_, at) => at >= BEGUN })
  assert.deepEqual(broken(verdict), ['whoever is up consumes'])
  assert.equal(judgedBy(verdict, 'throughput comes back'), 0)
})

test('an outage after which all come back breaks nothing, and is judged', () => {
  const verdict = judged(OUTAGE)
  assert.deepEqual(broken(verdict), [])
  assert.equal(judgedBy(verdict, 'nobody judges right after an outage'), 1)
})

test('a take-over right after an outage, of one who had no chance to beat, is too soon', () => {
  const silent = (worker: string, at: number): boolean => !DURING(at) && (worker !== 'w3' || at < BEGUN)
  const idle = (worker: string, at: number): boolean => worker === 'w3' || DURING(at)
  const dead = { ...OUTAGE, beats: silent, idle, waiting: 0 }
  const verdict = judged({ ...dead, takeOverAt: OVER + 4_000 })
  assert.deepEqual(broken(verdict), ['nobody judges right after an outage'])
  assert.equal(verdict.needlessTakeOvers, 7)
  assert.deepEqual(broken(judged({ ...dead, takeOverAt: OVER + LEASE_MS + 1_000 })), [])
})

test('whoever had been silent before the outage may be taken over right after it', () => {
  const beats = (worker: string, at: number): boolean => !DURING(at) && worker !== 'w3'
  const idle = (worker: string, at: number): boolean => worker === 'w3' || DURING(at)
  assert.deepEqual(broken(judged({ ...OUTAGE, beats, idle, waiting: 0, takeOverAt: OVER + 4_000 })), [])
})

test('in a fault that is no outage, whoever was silent for a lease is taken over by the others', () => {
  assert.deepEqual(broken(judged({ takeOverAt: BEGUN + LEASE_MS + 1_500 })), [])
})

test('a fault that ends and never began is a fault of the log', () => {
  const event: HistoryEvent = { at: 1, what: 'fault', fault: 1, is: 'over' }
  assert.throws(() => check({ events: [{ process: 'driver', event }], leaseMs: LEASE_MS }), /never began/)
})
