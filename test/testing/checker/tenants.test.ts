/** The rule about turns of tenants: what may go before the next job of one, and what it does not judge. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Queue, shared, TURNS } from './queue.js'

/** A flood of so many jobs, then one of another tenant; so many of the flood are claimed before it. */
function passedBy(count: number, weights: { flood?: number; other?: number } = {}): Queue {
  const queue = shared([
    ...Array.from({ length: 12 }, () => ({ tenant: 'flood', weight: weights.flood ?? 1 })),
    { tenant: 'other', weight: weights.other ?? 1 },
  ])
  for (let n = 0; n < count; n++) queue.claim('a', 3_000 + 100 * n, [n])
  return queue.claim('a', 9_000, [12])
}

function breaks(queue: Queue): boolean {
  return queue.verdict().findings.some(({ rule }) => rule === TURNS)
}

test('of another tenant as many go first as its weight says, and one', () => {
  assert.deepEqual(
    [1, 2, 3].map((count) => breaks(passedBy(count))),
    [false, false, true],
  )
  const heavy = { flood: 3 }
  assert.deepEqual(
    [4, 5].map((count) => breaks(passedBy(count, heavy))),
    [false, true],
  )
  const light = { other: 0.25 }
  assert.deepEqual(
    [5, 6].map((count) => breaks(passedBy(count, light))),
    [false, true],
  )
  assert.equal(passedBy(12).judged(TURNS), 1)
})

test('who stands behind jobs of its own tenant waits for those first', () => {
  const queue = (last: number): Queue => {
    const all = shared([
      ...Array.from({ length: 8 }, () => ({ tenant: 'flood' })),
      { tenant: 'other' },
      { tenant: 'other' },
    ])
    for (const [i, n] of [0, 1, 8].entries()) all.claim('a', 3_000 + 100 * i, [n])
    for (let n = 2; n < last; n++) all.claim('a', 4_000 + 100 * n, [n])
    return all.claim('a', 9_000, [9])
  }
  assert.deepEqual(
    [4, 5].map((last) => breaks(queue(last))),
    [false, true],
  )
})

test('of another level, and without tenants, any number goes first', () => {
  const queue = shared([...Array.from({ length: 9 }, () => ({ tenant: 'flood' })), { tenant: 'other' }])
  for (let n = 0; n < 9; n++) queue.claim('a', 3_000 + 100 * n, [n], { job: { priority: 5 } })
  assert.ok(!breaks(queue.claim('a', 9_000, [9])))
  const plain = shared(Array.from({ length: 10 }, () => ({})))
  for (let n = 0; n < 9; n++) plain.claim('a', 3_000 + 100 * n, [n])
  assert.equal(plain.claim('a', 9_000, [9]).judged(TURNS), 0)
})

/** Three of the flood go first, which is too many, unless something is not known. */
const UNSURE: readonly { why: string; queue: () => Queue }[] = [
  {
    why: 'an operator did something to a job of its tenant',
    queue: () => {
      const queue = passedBy(9)
      for (const n of [0, 12]) queue.told.asked(`id-${n}`, 2_900, 'cancel', 'ended')
      return queue
    },
  },
  {
    why: 'its queue was purged',
    queue: () => {
      const queue = passedBy(9)
      queue.told.askedOfQueue('one', 2_900, 'purge', 0)
      return queue
    },
  },
  {
    why: 'a job before it has never been claimed',
    queue: () => {
      const queue = shared([
        ...Array.from({ length: 9 }, () => ({ tenant: 'flood' })),
        { tenant: 'other' },
        { tenant: 'other' },
      ])
      queue.told.has(9, { state: 'dead', reason: 'expired' })
      for (let n = 0; n < 9; n++) queue.claim('a', 3_000 + 100 * n, [n])
      return queue.claim('a', 9_000, [10])
    },
  },
  {
    why: 'workers run different kinds',
    queue: () => {
      const queue = passedBy(9)
      queue.told.add('c', { at: 1, what: 'worker', worker: 'c', is: 'up', kinds: ['kind', 'another kind'] })
      queue.told.claimed('c', 9_500, [])
      return queue
    },
  },
  {
    why: 'it was claimed together with one that stood before it',
    queue: () => {
      const queue = shared([
        ...Array.from({ length: 9 }, () => ({ tenant: 'flood' })),
        { tenant: 'other' },
        { tenant: 'other' },
      ])
      for (let n = 0; n < 3; n++) queue.claim('a', 3_000 + 100 * n, [n])
      return queue.claim('a', 9_000, [9, 10])
    },
  },
]

for (const { why, queue } of UNSURE.slice(0, 4))
  test(`turns are not judged when ${why}`, () => {
    assert.ok(!breaks(queue()))
  })

test('of jobs of one tenant in one claim only the first one is judged', () => {
  const found = UNSURE.at(-1)!
    .queue()
    .verdict()
    .findings.filter(({ rule }) => rule === TURNS)
  assert.deepEqual(
    found.map(({ ids }) => ids),
    [['id-9']],
  )
})
