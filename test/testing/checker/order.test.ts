/** The rules of order: what claims may take before what waits, and what they do not judge. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { QueueOrder } from '../../../src/core/priority.js'
import { AGEING, FIRST_DUE, type Job, MINUTE_MS, NO_LOWER, overtakenBy, Queue } from './queue.js'

for (const order of ['ageing', 'strict', 'weighted'] as const)
  test(`${order}: in a level the one that is due first is claimed first`, () => {
    const jobs: Job[] = [
      [4, 1_000],
      [4, 2_000],
    ]
    const right = new Queue(jobs, order).claim('a', 3_000, [0]).claim('a', 3_100, [1])
    assert.deepEqual(right.broken(), [])
    assert.equal(right.judged(FIRST_DUE), 1)
    const wrong = new Queue(jobs, order).claim('a', 3_000, [1]).claim('a', 3_100, [0])
    assert.ok(wrong.broken().includes(FIRST_DUE))
    assert.ok(!wrong.broken().includes(NO_LOWER))
  })

test('strict: no lower level is claimed first; weighted: none of the same tier', () => {
  const higherWaits = (low: number, high: number): Job[] => [
    [low, 1_000],
    [high, 2_000],
  ]
  const claimed = (jobs: readonly Job[], order: QueueOrder): string[] =>
    new Queue(jobs, order).claim('a', 3_000, [0]).claim('a', 3_100, [1]).broken()
  assert.deepEqual(claimed(higherWaits(4, 5), 'strict'), [NO_LOWER])
  assert.deepEqual(claimed(higherWaits(4, 12), 'strict'), [NO_LOWER])
  assert.deepEqual(claimed(higherWaits(4, 5), 'weighted'), [NO_LOWER])
  assert.deepEqual(claimed(higherWaits(4, 12), 'weighted'), [])
  const first = new Queue(higherWaits(4, 5), 'strict').claim('a', 3_000, [1]).claim('a', 3_100, [0])
  assert.deepEqual(first.broken(), [])
  assert.equal(first.judged(NO_LOWER), 1)
})

test('ageing: jobs that were due before a minute for each level go first, however many', () => {
  assert.deepEqual(overtakenBy(40, 1_000 + MINUTE_MS - 10).broken(), [])
  assert.ok(overtakenBy(40, 1_000 + MINUTE_MS - 10).judged(AGEING) > 0)
})

test('ageing: of those due later one start in sixteen goes first, and one that was begun before', () => {
  assert.deepEqual(overtakenBy(1).broken(), [])
  assert.deepEqual(overtakenBy(2).broken(), [AGEING])
  assert.deepEqual(overtakenBy(40).broken(), [AGEING])
})

test('ageing: the reserved starts are counted over all that a worker takes meanwhile', () => {
  // 34 in all: 31 of them go first by right, and three of level 5 are due too late: two reserved starts, and one begun.
  const early = Array.from({ length: 31 }, (): Job => [4, 900])
  const late = Array.from({ length: 3 }, (): Job => [5, 1_000 + MINUTE_MS + 10])
  const queue = (lates: readonly Job[]): Queue => {
    const jobs: Job[] = [[4, 1_000], ...early, ...lates]
    const all = new Queue(jobs)
    const from = 1_000 + MINUTE_MS + 100
    all.claim('a', from, [jobs.length - 1])
    for (let n = 1; n < jobs.length - 1; n++) all.claim('a', from + n * 10, [n])
    return all.claim('a', from + jobs.length * 10, [0])
  }
  assert.deepEqual(queue(late).broken(), [])
  assert.deepEqual(queue([...late, late[0]!]).broken(), [AGEING])
})

const TWO: readonly Job[] = [
  [4, 1_000],
  [4, 2_000],
]

/** The second one is claimed first, which is wrong, unless something is not known. */
const UNSURE: readonly { why: string; queue: () => Queue }[] = [
  {
    why: 'another claim ran beside it',
    queue: () =>
      new Queue(TWO)
        .claim('b', 3_050, [], { askedAt: 2_950, answeredAt: 3_050 })
        .claim('a', 3_000, [1])
        .claim('a', 3_100, [0]),
  },
  {
    why: 'the job that waited was stored while the claim ran',
    queue: () => new Queue(TWO).claim('a', 2_500, [1], { askedAt: 500 }).claim('a', 3_100, [0]),
  },
  {
    why: 'it was in a transaction',
    queue: () => {
      const queue = new Queue(TWO).claim('a', 3_000, [1]).claim('a', 3_100, [0])
      queue.told.event('told', 0).transaction = 't'
      queue.told.add('producer', { at: 2_900, what: 'transaction', transaction: 't', is: 'committed' })
      return queue
    },
  },
  {
    why: 'it was stored late, behind the cursors of claims',
    queue: () => {
      const queue = new Queue(TWO).claim('a', 3_000, [1]).claim('a', 3_100, [0])
      queue.told.event('told', 0).at += 150
      return queue
    },
  },
  {
    why: 'a delay may have been promoted late',
    queue: () => new Queue(TWO).expect(0, { delayMs: 5 }).claim('a', 3_000, [1]).claim('a', 3_100, [0]),
  },
  {
    why: 'a claim without an answer may have had it',
    queue: () => {
      const queue = new Queue(TWO).claim('a', 3_000, [1]).claim('a', 3_100, [0])
      queue.told.add('b', { at: 2_500, what: 'claiming', worker: 'b', request: 99 })
      return queue
    },
  },
  {
    why: 'a repeat of a claim may have had it, after the answer',
    queue: () => {
      const queue = new Queue(TWO).claim('a', 3_000, [1]).claim('a', 3_100, [0])
      queue.told.claimed('b', 900, [], { request: 99 })
      const again = queue.told.events.findIndex(({ event }) => event.what === 'claim answered' && event.request === 99)
      queue.told.events.splice(again, 0, {
        process: 'b',
        event: { at: 899.6, what: 'claiming', worker: 'b', request: 99 },
      })
      return queue
    },
  },
  {
    why: 'the worker could not run it',
    queue: () => new Queue(TWO).claim('a', 3_000, [1]).claim('b', 3_100, [0], { job: { kind: 'another kind' } }),
  },
  {
    why: 'it had been claimed before, and came back to the front',
    queue: () =>
      new Queue(TWO)
        .claim('a', 2_500, [1], { job: { attempt: 2 } })
        .claim('a', 3_000, [1])
        .claim('a', 3_100, [0], { job: { attempt: 2 } }),
  },
  {
    why: 'the call was sent again, and tells the waits of the first time',
    queue: () => {
      const queue = new Queue(TWO).claim('a', 3_000, [1], { request: 7 }).claim('a', 3_100, [0])
      queue.told.add('a', { at: 2_999.8, what: 'claiming', worker: 'a', request: 7 })
      return queue
    },
  },
  {
    why: 'an operator did something to it',
    queue: () => {
      const queue = new Queue(TWO).claim('a', 3_000, [1]).claim('a', 3_100, [0])
      queue.told.asked('id-0', 2_900, 'retry', 'ready')
      return queue
    },
  },
  {
    why: 'somebody changes the order of the queue',
    queue: () => {
      const queue = new Queue(TWO).claim('a', 3_000, [1]).claim('a', 3_100, [0])
      queue.told.askedOfQueue('one', 2_900, 'order')
      return queue
    },
  },
]

for (const { why, queue } of UNSURE)
  test(`an order is not judged when ${why}`, () => {
    assert.deepEqual(queue().broken(), [])
  })

test('what is not judged for lack of evidence is not counted as judged', () => {
  for (const { why, queue } of UNSURE) assert.equal(queue().judged(FIRST_DUE), 0, why)
})

test('once a beat has named a repeated claim as answered, an order is judged', () => {
  const repeated = (confirmedAt: number): Queue => {
    const queue = new Queue(TWO)
    queue.told
      .add('b', { at: 899, what: 'claiming', worker: 'b', request: 99 })
      .claimed('b', 900, [], { request: 99 })
      .add('b', { at: 950, what: 'worker', worker: 'b', is: 'beaten', confirmedAt })
    return queue.claim('a', 3_000, [1]).claim('a', 3_100, [0])
  }
  assert.deepEqual(repeated(890).broken(), [])
  assert.ok(repeated(940).broken().includes(FIRST_DUE))
})
