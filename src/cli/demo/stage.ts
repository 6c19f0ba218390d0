/** What a demo runs on: folder, store, receiver, workers; and their end, however the demo ends. Called by demo.ts. */
import { chmod, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Queue } from '../../client/queue.js'
import { connect } from '../../connect.js'
import { type EmbeddedServer, startEmbedded } from '../embedded.js'
import { CommandError } from '../failure.js'
import { Child } from './child.js'
import { deliverWebhook } from './deliver.js'
import { type DemoFiles, filesIn } from './files.js'
import type { ReceiverReady, ReceiverSettings } from './receiver.js'
import type { WorkerReport, WorkerSettings } from './worker-process.js'

/** Deliveries that one worker has under way at once: they mostly wait. */
export const CONCURRENCY = 20

export type DemoWorker = Child<WorkerReport> & { number: number }

export class Stage {
  readonly workers: DemoWorker[] = []
  private receiverProcess: Child<ReceiverReady> | undefined

  private constructor(
    readonly files: DemoFiles,
    readonly server: EmbeddedServer,
    readonly queue: Queue,
    private readonly kept: boolean,
  ) {
    process.on('exit', this.killAll)
  }

  /** With `keep` in that folder, which has to be empty, else in one that goes with the demo. */
  static async open(keep: string | undefined): Promise<Stage> {
    const dir = keep === undefined ? await temporaryFolder() : await emptyFolder(keep)
    const files = filesIn(dir)
    const server = await startEmbedded(files.store).catch((error) => removed(dir, keep, error))
    try {
      return new Stage(files, server, await connect(server.url, { jobs: [deliverWebhook] }), keep !== undefined)
    } catch (error) {
      await server.stop()
      return removed(dir, keep, error)
    }
  }

  async startReceiver(seed: number): Promise<ReceiverReady> {
    const settings: ReceiverSettings = { seed, logPath: this.files.receiver }
    this.receiverProcess = new Child<ReceiverReady>('the receiver', './receiver.js', settings)
    return this.receiverProcess.message(() => true)
  }

  /** Resolves when the store knows it. */
  async startWorker(): Promise<DemoWorker> {
    const number = this.workers.length + 1
    const name = `worker ${number}`
    const settings: WorkerSettings = { url: this.server.url, name, concurrency: CONCURRENCY }
    const child = new Child<WorkerReport>(name, './worker-process.js', settings)
    const worker = Object.assign(child, { number })
    this.workers.push(worker)
    await worker.message(({ id }) => id !== undefined)
    return worker
  }

  /** Throws when a process has ended that should not have. */
  check(): void {
    for (const child of this.children) child.check()
  }

  /** Workers first: a worker without a receiver would note failures. */
  async stopProcesses(): Promise<void> {
    await Promise.all(this.workers.filter(({ alive }) => alive).map((worker) => worker.stop()))
    await this.receiverProcess?.stop()
  }

  /** Whatever still runs is ended at once. What is not kept is deleted. */
  async close(): Promise<void> {
    this.killAll()
    await Promise.all(this.children.map(({ ended }) => ended))
    process.off('exit', this.killAll)
    await this.queue.close().catch(() => {})
    await this.server.stop()
    if (!this.kept) await rm(this.files.dir, { recursive: true, force: true })
  }

  private get children(): Child<unknown>[] {
    const receiver = this.receiverProcess === undefined ? [] : [this.receiverProcess]
    return [...this.workers, ...receiver] as Child<unknown>[]
  }

  /** Also when this process ends in a way that nobody foresaw. */
  private readonly killAll = (): void => {
    for (const child of this.children) child.kill()
  }
}

async function temporaryFolder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'leasehold-demo-'))
  // Run by root, PostgreSQL runs as nobody, who has to get through; the store's own folder is closed to others.
  await chmod(dir, 0o755)
  return dir
}

async function emptyFolder(path: string): Promise<string> {
  const dir = resolve(path)
  await mkdir(dir, { recursive: true })
  if ((await readdir(dir)).length === 0) return dir
  throw new CommandError('USAGE', `--keep: ${path} is not empty; give an empty or a new folder`)
}

async function removed(dir: string, keep: string | undefined, error: unknown): Promise<never> {
  if (keep === undefined) await rm(dir, { recursive: true, force: true })
  throw error
}
