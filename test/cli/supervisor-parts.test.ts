/** What a supervisor reckons with: its policy, samples of waits, reports of processes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { policyOf } from '../../src/cli/supervisor/policy.js'
import { Reports } from '../../src/cli/supervisor/reports.js'
import { p95, Sample } from '../../src/cli/supervisor/sample.js'

test('a policy has defaults for all that is not given, and a target of its signal', () => {
  const { max, ...rest } = policyOf({ concurrency: 10 })
  assert.deepEqual(rest, { min: 1, by: 'depth', target: 4, slots: 10, coolDownMs: 60_000 })
  assert.ok(max >= 1)
  const wait = policyOf({ concurrency: 5, min: 2, max: 9, scaleBy: 'wait', target: '1.5s', coolDown: '10s' })
  assert.deepEqual(wait, { min: 2, max: 9, by: 'wait', target: 1_500, slots: 5, coolDownMs: 10_000 })
  assert.equal(policyOf({ concurrency: 5, scaleBy: 'wait' }).target, 5_000)
  assert.equal(policyOf({ concurrency: 5, min: 500 }).max, 500, 'never less than the least')
  assert.throws(() => policyOf({ concurrency: 5, min: 3, max: 2 }), { code: 'INVALID_OPTION', field: '--min' })
  for (const [scaleBy, target] of [
    ['depth', '5s'],
    ['depth', '0'],
    ['depth', '-1'],
    ['wait', '5'],
    ['wait', '1ms'],
    ['wait', 'soon'],
  ] as const)
    assert.throws(() => policyOf({ concurrency: 5, scaleBy, target }), { code: 'INVALID_OPTION', field: '--target' })
})

test('the p95 is one of the figures, by nearest rank', () => {
  assert.equal(p95([]), null)
  assert.equal(p95([7]), 7)
  assert.equal(p95([3, 1, 2]), 3)
  assert.equal(p95(Array.from({ length: 100 }, (_, n) => 100 - n)), 95)
})

test('a sample is bounded and fair: of many figures each has the same chance, whenever it came', () => {
  let seed = 7
  const random = (): number => {
    seed = (seed * 16_807) % 2_147_483_647
    return seed / 2_147_483_647
  }
  const sample = new Sample({ random })
  let early = 0
  let all = 0
  for (let round = 0; round < 200; round++) {
    for (let n = 0; n < 1_000; n++) sample.add(n)
    const taken = sample.take()
    assert.equal(taken.length, 50)
    early += taken.filter((n) => n < 500).length
    all += taken.length
  }
  assert.ok(Math.abs(early / all - 0.5) < 0.03, `${early / all}`)
  assert.deepEqual(sample.take(), [], 'it begins anew')
  sample.add(3)
  assert.deepEqual(sample.take(), [3])
})

test('reports count for ten seconds: the newest of each process for what is busy, all of them for the p95', () => {
  let nowMs = 0
  const reports = new Reports({ monotonic: () => nowMs })
  assert.deepEqual([reports.busy(), reports.p95WaitMs()], [0, null])
  reports.add(1, { busy: 5, waits: [1_000] })
  reports.add(2, { busy: 3, waits: [] })
  nowMs = 6_000
  reports.add(1, { busy: 2, waits: [10, 20] })
  assert.deepEqual([reports.busy(), reports.p95WaitMs()], [5, 1_000])
  nowMs = 10_001
  assert.deepEqual([reports.busy(), reports.p95WaitMs()], [2, 20], 'the second has not been heard of')
  nowMs = 60_000
  assert.deepEqual([reports.busy(), reports.p95WaitMs()], [0, null])
})
