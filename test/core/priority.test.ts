import { strict as assert } from 'node:assert'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  AGEING_INTERVAL_MS,
  type Candidate,
  pick,
  reserveForPassedOver,
  tierOf,
  tierQuotas,
} from '../../src/core/priority.js'

/** Jobs named by level and minute: `12@3` is of level 12 and due in minute 3. */
function jobs(...names: string[]): (Candidate & { name: string })[] {
  return names.map((name) => {
    const [priority, minute] = name.split('@').map(Number)
    return { name, priority: priority!, dueAt: minute! * 60_000 }
  })
}

function picked(
  names: string[],
  ...rest: [order: 'ageing' | 'strict' | 'weighted', turn: number, limit: number]
): string[] {
  return pick(jobs(...names), ...rest).map(({ name }) => name)
}

/** Many of a level, all due at once. */
function many(count: number, name: string): string[] {
  return new Array<string>(count).fill(name)
}

const candidates = fc.array(fc.record({ priority: fc.nat(15), dueAt: fc.nat(3_600_000) }), { maxLength: 60 })
const orders = fc.constantFrom('ageing' as const, 'strict' as const, 'weighted' as const)

test('a claim takes as many as there are, the limit at most, each once', () => {
  fc.assert(
    fc.property(candidates, orders, fc.nat(200), fc.nat(40), (given, order, turn, limit) => {
      const taken = pick(given, order, turn, limit)
      assert.equal(taken.length, Math.min(limit, given.length))
      assert.equal(new Set(taken).size, taken.length)
    }),
  )
})

test('inside a level nobody is overtaken by one that is due later', () => {
  fc.assert(
    fc.property(candidates, orders, fc.nat(200), fc.nat(40), (given, order, turn, limit) => {
      const taken = new Set(pick(given, order, turn, limit))
      for (const left of given.filter((job) => !taken.has(job)))
        for (const job of taken) if (job.priority === left.priority) assert(job.dueAt <= left.dueAt)
    }),
  )
})

test('reserved turns are those with n mod 16 = 15', () => {
  fc.assert(
    fc.property(fc.nat(1_000), fc.nat(100), (turn, limit) => {
      const turns = Array.from({ length: limit }, (_, i) => turn + i)
      assert.equal(reserveForPassedOver(turn, limit), turns.filter((n) => n % 16 === 15).length)
    }),
  )
})

test('quotas add up to the limit, and any fifteen turns are shared 8 : 4 : 2 : 1', () => {
  fc.assert(
    fc.property(fc.nat(1_000), fc.nat(100), (turn, limit) => {
      const singles = [0, 0, 0, 0]
      for (let i = 0; i < limit; i++) singles[tierQuotas(turn + i, 1).indexOf(1)]! += 1
      assert.deepEqual(tierQuotas(turn, limit), singles)
      assert.deepEqual(tierQuotas(turn, 15), [8, 4, 2, 1])
    }),
  )
})

test('no tier but the first has two turns in a row', () => {
  const turns = Array.from({ length: 60 }, (_, turn) => tierQuotas(turn, 1).indexOf(1))
  for (const [i, tier] of turns.entries()) if (i > 0 && tier !== 0) assert.notEqual(turns[i - 1], tier)
})

test('levels belong to the tiers critical, high, normal and low', () => {
  const levels = Array.from({ length: 16 }, (_, level) => tierOf(level))
  assert.deepEqual(levels, [3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0])
})

test('ageing: a level is worth a minute of waiting', () => {
  assert.equal(AGEING_INTERVAL_MS, 60_000)
  assert.deepEqual(picked(['4@0', '6@1', '6@3'], 'ageing', 0, 3), ['6@1', '4@0', '6@3'])
})

test('ageing: what is equal goes by level, then as it was given', () => {
  assert.deepEqual(picked(['4@0', '5@1', '4@0'], 'ageing', 0, 3), ['5@1', '4@0', '4@0'])
  const [front, back] = jobs('4@0', '4@0')
  assert.deepEqual(pick([front!, back!], 'ageing', 0, 1), [front])
})

test('ageing: the reserved start goes to the oldest of the levels passed over, by due time alone', () => {
  const waiting = [...many(20, '15@9'), '8@7', '3@2', '0@2']
  assert.deepEqual(picked(waiting, 'ageing', 0, 15), many(15, '15@9'))
  assert.deepEqual(picked(waiting, 'ageing', 0, 16), [...many(15, '15@9'), '3@2'])
  assert.deepEqual(picked(waiting, 'ageing', 15, 1), ['3@2'])
  assert.deepEqual(picked(waiting, 'ageing', 15, 17), [...many(15, '15@9'), '3@2', '0@2'])
})

test('ageing: a level that got a start in the main order is not passed over', () => {
  const waiting = [...many(14, '12@0'), '4@0', '4@0', '0@0']
  assert.deepEqual(picked(waiting, 'ageing', 0, 16), [...many(14, '12@0'), '4@0', '0@0'])
})

test('ageing: a reserve that finds nobody goes on in main order', () => {
  assert.deepEqual(picked(many(20, '12@0'), 'ageing', 15, 17), many(17, '12@0'))
})

test('ageing: the lowest level gets a start in sixteen under any load', () => {
  let starts = 0
  for (let turn = 0; turn < 160; turn++)
    if (picked(['0@100', ...many(3, '15@0')], 'ageing', turn, 1)[0] === '0@100') starts += 1
  // Due last and lowest: only the reserve can reach it, and only while it is the oldest passed over.
  assert.equal(starts, 0)
  for (let turn = 0; turn < 160; turn++)
    if (picked(['0@0', ...many(3, '15@1')], 'ageing', turn, 1)[0] === '0@0') starts += 1
  assert.equal(starts, 10)
})

test('strict: by level, then by due time', () => {
  assert.deepEqual(picked(['0@0', '2@9', '1@5', '2@8', '1@4'], 'strict', 15, 4), ['2@8', '2@9', '1@4', '1@5'])
})

test('weighted: each tier gets its quota, and what it leaves is filled from the top', () => {
  const waiting = [...many(9, '0@0'), ...many(9, '4@0'), ...many(9, '9@0'), ...many(9, '13@0')]
  const taken = picked(waiting, 'weighted', 0, 15)
  assert.deepEqual(taken, [...many(8, '13@0'), ...many(4, '9@0'), ...many(2, '4@0'), '0@0'])
  assert.deepEqual(picked(['0@0', '4@0', '4@1', '4@2'], 'weighted', 0, 3), ['4@0', '4@1', '4@2'])
  assert.deepEqual(picked([...many(2, '4@0'), '0@0'], 'weighted', 7, 1), ['0@0'], 'turn 7 is that of the low tier')
})
