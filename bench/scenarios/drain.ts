/**
 * Drain: worker processes run no-op jobs to the end. In turns with the bound; or, with a snapshot held, in turns with
 * rounds without one. The processes are warm: they have drained a few thousand jobs before the clock starts.
 */

import type { WorkerOptions } from '../../src/index.js'
import { BOUND_DRAIN, drainBound } from '../bound.js'
import { costPerJob } from '../cost.js'
import { type DrainRound, drainRound } from '../drain-round.js'
import { type Figures, median, perSecond, ratio } from '../figures.js'
import { RECORDS, type Records } from '../kinds.js'
import { interleaved } from '../rounds.js'
import { scenario } from '../scenario.js'
import type { Setting } from '../setting.js'
import { type WorkerChild, withChildren } from '../worker-child.js'

const WARM_UP = 5_000
/** Defaults are for work that waits a little; these are for no-op jobs on two cores. */
const TUNED: WorkerOptions & { concurrency: number } = { concurrency: 100, prefetchWindow: '500ms' }
const TUNED_PROCESSES = 2
const JOBS = 300_000
const HELD_JOBS = 500_000

interface Load {
  jobs: number
  rounds: number
  records: Records
  processes: number
  worker: WorkerOptions
}

export const drain = scenario({
  name: 'drain',
  summary: 'no-op jobs run to the end, beside what bare deletes reach; tuned; under an old snapshot',
  options: {
    jobs: {
      type: 'whole',
      quick: 2_000,
      doc: 'jobs of a round (300,000, so that the start weighs little; with a snapshot held 500,000)',
    },
    rounds: { type: 'whole', default: 3, quick: 2, doc: 'rounds, in turns with the bound; medians count' },
    records: { type: 'choice', choices: RECORDS, default: 'all', doc: 'which ended jobs leave a record' },
    tuned: {
      type: 'flag',
      doc: `${TUNED_PROCESSES} processes with concurrency ${TUNED.concurrency} and a prefetch window of ${TUNED.prefetchWindow}, in place of one with the defaults`,
    },
    holdSnapshot: { type: 'flag', doc: 'under a REPEATABLE READ snapshot that is as old as the first job' },
  },
  variants: [{}, { tuned: undefined }, { records: 'failures' }, { records: 'none' }, { 'hold-snapshot': undefined }],
  async *run(setting, { jobs, rounds, records, tuned, holdSnapshot }) {
    const load: Load = {
      jobs: jobs ?? (holdSnapshot ? HELD_JOBS : JOBS),
      rounds,
      records,
      processes: tuned ? TUNED_PROCESSES : 1,
      worker: tuned ? TUNED : {},
    }
    const lines = await withChildren(load.processes, async (children) => {
      await round(setting, children, { ...load, jobs: Math.min(load.jobs, WARM_UP) })
      return holdSnapshot ? underSnapshot(setting, children, load) : besideBound(setting, children, load)
    })
    yield* lines
  },
})

function round(setting: Setting, children: WorkerChild[], load: Load, snapshot: 'none' | 'held' = 'none') {
  return drainRound(setting, children, { ...load, snapshot })
}

async function besideBound(setting: Setting, children: WorkerChild[], load: Load): Promise<Figures[]> {
  const { firsts: bounds, seconds: products } = await interleaved(
    load.rounds,
    () => drainBound(setting, load.jobs, load.processes),
    () => round(setting, children, load),
  )
  const { jobs, rounds } = load
  const bound = perSecond(jobs, median(bounds.map(({ ms }) => ms)))
  const figures = figuresOf(load, products)
  return [
    {
      ...figures,
      ratioToBound: ratio(figures.jobsPerSecond!, bound),
      boundJobsPerSecond: bound,
      boundJobsPerSecondByRound: bounds.map(({ ms }) => perSecond(jobs, ms)),
      boundPerJob: costPerJob(
        bounds.map(({ cost }) => cost),
        jobs * rounds,
        'client',
      ),
      boundIs: BOUND_DRAIN,
    },
  ]
}

async function underSnapshot(setting: Setting, children: WorkerChild[], load: Load): Promise<Figures[]> {
  const { firsts: unheld, seconds: held } = await interleaved(
    load.rounds,
    () => round(setting, children, load),
    () => round(setting, children, load, 'held'),
  )
  const without = { ...figuresOf(load, unheld), snapshot: 'none', ratioLastToMiddle: lastToMiddle(unheld) }
  const under = figuresOf(load, held)
  const ratioToUnheld = ratio(under.jobsPerSecond!, without.jobsPerSecond!)
  return [without, { ...under, snapshot: 'held', ratioToUnheld, ratioLastToMiddle: lastToMiddle(held) }]
}

/** Rate of the last tenth of the jobs over that of the tenth in the middle: 1 where it does not slow down. */
function lastToMiddle(rounds: DrainRound[]): number {
  return ratio(median(rounds.map(({ middleMs }) => middleMs)), median(rounds.map(({ lastMs }) => lastMs)))
}

function figuresOf({ jobs, records, processes, worker }: Load, rounds: DrainRound[]): Figures {
  return {
    scenario: 'drain',
    jobs,
    jobsPerSecond: perSecond(jobs, median(rounds.map(({ ms }) => ms))),
    processes,
    worker: Object.keys(worker).length === 0 ? 'default options' : { ...worker },
    recordsKept: records,
    rounds: rounds.length,
    jobsPerSecondByRound: rounds.map(({ ms }) => perSecond(jobs, ms)),
    perJob: costPerJob(
      rounds.map(({ cost }) => cost),
      jobs * rounds.length,
      'worker',
    ),
  }
}
