/** The statements of inspect.ts, but for those of lists (list-sql.ts) and filters (match-sql.ts). */
import type { JobState } from '../../core/job.js'
import type { Row, Statement } from './database.js'
import { IS_BLOCKED } from './functions/keys.js'
import { COUNT_EXACT_MAX, DEAD, DELAYED, ENDED, leased, RARE_COUNT_EXACT_MAX, READY } from './job-sql.js'
import { type ListStatement, listStatements } from './list-sql.js'

export interface InspectStatements {
  get: Statement
  list: Record<JobState | 'dead of one failure', ListStatement>
  queues: Statement
  counts: Statement
  workers: Statement
  capacity: Statement
}

export function inspectStatements(schema: string): InspectStatements {
  const LEASED = leased(schema)
  return {
    get: {
      name: 'lh_get',
      text: `select ${READY} from ${schema}.ready r where r.id = any($1::uuid[])
        union all select ${DELAYED} from ${schema}.delayed d where d.id = any($1::uuid[])
        union all select ${LEASED} from ${schema}.lease l, unnest(l.jobs) with ordinality j
          where l.ids && $1::uuid[] and j.id = any($1::uuid[]) and get_bit(l.open, j.ordinality::int - 1) = 1
        union all select ${ENDED} from ${schema}.ended e where e.id = any($1::uuid[])
        union all select ${DEAD} from ${schema}.dead x where x.id = any($1::uuid[])`,
    },
    list: listStatements(schema),
    queues: {
      name: 'lh_list_queues',
      text: `select q.name, q.paused, q.draining, q.ordering, x.concurrency, x.rate_count, x.rate_us::float8 as rate_us, x.rate_burst, x.depth, x.depth_kinds, x.depth_tenant,
          x.intake_count, x.intake_us::float8 as intake_us, x.intake_burst, x.key_limits
        from ${schema}.queue q left join ${schema}.queue_limit x on x.queue = q.id order by q.name`,
    },
    capacity: { name: 'lh_capacity', text: `select * from ${schema}.capacity_of($1)` },
    counts: { name: 'lh_counts', text: countsText(schema) },
    workers: {
      name: 'lh_workers',
      text: `select w.id, w.info, w.started_at / 1000.0::float8 as started_at, (${schema}.clock() - w.seen) / 1000.0::float8 as beat_ago,
        greatest(0, w.seen - w.main_seen) / 1000.0::float8 as main_lag, count(l.fence)::int as leases, coalesce(sum(bit_count(l.open)), 0)::int as jobs
        from ${schema}.worker w left join ${schema}.lease l on l.worker = w.id group by w.id order by w.started_at`,
    },
  }
}

/** Each part stops at the bound + 1, so that no count reads millions. */
function countsText(schema: string): string {
  const upTo = (max: number) => (from: string) => `(select count(*)::int from (select ${from} limit ${max + 1}) b)`
  const bounded = upTo(COUNT_EXACT_MAX)
  const few = upTo(RARE_COUNT_EXACT_MAX)
  const lanes = 'lane between $1::int * 64 and $1::int * 64 + 63'
  // From the newest ones on: at the other end lie the entries of what was just claimed, until they are cleaned up, and
  // records long out of the server's memory (a scan without an order begins where another one was).
  // Those that never ran have no index of their own: they are what is left of all, or read past few others; else null.
  return `with c as materialized (select ${bounded(`from ${schema}.ready where ${lanes} order by lane desc, pos desc`)} as ready,
    ${few(`from ${schema}.delayed where ${lanes}`)} as waiting,
    ${few(`from ${schema}.delayed where ${lanes} and history is not null and lane & 16 = 0`)} as retrying,
    ${few(`from ${schema}.delayed where lane / 64 = $1::int and ${IS_BLOCKED}`)} as blocked,
    ${bounded(`from ${schema}.lease l, unnest(l.jobs) with ordinality j where j.lane / 64 = $1 and get_bit(l.open, j.ordinality::int - 1) = 1 order by l.fence desc`)} as running,
    ${few(`from ${schema}.ended where queue = $1 and state = 1 order by ended desc`)} as completed,
    ${few(`from ${schema}.ended where queue = $1 and state = 2 order by ended desc`)} as cancelled,
    ${few(`from ${schema}.dead where queue = $1 order by ended desc`)} as dead)
  select c.ready, c.retrying, c.blocked, c.running, c.completed, c.cancelled, c.dead,
    case when c.waiting <= ${RARE_COUNT_EXACT_MAX} then c.waiting - c.retrying - c.blocked
      when c.retrying + c.blocked <= ${RARE_COUNT_EXACT_MAX} then ${few(`from ${schema}.delayed where ${lanes} and history is null and lane & 16 = 0`)} end as delayed
  from c`
}

/**
 * How many rows the planner expects of these states: one statement for all of them, each under its own name in the plan.
 * EXPLAIN takes no parameters; the number of a queue is an integer of ours.
 */
export function estimateOf(schema: string, states: readonly JobState[], queueId: number): Statement {
  const lanes = `lane between ${queueId * 64} and ${queueId * 64 + 63}`
  const rows: Record<JobState, string> = {
    ready: `${schema}.ready where ${lanes}`,
    delayed: `${schema}.delayed where ${lanes} and history is null and lane & 16 = 0`,
    retrying: `${schema}.delayed where ${lanes} and history is not null and lane & 16 = 0`,
    blocked: `${schema}.delayed where lane / 64 = ${queueId} and ${IS_BLOCKED}`,
    running: `${schema}.lease l, unnest(l.jobs) j`,
    completed: `${schema}.ended where queue = ${queueId} and state = 1`,
    cancelled: `${schema}.ended where queue = ${queueId} and state = 2`,
    dead: `${schema}.dead where queue = ${queueId}`,
  }
  const named = states.map((state) => `${state} as materialized (select from ${rows[state]})`)
  const used = states.map((state) => `(select count(*) from ${state})`)
  // Not prepared: each queue has a text of its own.
  return { name: '', text: `explain (format json) with ${named.join(', ')} select ${used.join(', ')}` }
}

/** Of the plan of such a statement. */
export function estimatedRows(plan: Row): Map<JobState, number> {
  const [{ Plan }] = plan['QUERY PLAN'] as [{ Plan: { Plans: { 'Subplan Name': string; 'Plan Rows': number }[] } }]
  return new Map(
    Plan.Plans.filter((part) => part['Subplan Name'].startsWith('CTE ')).map((part) => [
      part['Subplan Name'].slice('CTE '.length) as JobState,
      part['Plan Rows'],
    ]),
  )
}
