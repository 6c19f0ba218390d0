/**
 * Ageing: critical jobs come in as fast as the workers can run them, or two or three times as fast, and low ones wait beside
 * them. How many starts a low one waits, counted from the log of starts.
 */

import { TIERS } from '../../src/core/job.js'
import { prefetchBeyond } from '../../src/core/prefetch.js'
import { PASSED_OVER_INTERVAL } from '../../src/core/priority.js'
import type { JobItem, Queue } from '../../src/index.js'
import { WORKER_OPTIONS } from '../../src/worker/options.js'
import { nowUs } from '../clock.js'
import { type Figures, perSecond } from '../figures.js'
import { payloadOf, waits } from '../kinds.js'
import { arrivals, offer } from '../open-loop.js'
import { type Passing, passing } from '../passed-over.js'
import { scenario } from '../scenario.js'
import type { Place, Setting } from '../setting.js'
import { startsOf } from '../starts.js'
import { type WorkerChild, withChildren } from '../worker-child.js'

const WORKERS = 2
const SLOTS = 5
const WORK = waits[2]
/** What the slots could start if nothing but handlers took time: no worker does, so once this is more than enough. */
const IDEAL_PER_SECOND = (WORKERS * SLOTS * 1_000) / WORK.ms
/** What one claim may bring at most, by the rules of the worker. */
const CLAIM_MAX =
  SLOTS +
  prefetchBeyond({
    quickSlots: SLOTS,
    meanMs: WORK.ms,
    windowMs: WORKER_OPTIONS.prefetchWindow.default,
    max: 2 * WORKER_OPTIONS.claimBatch.default,
  })
/** Critical jobs that wait at the begin, so that the workers never idle: what they start in a second. */
const AHEAD = IDEAL_PER_SECOND
/** One low job comes in for so many that the workers could start: fewer than they start of them. */
const LOW_EACH = 20
const SEED = 1

export interface Load {
  overload: number
  seconds: number
  low: number
}

export const ageing = scenario({
  name: 'ageing',
  summary: 'workers saturated by critical jobs: how many starts low ones wait (--overload 2)',
  options: {
    overload: {
      type: 'whole',
      default: 1,
      doc: 'critical jobs come in so many times as fast as workers can start them',
    },
    seconds: { type: 'whole', default: 60, quick: 2, doc: 'for how long' },
    low: { type: 'whole', default: 500, quick: 20, doc: 'low jobs that wait at the begin' },
  },
  variants: [{ overload: '1' }, { overload: '2' }, { overload: '3' }],
  async *run(setting, load) {
    yield await saturated(setting, load)
  },
})

async function saturated(setting: Setting, load: Load): Promise<Figures> {
  const place = setting.place()
  const queue = await place.open()
  try {
    return await withChildren(WORKERS, async (children) => {
      await Promise.all(children.map((child) => child.open(place, { concurrency: SLOTS }, 'keep')))
      return measured({ place, queue, children }, load)
    })
  } finally {
    await place.drop()
  }
}

interface Stage {
  place: Place
  queue: Queue
  children: WorkerChild[]
}

/** Low jobs have the numbers from zero on, the critical ones those below. */
async function measured({ place, queue, children }: Stage, load: Load): Promise<Figures> {
  const { overload, seconds } = load
  const lows = load.low + Math.round((IDEAL_PER_SECOND / LOW_EACH) * seconds)
  const readyUs = new Float64Array(lows)
  await stored(queue, AHEAD, (n) => WORK.kind.with(payloadOf(-1 - n), { priority: 'critical' }))
  await stored(queue, load.low, (n) => WORK.kind.with(payloadOf(n), { priority: 'low' }))
  readyUs.fill(nowUs(), 0, load.low)
  await Promise.all(children.map((child) => child.start()))
  // Each low one comes at the instant of a critical one, as far from the next as from the last.
  const plan = arrivals({ perSecond: IDEAL_PER_SECOND * overload, seconds, seed: SEED })
  const each = LOW_EACH * overload
  const { beganUs } = await offer(plan, async (n) => {
    const sent = queue.enqueue(WORK.kind, payloadOf(-1 - AHEAD - n), { priority: 'critical' })
    if (n % each > 0) return sent
    await queue.enqueue(WORK.kind, payloadOf(load.low + n / each), { priority: 'low' })
    readyUs[load.low + n / each] = nowUs()
    return sent
  })
  const starts = await startsOf(children)
  const left = await waitingOf(place, 'critical')
  if (left === 0) throw new Error('the critical jobs did not saturate the workers')
  const ms = (starts.at(-1)! - beganUs) / 1_000
  return ageingFigures({ load, ms, criticalLeft: left, starts: starts.length / 2, low: waitsOf(starts, readyUs) })
}

/** `starts`: number and instant in turns. */
function waitsOf(starts: Float64Array, readyUs: Float64Array): Passing {
  const startUs = new Float64Array(readyUs.length).fill(Number.NaN)
  for (let at = 0; at < starts.length; at += 2) if (starts[at]! >= 0) startUs[starts[at]!] = starts[at + 1]!
  return passing({ readyUs, startUs, startsUs: starts.filter((_, at) => at % 2 === 1) }, PASSED_OVER_INTERVAL)
}

async function stored(queue: Queue, count: number, job: (n: number) => JobItem): Promise<void> {
  const results = await queue.enqueueMany(Array.from({ length: count }, (_, n) => job(n)))
  if (results.some(({ status }) => status !== 'created')) throw new Error('not all jobs were stored')
}

async function waitingOf(place: Place, priority: keyof typeof TIERS): Promise<number> {
  const [row] = await place.sql('select count(*)::int as n from :s.ready where lane % 16 = $1', [TIERS[priority]])
  return row!.n as number
}

export interface Measured {
  load: Load
  /** From the begin of the load to the last start. */
  ms: number
  criticalLeft: number
  starts: number
  low: Passing
}

export function ageingFigures({ load, ms, criticalLeft, starts, low }: Measured): Figures {
  const bound = WORKERS * CLAIM_MAX
  return {
    scenario: 'ageing',
    jobs: starts,
    jobsPerSecond: perSecond(starts, ms),
    overload: load.overload,
    seconds: load.seconds,
    maxStartsBetweenLow: low.maxStartsBetween,
    workers: WORKERS,
    claimMax: CLAIM_MAX,
    claimMaxIs: 'the slots of a worker, and what will start in them within the prefetch window',
    maxStartsBeyond: low.maxStartsBeyond,
    bound,
    boundIs: `a low job waits at most ${PASSED_OVER_INTERVAL} starts for itself and each one before it, and one claim of each worker: the starts beyond are ${bound} at most`,
    holds: low.maxStartsBeyond <= bound,
    lowStarted: low.started,
    criticalLeft,
    offeredPerSecond: IDEAL_PER_SECOND * load.overload,
    worker: `${WORKERS} processes of ${SLOTS} slots, handlers of ${WORK.ms} ms`,
    counted: 'from the answer to the enqueue of a low job to its start, over the starts of all workers',
    arrivals: `at independent instants, seed ${SEED}`,
  }
}
