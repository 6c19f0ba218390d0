/** The store that a run works on: an embedded PostgreSQL of its own, or a schema of its own on a server of yours. */
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { connect, type Queue } from '../src/index.js'
import { QUEUES } from '../src/testing/chaos/plan.js'
import { recordOf } from '../src/testing/checker/history.js'
import { sharedNow } from '../src/testing/checker/log-file.js'
import { OwnServer } from './server.js'
import { freshly } from './session.js'

const PAGE = 1_000
const STATES = ['ready', 'delayed', 'retrying', 'running', 'completed', 'cancelled', 'dead'] as const
const CLOCK_SAMPLES = 5

export interface Waiting {
  ready: number
  delayed: number
  retrying: number
  running: number
  /** All that has not ended; an estimate while it is large. */
  open: number
  dead: number
}

export class ChaosStore {
  private constructor(
    readonly url: string,
    readonly schema: string,
    readonly queue: Queue,
    /** What its clock is ahead of the clock that all processes of the run share. */
    readonly aheadMs: number,
    readonly conditions: Record<string, string | number>,
    /** Undefined for a server of yours. */
    readonly server: OwnServer | undefined,
    private readonly stop: (keep: boolean) => Promise<void>,
  ) {}

  static async open({ url, dir }: { url: string | undefined; dir: string }): Promise<ChaosStore> {
    const own = url === undefined ? await OwnServer.start(dir) : undefined
    const address = own?.url ?? url!
    const schema = url === undefined ? 'leasehold' : `chaos_${process.pid}_${Date.now()}`
    try {
      const queue = await connect(address, { schema })
      const { aheadMs, conditions } = await looked(address)
      return new ChaosStore(address, schema, queue, aheadMs, conditions, own, async (keep) => {
        await queue.close()
        if (url !== undefined && !keep) await freshly(url, (client) => client.query(`drop schema "${schema}" cascade`))
        await own?.stop()
      })
    } catch (error) {
      await own?.stop()
      throw error
    }
  }

  /** How many jobs are not ended, over all queues. */
  async waiting(): Promise<Waiting> {
    const all = await Promise.all(QUEUES.map((queue) => this.queue.counts(queue)))
    const sum = (state: (typeof STATES)[number]): number =>
      all.reduce((total, counts) => total + counts[state].count, 0)
    const [ready, delayed, retrying, running] = [sum('ready'), sum('delayed'), sum('retrying'), sum('running')]
    return { ready, delayed, retrying, running, open: ready + delayed + retrying + running, dead: sum('dead') }
  }

  /** Every job that the store has, whatever its state; read once, when nothing moves any more. */
  async writeRecords(path: string): Promise<void> {
    const file = createWriteStream(path)
    for (const queue of QUEUES)
      for (const state of STATES)
        for await (const view of this.queue.jobs({ state, queue, limit: PAGE }))
          if (!file.write(`${JSON.stringify(recordOf(view))}\n`)) await once(file, 'drain')
    file.end()
    await once(file, 'close')
  }

  /** On a server of yours the schema goes, unless it is kept. */
  close(keep: boolean): Promise<void> {
    return this.stop(keep)
  }
}

async function looked(url: string): Promise<Pick<ChaosStore, 'aheadMs' | 'conditions'>> {
  return freshly(url, async (client) => {
    let best = { tripMs: Number.POSITIVE_INFINITY, aheadMs: 0 }
    for (let i = 0; i < CLOCK_SAMPLES; i++) {
      const before = sharedNow()
      const { rows } = await client.query('select extract(epoch from clock_timestamp())::float8 * 1000 as ms')
      const tripMs = sharedNow() - before
      if (tripMs < best.tripMs) best = { tripMs, aheadMs: (rows[0] as { ms: number }).ms - before - tripMs / 2 }
    }
    const { rows } = await client.query(
      `select current_setting('server_version') as postgres, current_setting('synchronous_commit') as "synchronousCommit",
        current_setting('fsync') as fsync`,
    )
    return { aheadMs: best.aheadMs, conditions: { ...(rows[0] as Record<string, string>), node: process.version } }
  })
}
