/**
 * What is measured, each in a new schema, and each ended early when its time is over or somebody wants it to end: then
 * the figures are of what was done until then. Called by bench.ts.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Env } from '../../core/env.js'
import { worker } from '../../worker/index.js'
import { type Figures, latencies, perSecond } from './figures.js'
import { noop, noops, payloadOf } from './kind.js'
import type { ScenarioName } from './names.js'
import type { Place } from './place.js'

export interface Bounds {
  jobs: number | undefined
  maxMs: number
  asked: AbortSignal
  env: Env
  progress: (done: number, jobs: number) => void
}

type Scenario = (place: Place, bounds: Bounds) => Promise<Figures[]>

export const SCENARIOS: Readonly<Record<ScenarioName, Scenario>> = { enqueue, singles, drain, latency }

/** For each bound the first of the two. */
class Until {
  private readonly from: number

  constructor(private readonly bounds: Bounds) {
    this.from = bounds.env.monotonic()
  }

  get passedMs(): number {
    return this.bounds.env.monotonic() - this.from
  }

  get over(): boolean {
    return this.bounds.asked.aborted || this.passedMs >= this.bounds.maxMs
  }
}

/** Many in one call, committed in batches. */
async function enqueue({ queue }: Place, bounds: Bounds): Promise<Figures[]> {
  const jobs = bounds.jobs ?? 50_000
  const until = new Until(bounds)
  let done = 0
  for await (const { status } of queue.enqueueStream(noops(jobs))) {
    if (status === 'created') done += 1
    if (done % 1_000 === 0) bounds.progress(done, jobs)
    if (until.over) break
  }
  return [{ scenario: 'enqueue', form: 'enqueueMany', jobs: done, jobsPerSecond: perSecond(done, until.passedMs) }]
}

/** One call a job, each awaited: from one caller, then from 64 at once. */
async function singles({ queue }: Place, bounds: Bounds): Promise<Figures[]> {
  const figures: Figures[] = []
  for (const [callers, standard] of [
    [1, 2_000],
    [64, 20_000],
  ] as const) {
    const jobs = bounds.jobs ?? standard
    const until = new Until(bounds)
    const samples: number[] = []
    let next = 0
    const caller = async (): Promise<void> => {
      while (next < jobs && !until.over) {
        const sent = bounds.env.monotonic()
        await queue.enqueue(noop, payloadOf(next++))
        samples.push(bounds.env.monotonic() - sent)
        if (samples.length % 500 === 0) bounds.progress(samples.length, jobs)
      }
    }
    await Promise.all(Array.from({ length: callers }, caller))
    const form = callers === 1 ? 'one after another' : `${callers} at once`
    const rate = perSecond(samples.length, until.passedMs)
    figures.push({ scenario: 'singles', form, jobs: samples.length, jobsPerSecond: rate, ...latencies(samples) })
  }
  return figures
}

/** One worker with default options runs no-op jobs to the end, each with its record kept. */
async function drain({ queue }: Place, bounds: Bounds): Promise<Figures[]> {
  const jobs = bounds.jobs ?? 20_000
  for await (const _ of queue.enqueueStream(noops(jobs))) if (bounds.asked.aborted) return []
  const until = new Until(bounds)
  let ran = 0
  const running = worker(
    queue,
    [
      noop.handle(() => {
        ran += 1
        if (ran % 1_000 === 0) bounds.progress(ran, jobs)
      }),
    ],
    { signals: false },
  )
  const stop = (): void => void running.stop({ grace: 0 })
  bounds.asked.addEventListener('abort', stop, { once: true })
  await running.runUntilEmpty({ maxMs: bounds.maxMs })
  bounds.asked.removeEventListener('abort', stop)
  return [{ scenario: 'drain', form: 'one worker', jobs: ran, jobsPerSecond: perSecond(ran, until.passedMs) }]
}

/** Before it is measured, connections come up and plans are made. */
const WARM_UP = 20
/** Back to idle, at an instant that is no multiple of anything. */
const PAUSE_MS_MIN = 3
const PAUSE_MS_MORE = 10

/** An idle worker in a process of its own: from before the enqueue to the start of the handler, one job at a time. */
async function latency({ queue, url, schema }: Place, bounds: Bounds): Promise<Figures[]> {
  const { env, asked } = bounds
  const jobs = bounds.jobs ?? 200
  const child = fork(fileURLToPath(new URL('./worker-process.js', import.meta.url)), [url, schema], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const gone = once(child, 'exit').then(() => undefined)
  const next = (): Promise<[string] | undefined> => Promise.race([once(child, 'message') as Promise<[string]>, gone])
  const samples: number[] = []
  try {
    if ((await next()) === undefined) throw new Error('the worker process ended before it was ready')
    const until = new Until(bounds)
    for (let n = -WARM_UP; n < jobs && !until.over; n++) {
      const started = next()
      const sent = process.hrtime.bigint()
      await queue.enqueue(noop, payloadOf(n))
      const told = await started
      if (told === undefined) {
        if (asked.aborted) break
        throw new Error('the worker process ended in mid-work')
      }
      if (n >= 0) samples.push(Number(BigInt(told[0]) - sent) / 1e6)
      bounds.progress(Math.max(0, n), jobs)
      await env.sleep(PAUSE_MS_MIN + PAUSE_MS_MORE * env.random(), asked)
    }
  } finally {
    if (child.connected) child.send('stop')
    await gone
  }
  return [{ scenario: 'latency', form: 'idle to start', jobs: samples.length, ...latencies(samples) }]
}
