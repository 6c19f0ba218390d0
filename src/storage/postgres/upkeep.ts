/** Promotion, expiry and pruning in small steps. Called by the worker's upkeep through the port. */
import type { Env } from '../../core/env.js'
import type { MovedJob, Retention, Upkeep } from '../storage.js'
import type { Promoted } from './cursors.js'
import type { Database, Statement } from './database.js'
import type { Pruning } from './pruning.js'
import type { Queues } from './queues.js'

/** Due entries before the cursor were promoted; one that was written late, with an old due time, waits for a sweep. */
const PROMOTE_LAG_MS = 2_000
const PROMOTE_SWEEP_MS = 10_000

export class PostgresUpkeep implements Upkeep {
  private readonly promoteStatement: Statement
  private readonly expireStatement: Statement
  private sweptAt = Number.NEGATIVE_INFINITY

  constructor(
    private readonly database: Database,
    private readonly queues: Queues,
    private readonly pruning: Pruning,
    private readonly promoted: Promoted,
    private readonly env: Env,
    schema: string,
  ) {
    this.promoteStatement = {
      name: 'lh_promote',
      text: `select moved, count, next_due::float8, ${schema}.clock()::float8 as now_us from ${schema}.promote($1, $2)`,
    }
    this.expireStatement = { name: 'lh_expire', text: `select ${schema}.expire($1) as moved` }
  }

  async promote(limit: number): Promise<{ moved: MovedJob[]; nextDueMs: number | null }> {
    const sweep = this.env.monotonic() - this.sweptAt >= PROMOTE_SWEEP_MS
    const [row] = await this.database.ask(this.promoteStatement, [sweep ? 0 : this.promoted.sinceUs, limit])
    const {
      moved,
      count,
      next_due: nextDue,
      now_us: nowUs,
    } = row as {
      moved: WireMoved[] | null
      count: number | null
      next_due: number | null
      now_us: number
    }
    if (sweep) this.sweptAt = this.env.monotonic()
    if ((count ?? 0) < limit) this.promoted.sinceUs = nowUs - PROMOTE_LAG_MS * 1_000
    return { moved: await this.named(moved ?? []), nextDueMs: nextDue === null ? null : Math.max(0, nextDue / 1_000) }
  }

  async expire(limit: number): Promise<MovedJob[]> {
    const [row] = await this.database.ask(this.expireStatement, [limit])
    return this.named(row!.moved as WireMoved[])
  }

  prune(options: Retention & { limit: number }): Promise<{ deleted: number; more: boolean }> {
    return this.pruning.prune(options)
  }

  private async named(moved: WireMoved[]): Promise<MovedJob[]> {
    await this.queues.learn(moved.map(([, , queue]) => queue))
    return moved.map(([id, kind, queue]) => ({ id, kind, queue: this.queues.name(queue) }))
  }
}

type WireMoved = [id: string, kind: string, queue: number]
