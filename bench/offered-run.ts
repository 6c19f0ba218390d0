/**
 * A run with an offered load: a producer in this process, a worker with default options in one of its own. Called by
 * latency, mixed and steady.
 */
import type { Queue } from '../src/index.js'
import { type CostPerJob, costed, costPerJob, ownCost } from './cost.js'
import { significant } from './figures.js'
import { noop, payloadOf } from './kinds.js'
import { arrivals, fromPlan, type Load, type Offered, offer } from './open-loop.js'
import type { Place, Setting } from './setting.js'
import { WorkerChild } from './worker-child.js'

type Send = (queue: Queue, n: number) => Promise<unknown>

export interface OfferedRun<Seen> extends Offered {
  perJob: CostPerJob
  seen: Seen
}

/** Numbers of jobs that warm up are below zero. */
const WARM_UP_JOBS = 500
const WARM_UP_CALLS = 20
/** After the last planned arrival; a queue that needs longer does not keep up, and that is what it says then. */
const PATIENCE_MS = 120_000

/** Sends no-op jobs by single calls of enqueue. */
export const sendNoop: Send = (queue, n) => queue.enqueue(noop.all, payloadOf(n))

/** `watch` looks on meanwhile, and ends by itself. */
export async function offeredRun<Seen>(
  setting: Setting,
  load: Load,
  send: Send,
  watch: (place: Place, child: WorkerChild) => Promise<Seen>,
): Promise<OfferedRun<Seen>> {
  const place = setting.place()
  await (await place.open()).close()
  const child = await WorkerChild.spawn()
  try {
    const plan = arrivals(load)
    const { result, cost } = await costed(setting, place, async () => {
      const { result: run, client } = await ownCost(() => offeredTo(place, child, plan, send, watch))
      // The producer's and the worker's together; their CPU is told apart below.
      return { result: run, client: { ...client, roundTrips: client.roundTrips + run.worker.roundTrips } }
    })
    const jobs = plan.length + WARM_UP_JOBS
    const perJob = { ...costPerJob([cost], jobs, 'producer'), workerCpuUs: significant(result.worker.cpuUs / jobs, 3) }
    return { ...result.offered, perJob, seen: result.seen }
  } finally {
    await child.kill()
    await place.drop()
  }
}

async function offeredTo<Seen>(
  place: Place,
  child: WorkerChild,
  plan: Float64Array,
  send: Send,
  watch: (place: Place, child: WorkerChild) => Promise<Seen>,
) {
  const queue = await place.open()
  await child.open(place, {}, 'keep')
  await child.start()
  await warmUp(queue, child, send)
  const [{ beganUs, lateMs }, seen] = await Promise.all([offer(plan, (n) => send(queue, n)), watch(place, child)])
  await inTime(child.ran(WARM_UP_JOBS + plan.length))
  const latencyMs = fromPlan(plan, beganUs, await child.starts())
  const missing = latencyMs.filter(Number.isNaN).length
  if (missing > 0) throw new Error(`${missing} of ${plan.length} jobs never started`)
  const { cpuUs, roundTrips } = await child.stop()
  await queue.close()
  const lastMs = latencyMs.reduce((last, ms, n) => Math.max(last, plan[n]! + ms), 0)
  const offered: Offered = { latencyMs, lateMs, ms: lastMs - plan[0]! }
  return { offered, seen, worker: { cpuUs, roundTrips } }
}

async function warmUp(queue: Queue, child: WorkerChild, send: Send): Promise<void> {
  for (let sent = 0; sent < WARM_UP_JOBS; sent += WARM_UP_CALLS)
    await Promise.all(Array.from({ length: WARM_UP_CALLS }, (_, n) => send(queue, -(sent + n + 1))))
  await child.ran(WARM_UP_JOBS)
}

async function inTime(started: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the worker does not keep up with the offered load')), PATIENCE_MS)
  })
  await Promise.race([started, late]).finally(() => clearTimeout(timer))
}
