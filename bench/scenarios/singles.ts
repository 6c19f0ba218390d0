/** Singles: enqueue() one by one, each awaited, from one caller and from 64 at once. */
import type { Queue } from '../../src/index.js'
import { costed, costPerJob, ownCost } from '../cost.js'
import { type Figures, latencies, perSecond } from '../figures.js'
import { noop, payloadOf } from '../kinds.js'
import { scenario } from '../scenario.js'
import type { Setting } from '../setting.js'

const CALLERS = 64
const WARM_UP = 2_000

export const singles = scenario({
  name: 'singles',
  summary: 'single enqueues, each awaited: one caller, and 64 at once',
  options: {
    jobs: {
      type: 'whole',
      default: 200_000,
      quick: 500,
      doc: 'jobs of the 64 callers; one caller enqueues at most 5,000',
    },
  },
  async *run(setting, { jobs }) {
    await byCallers(setting, CALLERS, Math.min(jobs, WARM_UP))
    yield await byCallers(setting, 1, Math.min(jobs, 5_000))
    yield await byCallers(setting, CALLERS, jobs)
  },
})

async function byCallers(setting: Setting, callers: number, jobs: number): Promise<Figures> {
  const place = setting.place()
  try {
    await (await place.open()).close()
    const { result, cost } = await costed(setting, place, () =>
      ownCost(async () => {
        const queue = await place.open()
        const measured = await enqueued(queue, callers, jobs)
        await queue.close()
        return measured
      }),
    )
    return {
      scenario: 'singles',
      jobs,
      callers,
      jobsPerSecond: perSecond(jobs, result.ms),
      ...latencies(result.samplesMs),
      perJob: costPerJob([cost], jobs, 'producer'),
    }
  } finally {
    await place.drop()
  }
}

async function enqueued(queue: Queue, callers: number, jobs: number): Promise<{ ms: number; samplesMs: number[] }> {
  const samplesMs: number[] = []
  let next = 0
  const caller = async (): Promise<void> => {
    while (next < jobs) {
      const sent = performance.now()
      await queue.enqueue(noop.all, payloadOf(next++))
      samplesMs.push(performance.now() - sent)
    }
  }
  const began = performance.now()
  await Promise.all(Array.from({ length: callers }, caller))
  return { ms: performance.now() - began, samplesMs }
}
