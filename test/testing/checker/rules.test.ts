/** The checker passes a history in which much went wrong and nothing was broken, and sees each broken rule. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check, type Verdict } from '../../../src/testing/checker/check.js'
import { eventOf, type HistoryEvent, lineOf } from '../../../src/testing/checker/history.js'
import { RULES } from '../../../src/testing/checker/rules.js'
import { RULES_OF_SCENE } from '../../../src/testing/checker/scene-table.js'
import { BREAKS_OF_JOBS } from './breaks-of-jobs.js'
import { BREAKS_OF_MOVES } from './breaks-of-moves.js'
import { BREAKS_OF_SCENES } from './breaks-of-scenes.js'
import { clean, KILLED_AT } from './clean.js'
import { LEASE_MS, type Told } from './told.js'

const BREAKS = [...BREAKS_OF_JOBS, ...BREAKS_OF_MOVES]
const BREACHES = new Map([...RULES, ...RULES_OF_SCENE].map(({ name, breach }) => [name, breach]))

test('kills, crashes, retries, a rollback, refusals and what operators do break no rule', () => {
  const verdict = clean().checked()
  assert.deepEqual(verdict.findings, [])
  assert.equal(verdict.holds, true)
  assert.equal(verdict.jobs, 17)
  assert.equal(verdict.kills, 1)
  const recovery = { count: 1, medianMs: 16_100 - KILLED_AT, maxMs: 16_100 - KILLED_AT }
  assert.equal(verdict.maxRecoveryMs, recovery.maxMs)
  assert.deepEqual(verdict.facts.recoveries, { once: recovery, suspects: { count: 0, medianMs: 0, maxMs: 0 } })
  assert.equal(verdict.facts.repeatedEffects, 1)
  assert.equal(verdict.facts.lostAtMostOnce, 1)
  assert.equal(verdict.facts.sorts.keyed, 1)
})

for (const { how, rule, make } of BREAKS)
  test(`the checker sees it: ${how}`, () => {
    const told = clean()
    make(told)
    const { findings, holds, rules, ...counts } = told.checked()
    assert.deepEqual([...new Set(findings.map((finding) => finding.rule))], [rule], JSON.stringify(findings))
    assert.equal(holds, false)
    assert.equal(rules.find((one) => one.rule === rule)!.broken, 1)
    const breach = BREACHES.get(rule)!
    for (const count of new Set(BREACHES.values())) assert.equal(counts[count], count === breach ? 1 : 0, count)
  })

test('each rule is judged by a history that keeps it, and broken by another one', () => {
  const counts = new Map(
    clean()
      .checked()
      .rules.map((count) => [count.rule, count.judged]),
  )
  for (const { name } of [...RULES, ...RULES_OF_SCENE]) {
    const ofScenes = BREAKS_OF_SCENES.some(({ rule }) => rule === name)
    assert.ok(ofScenes || counts.get(name)! > 0, `nothing is judged by: ${name}`)
    assert.ok(ofScenes || BREAKS.some(({ rule }) => rule === name), `nothing breaks: ${name}`)
  }
})

for (const { rule, kept, broken } of BREAKS_OF_SCENES)
  test(`kept by one history and broken by another: ${rule}`, () => {
    const count = ({ rules }: Verdict) => rules.find((one) => one.rule === rule)!
    assert.ok(count(kept()).judged > 0, 'judged by the one that keeps it')
    assert.equal(count(kept()).broken, 0)
    assert.ok(count(broken()).broken > 0)
    assert.ok(broken().findings.some((finding) => finding.rule === rule))
  })

test('without evidence a rule judges nothing, and says so', () => {
  const { rules, holds } = check({ events: [], leaseMs: LEASE_MS })
  assert.equal(holds, true)
  assert.ok(rules.every(({ judged }) => judged === 0))
  const told = clean()
  const unplanned = check({ events: told.events, leaseMs: LEASE_MS })
  const count = (name: string): number => unplanned.rules.find(({ rule }) => rule === name)!.judged
  for (const name of ['what was accepted is known', 'nothing comes unasked', 'everything ends', 'nothing runs early'])
    assert.equal(count(name), 0, name)
  assert.ok(count('one end is told') > 0 && count('a later start has a larger fence') > 0)
  assert.deepEqual(unplanned.findings, [])
})

test('of clocks that cannot be compared nothing is judged that needs one clock', () => {
  const told = clean().ran(12, 'worker-1', 300, { end: 'aborted' })
  assert.deepEqual(told.checked({ clocks: 'apart' }).findings, [])
})

test('a worker that was silent for a lease may be taken over, and its late run beside the new one is no fault', () => {
  const told = clean()
    .withoutAll((event) => event.what === 'worker' && event.worker === 'worker-3' && event.at > 1_000)
    .add('worker-3', { at: 17_000, what: 'worker', worker: 'worker-3', is: 'blocked', ms: 16_500 })
    .add('worker-1', { at: 15_500, what: 'took over', worker: 'worker-1', deadWorker: 'worker-3', jobs: 1 })
    .enqueued(10, 100)
    .ran(10, 'worker-3', 200, { end: 'effect', endAt: 17_000, settled: 'lost' })
    .completed(10, 'worker-1', 16_000)
  const verdict = told.checked()
  assert.deepEqual(verdict.findings, [])
  assert.equal(verdict.facts.stalledTakeOvers, 1)
  assert.equal(verdict.facts.repeatedEffects, clean().checked().facts.repeatedEffects + 1)
})

test('what a killed producer left open may be there or not', () => {
  const left = (): Told =>
    clean()
      .enqueued(10, 100, { transaction: 't10' })
      .add('producer', { at: 150, what: 'transaction', transaction: 't10', is: 'committing' })
  assert.deepEqual(left().checked().findings, [])
  assert.deepEqual(left().completed(10, 'worker-1', 400).checked().findings, [])
})

test('an enqueue of an unknown outcome may have made a job or not', () => {
  const unknown = (): Told =>
    clean().add('producer', { at: 50, what: 'sending', n: 10 }, { at: 51, what: 'told', n: 10, outcome: 'unknown' })
  assert.deepEqual(unknown().checked().findings, [])
  assert.deepEqual(unknown().completed(10, 'worker-1', 400).checked().findings, [])
})

test('records that were pruned are missed only of jobs that had not ended', () => {
  const told = clean().hasNot(1)
  assert.deepEqual(told.checked({ retention: 'pruned' }).findings, [])
  told.withoutAll((event) => event.what !== 'told' && 'id' in event && event.id === 'id-1')
  assert.deepEqual(
    told.checked({ retention: 'pruned' }).findings.map(({ rule }) => rule),
    ['what was accepted is known'],
  )
})

test('an answer that was told late belongs to the attempt that it is about', () => {
  const told = clean()
    .enqueued(10, 100)
    .ran(10, 'worker-1', 300, { end: 'failed' })
    .ran(10, 'worker-1', 500, { attempt: 2, end: 'effect', settled: 'completed' })
    .add('worker-1', { at: 600, what: 'settled', id: 'id-10', worker: 'worker-1', as: 'failed', againInMs: 100 })
    .has(10, {})
  assert.deepEqual(told.checked().findings, [])
})

/** Of the rules that are broken, whether this one is: who writes down some of its claims has to write down all. */
function breaks(rule: string, told: Told, more: Parameters<Told['checked']>[0] = {}): boolean {
  return told.checked(more).findings.some((finding) => finding.rule === rule)
}

/** The job fails in worker-2, whose death is noted of a job that had not started, and runs again in its second attempt. */
function failedUnheard(): Told {
  const death = { deadWorker: 'worker-2', started: false, alone: false }
  return clean()
    .enqueued(10, 100)
    .ran(10, 'worker-2', 200, { end: 'failed', claim: 'told' })
    .add('worker-1', { at: 16_050, what: 'crash noted', id: 'id-10', ...death })
    .completed(10, 'worker-1', 16_200, { attempt: 2 })
    .has(10, { crashes: 1 })
}

test('a failure may have been settled, and the job claimed again, by a worker that died before it heard of either', () => {
  const rule = 'an attempt is used by a failure, or a crash after its start'
  const unanswered = (): Told =>
    failedUnheard().add('worker-2', { at: 300, what: 'claiming', worker: 'worker-2', request: 77 })
  assert.ok(breaks(rule, failedUnheard()), 'it has claimed nothing that it did not hear of')
  assert.ok(!breaks(rule, unanswered()))
  const snoozed = unanswered()
  snoozed.event('finished', 10).as = 'snoozed'
  assert.ok(breaks(rule, snoozed), 'a snooze uses none up')
})

test('a time-out is told of the attempt that started, whatever is told late of one that did not', () => {
  const told = clean()
    .enqueued(10, 100)
    .claimed('worker-4', 300, [{ id: 'id-10' }])
    .ran(10, 'worker-4', 400, { end: 'aborted', settled: 'timed out', againInMs: 100, claim: 'told' })
    .completed(10, 'worker-4', 600, { attempt: 2, claim: 'told' })
    .add('worker-4', { at: 700, what: 'settled', id: 'id-10', worker: 'worker-4', as: 'given back' })
  assert.deepEqual(told.checked().findings, [])
})

test('an end is told of the last hold, whatever is told late of an earlier one', () => {
  const rule = 'what has ended stays ended'
  const held = (): Told =>
    clean()
      .enqueued(10, 100)
      .claimed('worker-4', 300, [{ id: 'id-10' }])
  const end = { at: 401, id: 'id-10', worker: 'worker-4', what: 'settled' } as const
  const late = { ...end, at: 700, as: 'given back' } as const
  const expired = held()
    .claimed('worker-4', 400, [{ id: 'id-10' }])
    .add('worker-4', { ...end, as: 'dead', reason: 'expired' }, late)
  assert.ok(!breaks(rule, expired))
  const failed = held()
    .ran(10, 'worker-4', 399, { end: 'failed', settled: 'failed', claim: 'told' })
    .add('worker-4', { ...end, as: 'dead', reason: 'failed' }, late)
  assert.ok(!breaks(rule, failed))
  const again = held()
    .add('worker-4', { ...end, as: 'dead', reason: 'failed' })
    .claimed('worker-4', 500, [{ id: 'id-10' }])
  assert.ok(breaks(rule, again))
})

test('who said good bye and held nothing may be found silent with what a lost claim took, and with nothing else', () => {
  const rule = 'whoever can beat keeps what it holds'
  const drained = (): Told =>
    clean()
      .withoutAll((event) => event.what === 'worker' && event.worker === 'worker-4' && event.at > 2_000)
      .add('worker-4', { at: 2_100, what: 'worker', worker: 'worker-4', is: 'draining' })
      .add('worker-1', { at: 15_500, what: 'took over', worker: 'worker-1', deadWorker: 'worker-4', jobs: 1 })
  assert.ok(!breaks(rule, drained()))
  assert.ok(breaks(rule, drained().claimed('worker-4', 2_050, [{ id: 'id-10' }])))
  assert.ok(
    breaks(
      rule,
      drained().withoutAll((event) => event.what === 'worker' && event.is === 'draining'),
    ),
  )
})

test('a claim that was answered for nobody and is asked again brings its fences when it is answered again', () => {
  const answeredAgain = (at: number): Told =>
    clean()
      .claimed('worker-4', 300, [], { request: 77 })
      .claimed('worker-4', at, [{ id: 'id-10', fence: 480 }], { request: 77 })
      .claimed('worker-3', 450, [{ id: 'id-10', fence: 450 }])
  assert.ok(!breaks('a later claim has a larger fence', answeredAgain(500)))
  assert.ok(breaks('a later claim has a larger fence', answeredAgain(400)))
})

test('of pruned records one is not missed whose last attempt may have ended with nobody told', () => {
  const missed = (more: Parameters<Told['ran']>[3]): boolean =>
    breaks('what was accepted is known', clean().enqueued(10, 100).ran(10, 'worker-2', 200, more), {
      retention: 'pruned',
    })
  assert.ok(!missed({ attempt: 6, end: 'failed' }))
  assert.ok(missed({ attempt: 5, end: 'failed' }), 'it has one more')
  assert.ok(missed({ attempt: 6, end: 'aborted', settled: 'given back' }), 'it was to run again')
})

test('an operator who makes a job ready ends its wait', () => {
  const told = clean()
  told.event('settled', 11).againInMs = 700
  told.asked('id-11', 850, 'retry', 'ok')
  assert.deepEqual(told.checked().findings, [])
})

test('a pause that may have been over forbids nothing', () => {
  const told = clean().claimed('worker-4', 700, [{ id: 'id-21', queue: 'two' }])
  told.add('worker-4', { at: 701, what: 'settled', id: 'id-21', worker: 'worker-4', as: 'given back' })
  // Asked before the pause and never answered: it may have been done after it.
  told.add('operator', { at: 550, what: 'asked of queue', ask: 'lost', operation: 'resume', queue: 'two' })
  assert.deepEqual(told.checked().findings, [])
})

test('a job that breaks several rules of one kind counts once', () => {
  const told = clean()
  for (const at of [400, 500])
    told.add('worker-3', { at, what: 'settled', id: 'id-1', worker: 'worker-3', as: 'completed' })
  told.has(1, {})
  assert.equal(told.checked().settledTwice, 1)
})

test('findings are bounded, counts are whole', () => {
  const told = clean()
  for (let n = 100; n < 200; n++) told.completed(n, 'worker-5', 400)
  const verdict = told.checked()
  assert.equal(verdict.otherFaults, 100)
  assert.equal(verdict.findings.length, 20)
})

test('a line that a kill has cut is no event, wherever it was cut', () => {
  const event: HistoryEvent = { at: 1.5, what: 'effect', n: 1, id: 'id-1', fence: 7 }
  const line = lineOf(event).trimEnd()
  assert.deepEqual(eventOf(line), event)
  for (let length = 1; length < line.length; length++) assert.equal(eventOf(line.slice(0, length)), undefined)
})
