/**
 * Handlers of 0, 1 and 20 ms in one queue and one worker: how much of its slots are used when all of it is there at once,
 * and how long jobs wait at half of that, the quick ones among the slow.
 */
import { costed, costPerJob } from '../cost.js'
import { type Figures, latencies, perSecond, ratio } from '../figures.js'
import { payloadOf, waits } from '../kinds.js'
import { offeredRun } from '../offered-run.js'
import { figuresOfOffered } from '../open-loop.js'
import { scenario } from '../scenario.js'
import type { Place, Setting } from '../setting.js'
import { withChildren } from '../worker-child.js'

const SLOTS = 10 // of a worker with default options
const MEAN_MS = waits.reduce((sum, { ms }) => sum + ms, 0) / waits.length
/** What the slots could do if nothing but handlers took time. */
const IDEAL_PER_SECOND = (SLOTS * 1_000) / MEAN_MS
const OFFERED_SHARE = 0.5
const SEED = 1

export const mixed = scenario({
  name: 'mixed',
  summary: 'handlers of 0, 1 and 20 ms together: use of the slots, and waits at half of the load',
  options: {
    jobs: { type: 'whole', default: 20_000, quick: 300, doc: 'jobs, a third of each' },
    seconds: { type: 'whole', default: 20, quick: 1, doc: 'how long jobs are offered' },
  },
  async *run(setting, { jobs, seconds }) {
    yield await drained(setting, jobs)
    yield await withLoad(setting, seconds)
  },
})

function kindOf(n: number) {
  return waits[Math.abs(n) % waits.length]!
}

async function drained(setting: Setting, jobs: number): Promise<Figures> {
  const place = setting.place()
  try {
    await enqueued(place, jobs)
    const { result, cost } = await withChildren(1, ([child]) =>
      costed(setting, place, async () => {
        await child!.open(place)
        const drain = await child!.drain(jobs)
        await child!.stop()
        return { result: drain, client: drain }
      }),
    )
    if (result.ran !== jobs) throw new Error(`${result.ran} of ${jobs} jobs ran`)
    const rate = perSecond(jobs, (result.endedUs - result.beganUs) / 1_000)
    return {
      scenario: 'mixed',
      jobs,
      jobsPerSecond: rate,
      load: 'all at once',
      ratioToIdeal: ratio(rate, IDEAL_PER_SECOND),
      idealJobsPerSecond: Math.round(IDEAL_PER_SECOND),
      handlersMs: waits.map(({ ms }) => ms),
      worker: `default options (${SLOTS} slots)`,
      perJob: costPerJob([cost], jobs, 'worker'),
    }
  } finally {
    await place.drop()
  }
}

async function enqueued(place: Place, jobs: number): Promise<void> {
  const queue = await place.open()
  const results = await queue.enqueueMany(Array.from({ length: jobs }, (_, n) => kindOf(n).kind.with(payloadOf(n))))
  await queue.close()
  if (results.some(({ status }) => status !== 'created')) throw new Error('not all jobs were stored')
}

async function withLoad(setting: Setting, seconds: number): Promise<Figures> {
  const load = { perSecond: Math.round(IDEAL_PER_SECOND * OFFERED_SHARE), seconds, seed: SEED }
  const { perJob, ...run } = await offeredRun(
    setting,
    load,
    (queue, n) => queue.enqueue(kindOf(n).kind, payloadOf(n)),
    async () => {},
  )
  return {
    scenario: 'mixed',
    load: 'offered',
    ...figuresOfOffered(load, run),
    byHandler: Object.fromEntries(
      waits.map(({ ms }, at) => [`${ms}Ms`, latencies(run.latencyMs.filter((_, n) => n % waits.length === at))]),
    ),
    worker: `default options (${SLOTS} slots)`,
    perJob,
  }
}
