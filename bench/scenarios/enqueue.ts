/** Bulk enqueue: one call of enqueueMany, committed in batches; beside it, in turns, the bound. */
import { BOUND_ENQUEUE, enqueueBound } from '../bound.js'
import { type Cost, costed, costPerJob, ownCost } from '../cost.js'
import { median, perSecond, ratio } from '../figures.js'
import { noops } from '../kinds.js'
import { interleaved } from '../rounds.js'
import { scenario } from '../scenario.js'
import type { Setting } from '../setting.js'

/** Connections, plans and compiled code are there before the clock starts. */
const WARM_UP = 5_000

export const enqueue = scenario({
  name: 'enqueue',
  summary: 'bulk enqueue: enqueueMany, beside what bare inserts reach on the same server',
  options: {
    jobs: { type: 'whole', default: 200_000, quick: 2_000, doc: 'jobs of a round' },
    rounds: { type: 'whole', default: 3, quick: 2, doc: 'rounds, in turns with the bound; medians count' },
  },
  async *run(setting, { jobs, rounds }) {
    await enqueued(setting, Math.min(jobs, WARM_UP))
    const { firsts: bounds, seconds: products } = await interleaved(
      rounds,
      () => enqueueBound(setting, jobs),
      () => enqueued(setting, jobs),
    )
    const rate = perSecond(jobs, median(products.map(({ ms }) => ms)))
    const bound = perSecond(jobs, median(bounds.map(({ ms }) => ms)))
    const costs = ({ cost }: { cost: Cost }): Cost => cost
    yield {
      scenario: 'enqueue',
      jobs,
      jobsPerSecond: rate,
      ratioToBound: ratio(rate, bound),
      boundJobsPerSecond: bound,
      rounds,
      jobsPerSecondByRound: products.map(({ ms }) => perSecond(jobs, ms)),
      boundJobsPerSecondByRound: bounds.map(({ ms }) => perSecond(jobs, ms)),
      perJob: costPerJob(products.map(costs), jobs * rounds, 'producer'),
      boundPerJob: costPerJob(bounds.map(costs), jobs * rounds, 'client'),
      boundIs: BOUND_ENQUEUE,
    }
  },
})

async function enqueued(setting: Setting, jobs: number): Promise<{ ms: number; cost: Cost }> {
  const place = setting.place()
  try {
    await (await place.open()).close()
    await setting.checkpoint()
    const { result, cost } = await costed(setting, place, () =>
      ownCost(async () => {
        const queue = await place.open()
        const began = performance.now()
        const results = await queue.enqueueMany(noops(jobs))
        const ms = performance.now() - began
        await queue.close()
        return { ms, stored: results.filter(({ status }) => status === 'created').length }
      }),
    )
    if (result.stored !== jobs) throw new Error(`${jobs - result.stored} of ${jobs} jobs were not stored`)
    return { ms: result.ms, cost }
  } finally {
    await place.drop()
  }
}
