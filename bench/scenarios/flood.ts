/**
 * Flood: one tenant has a deep backlog, others add a job each second. How long those wait, beside the same in a queue that
 * has nothing else to do; and how two flooding tenants of different weight share the workers.
 */
import { WORKER_OPTIONS } from '../../src/worker/options.js'
import { type Figures, hundredths, latencies, percentile, ratio } from '../figures.js'
import { noop, payloadOf, waits } from '../kinds.js'
import { arrivals, fromPlan, type Load, offer } from '../open-loop.js'
import { scenario } from '../scenario.js'
import type { Place, Setting } from '../setting.js'
import { allEnded, startsOf, until } from '../starts.js'
import { type WorkerChild, withChildren } from '../worker-child.js'

const PROCESSES = 2
/** B to Z. */
const VICTIMS = 25
/** 20 ms: so slow that a flood lasts as long as the load, so quick that workers fetch ahead. */
const WORK = waits[2]
const WARM_UP_JOBS = 500
const WEIGHT = 3
/** So many times the p99 of an empty queue, and a run and a window: what the wait of the others is held to. */
const EMPTY_TIMES = 2
const WEIGHT_TOLERANCE = 0.05
const SEED = 1

interface Flood {
  waiting: number
  seconds: number
}

export const flood = scenario({
  name: 'flood',
  summary: 'one tenant has 200k jobs waiting: what the others wait; shares of two tenants by weight',
  options: {
    waiting: { type: 'whole', default: 200_000, quick: 5_000, doc: 'jobs of the flooding tenant' },
    seconds: { type: 'whole', default: 40, quick: 2, doc: `how long ${VICTIMS} others add a job each second` },
    weighted: { type: 'whole', default: 10_000, quick: 1_000, doc: 'starts by which shares are counted' },
  },
  async *run(setting, { waiting, seconds, weighted }) {
    const empty = await withOthers(setting, { waiting: 0, seconds })
    const flooded = await withOthers(setting, { waiting, seconds })
    yield floodFigures({ empty, flooded, weightRatio: await sharesByWeight(setting, weighted), waiting, weighted })
  },
})

export interface Waits {
  /** Of the others, from the planned arrival. */
  latencyMs: Float64Array
  lateMs: Float64Array
  /** Jobs of the flooding tenant: those that started with the others, and those that still waited after them. */
  ran: number
  left: number
}

/** The others' waits beside a backlog of the first tenant, or beside none. */
function withOthers(setting: Setting, { waiting, seconds }: Flood): Promise<Waits> {
  return inPlace(setting, async (place, children) => {
    const queue = await place.open()
    const load: Load = { perSecond: VICTIMS, seconds, seed: SEED }
    const plan = arrivals(load)
    // Workers learn how long a kind runs by some of the backlog, and where there is none by as many jobs.
    await enqueued(place, { tenant: 'a', count: waiting + WARM_UP_JOBS, kind: WORK.kind })
    await Promise.all(children.map((child) => child.start()))
    await Promise.all(children.map((child) => child.ran(WARM_UP_JOBS / PROCESSES / 2)))
    if (waiting === 0) await allEnded(place)
    const before = await startsOf(children)
    const { beganUs, lateMs } = await offer(plan, (n) => queue.enqueue(WORK.kind, payloadOf(n), { tenant: victim(n) }))
    let latencyMs = fromPlan(plan, beganUs, await startsOf(children))
    await until('jobs of other tenants still wait', async () => {
      latencyMs = fromPlan(plan, beganUs, await startsOf(children))
      return !latencyMs.some(Number.isNaN)
    })
    const left = await waitingOf(place, 'a')
    if (waiting > 0 && left === 0) throw new Error('the flood was over before the load; give more --waiting')
    const ran = (await startsOf(children)).length / 2 - before.length / 2 - plan.length
    return { latencyMs, lateMs, ran, left }
  })
}

/** Each of them comes once in as many arrivals: about once a second. */
function victim(n: number): string {
  return String.fromCharCode('b'.charCodeAt(0) + (n % VICTIMS))
}

/** Starts of the heavy tenant for each one of the light one, while both of them have jobs waiting. */
function sharesByWeight(setting: Setting, counted: number): Promise<number> {
  return inPlace(setting, async (place, children) => {
    // The heavy ones have numbers from zero on, the others below.
    await enqueued(place, { tenant: 'heavy', count: counted, kind: noop.all, weight: WEIGHT, from: 0 })
    await enqueued(place, { tenant: 'light', count: counted, kind: noop.all })
    await Promise.all(children.map((child) => child.start()))
    await allEnded(place)
    return heavyForEachLight(await startsOf(children), counted)
  })
}

/** `starts`: number and instant in turns; the heavy ones have numbers from zero on. */
export function heavyForEachLight(starts: Float64Array, counted: number): number {
  const first = starts.filter((_, at) => at % 2 === 0).slice(0, counted)
  const heavy = first.filter((n) => n >= 0).length
  return ratio(heavy, first.length - heavy)
}

interface Batch {
  tenant: string
  count: number
  kind: (typeof noop)['all']
  weight?: number
  /** Below zero where it is not given: nobody takes their numbers for those of a plan. */
  from?: number
}

async function enqueued(place: Place, { tenant, count, kind, weight = 1, from = -count }: Batch): Promise<void> {
  const queue = await place.open()
  const jobs = Array.from({ length: count }, (_, n) => kind.with(payloadOf(from + n)))
  const results = await queue.enqueueMany(jobs, { tenant, weight })
  if (results.some(({ status }) => status !== 'created')) throw new Error('not all jobs were stored')
}

async function waitingOf(place: Place, tenant: string): Promise<number> {
  const [row] = await place.sql(`select count(*)::int as n from :s.ready where spec ->> 'tenant' = $1`, [tenant])
  return row!.n as number
}

async function inPlace<T>(setting: Setting, work: (place: Place, children: WorkerChild[]) => Promise<T>): Promise<T> {
  const place = setting.place()
  await (await place.open()).close()
  try {
    return await withChildren(PROCESSES, async (children) => {
      await Promise.all(children.map((child) => child.open(place, {}, 'keep')))
      return work(place, children)
    })
  } finally {
    await place.drop()
  }
}

export interface Measured {
  empty: Waits
  flooded: Waits
  weightRatio: number
  waiting: number
  weighted: number
}

export function floodFigures({ empty, flooded, weightRatio, waiting, weighted }: Measured): Figures {
  const prefetchMs = WORKER_OPTIONS.prefetchWindow.default
  const [{ p99Ms: victimP99Ms, ...under }, { p99Ms: emptyP99Ms, ...without }] = [flooded, empty].map(({ latencyMs }) =>
    latencies(latencyMs),
  ) as [ReturnType<typeof latencies>, ReturnType<typeof latencies>]
  const boundMs = hundredths(EMPTY_TIMES * emptyP99Ms + WORK.ms + prefetchMs)
  return {
    scenario: 'flood',
    jobs: flooded.latencyMs.length,
    victimP99Ms,
    emptyP99Ms,
    boundMs,
    boundIs: `${EMPTY_TIMES} x the p99 of an empty queue + a run of ${WORK.ms} ms + the prefetch window of ${prefetchMs} ms`,
    weightRatio,
    weightBound: `${WEIGHT} within ${WEIGHT_TOLERANCE * 100} %, over ${weighted} starts`,
    holds: victimP99Ms <= boundMs && Math.abs(weightRatio - WEIGHT) <= WEIGHT * WEIGHT_TOLERANCE,
    victimP50Ms: under.p50Ms,
    victimP95Ms: under.p95Ms,
    victimMaxMs: hundredths(Math.max(...flooded.latencyMs)),
    emptyP50Ms: without.p50Ms,
    emptyP95Ms: without.p95Ms,
    producerLateP95Ms: hundredths(percentile(flooded.lateMs.toSorted(), 0.95)),
    victims: VICTIMS,
    waiting,
    floodRan: flooded.ran,
    floodLeft: flooded.left,
    worker: `${PROCESSES} processes, default options`,
    counted: 'from the planned arrival to the start of the handler',
    arrivals: `at independent instants, seed ${SEED}`,
  }
}
