/** One drain: a fresh schema, filled by enqueueMany, emptied by worker processes that start together. Called by drain. */
import type { WorkerOptions } from '../src/index.js'
import { type Cost, costed } from './cost.js'
import { noops, type Records } from './kinds.js'
import type { Place, Setting } from './setting.js'
import { holdSnapshot } from './snapshot.js'
import type { WorkerChild } from './worker-child.js'
import type { Drained, Mark } from './worker-process.js'

export interface DrainLoad {
  jobs: number
  records: Records
  worker: WorkerOptions
  snapshot: 'none' | 'held'
}

export interface DrainRound {
  ms: number
  /** Time for the tenth of the jobs in the middle, and for the last one; of the processes together. */
  middleMs: number
  lastMs: number
  cost: Cost
}

export async function drainRound(setting: Setting, children: WorkerChild[], load: DrainLoad): Promise<DrainRound> {
  const place = setting.place()
  try {
    await (await place.open()).close()
    await setting.checkpoint()
    await filled(place, load)
    const held = load.snapshot === 'held' ? await holdSnapshot(setting, place) : undefined
    const { result, cost } = await costed(setting, place, () => drainedBy(children, place, load))
    await held?.release()
    await checked(place, load, result)
    return { ...timesOf(result, load.jobs), cost }
  } finally {
    await place.drop()
  }
}

async function filled(place: Place, { jobs, records }: DrainLoad): Promise<void> {
  const queue = await place.open()
  const results = await queue.enqueueMany(noops(jobs, records))
  await queue.close()
  const stored = results.filter(({ status }) => status === 'created').length
  if (stored !== jobs) throw new Error(`${jobs - stored} of ${jobs} jobs were not stored`)
  await place.sql('analyze :s.ready')
}

async function drainedBy(children: WorkerChild[], place: Place, load: DrainLoad) {
  await Promise.all(children.map((child) => child.open(place, load.worker)))
  const share = Math.ceil(load.jobs / children.length)
  const result = await Promise.all(children.map((child) => child.drain(share)))
  await Promise.all(children.map((child) => child.stop()))
  const sum = (of: (one: Drained) => number): number => result.reduce((total, one) => total + of(one), 0)
  return { result, client: { cpuUs: sum((one) => one.cpuUs), roundTrips: sum((one) => one.roundTrips) } }
}

async function checked(place: Place, { jobs, records }: DrainLoad, result: Drained[]): Promise<void> {
  const ran = result.reduce((sum, one) => sum + one.ran, 0)
  const [row] = await place.sql(
    'select (select count(*) from :s.ended where state = 1)::int as ended, (select count(*) from :s.ready)::int as ready',
  )
  const expected = records === 'all' ? jobs : 0
  if (ran !== jobs || row!.ended !== expected || row!.ready !== 0)
    throw new Error(`${ran} of ${jobs} jobs ran, ${row!.ended} have a record, ${row!.ready} still wait`)
}

function timesOf(result: Drained[], jobs: number): Omit<DrainRound, 'cost'> {
  const began = Math.min(...result.map(({ beganUs }) => beganUs))
  const ended = Math.max(...result.map(({ endedUs }) => endedUs))
  const at = (share: number): number => whenRan(result, share * jobs)
  return {
    ms: (ended - began) / 1_000,
    middleMs: (at(0.55) - at(0.45)) / 1_000,
    lastMs: (at(1) - at(0.9)) / 1_000,
  }
}

/** The instant at which the processes together had started so many jobs, between their marks as the crow flies. */
export function whenRan(result: readonly { marks: readonly Mark[] }[], jobs: number): number {
  const marks = result.flatMap(({ marks: own }) =>
    own.slice(1).map((mark, at) => ({ ran: mark.ran - own[at]!.ran, fromUs: own[at]!.atUs, toUs: mark.atUs })),
  )
  const ranAt = (us: number): number =>
    marks.reduce((sum, { ran, fromUs, toUs }) => sum + ran * share(us, fromUs, toUs), 0)
  let low = Math.min(...marks.map(({ fromUs }) => fromUs))
  let high = Math.max(...marks.map(({ toUs }) => toUs))
  while (high - low > 1) {
    const middle = (low + high) / 2
    if (ranAt(middle) >= jobs) high = middle
    else low = middle
  }
  return high
}

function share(us: number, fromUs: number, toUs: number): number {
  return Math.min(1, Math.max(0, (us - fromUs) / (toUs - fromUs)))
}
