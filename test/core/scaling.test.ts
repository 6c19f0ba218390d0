/** How many worker processes there shall be: bounds, speed, steadiness, for any signal and in a closed loop. */
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import {
  askedFor,
  decideScale,
  SCALE_BEGIN,
  type ScaleDecision,
  type ScaleLook,
  type ScalePolicy,
  type ScaleState,
} from '../../src/core/scaling.js'

const EVERY_MS = 2_000
const POLICY: ScalePolicy = { min: 1, max: 8, by: 'depth', target: 4, slots: 10, coolDownMs: 60_000 }
const WAIT: ScalePolicy = { ...POLICY, by: 'wait', target: 5_000 }
const IDLE: ScaleLook = { ready: 0, oldestWaitMs: 0, p95WaitMs: null, busy: 0 }
const FLOOD: ScaleLook = { ready: 100_000, oldestWaitMs: 600_000, p95WaitMs: 500_000, busy: 10 }

/** Looks one after another; every process that is wanted is up by the next look. */
class Loop {
  decision: ScaleDecision
  readonly numbers: number[] = []
  private nowMs = 0

  constructor(
    private readonly policy: ScalePolicy,
    wanted: number,
    state: ScaleState = SCALE_BEGIN,
  ) {
    this.decision = { wanted, why: '', state }
  }

  look(look: ScaleLook, up = this.decision.wanted): number {
    const { wanted, state } = this.decision
    this.nowMs += EVERY_MS
    this.decision = decideScale(look, this.policy, { present: { wanted, up }, state, nowMs: this.nowMs })
    this.numbers.push(this.decision.wanted)
    return this.decision.wanted
  }

  looks(count: number, look: ScaleLook): number[] {
    return Array.from({ length: count }, () => this.look(look))
  }
}

test('W6: under a flood the number doubles with each look, up to the most', () => {
  for (const policy of [POLICY, WAIT]) assert.deepEqual(new Loop(policy, 1).looks(5, FLOOD), [2, 4, 8, 8, 8])
})

test('W6: it grows only from processes that take jobs: while none comes up, none is added', () => {
  const loop = new Loop(POLICY, 2)
  assert.deepEqual([loop.look(FLOOD, 0), loop.look(FLOOD, 1), loop.look(FLOOD, 2)], [2, 2, 4])
})

test('W6: idle, it goes down by one a look once the cool-down is over, to the least', () => {
  const numbers = new Loop(POLICY, 4).looks(36, IDLE)
  assert.deepEqual(
    numbers.slice(0, 30),
    Array.from({ length: 30 }, () => 4),
  )
  assert.deepEqual(numbers.slice(30), [3, 2, 1, 1, 1, 1])
})

test('W6: a signal that is high again within the cool-down keeps all, and one that is half as high keeps half', () => {
  const high: ScaleLook = { ...IDLE, ready: 320 }
  const loop = new Loop(POLICY, 8)
  for (let round = 0; round < 10; round++) {
    loop.looks(20, IDLE)
    loop.look(high)
  }
  assert.deepEqual(new Set(loop.numbers), new Set([8]))
  const half = new Loop(POLICY, 8)
  for (let round = 0; round < 10; round++) {
    half.looks(20, IDLE)
    half.look({ ...IDLE, ready: 160 })
  }
  assert.equal(half.numbers.at(-1), 4, 'the most that was asked for in a cool-down')
})

test('W6: by depth, due jobs for each slot ask for processes', () => {
  const asked = (ready: number): number => askedFor({ ...IDLE, ready }, POLICY, 1).count
  assert.deepEqual([asked(0), asked(40), asked(41), asked(80), asked(10_000)], [1, 1, 2, 2, 8])
  assert.equal(askedFor({ ...IDLE, ready: 41 }, POLICY, 1).why, '41 due jobs, where 4 a slot may wait')
})

test('W6: by wait, the longer of p95 and of the oldest due job asks, in its relation to the target', () => {
  const asked = (look: Partial<ScaleLook>): number => askedFor({ ...IDLE, ready: 500, ...look }, WAIT, 4).count
  assert.equal(asked({ oldestWaitMs: 7_500 }), 6)
  assert.equal(asked({ p95WaitMs: 6_000, oldestWaitMs: 1_000 }), 5)
  assert.equal(asked({ p95WaitMs: 60_000 }), 8, 'twice as many at most')
  assert.equal(asked({ p95WaitMs: 4_000 }), 4, 'near the target nothing changes')
  assert.equal(asked({ p95WaitMs: 2_000 }), 1)
  assert.equal(asked({ p95WaitMs: 60_000, ready: 3 }), 5, 'a process more has slots for all that wait')
  assert.equal(asked({ p95WaitMs: 60_000, ready: 0 }), 4, 'the p95 tells of what is over')
})

test('W6: busy slots hold what is there, and ask for no more', () => {
  const busy: ScaleLook = { ...IDLE, busy: 33 }
  for (const policy of [POLICY, WAIT]) {
    assert.equal(askedFor(busy, policy, 4).count, 4)
    assert.equal(askedFor({ ...busy, busy: 24 }, policy, 4).count, 3, 'three can bear it with room to spare')
    assert.equal(askedFor({ ...busy, busy: 400 }, policy, 4).count, 4)
  }
  assert.match(askedFor(busy, POLICY, 4).why, /33 slots are busy/)
})

const policies = fc
  .record({
    bounds: fc.tuple(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 0, max: 40 })),
    by: fc.constantFrom('depth' as const, 'wait' as const),
    target: fc.double({ min: 0.1, max: 10_000, noNaN: true }),
    slots: fc.integer({ min: 1, max: 1_000 }),
    coolDownMs: fc.integer({ min: 0, max: 120_000 }),
  })
  .map(({ bounds: [min, more], ...rest }): ScalePolicy => ({ ...rest, min, max: min + more }))

const looks: fc.Arbitrary<ScaleLook> = fc.record({
  ready: fc.oneof(fc.constant(0), fc.nat(1_000_000)),
  oldestWaitMs: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1e9, noNaN: true })),
  p95WaitMs: fc.option(fc.double({ min: 0, max: 1e9, noNaN: true })),
  busy: fc.nat(50_000),
})

test('W6: whatever is seen, it is never outside of the bounds, and no step is longer than it may be', () => {
  fc.assert(
    fc.property(policies, fc.nat(100), fc.array(looks, { maxLength: 60 }), (policy, begin, seen) => {
      const loop = new Loop(policy, begin)
      for (const look of seen) {
        const before = Math.min(policy.max, Math.max(policy.min, loop.decision.wanted))
        const wanted = loop.look(look, before)
        assert.ok(wanted >= policy.min && wanted <= policy.max, `${wanted}`)
        assert.ok(wanted >= before - 1 && wanted <= before * 2, `from ${before} to ${wanted}`)
      }
    }),
  )
})

test('W6: a constant signal moves it in one direction only, and then not at all', () => {
  fc.assert(
    fc.property(policies, fc.nat(100), looks, (policy, begin, look) => {
      const loop = new Loop(policy, begin)
      loop.looks(1, look)
      // As many looks as the longest way down takes, with the longest cool-down for each of its steps.
      const numbers = loop.looks(80 + policy.coolDownMs / EVERY_MS, look)
      const turns = numbers.filter((number, at) => {
        const [before, last] = [numbers[at - 1] ?? number, numbers[at - 2] ?? numbers[at - 1] ?? number]
        return Math.sign(number - before) * Math.sign(before - last) < 0
      })
      assert.deepEqual(turns, [])
      assert.equal(new Set(loop.looks(100 + policy.coolDownMs / EVERY_MS, look)).size, 1, `${numbers}`)
    }),
    { numRuns: 200 },
  )
})

/** A queue and its slots: work comes in at a steady rate, each slot does one second of it in a second. */
function plant(policy: ScalePolicy, load: (second: number) => number, seconds: number): number[] {
  const loop = new Loop(policy, policy.min)
  let backlog = 0
  for (let second = 0; second < seconds; second += EVERY_MS / 1_000) {
    const came = load(second) * (EVERY_MS / 1_000)
    const slots = loop.decision.wanted * policy.slots
    const busy = Math.min(slots, backlog + load(second))
    backlog = Math.max(0, backlog + came - slots * (EVERY_MS / 1_000))
    const waitMs = (backlog / slots) * 1_000
    loop.look({ ready: Math.floor(backlog), oldestWaitMs: waitMs, p95WaitMs: waitMs, busy: Math.floor(busy) })
  }
  return loop.numbers
}

test('W6: in a closed loop a steady load finds its number and keeps it for an hour', () => {
  for (const policy of [POLICY, WAIT])
    for (const load of [3, 17, 28, 35, 52, 71]) {
      const numbers = plant(policy, () => load, 3_600)
      const settled = new Set(numbers.slice(numbers.length / 2))
      assert.equal(settled.size, 1, `${policy.by}, ${load} slots' worth: ${[...settled]}`)
      const [number] = [...settled] as [number]
      assert.ok(number * policy.slots >= load, `${policy.by}: ${number} processes bear ${load}`)
      assert.ok(number <= Math.ceil(load / (policy.slots * 0.8)) + 1, `${policy.by}: ${number} for ${load}`)
    }
})

test('W6: a load that comes and goes each ten minutes is followed, with one way up and one way down', () => {
  const numbers = plant(POLICY, (second) => (second % 1_200 < 600 ? 60 : 2), 2_400)
  const changes = numbers.filter((number, at) => at > 0 && number !== numbers[at - 1])
  assert.equal(numbers.at(-1), 1)
  assert.equal(Math.max(...numbers), 6)
  assert.ok(changes.length <= 2 * (3 + 7), `${changes}`)
})
