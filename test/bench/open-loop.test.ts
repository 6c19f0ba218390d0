/** Offered load: the plan is fixed in advance, and latency counts from it. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { arrivals, chance, figuresOfOffered, fromPlan, offer } from '../../bench/open-loop.js'

const load = { perSecond: 200, seconds: 5, seed: 7 }

test('the plan has all arrivals of the load, in order, within its time, the same for the same seed', () => {
  const plan = arrivals(load)
  assert.equal(plan.length, 1_000)
  assert.ok(plan.every((ms, n) => ms >= (plan[n - 1] ?? 0) && ms < 5_000))
  assert.deepEqual(arrivals(load), plan)
  assert.notDeepEqual(arrivals({ ...load, seed: 8 }), plan)
})

test('arrivals are independent: some come together, some after a long gap', () => {
  const plan = arrivals(load)
  const gaps = plan.map((ms, n) => ms - (plan[n - 1] ?? 0))
  // Of gaps that are exponential with a mean of 5 ms, 18 % are below 1 ms and 5 % above 15 ms.
  const share = (of: (gap: number) => boolean): number => gaps.filter(of).length / gaps.length
  assert.ok(Math.abs(share((gap) => gap < 1) - 0.18) < 0.05)
  assert.ok(Math.abs(share((gap) => gap > 15) - 0.05) < 0.03)
})

test('chance gives numbers from 0 to below 1 that are spread evenly', () => {
  const random = chance(3)
  const numbers = Array.from({ length: 1_000 }, random)
  assert.ok(numbers.every((one) => one >= 0 && one < 1))
  for (const tenth of Array.from({ length: 10 }, (_, n) => n / 10)) {
    const count = numbers.filter((one) => one >= tenth && one < tenth + 0.1).length
    assert.ok(count > 60 && count < 140, `${count} from ${tenth}`)
  }
})

test('latency counts from the planned arrival to the first start, whatever their order', () => {
  const plan = Float64Array.of(0, 10, 20)
  // Number and instant in turns; -1 is a job that warmed up, and the second job started twice.
  const starts = Float64Array.of(-1, 900_000, 1, 1_015_000, 0, 1_005_000, 1, 9_000_000)
  const latencyMs = fromPlan(plan, 1_000_000, starts)
  assert.deepEqual([...latencyMs], [5, 5, Number.NaN])
})

test('a producer that is held up sends the same load, and its delay is in the figures', async () => {
  const BLOCKED_MS = 100
  const sent: number[] = []
  const { lateMs } = await offer(Float64Array.of(0, 5, 10, 150), async (n) => {
    sent.push(n)
    const until = performance.now() + (n === 0 ? BLOCKED_MS : 0)
    while (performance.now() < until);
  })
  assert.deepEqual(sent, [0, 1, 2, 3])
  // Handed over after the block at the earliest, which began at the first planned instant at the earliest.
  assert.ok(lateMs[1]! >= BLOCKED_MS - 5, `${lateMs[1]}`)
  assert.ok(lateMs[2]! >= BLOCKED_MS - 10, `${lateMs[2]}`)
})

test('an enqueue that fails ends the offer, and no rejection is left unhandled', async () => {
  const failing = async (n: number): Promise<void> => {
    if (n === 1) throw new Error('refused')
  }
  await assert.rejects(offer(Float64Array.of(0, 1, 2), failing), /refused/)
})

test('the rate is of the whole time until the last start', () => {
  const figures = figuresOfOffered(load, {
    latencyMs: Float64Array.of(1, 2, 3, 4),
    lateMs: Float64Array.of(0, 0, 0, 1),
    ms: 2_000,
  })
  assert.equal(figures.jobsPerSecond, 2)
  assert.equal(figures.p50Ms, 2)
  assert.equal(figures.maxMs, 4)
  assert.equal(figures.producerLateP95Ms, 1)
})
