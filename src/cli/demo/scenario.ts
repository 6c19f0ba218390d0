/** What happens in a demo: deliveries are enqueued, a worker is killed and replaced, another one stopped. Called by demo.ts. */
import type { Queue } from '../../client/queue.js'
import type { JobItem } from '../../core/kind.js'
import { grouped } from '../../core/show.js'
import { CommandError } from '../failure.js'
import { deliverWebhook, WEBHOOKS, webhookOf } from './deliver.js'
import type { DemoRecord, EnqueuedDelivery, WorkerEnd } from './files.js'
import { type Delivery, plan } from './plan.js'
import type { DemoCounts, Progress } from './progress.js'
import type { ReceiverReady } from './receiver.js'
import { CONCURRENCY, type DemoWorker, type Stage } from './stage.js'

export interface ScenarioOptions {
  jobs: number
  seed: number
  /** Fires when the demo is to end early. */
  asked: AbortSignal
}

export interface Played {
  record: DemoRecord
  deliveries: EnqueuedDelivery[]
}

const WORKERS = 3
/** So many in a hundred are enqueued a second time, as a producer does who got no answer. */
const REPEATED_SHARE = 0.02
/** When so much has ended a worker is killed, and later another one is stopped. */
const KILL_AT = 0.2
const KILL_AT_LATEST = 0.4
const STOP_AT = 0.45
const LOOK_MS = 300
/** Whatever has not ended by then is counted as lost. */
const PLAY_MS_MAX = 300_000

export class Scenario {
  private readonly killed: DemoRecord['killed'] = []
  private readonly stopped: DemoRecord['stopped'] = []
  /** Acts that go on beside the watching; awaited at the end. */
  private readonly acts: Promise<unknown>[] = []
  private actFailure: unknown
  private stopping = false

  constructor(
    private readonly stage: Stage,
    private readonly progress: Progress,
    private readonly options: ScenarioOptions,
  ) {}

  async play(): Promise<Played> {
    const { stage, progress, options } = this
    const receiver = await stage.startReceiver(options.seed)
    progress.note(`receiver at ${receiver.live}, in a process of its own: slow, failing and dead for some`)
    await Promise.all(Array.from({ length: WORKERS }, () => stage.startWorker()))
    this.checkGoesOn()
    progress.note(`${WORKERS} workers, each a process of its own`)
    const enqueued = await this.enqueue(receiver)
    await this.watch()
    await Promise.all(this.acts)
    await stage.stopProcesses()
    const { killed, stopped } = this
    const { deliveries, ...times } = enqueued
    return { deliveries, record: { seed: options.seed, jobs: options.jobs, ...times, killed, stopped } }
  }

  private async enqueue(receiver: ReceiverReady): Promise<
    Pick<DemoRecord, 'repeated' | 'duplicates' | 'enqueueStartedAt' | 'enqueueEndedAt'> & {
      deliveries: EnqueuedDelivery[]
    }
  > {
    const { queue } = this.stage
    const planned = plan(this.options)
    const enqueueStartedAt = Date.now()
    const ids = await created(queue, planned, receiver)
    const enqueueEndedAt = Date.now()
    const deliveries = planned.map((delivery, at) => ({ ...delivery, jobId: ids[at]! }))
    const again = deliveries.slice(0, Math.ceil(deliveries.length * REPEATED_SHARE))
    const duplicates = await repeated(queue, again, receiver)
    const took = ((enqueueEndedAt - enqueueStartedAt) / 1_000).toFixed(1)
    const twice = `${again.length} of them twice: ${duplicates} known by their key`
    this.progress.note(`${grouped(deliveries.length)} deliveries enqueued in ${took}s, ${twice}`)
    return { deliveries, repeated: again.length, duplicates, enqueueStartedAt, enqueueEndedAt }
  }

  /** Until nothing waits or runs any more. */
  private async watch(): Promise<void> {
    const { queue, workers } = this.stage
    const { env } = queue.connection
    const until = env.monotonic() + PLAY_MS_MAX
    while (env.monotonic() < until) {
      const counts = await demoCounts(queue, this.options.jobs)
      this.progress.show(counts, workers)
      if (counts.left === 0 && this.killed.length > 0) return
      this.act(counts.ended / this.options.jobs)
      await env.sleep(LOOK_MS, this.options.asked)
      this.checkGoesOn()
    }
    this.progress.note('not all has ended in time; what is left counts as lost')
  }

  private act(ended: number): void {
    const { workers } = this.stage
    if (ended >= KILL_AT && this.killed.length === 0) {
      const victim = busiest(workers)
      // In the middle of work, or the kill would prove little; unless such a moment does not come.
      const busy = (victim.last?.running ?? 0) * 2 >= CONCURRENCY
      if (busy || ended >= KILL_AT_LATEST) this.acts.push(this.kill(victim).catch(this.onActFailure))
    } else if (ended >= STOP_AT && !this.stopping) {
      this.stopping = true
      const [next] = workers.filter(({ endExpected }) => !endExpected)
      if (next !== undefined) this.acts.push(this.stop(next).catch(this.onActFailure))
    }
  }

  private readonly onActFailure = (error: unknown): void => {
    this.actFailure ??= error
  }

  private async kill(worker: DemoWorker): Promise<void> {
    const end: WorkerEnd = { number: worker.number, id: worker.last!.id!, at: Date.now() }
    worker.kill()
    this.killed.push(end)
    this.progress.note(`${worker.name} is killed (SIGKILL) in mid-work; its lease of 10s has to run out`)
    const replacement = await this.stage.startWorker()
    this.progress.note(`${replacement.name} is started in its place`)
  }

  private async stop(worker: DemoWorker): Promise<void> {
    const end: WorkerEnd = { number: worker.number, id: worker.last!.id!, at: Date.now() }
    this.progress.note(`${worker.name} is stopped (SIGTERM): it finishes what runs and gives back the rest`)
    await worker.stop()
    const tookMs = Date.now() - end.at
    const givenBack = worker.last?.givenBack ?? 0
    this.stopped.push({ ...end, tookMs, givenBack })
    this.progress.note(`${worker.name} has ended in order, in ${(tookMs / 1_000).toFixed(1)}s`)
  }

  private checkGoesOn(): void {
    this.options.asked.throwIfAborted()
    if (this.actFailure !== undefined) throw this.actFailure
    this.stage.check()
  }
}

function busiest(workers: readonly DemoWorker[]): DemoWorker {
  return workers.reduce((most, worker) => ((worker.last?.running ?? 0) > (most.last?.running ?? 0) ? worker : most))
}

function item(delivery: Delivery, receiver: ReceiverReady): JobItem {
  const { key, priority, delayMs } = delivery
  return deliverWebhook.with(webhookOf(delivery, receiver), {
    idempotencyKey: key,
    priority,
    ...(delayMs === 0 ? {} : { delay: delayMs }),
  })
}

/** The ids of the jobs, in order. */
async function created(queue: Queue, deliveries: readonly Delivery[], receiver: ReceiverReady): Promise<string[]> {
  const results = await queue.enqueueMany(deliveries.map((delivery) => item(delivery, receiver)))
  return results.map((result) => {
    if (result.status === 'created') return result.id
    const why = 'error' in result ? result.error.message : 'its key was there before'
    throw new CommandError('DEMO_FAILED', `a delivery was not enqueued: ${why}`)
  })
}

async function repeated(
  queue: Queue,
  deliveries: readonly EnqueuedDelivery[],
  receiver: ReceiverReady,
): Promise<number> {
  const results = await queue.enqueueMany(deliveries.map((delivery) => item(delivery, receiver)))
  return results.filter((result, at) => result.status === 'duplicate' && result.id === deliveries[at]!.jobId).length
}

/** What has ended is what is left of all: of so many records the store only estimates the number. */
async function demoCounts(queue: Queue, jobs: number): Promise<DemoCounts> {
  const { ready, delayed, retrying, running, dead } = await queue.counts(WEBHOOKS)
  const left = ready.count + delayed.count + retrying.count + running.count
  return {
    ready: ready.count,
    delayed: delayed.count,
    retrying: retrying.count,
    running: running.count,
    dead: dead.count,
    left,
    ended: Math.max(0, jobs - left),
  }
}
