/** A history in which much went wrong and nothing was broken. Each test of a rule breaks it in one way. */
import type { Expectation } from '../../../src/testing/checker/expectation.js'
import { Told } from './told.js'

const GOOD: Expectation = { sort: 'plain', ends: ['completed'], attempts: 6, delayMs: 0, queue: 'one' }
export const ATTEMPTS = 3

/** Jobs by number; ids are `id-1` and so on. Numbers up to 30 are planned, and those that nothing is said of are plain. */
const PLAN = new Map<number, Expectation>([
  ...Array.from({ length: 30 }, (_, i): [number, Expectation] => [i + 1, GOOD]),
  [2, { ...GOOD, sort: 'hopeless', ends: ['failed'], attempts: ATTEMPTS }],
  [3, { ...GOOD, sort: 'once', ends: ['completed', 'lost'], attempts: 1, delivery: 'at-most-once' }],
  [4, { ...GOOD, sort: 'keyed', key: 'key-4' }],
  [5, { ...GOOD, sort: 'long' }],
  [6, { ...GOOD, sort: 'delayed', delayMs: 1_000 }],
  [7, { ...GOOD, sort: 'transactional' }],
  [8, { ...GOOD, sort: 'transactional' }],
  [11, { ...GOOD, sort: 'snoozed' }],
  [13, { ...GOOD, sort: 'redriven' }],
  [14, { ...GOOD, sort: 'rejected', ends: ['rejected'] }],
  [15, { ...GOOD, sort: 'expiring', ends: ['completed', 'expired'], expiresInMs: 500 }],
  [16, { ...GOOD, sort: 'poison', ends: ['poison'] }],
  [17, { ...GOOD, queue: 'two' }],
  [18, { ...GOOD, queue: 'two' }],
  [19, { ...GOOD, sort: 'keyed', key: 'key-4' }],
  [20, { ...GOOD, sort: 'unkept', keep: 'none' }],
  [21, { ...GOOD, queue: 'two' }],
  [22, { ...GOOD, sort: 'expiring', ends: ['completed', 'expired'], expiresInMs: 500 }],
])

export const KILLED_AT = 5_000
const LIVED_UNTIL = 20_000
export const WORKERS = ['worker-1', 'worker-2', 'worker-3', 'worker-4'] as const

/**
 * `worker-2` is killed and `worker-1` takes over; `worker-3` lives all the time, `worker-4` as well, and writes its claims
 * down. Workers are named by their process.
 */
export function clean(): Told {
  const told = new Told(PLAN)
  tellProcesses(told)
  tellWork(told)
  tellCrashes(told)
  tellOperators(told)
  return told
}

function tellProcesses(told: Told): void {
  for (const process of WORKERS)
    told
      .add('driver', { at: 0, what: 'spawned', process, role: 'worker' })
      .add(process, { at: 1, what: 'worker', worker: process, is: 'up', slots: 10 })
      .beats(process, 2, process === 'worker-2' ? KILLED_AT : LIVED_UNTIL)
  told.add(
    'driver',
    { at: KILLED_AT, what: 'killed', process: 'worker-2', moment: 'any' },
    { at: KILLED_AT + 5, what: 'gone', process: 'worker-2', code: null, signal: 'SIGKILL' },
  )
  told.add('worker-1', { at: 16_000, what: 'took over', worker: 'worker-1', deadWorker: 'worker-2', jobs: 2 })
}

function tellWork(told: Told): void {
  told.enqueued(1, 100).completed(1, 'worker-1', 200)
  told.enqueued(2, 100)
  for (let i = 0; i < ATTEMPTS; i++) {
    const again = i + 1 < ATTEMPTS ? { againInMs: 50 } : {}
    told.ran(2, 'worker-1', 300 + 100 * i, { attempt: i + 1, end: 'failed', settled: 'failed', ...again })
  }
  told
    .add('worker-1', { at: 502, what: 'settled', id: 'id-2', worker: 'worker-1', as: 'dead', reason: 'failed' })
    .has(2, { state: 'dead', reason: 'failed', attempts: ATTEMPTS })
  told.enqueued(4, 100).completed(4, 'worker-1', 200)
  for (const [n, process] of [
    [4, 'producer-2'],
    [19, 'producer-3'],
  ] as const)
    told.add(process, { at: 99, what: 'sending', n }, { at: 102, what: 'told', n, outcome: 'duplicate', id: 'id-4' })
  told.enqueued(6, 100).completed(6, 'worker-1', 1_150)
  told.enqueued(7, 100, { transaction: 't7' }).completed(7, 'worker-1', 300)
  told.add('producer', { at: 150, what: 'transaction', transaction: 't7', is: 'committed' })
  told.enqueued(8, 100, { transaction: 't8' })
  told.add('producer', { at: 150, what: 'transaction', transaction: 't8', is: 'rolled back' })
  told.refused(9, 100)
  told
    .enqueued(11, 100)
    .ran(11, 'worker-4', 300, { claim: 'told', end: 'snoozed', settled: 'snoozed', againInMs: 500 })
    .completed(11, 'worker-4', 900, { claim: 'told' })
  told
    .enqueued(15, 100)
    .add('worker-1', { at: 700, what: 'expired', id: 'id-15' })
    .add('worker-1', { at: 700, what: 'settled', id: 'id-15', worker: 'worker-1', as: 'dead', reason: 'expired' })
    .has(15, { state: 'dead', reason: 'expired' })
  told.enqueued(20, 100).ran(20, 'worker-1', 300, { end: 'effect', settled: 'completed' })
  told.enqueued(22, 100).completed(22, 'worker-1', 400)
}

function tellCrashes(told: Told): void {
  const crash = (n: number, at: number, more: { started: boolean; alone: boolean; deadWorker?: string }): void => {
    const { deadWorker = 'worker-2', ...facts } = more
    told.add('worker-1', { at, what: 'crash noted', id: `id-${n}`, deadWorker, ...facts })
  }
  told.enqueued(3, 100).ran(3, 'worker-2', 4_000)
  crash(3, 16_001, { started: true, alone: false })
  told
    .add('worker-1', { at: 16_001, what: 'settled', id: 'id-3', worker: 'worker-1', as: 'dead', reason: 'lost' })
    .has(3, { state: 'dead', reason: 'lost', attempts: 1, crashes: 1, lostWith: 'worker-2' })
  // It had its effect, and died before anybody was told.
  told.enqueued(5, 100).ran(5, 'worker-2', 4_500, { end: 'effect' })
  crash(5, 16_001, { started: true, alone: false })
  told.completed(5, 'worker-1', 16_100, { attempt: 2 })
  told.record(5).crashes = 1
  // Of its first two crashes nobody came to tell.
  told.enqueued(16, 100)
  crash(16, 17_000, { started: true, alone: true, deadWorker: 'worker-8' })
  crash(16, 18_000, { started: true, alone: true, deadWorker: 'worker-9' })
  told
    .add('worker-1', { at: 18_000, what: 'settled', id: 'id-16', worker: 'worker-1', as: 'dead', reason: 'poison' })
    .has(16, { state: 'dead', reason: 'poison', attempts: 4, crashes: 4, crashesAlone: 2 })
}

function tellOperators(told: Told): void {
  const dead = (n: number, at: number): void => {
    told.ran(n, 'worker-1', at, { end: 'failed', settled: 'failed' })
    const end = { what: 'settled', id: `id-${n}`, worker: 'worker-1', as: 'dead', reason: 'rejected' } as const
    told.add('worker-1', { at: at + 2, ...end })
  }
  told.enqueued(12, 100).asked('id-12', 200, 'cancel', 'cancelled').has(12, { state: 'cancelled' })
  told.enqueued(13, 100)
  dead(13, 200)
  told.asked('id-13', 300, 'redrive', 'ok').completed(13, 'worker-1', 400)
  told.record(13).redrives = 1
  told.enqueued(14, 100)
  dead(14, 200)
  told.asked('id-14', 300, 'discard', 'discarded')
  told.enqueued(17, 100).askedOfQueue('two', 200, 'purge', 1)
  told.askedOfQueue('two', 300, 'refuse').refused(18, 400, 'QUEUE_DRAINING')
  told.askedOfQueue('two', 500, 'resume')
  told.askedOfQueue('two', 600, 'pause').askedOfQueue('two', 800, 'resume')
  told.enqueued(21, 510).ran(21, 'worker-4', 1_000, { claim: 'told', end: 'effect', settled: 'completed' })
  told.has(21, { state: 'completed' })
}
