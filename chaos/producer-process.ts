/**
 * A producer of a run, a process of its own, to be killed. In one stream it enqueues its part of the plan, the keyed jobs
 * together with all other producers; in the other it holds transactions open. Started by the driver.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { childSettings } from '../src/cli/demo/child.js'
import { connect, type JobItem, type Queue, QueueError } from '../src/index.js'
import {
  type PlannedJob,
  type PlannedTransaction,
  type PlanSize,
  plannedJob,
  plannedTransaction,
} from '../src/testing/chaos/plan.js'
import type { Stream, TransactionState } from '../src/testing/checker/history.js'
import { LogFile, sharedNow } from '../src/testing/checker/log-file.js'
import { itemOf } from './kinds.js'
import { refusalOf, type SaidOfEnqueue, toldOf } from './outcomes.js'

export interface ProducerSettings {
  url: string
  schema: string
  /** Of this process; its transactions are named by it. */
  name: string
  logPath: string
  plan: PlanSize
  /** Which part of the plan is its own: numbers that leave this rest. */
  index: number
  producers: number
  /** Numbers of the plan that all producers together pass in a second. */
  perSecond: number
  /** Where it begins in each stream. */
  from: Record<Stream, number>
  /** What the store's clock is ahead of the clock that all processes of the run share. */
  storeAheadMs: number
  /** Where this process has a wrong clock: the file that says by how much. Read by wrong-clock.ts. */
  clock?: string
}

const SLICE_MS = 200
/** A key in somebody's open transaction is asked for again. */
const BUSY_TRIES_MAX = 40
const BUSY_MS = 250
const KEYED_UNDER_WAY_MAX = 100
/** Between two looks whether there is room. */
const ROOM_MS = 20
/** With a connection of one's own. */
const PATIENCE_MS = 10_000
const RECONNECT_MS = 500
/** Behind the other stream by more, a transaction is held open for no longer than this. */
const BEHIND_MS = 5_000
const BEHIND_OPEN_MS = 300

class Producer {
  private readonly keyedUnderWay = new Set<Promise<void>>()
  private transactions = 0
  /** How far the other stream has come. */
  private plainAt = 0
  private client: (pg.Client & { connection?: { stream: { destroy(): void } } }) | undefined

  constructor(
    private readonly settings: ProducerSettings,
    private readonly log: LogFile,
    private readonly queue: Queue,
  ) {}

  async run(): Promise<void> {
    await Promise.all([this.plainLane(), this.transactionLane()])
    await Promise.all(this.keyedUnderWay)
  }

  // At once.

  private async plainLane(): Promise<void> {
    const { plan, from, perSecond } = this.settings
    const began = performance.now()
    for (let next = from.plain; next < plan.jobs; ) {
      await sleep(SLICE_MS)
      const until = Math.min(plan.jobs, from.plain + Math.floor(((performance.now() - began) / 1_000) * perSecond))
      if (until <= next) continue
      this.reached('plain', until)
      await this.slice(this.jobsOf(next, until))
      next = until
      this.plainAt = until
    }
  }

  private async slice(jobs: readonly PlannedJob[]): Promise<void> {
    const own = jobs.filter(({ n, sort }) => sort !== 'keyed' && sort !== 'transactional' && this.isOwn(n))
    const keyed = jobs.filter(({ sort }) => sort === 'keyed')
    this.log.writeAll([...own, ...keyed].map(({ n }) => ({ what: 'sending', n })))
    for (const job of keyed) this.startKeyed(job)
    // In turns, as both ways have to bear a kill.
    if (own.length > 0 && own[0]!.n % 2 === 0) await this.together(own)
    else await Promise.all(own.map((job) => this.single(job)))
    while (this.keyedUnderWay.size > KEYED_UNDER_WAY_MAX) await sleep(ROOM_MS)
  }

  private async together(jobs: readonly PlannedJob[]): Promise<void> {
    const results = await this.queue.enqueueMany(jobs.map((job) => this.item(job)))
    this.log.writeAll(results.map((result, i) => toldOf(jobs[i]!.n, result)))
  }

  private async single(job: PlannedJob): Promise<void> {
    this.log.write(await this.enqueued(job, undefined))
  }

  private startKeyed(job: PlannedJob): void {
    const sending = this.untilNotBusy(job).finally(() => this.keyedUnderWay.delete(sending))
    this.keyedUnderWay.add(sending)
  }

  private async untilNotBusy(job: PlannedJob): Promise<void> {
    for (let tries = 1; ; tries++) {
      const said = await this.enqueued(job, undefined)
      this.log.write(said)
      if (said.code !== 'IDEMPOTENCY_BUSY' || tries === BUSY_TRIES_MAX) return
      await sleep(BUSY_MS * (0.5 + Math.random()))
    }
  }

  // In transactions.

  private async transactionLane(): Promise<void> {
    const { plan, from } = this.settings
    const own = this.jobsOf(from.transactions, plan.jobs).filter(
      ({ n, sort }) => sort === 'transactional' && this.isOwn(n),
    )
    while (own.length > 0) {
      const { n } = own[0]!
      const planned = plannedTransaction(plan.seed, n)
      const jobs = own.splice(0, planned.jobs)
      this.reached('transactions', jobs.at(-1)!.n + 1)
      await this.transaction([...jobs, ...this.guestOf(n)], planned)
    }
    await this.client?.end()
  }

  /** As an application has it: a connection of its own, with a limit to its patience, and another one when it is lost. */
  private async connected(): Promise<pg.Client> {
    for (;;) {
      const client = new pg.Client({
        connectionString: this.settings.url,
        connectionTimeoutMillis: PATIENCE_MS,
        query_timeout: PATIENCE_MS,
      })
      client.on('error', () => {})
      try {
        await client.connect()
        return client
      } catch {
        await client.end().catch(() => {})
        await sleep(RECONNECT_MS)
      }
    }
  }

  /** The next keyed job as well: its key is then busy for everybody else. */
  private guestOf(n: number): PlannedJob[] {
    for (const job of this.jobsOf(n, Math.min(n + 100, this.settings.plan.jobs))) if (job.sort === 'keyed') return [job]
    return []
  }

  /** Broken off, it is rolled back: nobody has asked for its commit. Broken off in its commit, nobody knows. */
  private async transaction(jobs: readonly PlannedJob[], planned: PlannedTransaction): Promise<void> {
    const transaction = `${this.settings.name}/${this.transactions++}`
    const say = (is: TransactionState): void => this.log.write({ what: 'transaction', transaction, is })
    this.client ??= await this.connected()
    say('open')
    try {
      await this.client.query('begin')
      for (const job of jobs) await this.enqueueIn(this.client, transaction, job)
      await sleep(this.isBehind(jobs[0]!.n) ? BEHIND_OPEN_MS : planned.openMs)
    } catch {
      await this.drop()
      say('rolled back')
      // Not at once the next one, or a bad minute would use them all up.
      await sleep(planned.openMs)
      return
    }
    if (planned.end === 'commit') say('committing')
    try {
      await this.client.query(planned.end === 'commit' ? 'commit' : 'rollback')
      say(planned.end === 'commit' ? 'committed' : 'rolled back')
    } catch {
      await this.drop()
      if (planned.end === 'roll back') say('rolled back')
    }
  }

  private async enqueueIn(client: pg.Client, transaction: string, job: PlannedJob): Promise<void> {
    this.log.write({ what: 'sending', n: job.n })
    const said = await this.enqueued(job, client)
    this.log.write({ ...said, transaction })
    // Refused for its key or the like, the transaction goes on; what the connection says of itself, comes with the next query.
    if (said.code === 'STORE_UNAVAILABLE' || said.code === 'OUTCOME_UNKNOWN') throw new Error(said.code)
  }

  /** What an outage has cost this stream it makes good by shorter transactions. */
  private isBehind(n: number): boolean {
    return this.plainAt - n > BEHIND_MS * (this.settings.perSecond / 1_000)
  }

  private async drop(): Promise<void> {
    const { client } = this
    this.client = undefined
    // It may have lost its other side without a word.
    client?.connection?.stream.destroy()
  }

  // Both.

  private async enqueued(job: PlannedJob, tx: pg.Client | undefined): Promise<SaidOfEnqueue> {
    const { kind, payload, options } = this.item(job)
    try {
      const made = await this.queue.enqueue(kind, payload, tx === undefined ? options : { ...options, tx })
      return { what: 'told', n: job.n, outcome: made.duplicate ? 'duplicate' : 'created', id: made.id }
    } catch (error) {
      if (!(error instanceof QueueError)) throw error
      return refusalOf(job.n, error)
    }
  }

  private item(job: PlannedJob): JobItem {
    return itemOf(job, () => sharedNow() + this.settings.storeAheadMs)
  }

  private jobsOf(from: number, until: number): PlannedJob[] {
    return Array.from({ length: Math.max(0, until - from) }, (_, i) => plannedJob(this.settings.plan, from + i)!)
  }

  private isOwn(n: number): boolean {
    return n % this.settings.producers === this.settings.index
  }

  /** Written first: whoever goes on for this process leaves out what may have been sent. */
  private reached(stream: Stream, n: number): void {
    this.log.write({ what: 'reached', stream, n })
  }
}

const settings = childSettings<ProducerSettings>()
const abandoned = (): void => process.exit(1)
process.once('disconnect', abandoned)
const queue = await connect(settings.url, { schema: settings.schema, migrate: false })
await new Producer(settings, new LogFile(settings.logPath), queue).run()
await queue.close()
process.off('disconnect', abandoned)
process.disconnect()
