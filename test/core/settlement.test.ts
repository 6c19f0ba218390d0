import { strict as assert } from 'node:assert'
import { test } from 'node:test'
import fc from 'fast-check'
import { fingerprintOf } from '../../src/core/fingerprint.js'
import { emptyHistory, HISTORY_ENTRIES_MAX, type JobHistory, type JobSpec, SPEC_DEFAULTS } from '../../src/core/job.js'
import {
  type Attempt,
  type Crash,
  type Fate,
  fateOfCrash,
  fateOfOutcome,
  type Outcome,
} from '../../src/core/settlement.js'

const NOW_MS = 1_800_000_000_000
const ERROR = { name: 'Error', message: 'it broke' }
const THREW: Outcome = { type: 'threw', error: ERROR, ranMs: 100 }
const CRASH: Crash = { worker: 'dead', started: true, alone: false, cancelled: false }

function attempt(history: JobHistory | null = null, spec: Partial<JobSpec> = {}): Attempt {
  return { spec: { ...SPEC_DEFAULTS, ...spec }, history, worker: 'me', nowMs: NOW_MS, random: 0.5 }
}

/** The history of a fate that must have one. */
function historyOf(fate: Fate): JobHistory {
  assert(fate.history, `${fate.to} without a history`)
  return fate.history
}

/** The same thing again and again, until the job ends or `most` is reached. */
function repeat(most: number, spec: Partial<JobSpec>, next: (attempt: Attempt, n: number) => Fate): Fate[] {
  const fates: Fate[] = []
  for (let n = 0; n < most; n++) {
    const fate = next(attempt(fates.at(-1)?.history ?? null, spec), n)
    fates.push(fate)
    if (fate.to !== 'ready' && fate.to !== 'delayed') break
  }
  return fates
}

test('a job that always fails is dead after exactly its attempts', () => {
  for (const attempts of [1, 2, 6, 100]) {
    const fates = repeat(1_000, { attempts }, (one) => fateOfOutcome(one, THREW))
    assert.equal(fates.length, attempts)
    const last = fates.at(-1)!
    assert(last.to === 'dead' && last.reason === 'failed')
    assert.equal(last.history.attempts, attempts)
    for (const fate of fates.slice(0, -1)) assert.equal(fate.to, 'delayed')
  }
})

test('each failure carries its fingerprint, whoever judged it; what is no failure of the handler carries none', () => {
  const first = historyOf(fateOfOutcome(attempt(), THREW))
  const other = { ...THREW, error: { name: 'Error', message: 'it broke 7 times' } }
  const second = historyOf(fateOfOutcome(attempt(first), other))
  const third = historyOf(fateOfOutcome(attempt(second), { type: 'snoozed', delayMs: 5, ranMs: 1 }))
  const fourth = historyOf(fateOfCrash(attempt(third), CRASH))
  const last = fateOfOutcome(attempt(fourth), { type: 'rejected', error: ERROR, ranMs: 1 })
  const prints = historyOf(last).entries.map(({ fingerprint }) => fingerprint)
  const [broke, times] = [fingerprintOf(ERROR), fingerprintOf(other.error)]
  assert.notEqual(broke, times)
  assert.deepEqual(prints, [broke, times, undefined, undefined, broke])
})

test('throws, time-outs and retries on request use the same attempts', () => {
  const outcomes: Outcome[] = [
    THREW,
    { type: 'timed out', error: ERROR, ranMs: 300_000 },
    { type: 'retry after', delayMs: 5, error: ERROR, ranMs: 1 },
  ]
  const fates = repeat(100, { attempts: 6 }, (one, n) => fateOfOutcome(one, outcomes[n % 3]!))
  assert.equal(fates.length, 6)
  const words = historyOf(fates.at(-1)!).entries.map(({ outcome }) => outcome)
  assert.deepEqual(words, ['failed', 'timed out', 'failed', 'failed', 'timed out', 'failed'])
})

test('a failure waits for its backoff, or for what the handler asked for', () => {
  const plain = fateOfOutcome(attempt(), THREW)
  assert(plain.to === 'delayed' && plain.delayMs === 2_000 && !plain.suspect)
  assert.equal(historyOf(plain).entries[0]!.delayMs, 2_000)
  const asked = fateOfOutcome(attempt(), { type: 'retry after', delayMs: 0, error: ERROR, ranMs: 1 })
  assert(asked.to === 'delayed' && asked.delayMs === 0)
  const own = fateOfOutcome(attempt(), { ...THREW, delayMs: 77 })
  assert(own.to === 'delayed' && own.delayMs === 77)
  const third = fateOfOutcome(attempt({ ...emptyHistory(), attempts: 2 }), THREW)
  assert(third.to === 'delayed' && third.delayMs === 8_000)
})

test('a job that was never in trouble completes without a story', () => {
  const fate = fateOfOutcome(attempt(), { type: 'returned', ranMs: 5, result: '1' })
  assert.deepEqual(fate, { to: 'completed', history: null, result: '1' })
})

test('a job that had been in trouble completes with its story', () => {
  const failed = historyOf(fateOfOutcome(attempt(), THREW))
  const fate = fateOfOutcome(attempt(failed), { type: 'returned', ranMs: 5 })
  assert.equal(fate.to, 'completed')
  assert.deepEqual(
    historyOf(fate).entries.map(({ outcome, attempt }) => [outcome, attempt]),
    [
      ['failed', 1],
      ['completed', 2],
    ],
  )
})

test('snoozes use no attempt, however many', () => {
  const fates = repeat(500, { attempts: 1 }, (one) => fateOfOutcome(one, { type: 'snoozed', delayMs: 9, ranMs: 1 }))
  assert.equal(fates.length, 500)
  const { attempts, snoozes } = historyOf(fates.at(-1)!)
  assert.deepEqual([attempts, snoozes], [0, 500])
})

test('what is given back before it started has no story; what was aborted has one and no attempt used', () => {
  const unstarted = fateOfOutcome(attempt(), { type: 'given back', note: 'shutdown' })
  assert.deepEqual(unstarted, { to: 'ready', suspect: false, history: null })
  const aborted = fateOfOutcome(attempt(), { type: 'given back', note: 'shutdown', ranMs: 25_000 })
  const history = historyOf(aborted)
  assert.deepEqual([aborted.to, history.attempts, history.entries[0]!.outcome], ['ready', 0, 'given back'])
})

test('a rejected job is dead at once, an expired one without an attempt', () => {
  const rejected = fateOfOutcome(attempt(), { type: 'rejected', error: ERROR, ranMs: 1 })
  assert(rejected.to === 'dead' && rejected.reason === 'rejected' && rejected.history.attempts === 1)
  const expired = fateOfOutcome(attempt(), { type: 'expired' })
  assert(expired.to === 'dead' && expired.reason === 'expired' && expired.history.attempts === 0)
  assert.equal(expired.history.firstStartedAt, undefined)
})

test('an at-most-once job fails once', () => {
  const fate = fateOfOutcome(attempt(null, { delivery: 'at-most-once' }), THREW)
  assert(fate.to === 'dead' && fate.reason === 'failed')
})

test('the first crash costs no delay, and an attempt only where the start was reported', () => {
  const started = fateOfCrash(attempt(), CRASH)
  assert(started.to === 'ready' && !started.suspect)
  assert.deepEqual([started.history?.attempts, started.history?.crashes, started.history?.crashesAlone], [1, 1, 0])
  const unstarted = fateOfCrash(attempt(), { ...CRASH, started: false })
  assert(unstarted.to === 'ready')
  assert.deepEqual([unstarted.history?.attempts, unstarted.history?.crashes], [0, 1])
  assert.equal(unstarted.history?.firstStartedAt, undefined)
  assert.equal(unstarted.history?.entries[0]?.worker, 'dead')
})

test('from the second crash on a job is a suspect and waits for its backoff', () => {
  const fates = repeat(2, {}, (one) => fateOfCrash(one, { ...CRASH, started: false }))
  const second = fates[1]!
  assert(second.to === 'delayed' && second.suspect && second.delayMs === 2_000)
})

test('only two crashes while alone quarantine it, and only if it had started', () => {
  const neighbour = repeat(50, { attempts: 99 }, (one) => fateOfCrash(one, { ...CRASH, started: false }))
  assert.equal(neighbour.at(-1)!.to, 'delayed', 'a neighbour never is')
  const unstarted = repeat(50, { attempts: 99 }, (one) => fateOfCrash(one, { ...CRASH, started: false, alone: true }))
  assert.equal(historyOf(unstarted.at(-1)!).crashesAlone, 0)
  const poison = repeat(50, { attempts: 99 }, (one, n) => fateOfCrash(one, { ...CRASH, alone: n >= 2 }))
  const last = poison.at(-1)!
  assert.equal(poison.length, 4)
  assert(last.to === 'dead' && last.reason === 'poison')
})

test('a crash on the last attempt is the end', () => {
  const fate = fateOfCrash(attempt(null, { attempts: 1 }), CRASH)
  assert(fate.to === 'dead' && fate.reason === 'failed')
  const unstarted = fateOfCrash(attempt(null, { attempts: 1 }), { ...CRASH, started: false })
  assert.equal(unstarted.to, 'ready')
})

test('an age limit from the first start catches what counts cannot', () => {
  const ageLimitMs = 86_400_000
  const old = { ...emptyHistory(), attempts: 1, firstStartedAt: NOW_MS - ageLimitMs }
  const fate = fateOfCrash(attempt(old, { ageLimitMs }), { ...CRASH, started: false })
  assert(fate.to === 'dead' && fate.reason === 'poison')
  const young = { ...old, firstStartedAt: NOW_MS - ageLimitMs + 1 }
  assert.equal(fateOfCrash(attempt(young, { ageLimitMs }), { ...CRASH, started: false }).to, 'ready')
})

test('an at-most-once job that had started is lost in a crash; one that had not is given back', () => {
  const lost = fateOfCrash(attempt(null, { delivery: 'at-most-once' }), CRASH)
  assert(lost.to === 'dead' && lost.reason === 'lost' && lost.history.entries[0]!.outcome === 'lost')
  const unstarted = fateOfCrash(attempt(null, { delivery: 'at-most-once' }), { ...CRASH, started: false })
  assert.equal(unstarted.to, 'ready')
})

test('a crash does not bring back what somebody wants cancelled', () => {
  for (const started of [true, false])
    assert.equal(
      fateOfCrash(attempt(null, { delivery: 'at-most-once' }), { ...CRASH, started, cancelled: true }).to,
      'cancelled',
    )
})

test('failures after crashes keep the suspicion, and a return ends it', () => {
  const suspect = { ...emptyHistory(), crashes: 2 }
  const failed = fateOfOutcome(attempt(suspect), THREW)
  assert(failed.to === 'delayed' && failed.suspect)
  const back = fateOfOutcome(attempt(suspect), { type: 'given back', note: 'shutdown' })
  assert(back.to === 'ready' && back.suspect)
  assert.equal(fateOfOutcome(attempt(suspect), { type: 'returned', ranMs: 1 }).to, 'completed')
})

test('the first start is known from the running time, and stays', () => {
  const first = historyOf(fateOfOutcome(attempt(), THREW))
  assert.equal(first.firstStartedAt, NOW_MS - 100)
  const later = historyOf(fateOfOutcome({ ...attempt(first), nowMs: NOW_MS + 5_000 }, THREW))
  assert.equal(later.firstStartedAt, NOW_MS - 100)
})

test('a cancelled job that never ran has no start', () => {
  const fate = fateOfOutcome(attempt(), { type: 'cancelled' })
  assert.equal(historyOf(fate).firstStartedAt, undefined)
})

const outcomes: fc.Arbitrary<Outcome | Crash> = fc.oneof(
  fc.constant<Outcome>(THREW),
  fc.constant<Outcome>({ type: 'timed out', error: ERROR, ranMs: 5 }),
  fc.nat(1_000).map((delayMs): Outcome => ({ type: 'snoozed', delayMs, ranMs: 3 })),
  fc.constant<Outcome>({ type: 'given back', note: 'pause' }),
  fc.constant<Outcome>({ type: 'given back', note: 'pause', ranMs: 7 }),
  fc.record({ worker: fc.constant('dead'), started: fc.boolean(), alone: fc.boolean(), cancelled: fc.constant(false) }),
)

test('whatever happens: attempts are bounded, counts never fall, the history keeps its newest twenty', () => {
  fc.assert(
    fc.property(
      fc.array(outcomes, { minLength: 30, maxLength: 120 }),
      fc.integer({ min: 1, max: 40 }),
      (story, attempts) => {
        let before: JobHistory | null = null
        for (const event of story) {
          const one = attempt(before, { attempts })
          const frozen: string = JSON.stringify(before)
          const fate: Fate = 'type' in event ? fateOfOutcome(one, event) : fateOfCrash(one, event)
          assert.equal(JSON.stringify(before), frozen, 'the history it was given is not changed')
          const history: JobHistory | null = fate.history
          if (history !== null) assertGrown(before ?? emptyHistory(), history, attempts)
          if (fate.to === 'dead') return
          assert((history?.attempts ?? 0) < attempts, 'alive with all attempts used')
          if ('delayMs' in fate) assert(Number.isSafeInteger(fate.delayMs) && fate.delayMs >= 0)
          before = history
        }
      },
    ),
  )
})

function assertGrown(before: JobHistory, after: JobHistory, attempts: number): void {
  assert(after.attempts >= before.attempts && after.attempts <= Math.min(attempts, before.attempts + 1))
  assert(after.crashes >= before.crashes && after.snoozes >= before.snoozes && after.crashesAlone <= after.crashes)
  assert(after.entries.length <= HISTORY_ENTRIES_MAX)
  const kept = before.entries.slice(-(HISTORY_ENTRIES_MAX - 1))
  assert.deepEqual(after.entries.slice(0, -1), after === before ? before.entries.slice(0, -1) : kept)
}
