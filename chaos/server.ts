/** A PostgreSQL of the run's own, which it may kill, stop and start as it likes. Its address stays. Made by the store. */
import { readdirSync, readFileSync } from 'node:fs'
import { type EmbeddedServer, startEmbedded } from '@leasehold/embedded'
import { freshly } from './session.js'

const SETTINGS = { shared_buffers: '512MB', max_wal_size: '4GB' }

export class OwnServer {
  private constructor(
    private readonly dir: string,
    private running: EmbeddedServer,
  ) {}

  static async start(dir: string): Promise<OwnServer> {
    return new OwnServer(dir, await startEmbedded({ dir, settings: SETTINGS }))
  }

  get url(): string {
    return this.running.url
  }

  /** Of the database that nobody works in: for whoever looks after the server. */
  get adminUrl(): string {
    const at = new URL(this.url)
    at.pathname = '/postgres'
    return at.href
  }

  /** All of it at once, as the end of its machine would do: what it had not written down is gone. */
  kill(): void {
    const { pid } = this.running
    const sessions = childrenOf(pid)
    for (const process of [pid, ...sessions]) killed(process)
  }

  /** In the middle of whatever a session does: the server ends all the others, and recovers by itself. */
  async crash(): Promise<void> {
    const pid = await freshly(this.adminUrl, async (client) => {
      const { rows } = await client.query<{ pid: number }>(
        `select pid from pg_stat_activity where datname <> 'postgres' and backend_type = 'client backend'
          order by state = 'active' desc, pid limit 1`,
      )
      return rows[0]?.pid
    })
    if (pid !== undefined) killed(pid)
  }

  /** In order: sessions end, everything is written down. */
  async stop(): Promise<void> {
    await this.running.stop()
  }

  /** Resolves when it answers. */
  async restart(): Promise<void> {
    const before = this.running
    this.running = await startEmbedded({ dir: this.dir, settings: SETTINGS })
    // Of a server that was killed there is still the hold, and only one of ours may be left.
    await before.stop()
  }

  async endSessions(): Promise<void> {
    await freshly(this.adminUrl, (client) =>
      client.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname <> 'postgres' and backend_type = 'client backend'`,
      ),
    )
  }
}

function killed(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** The processes that a server has started; elsewhere than on Linux they end by themselves, soon after it. */
function childrenOf(pid: number): number[] {
  if (process.platform !== 'linux') return []
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((process) => parentOf(process) === pid)
}

function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return undefined
  }
}

/** Whether a server answers at this moment. */
export async function answers(url: string): Promise<boolean> {
  return freshly(url, (client) => client.query('select 1')).then(
    () => true,
    () => false,
  )
}
