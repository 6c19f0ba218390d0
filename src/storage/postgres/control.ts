/** What operators do: cancel, retry, redrive, discard, pause, drain, purge. Called by the client through the port. */
import type {
  CancelAnswer,
  Control,
  DeadBefore,
  DiscardAnswer,
  InStates,
  JobView,
  MovedOn,
  OpenState,
  QueueLimits,
  QueueOrder,
  RedriveAnswer,
  RetryAnswer,
} from '../storage.js'
import { instant, microseconds, plainArray } from './codec.js'
import type { Database, Statement } from './database.js'
import { lettersReleased } from './functions/keys.js'
import type { PostgresInspect } from './inspect.js'
import type { Queues } from './queues.js'
import type { Settle } from './settle.js'

/** How often a job may move between two looks before it is called unknown. */
const TRIES_MAX = 5
/** Keys that a changed limit sets free at once; upkeep finds the others. */
const FREED_KEYS_MAX = 1_000

export class PostgresControl implements Control {
  /** $1 the queue, $2 how many keys. */
  private readonly freeKeys: Statement

  constructor(
    private readonly database: Database,
    private readonly queues: Queues,
    private readonly settle: Settle,
    private readonly inspect: PostgresInspect,
    private readonly schema: string,
  ) {
    this.freeKeys = { name: 'lh_free_keys', text: `select ${schema}.free_keys($1, $2)` }
  }

  /** A job may move between two looks, so those found nowhere are looked for again, by a call with locks of its own. */
  async cancel(ids: readonly string[], only?: InStates<OpenState>): Promise<(CancelAnswer | MovedOn)[]> {
    const text = `select id, answer from ${this.schema}.cancel_in($1::uuid[], $2::text[])`
    const statement = { name: 'lh_cancel', text }
    const states = statesOf(only)
    const answers = new Map<string, CancelAnswer | MovedOn>()
    let left = [...new Set(ids)]
    for (let tries = 0; left.length > 0 && tries < TRIES_MAX; tries++) {
      const asked = plainArray(left)
      const rows = await this.settle.withDays('cancel', () => this.database.run(statement, [asked, states]))
      // The first answer about a job is what happened to it; a later row of the call only sees the result.
      for (const { id, answer } of rows)
        if (!answers.has(id as string)) answers.set(id as string, answer as CancelAnswer | MovedOn)
      left = left.filter((id) => !answers.has(id))
    }
    const told = new Set<string>()
    return ids.map((id) => {
      const answer = answers.get(id) ?? 'unknown'
      const again = told.has(id) || !told.add(id)
      return again && answer === 'cancelled' ? 'ended' : answer
    })
  }

  async retry(ids: readonly string[], only?: InStates<'delayed' | 'retrying'>): Promise<(RetryAnswer | MovedOn)[]> {
    const statement = { name: 'lh_retry', text: `select id from ${this.schema}.retry_in($1::uuid[], $2::text[])` }
    return this.answered<RetryAnswer | MovedOn>(ids, statement, [statesOf(only)], 'ok', ({ state }) => {
      if (state === 'delayed' || state === 'retrying')
        return only === undefined || only.states.includes(state) ? undefined : 'moved on'
      return state === 'running' || state === 'ready' || state === 'blocked' ? state : 'ended'
    })
  }

  async redrive(
    ids: readonly string[],
    options: { force: boolean } & DeadBefore,
  ): Promise<(RedriveAnswer | MovedOn)[]> {
    const { force, endedBefore } = options
    const text = `select id from ${this.schema}.redrive_before($1::uuid[], $2, $3::bigint)`
    const more = [force, instant(endedBefore)]
    return this.answered<RedriveAnswer | MovedOn>(ids, { name: 'lh_redrive', text }, more, 'ok', (view) => {
      if (view.state !== 'dead') return 'not dead'
      if (!isDeadBefore(view, endedBefore)) return 'moved on'
      return view.reason === 'lost' && !force ? 'needs force' : undefined
    })
  }

  async discard(ids: readonly string[], { endedBefore }: DeadBefore = {}): Promise<(DiscardAnswer | MovedOn)[]> {
    const [statement, more] =
      endedBefore === undefined
        ? [discardStatement(this.schema), []]
        : [discardBeforeStatement(this.schema), [instant(endedBefore)]]
    return this.answered<DiscardAnswer | MovedOn>(ids, statement, more, 'discarded', (view) => {
      if (view.state !== 'dead') return 'not dead'
      return isDeadBefore(view, endedBefore) ? undefined : 'moved on'
    })
  }

  pause(queue: string): Promise<void> {
    return this.change(queue, 'lh_pause', 'paused = true')
  }

  async resume(queue: string): Promise<void> {
    await this.change(queue, 'lh_resume', 'paused = false, draining = false')
    await this.tell(await this.queues.id(queue))
  }

  refuse(queue: string): Promise<void> {
    return this.change(queue, 'lh_refuse', 'draining = true')
  }

  async order(queue: string, order: QueueOrder): Promise<void> {
    const id = await this.queues.id(queue)
    await this.database.ask({ name: 'lh_order', text: `update ${this.schema}.queue set ordering = $2 where id = $1` }, [
      id,
      order,
    ])
  }

  async limit(queue: string, limits: Partial<QueueLimits>): Promise<void> {
    const id = await this.queues.id(queue)
    const { concurrency, rate, depth, intake, perKey } = limits
    await this.database.ask(limitStatement(this.schema), [
      id,
      concurrency !== undefined,
      concurrency ?? null,
      rate !== undefined,
      rate?.limit ?? null,
      rate ? microseconds(rate.perMs) : null,
      rate?.burst ?? null,
      depth !== undefined,
      depth?.limit ?? null,
      depth ? JSON.stringify(depth.kinds) : null,
      depth?.perTenant ?? null,
      intake !== undefined,
      intake?.limit ?? null,
      intake ? microseconds(intake.perMs) : null,
      intake?.burst ?? null,
      perKey !== undefined,
      perKey ? JSON.stringify(perKey) : null,
    ])
    if (perKey !== undefined) await this.database.ask(this.freeKeys, [id, FREED_KEYS_MAX])
    // What was held back may go on.
    await this.tell(id)
  }

  async purge(queue: string, limit: number): Promise<{ deleted: number; more: boolean }> {
    const id = await this.queues.find(queue)
    if (id === null) return { deleted: 0, more: false }
    const statement = {
      name: 'lh_purge',
      // Beyond the limit there is more without a look at all of it.
      text: `with began as materialized (select ${this.schema}.clock() as at),
        d as materialized (select ${this.schema}.purge($1, $2) as deleted, at from began)
        select deleted, deleted >= $2 or ${this.schema}.waits_since($1, at) as more from d`,
    }
    const [row] = await this.database.ask(statement, [id, limit])
    return { deleted: row!.deleted as number, more: row!.more as boolean }
  }

  private async tell(queueId: number): Promise<void> {
    const statement = { name: 'lh_hint', text: `select ${this.schema}.hint(array[$1]::int[], true)` }
    await this.database.ask(statement, [queueId])
  }

  private async change(queue: string, name: string, assignment: string): Promise<void> {
    const id = await this.queues.id(queue)
    await this.database.ask({ name, text: `update ${this.schema}.queue set ${assignment} where id = $1` }, [id])
  }

  /**
   * `done` for what the statement moved; for the rest, what their states say. Undefined from `say`: the job came into the
   * right state only after the statement had looked, so it is run again.
   */
  private async answered<Answer extends string>(
    ids: readonly string[],
    statement: Statement,
    more: unknown[],
    done: Answer,
    say: (view: JobView) => Answer | undefined,
  ): Promise<(Answer | 'unknown')[]> {
    const answers = new Map<string, Answer | 'unknown'>()
    let left = [...new Set(ids)]
    for (let tries = 0; left.length > 0 && tries < TRIES_MAX; tries++) {
      for (const row of await this.database.ask(statement, [plainArray(left), ...more]))
        answers.set(row.id as string, done)
      const rest = left.filter((id) => !answers.has(id))
      const views = rest.length === 0 ? [] : await this.inspect.get(rest)
      for (const [at, id] of rest.entries()) {
        const view = views[at]
        const answer = view ? say(view) : 'unknown'
        if (answer !== undefined) answers.set(id, answer)
      }
      left = rest.filter((id) => !answers.has(id))
    }
    return ids.map((id) => answers.get(id) ?? 'unknown')
  }
}

/** What is not given stays; a changed rate or intake begins with a full bucket. The queue says whether enqueues have to count. */
function limitStatement(schema: string): Statement {
  return {
    name: 'lh_limit',
    text: `with before as materialized (select x.intake_count, x.intake_us, x.intake_burst from ${schema}.queue_limit x where x.queue = $1::int),
      limited as (insert into ${schema}.queue_limit as x (queue, concurrency, rate_count, rate_us, rate_burst, depth, depth_kinds, depth_tenant,
        intake_count, intake_us, intake_burst, key_limits)
      values ($1::int, $3::int, $5::int, $6::bigint, $7::int, $9::int, $10::json, $11::int, $13::int, $14::bigint, $15::int, $17::json)
      on conflict (queue) do update set
        concurrency = case when $2::boolean then excluded.concurrency else x.concurrency end,
        rate_count = case when $4::boolean then excluded.rate_count else x.rate_count end,
        rate_us = case when $4::boolean then excluded.rate_us else x.rate_us end,
        rate_burst = case when $4::boolean then excluded.rate_burst else x.rate_burst end,
        rate_taken = case when $4::boolean and (x.rate_count, x.rate_us, x.rate_burst) is distinct from
          (excluded.rate_count, excluded.rate_us, excluded.rate_burst) then excluded.rate_taken else x.rate_taken end,
        depth = case when $8::boolean then excluded.depth else x.depth end,
        depth_kinds = case when $8::boolean then excluded.depth_kinds else x.depth_kinds end,
        depth_tenant = case when $8::boolean then excluded.depth_tenant else x.depth_tenant end,
        intake_count = case when $12::boolean then excluded.intake_count else x.intake_count end,
        intake_us = case when $12::boolean then excluded.intake_us else x.intake_us end,
        intake_burst = case when $12::boolean then excluded.intake_burst else x.intake_burst end,
        key_limits = case when $16::boolean then excluded.key_limits else x.key_limits end
      returning queue, depth is not null or intake_count is not null as bounded),
    told as (update ${schema}.queue q set bounded = l.bounded from limited l where q.id = l.queue and q.bounded <> l.bounded)
    select ${schema}.fill_intake(l.queue) from limited l
     where $12::boolean and $13::int is not null and not exists (select from before b where (b.intake_count, b.intake_us, b.intake_burst) = ($13::int, $14::bigint, $15::int))`,
  }
}

function statesOf(only: InStates<OpenState> | undefined): string | null {
  return only === undefined ? null : plainArray(only.states)
}

function isDeadBefore({ endedAt }: JobView, endedBefore: number | undefined): boolean {
  return endedBefore === undefined || endedAt! < endedBefore
}

/** With its key, in one statement. Rows are locked by id, as a redrive locks them: two that meet wait for each other. */
export function discardStatement(schema: string): Statement {
  return discarding(schema, 'lh_discard', '')
}

/** Of letters that ended before the instant $2. */
export function discardBeforeStatement(schema: string): Statement {
  return discarding(schema, 'lh_discard_before', `and h.ended < ${schema}.instant($2::bigint)`)
}

function discarding(schema: string, name: string, condition: string): Statement {
  return {
    name,
    text: `with x as (delete from ${schema}.dead d where d.ctid = any(array(
        select h.ctid from ${schema}.dead h where h.id = any($1::uuid[]) ${condition} order by h.id for update)) returning d.id, d.queue, d.kind, d.spec),
      k as (delete from ${schema}.idempotency i using x where i.kind = x.kind and i.key = x.spec ->> 'idempotencyKey' and i.id = x.id)
      select x.id, ${lettersReleased(schema, 'x')} as released from x`,
  }
}
