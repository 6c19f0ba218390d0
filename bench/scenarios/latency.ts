/**
 * Latency from before the enqueue call to the start of the handler. At idle: one job at a time, first with the worker in
 * a process of its own, which is woken by the store's hint, then in the producer's process, as a small service runs it.
 * With an offered load: from the planned arrival, with the worker in a process of its own.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { worker } from '../../src/index.js'
import { nowUs } from '../clock.js'
import { type Figures, latencies } from '../figures.js'
import { noop, payloadOf } from '../kinds.js'
import { offeredRun, sendNoop } from '../offered-run.js'
import { chance, figuresOfOffered, type Load } from '../open-loop.js'
import { scenario } from '../scenario.js'
import type { Setting } from '../setting.js'
import { WorkerChild } from '../worker-child.js'

const WARM_UP = 50
const SEED = 1

export const latency = scenario({
  name: 'latency',
  summary: 'enqueue to start of the handler: at idle, or with an offered load (--offered 500)',
  options: {
    jobs: { type: 'whole', default: 500, quick: 20, doc: 'jobs at idle, one after another' },
    offered: { type: 'whole', doc: 'jobs a second in an open loop, in place of one at a time' },
    seconds: { type: 'whole', default: 30, quick: 1, doc: 'how long jobs are offered' },
  },
  variants: [{}, { offered: '500' }, { offered: '2000' }],
  async *run(setting, { jobs, offered: rate, seconds }) {
    if (rate !== undefined) {
      yield await withLoad(setting, { perSecond: rate, seconds, seed: SEED })
      return
    }
    yield await apart(setting, jobs)
    yield await together(setting, jobs)
  },
})

async function apart(setting: Setting, jobs: number): Promise<Figures> {
  const place = setting.place()
  const queue = await place.open()
  const child = await WorkerChild.started(place, {}, 'at once')
  try {
    const samplesMs = await oneAtATime(jobs, async (n) => {
      const started = child.nextStart()
      await queue.enqueue(noop.all, payloadOf(n))
      return (await started).atUs
    })
    await child.stop()
    return { scenario: 'latency', jobs, load: 'idle', ...latencies(samplesMs), worker: 'in a process of its own' }
  } finally {
    await child.kill()
    await place.drop()
  }
}

async function together(setting: Setting, jobs: number): Promise<Figures> {
  const place = setting.place()
  const queue = await place.open()
  let tell: (atUs: number) => void = () => {}
  const running = worker(queue, [noop.all.handle(() => tell(nowUs()))], { signals: false })
  try {
    await running.start()
    const samplesMs = await oneAtATime(jobs, async (n) => {
      const started = new Promise<number>((resolve) => {
        tell = resolve
      })
      await queue.enqueue(noop.all, payloadOf(n))
      return started
    })
    return { scenario: 'latency', jobs, load: 'idle', ...latencies(samplesMs), worker: "in the producer's process" }
  } finally {
    await running.stop()
    await place.drop()
  }
}

/** Milliseconds from before each enqueue to what it answers. */
async function oneAtATime(jobs: number, enqueue: (n: number) => Promise<number>): Promise<number[]> {
  const random = chance(SEED)
  const samplesMs: number[] = []
  for (let n = -WARM_UP; n < jobs; n++) {
    const sentUs = nowUs()
    const startedUs = await enqueue(n)
    if (n >= 0) samplesMs.push((startedUs - sentUs) / 1_000)
    // Back to idle, at an instant that is no multiple of anything.
    await sleep(3 + random() * 10)
  }
  return samplesMs
}

async function withLoad(setting: Setting, load: Load): Promise<Figures> {
  const { perJob, ...measured } = await offeredRun(setting, load, sendNoop, async () => {})
  return {
    scenario: 'latency',
    load: 'offered',
    ...figuresOfOffered(load, measured),
    worker: 'in a process of its own, default options',
    perJob,
  }
}
