/** A transaction pooler between all processes and the server, with few connections of its own, that dies and comes back. */
import type { Fault } from '../../src/testing/chaos/acts.js'
import { type Pooler, startPooler } from '../../test/support/pgbouncer.js'
import type { Crew } from '../crew.js'
import { freshly } from '../session.js'
import type { Begun, Stage, StageParts } from '../stage.js'

/** For four workers, three producers of which each holds a transaction open, and all beats. */
const SERVERS = 6

export class PoolerStage implements Stage {
  private constructor(
    private readonly parts: StageParts,
    private readonly pooler: Pooler,
  ) {}

  static async open(parts: StageParts): Promise<PoolerStage> {
    // Without this a server that is away for a moment is waited for, longer than any of these faults lasts.
    const settings = { server_login_retry: 1 }
    return new PoolerStage(parts, await startPooler(parts.store.url, { servers: SERVERS, settings }))
  }

  urlOf(): string {
    return this.pooler.url
  }

  async begin(fault: Fault, crew: Crew): Promise<Begun> {
    if (fault.act !== 'pooler') throw new Error(`no fault of this form: ${fault.act}`)
    const { pooler } = this
    const touches = crew.namesOf(crew.everybody)
    if (fault.way === 'servers') {
      await this.endServers()
      return { touches, outage: false, end: async () => {} }
    }
    // At SIGINT it waits for what runs, and transactions are held open for seconds.
    await pooler.end(fault.way === 'kill' ? 'SIGKILL' : 'SIGTERM')
    return { touches, outage: true, end: () => pooler.start() }
  }

  async close(): Promise<void> {
    await this.pooler.stop()
  }

  private async endServers(): Promise<void> {
    // Those of the driver go past the pooler.
    await freshly(this.parts.store.url, (client) =>
      client.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and backend_type = 'client backend' and application_name <> 'chaos'`,
      ),
    )
  }
}
