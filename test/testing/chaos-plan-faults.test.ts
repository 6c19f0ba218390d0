/** The plans of faults: the same for the same seed, one after the other, each with an end, and all ways of each form. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Act, CUT_WAYS, type Fault, isFault, POOLER_WAYS, RESTART_WAYS } from '../../src/testing/chaos/acts.js'
import { firstSkewMs } from '../../src/testing/chaos/fault-acts.js'
import { FORM_NAMES, FORMS, type Form, type FormName } from '../../src/testing/chaos/forms.js'
import { BACK_MS_MAX } from '../../src/testing/checker/faults.js'
import { CALL_MS_MAX } from '../../src/worker/store-calls.js'

const CAST = { workers: 4, producers: 3 }
const LEASE_MS = 10_000
const SEEDS = Array.from({ length: 40 }, (_, seed) => seed)
const FAULT_FORMS = FORM_NAMES.filter((name) => name !== 'kill')

function actsOf(name: FormName, seed: number, count: number): Act[] {
  const form: Form = FORMS[name]
  const acts: Act[] = []
  for (const act of form.acts(seed, CAST)) {
    acts.push(act)
    if (acts.length === count) break
  }
  return acts
}

function faultsOf(name: FormName, seed: number, count: number): Fault[] {
  return actsOf(name, seed, count).map((act) => {
    assert.ok(isFault(act))
    return act
  })
}

for (const name of FAULT_FORMS)
  test(`${name}: a fault begins after the end of the one before, with room to see what was usual and what comes back`, () => {
    const faults = faultsOf(name, 3, 200)
    assert.deepEqual(faults, faultsOf(name, 3, 200))
    assert.notDeepEqual(faults, faultsOf(name, 4, 200))
    for (let i = 1; i < faults.length; i++) {
      const calmMs = faults[i]!.atMs - faults[i - 1]!.atMs - faults[i - 1]!.ms
      assert.ok(calmMs >= 10_000 && calmMs <= 30_000, `${calmMs} ms of calm`)
    }
    assert.ok(faults.every(({ ms }) => ms >= 0 && ms <= 16_000))
    assert.deepEqual(new Set(faults.map(({ flood }) => flood)), new Set([true, false]))
  })

for (const name of ['freeze', 'cut', 'readonly', 'restart', 'pooler'] as const)
  test(`${name}: faults are shorter than two beats, between that and a lease, and longer than a lease`, () => {
    const lengths = faultsOf(name, 5, 200).map(({ ms }) => ms)
    for (const [min, max] of [
      [0, 6_000],
      [4_000, LEASE_MS],
      [LEASE_MS + 1, 16_000],
    ] as const)
      assert.ok(
        lengths.some((ms) => ms >= min && ms <= max),
        `none from ${min} to ${max} ms`,
      )
  })

for (const name of ['freeze', 'cut', 'skew'] as const)
  test(`${name}: meets one worker, several, all processes at once, and producers alone; never nobody`, () => {
    const met = faultsOf(name, 9, 300).map((fault) => {
      assert.ok('whom' in fault)
      const { workers, producers } = fault.whom
      for (const [seats, count] of [
        [workers, CAST.workers],
        [producers, CAST.producers],
      ] as const) {
        assert.equal(new Set(seats).size, seats.length)
        assert.ok(seats.every((seat) => Number.isInteger(seat) && seat >= 0 && seat < count))
      }
      return `${workers.length} ${producers.length}`
    })
    assert.deepEqual(new Set(met), new Set(['0 1', '1 0', '2 1', '4 3']))
    const places = faultsOf(name, 9, 300).flatMap((fault) => ('whom' in fault ? fault.whom.workers : []))
    assert.equal(new Set(places).size, CAST.workers)
  })

test('freeze: the first one is one worker, for longer than the lease, by every seed', () => {
  for (const seed of SEEDS) {
    const [first] = faultsOf('freeze', seed, 1)
    assert.ok(first?.act === 'freeze' && first.whom.workers.length === 1 && first.ms > LEASE_MS)
  }
})

for (const [name, ways] of [
  ['cut', CUT_WAYS],
  ['restart', RESTART_WAYS],
] as const)
  test(`${name}: every way comes once in each round, in another order by another seed`, () => {
    const orders = SEEDS.map((seed) =>
      faultsOf(name, seed, ways.length).map((fault) => ('way' in fault ? fault.way : '')),
    )
    for (const order of orders) assert.deepEqual(order.toSorted(), [...ways].sort())
    assert.ok(new Set(orders.map((order) => order[0])).size > 1)
  })

test('cut: what delays is the only one with a delay', () => {
  for (const fault of faultsOf('cut', 1, 100))
    assert.equal(fault.act === 'cut' && fault.delayMs > 0, 'way' in fault && fault.way === 'delay')
})

test('pooler: every way comes', () => {
  const ways = faultsOf('pooler', 2, 100).map((fault) => ('way' in fault ? fault.way : ''))
  assert.deepEqual(new Set(ways), new Set(POOLER_WAYS))
})

test('readonly: sessions stay or end, and all may write again or only new ones', () => {
  const seen = faultsOf('readonly', 2, 100).map(
    (fault) => fault.act === 'read-only' && `${fault.sessions} ${fault.back}`,
  )
  assert.deepEqual(new Set(seen), new Set(['stay all', 'stay new', 'end all', 'end new']))
})

test('skew: clocks are up to ten minutes off, both ways, from the start on and by jumps', () => {
  const jumps = faultsOf('skew', 2, 200).map((fault) => (fault.act === 'skew' ? fault.offsetMs : Number.NaN))
  const starts = SEEDS.map((seed) => firstSkewMs(seed, 'worker 0'))
  for (const offsets of [jumps, starts]) {
    assert.ok(offsets.every((ms) => Math.abs(ms) <= 600_000))
    assert.ok(Math.max(...offsets) > 300_000 && Math.min(...offsets) < -300_000)
  }
})

test('what spoils the server itself runs on a server of its own', () => {
  assert.deepEqual(
    FORM_NAMES.filter((name) => FORMS[name].ownServer),
    ['restart', 'readonly'],
  )
})

test('a call that was swallowed is made again early enough for the throughput to be back in time', () => {
  const connectMsMax = 5_000
  assert.ok(CALL_MS_MAX + connectMsMax <= BACK_MS_MAX)
})
