/** For each rule that the clean history has nothing for: one that it judges and that keeps it, and one that breaks it. */
import type { Verdict } from '../../../src/testing/checker/check.js'
import { clean } from './clean.js'
import { BEGUN, DURING, judged, OUTAGE, OVER } from './disturbed.js'
import { AGEING, FIRST_DUE, type Job, MINUTE_MS, NO_LOWER, overtakenBy, Queue, shared, TURNS } from './queue.js'
import type { Told } from './told.js'

export interface SceneBreak {
  rule: string
  kept: () => Verdict
  broken: () => Verdict
}

const TWO: readonly Job[] = [
  [4, 1_000],
  [5, 2_000],
]

/** Worker 3 is taken over at 16 s, and its process lives. */
function takenOver(beatenAt: number, more: (told: Told) => Told = (told) => told): Verdict {
  const told = clean()
    .withoutAll((event) => event.what === 'worker' && event.worker === 'worker-3' && event.at > beatenAt)
    .add('worker-1', { at: 16_000, what: 'took over', worker: 'worker-1', deadWorker: 'worker-3', jobs: 1 })
  return more(told).checked()
}

function blocked(told: Told): Told {
  return told.add('worker-3', { at: 17_000, what: 'worker', worker: 'worker-3', is: 'blocked', ms: 16_500 })
}

/** An outage that one worker does not come back from; it is taken over so long after. */
function afterOutage(ms: number): Verdict {
  return judged({
    ...OUTAGE,
    waiting: 0,
    beats: (worker, at) => !DURING(at) && (worker !== 'w3' || at < BEGUN),
    idle: (worker, at) => worker === 'w3' || DURING(at),
    takeOverAt: OVER + ms,
  })
}

/** So many jobs run at once, each in a worker of its own. */
function sideBySide(count: number): Told {
  const told = clean()
  for (let n = 0; n < count; n++)
    told.ran(30 + n, `worker-${n + 1}`, 9_000 + n, { end: 'effect', endAt: 9_500, settled: 'completed', claim: 'told' })
  return told
}

/** So many jobs of one tenant are claimed before the only one of another. */
function afterFlood(count: number): Queue {
  const queue = shared([...Array.from({ length: count }, () => ({ tenant: 'flood' })), { tenant: 'other' }])
  for (let n = 0; n <= count; n++) queue.claim('a', 3_000 + 100 * n, [n])
  return queue
}

export const BREAKS_OF_SCENES: readonly SceneBreak[] = [
  {
    rule: 'nobody alive is taken over',
    kept: () => takenOver(2_000, blocked),
    broken: () => takenOver(16_000),
  },
  {
    rule: 'whoever can beat keeps what it holds',
    kept: () => takenOver(2_000, blocked),
    broken: () => takenOver(2_000),
  },
  {
    rule: 'nobody judges right after an outage',
    kept: () => afterOutage(11_000),
    broken: () => afterOutage(4_000),
  },
  {
    rule: 'throughput comes back',
    kept: () => judged({}),
    broken: () => judged({ idle: (worker, at) => worker === 'w3' && at >= BEGUN }),
  },
  {
    rule: 'whoever is up consumes',
    kept: () => judged({}),
    broken: () => judged({ idle: (worker) => worker === 'w3' }),
  },
  {
    rule: 'a queue keeps to its limit',
    kept: () => sideBySide(2).checked({ limits: { one: 2 } }),
    broken: () => sideBySide(2).checked({ limits: { one: 1 } }),
  },
  {
    rule: TURNS,
    kept: () => afterFlood(2).verdict(),
    broken: () => afterFlood(3).verdict(),
  },
  {
    rule: FIRST_DUE,
    kept: () => new Queue([TWO[0]!, [4, 2_000]]).claim('a', 3_000, [0]).claim('a', 3_100, [1]).verdict(),
    broken: () => new Queue([TWO[0]!, [4, 2_000]]).claim('a', 3_000, [1]).claim('a', 3_100, [0]).verdict(),
  },
  {
    rule: NO_LOWER,
    kept: () => new Queue(TWO, 'strict').claim('a', 3_000, [1]).claim('a', 3_100, [0]).verdict(),
    broken: () => new Queue(TWO, 'strict').claim('a', 3_000, [0]).claim('a', 3_100, [1]).verdict(),
  },
  {
    rule: AGEING,
    kept: () => overtakenBy(40, 1_000 + MINUTE_MS - 10).verdict(),
    broken: () => overtakenBy(40).verdict(),
  },
]
