/**
 * A caller who holds a transaction open for the whole of a run, with jobs in it: what it has enqueued is there for nobody,
 * and the server has to keep every row version from its begin on. Called by the run.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { QueueError } from '../src/index.js'
import { type PlanSize, plannedJob } from '../src/testing/chaos/plan.js'
import type { LogFile } from '../src/testing/checker/log-file.js'
import { KINDS } from './kinds.js'
import { refusalOf, type SaidOfEnqueue } from './outcomes.js'
import type { ChaosStore } from './store.js'

/** The last ones of the backlog. */
export const HELD_JOBS = 5
const AGAIN_MS = 500

export interface HolderParts {
  store: ChaosStore
  log: LogFile
  plan: PlanSize
}

export class Holder {
  private readonly asked = new AbortController()
  private count = 0
  private givesUp = false
  private holding: Promise<void> = Promise.resolve()

  constructor(private readonly parts: HolderParts) {}

  start(): void {
    this.holding = this.hold()
  }

  /** It is committed, or rolled back where a run is broken off. */
  async end(how: 'commit' | 'roll back'): Promise<void> {
    if (how === 'roll back') this.givesUp = true
    this.asked.abort()
    await this.holding
  }

  /** Where it is lost with its connection, another one is begun. */
  private async hold(): Promise<void> {
    while (!(await this.held()) && !this.givesUp) await sleep(AGAIN_MS)
  }

  private async held(): Promise<boolean> {
    const { store, log } = this.parts
    const client = new pg.Client({ connectionString: store.url, application_name: 'chaos' })
    const lost = new Promise<void>((_, reject) => client.on('error', reject))
    lost.catch(() => {})
    const transaction = `held/${this.count++}`
    let committing = false
    try {
      await client.connect()
      await client.query('begin')
      log.write({ what: 'transaction', transaction, is: 'open' })
      await this.enqueue(client, transaction)
      await Promise.race([lost, this.untilAsked()])
      if (this.givesUp) throw new Error('the run was broken off')
      committing = true
      log.write({ what: 'transaction', transaction, is: 'committing' })
      await client.query('commit')
      log.write({ what: 'transaction', transaction, is: 'committed' })
      return true
    } catch {
      // Nobody can have committed it for us.
      if (!committing) log.write({ what: 'transaction', transaction, is: 'rolled back' })
      return committing
    } finally {
      await client.end().catch(() => {})
    }
  }

  private async enqueue(client: pg.Client, transaction: string): Promise<void> {
    const { log, plan } = this.parts
    for (let i = 1; i <= HELD_JOBS; i++) {
      const n = plan.jobs + plan.backlog - i
      log.write({ what: 'sending', n })
      const said = await this.told(client, n)
      log.write({ ...said, transaction })
      if (said.outcome !== 'created') throw new Error(`the store did not take it: ${said.code}`)
    }
  }

  private async told(client: pg.Client, n: number): Promise<SaidOfEnqueue> {
    const { queue } = this.parts.store
    const { sort, queue: name, priority, workMs, failures } = plannedJob(this.parts.plan, n)!
    try {
      const made = await queue.enqueue(KINDS[sort], { n, workMs, failures }, { queue: name, priority, tx: client })
      return { what: 'told', n, outcome: 'created', id: made.id }
    } catch (error) {
      if (!(error instanceof QueueError)) throw error
      return refusalOf(n, error)
    }
  }

  private untilAsked(): Promise<void> {
    const { signal } = this.asked
    if (signal.aborted) return Promise.resolve()
    return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  }
}
