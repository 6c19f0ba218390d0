/**
 * What the drills are played on: a folder of logs, worker processes, the queue in verify's own schema; and their end,
 * however verify ends. Called by verify.ts and the drills.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Queue } from '../../client/queue.js'
import { connect } from '../../connect.js'
import { realEnv } from '../../core/env.js'
import type { JobView } from '../../storage/storage.js'
import { recordOf, type StoreRecord, type Witnessed } from '../../testing/checker/history.js'
import { LogFile, logPath } from '../../testing/checker/log-file.js'
import { CREWS, type DrillJob, type DrillName, type Pace, queueOf } from '../../testing/verify/drill-plan.js'
import { DrillScene } from '../../testing/verify/drill-scene.js'
import { CommandError } from '../failure.js'
import { KINDS } from './drill-kinds.js'
import { DrillWorker } from './drill-worker.js'
import { LogFolder } from './log-folder.js'

const LOOK_MS = 25
/** A process has to start and to be answered by the store. */
const UP_MS_MAX = 30_000
/** For a worker that has nothing to do to end in order. */
const STOP_MS_MAX = 10_000
/** A process that ends again and again by itself is not started for ever. */
const STARTS_MAX = 12
const DRIVER = 'verify'
const STATES = ['ready', 'delayed', 'retrying', 'blocked', 'running', 'completed', 'cancelled', 'dead'] as const

export interface StageOptions {
  url: string
  schema: string
  pace: Pace
  asked: AbortSignal
}

export class Stage {
  readonly scene = new DrillScene()
  readonly events: Witnessed[] = []
  private readonly workers = new Set<DrillWorker>()
  private readonly crews = new Map<DrillName, 'at work' | 'ending'>()
  private readonly logs: LogFolder
  private readonly log: LogFile
  private stopped = false

  private constructor(
    private readonly options: StageOptions,
    readonly folder: string,
    readonly queue: Queue,
  ) {
    this.log = new LogFile(logPath(folder, DRIVER))
    this.logs = new LogFolder(folder)
    process.on('exit', this.killAll)
  }

  static async open(options: StageOptions): Promise<Stage> {
    const queue = await connect(options.url, { schema: options.schema, migrate: false })
    return new Stage(options, mkdtempSync(join(tmpdir(), 'leasehold-verify-')), queue)
  }

  get pace(): Pace {
    return this.options.pace
  }

  /** Resolves when the store knows all workers of the drill. */
  async start(drill: DrillName, round: number): Promise<DrillWorker[]> {
    this.crews.set(drill, 'at work')
    const { workers } = CREWS[drill]
    const crew = Array.from({ length: workers }, (_, i) => this.seat(drill, `${drill}-${round}-${i + 1}`, 1))
    const up = await this.until(() => crew.every(({ last, alive }) => last?.up || !alive), UP_MS_MAX)
    const failed = crew.find(({ last }) => !last?.up)
    if (up && failed === undefined) return crew
    const said = failed?.exit?.errors
    throw new CommandError('VERIFY_FAILED', `a worker process did not come up${said ? `: ${said}` : ''}`, {
      fix: 'look at what it says; a machine that is very busy may be the reason',
    })
  }

  /** Ends the workers of the drill in order. */
  async stop(drill: DrillName): Promise<void> {
    this.crews.set(drill, 'ending')
    await Promise.all(this.of(drill).map((worker) => this.ended(worker)))
    this.read()
  }

  kill(worker: DrillWorker): void {
    this.log.write({ what: 'killed', process: worker.name, moment: 'mid-job' })
    worker.kill()
  }

  /** Stores the jobs in one call, and notes what was told of each. Answers their ids. */
  async enqueue(drill: DrillName, jobs: readonly DrillJob[]): Promise<string[]> {
    for (const { n } of jobs) this.log.write({ what: 'sending', n })
    const items = jobs.map(({ n, act, workMs, key }) =>
      KINDS[drill].with({ n, act, workMs }, key === undefined ? {} : { idempotencyKey: key }),
    )
    const results = await this.queue.enqueueMany(items)
    return results.map((result, i) => {
      const { n } = jobs[i]!
      const code = 'error' in result ? { code: result.error.code } : {}
      const id = 'id' in result ? { id: result.id } : {}
      this.log.write({ what: 'told', n, outcome: result.status, ...id, ...code })
      return 'id' in result ? result.id : ''
    })
  }

  async redrive(id: string): Promise<string> {
    const ask = realEnv.id()
    this.log.write({ what: 'asked', ask, operation: 'redrive', id })
    const answer = await this.queue.redrive(id)
    this.log.write({ what: 'answered', ask, id, operation: 'redrive', answer })
    return answer
  }

  views(ids: readonly string[]): Promise<(JobView | null | undefined)[]> {
    return this.queue.connection.storage.inspect!.get(ids)
  }

  /** What waits, and what is not ended. */
  async left(drill: DrillName): Promise<{ ready: number; open: number }> {
    const { ready, delayed, retrying, blocked, running } = await this.queue.counts(queueOf(drill))
    return { ready: ready.count, open: ready.count + delayed.count + retrying.count + blocked.count + running.count }
  }

  /** Whether it came to be so in time. Reads the logs before each look. */
  async until(isSo: () => boolean | Promise<boolean>, patienceMs: number): Promise<boolean> {
    const until = realEnv.monotonic() + patienceMs
    for (;;) {
      this.options.asked.throwIfAborted()
      this.read()
      if (await isSo()) return true
      if (realEnv.monotonic() >= until) return false
      await realEnv.sleep(LOOK_MS, this.options.asked)
    }
  }

  /** Whether nothing of the drill is left that could still run. What is lost is not waited for. */
  async untilEmpty(drill: DrillName, patienceMs: number, seen: (ready: number) => void = () => {}): Promise<boolean> {
    let empty = 0
    return this.until(async () => {
      const { ready, open } = await this.left(drill)
      seen(ready)
      // Twice: a look at several places is not one at a single instant.
      empty = open === 0 ? empty + 1 : 0
      return empty > 1
    }, patienceMs)
  }

  /** Every job that the store has; read when nothing moves any more. */
  async records(drills: readonly DrillName[]): Promise<StoreRecord[]> {
    const found: StoreRecord[] = []
    for (const drill of drills)
      for (const state of STATES)
        for await (const view of this.queue.jobs({ state, queue: queueOf(drill), limit: 1_000 }))
          found.push(recordOf(view))
    return found
  }

  /** Whatever still runs is ended at once; the logs go. */
  async close(): Promise<void> {
    this.stopped = true
    this.killAll()
    await Promise.all([...this.workers].map(({ ended }) => ended))
    process.off('exit', this.killAll)
    await this.queue.close().catch(() => {})
    this.log.close()
    rmSync(this.folder, { recursive: true, force: true })
  }

  /** A process for the seat, and the next one when it has ended, where the drill replaces its workers. */
  private seat(drill: DrillName, seat: string, count: number): DrillWorker {
    const { url, schema, pace } = this.options
    const name = `${seat}-${count}`
    this.log.write({ what: 'spawned', process: name, role: 'worker' })
    const worker = new DrillWorker({ url, schema, pace, drill, name, folder: this.folder })
    this.workers.add(worker)
    void worker.ended.then(() => {
      if (this.stopped) return
      this.log.write({ what: 'gone', process: name, ...worker.exit! })
      const follows = CREWS[drill].replaced && this.crews.get(drill) === 'at work' && count < STARTS_MAX
      if (follows) this.seat(drill, seat, count + 1)
    })
    return worker
  }

  private of(drill: DrillName): DrillWorker[] {
    return [...this.workers].filter(({ name, alive }) => alive && name.startsWith(`${drill}-`))
  }

  private async ended(worker: DrillWorker): Promise<void> {
    const late = realEnv.timer(STOP_MS_MAX, () => this.kill(worker))
    await worker.stop()
    late.cancel()
  }

  private read(): void {
    for (const witnessed of this.logs.fresh()) {
      this.events.push(witnessed)
      this.scene.add(witnessed)
    }
  }

  /** Also when this process ends in a way that nobody foresaw. */
  private readonly killAll = (): void => {
    for (const worker of this.workers) worker.kill()
  }
}
