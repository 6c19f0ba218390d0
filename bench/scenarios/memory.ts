/**
 * Memory: one worker process over millions of jobs. Its resident memory at each tenth of the way, and what is still
 * active in it after it was stopped and its queue closed.
 */
import { type Figures, perSecond, significant } from '../figures.js'
import { fill } from '../fill.js'
import { scenario } from '../scenario.js'
import type { Place } from '../setting.js'
import { type WorkerChild, withChildren } from '../worker-child.js'
import type { Drained, Leftovers } from '../worker-process.js'

const TENTHS = 10
const BYTES_IN_MB = 1_048_576

export const memory = scenario({
  name: 'memory',
  summary: 'resident memory of a worker over 2M jobs, and what is active after its stop',
  options: { jobs: { type: 'whole', default: 2_000_000, quick: 5_000, doc: 'jobs that it runs' } },
  async *run(setting, { jobs }) {
    const place = setting.place()
    try {
      await fill(setting, place, { ready: jobs })
      yield await withChildren(1, ([child]) => drained(place, child!, jobs))
    } finally {
      await place.drop()
    }
  },
})

async function drained(place: Place, child: WorkerChild, jobs: number): Promise<Figures> {
  await child.open(place)
  const result = await child.drain(jobs)
  await child.stop()
  const left = await child.leftovers()
  if (result.ran !== jobs) throw new Error(`${result.ran} of ${jobs} jobs ran`)
  return figuresOf(jobs, result, left)
}

function figuresOf(jobs: number, { beganUs, endedUs, marks }: Drained, activeAtEnd: Leftovers): Figures {
  const rssMb = tenths(marks).map(({ rssBytes }) => significant(rssBytes / BYTES_IN_MB, 4))
  return {
    scenario: 'memory',
    jobs,
    jobsPerSecond: perSecond(jobs, (endedUs - beganUs) / 1_000),
    rssMb,
    rssMaxMb: Math.max(...marks.map(({ rssBytes }) => significant(rssBytes / BYTES_IN_MB, 4))),
    // The first tenth is when code is compiled and the heap takes its size.
    growthMb: significant(rssMb.at(-1)! - rssMb[1]!, 3),
    rssIs: `of the process, at the begin and at each of ${TENTHS} tenths of the jobs`,
    activeAtEnd,
    activeIs:
      'timers, sockets, threads and listeners beyond those before the start, after stop and close; none is right',
  }
}

/** The first mark, and those at each tenth of the way. */
function tenths<T>(marks: readonly T[]): T[] {
  const last = marks.length - 1
  return Array.from({ length: TENTHS + 1 }, (_, tenth) => marks[Math.round((tenth * last) / TENTHS)]!)
}
