/** The statements of inspect.ts, but for those of lists (list-sql.ts) and filters (match-sql.ts). */
import type { JobState } from '../../core/job.js'
import type { Statement } from './database.js'
import { COUNT_EXACT_MAX, DEAD, DELAYED, ENDED, leased, RARE_COUNT_EXACT_MAX, READY } from './job-sql.js'
import { type ListStatement, listStatements } from './list-sql.js'

export interface InspectStatements {
  get: Statement
  list: Record<JobState | 'dead of one failure', ListStatement>
  queues: Statement
  counts: Statement
  estimate: Record<JobState, (queueId: number) => Statement>
  workers: Statement
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
      text: `select name, paused, draining, ordering from ${schema}.queue order by name`,
    },
    counts: { name: 'lh_counts', text: countsText(schema) },
    estimate: estimates(schema),
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
  // From the newest ones on: at the other end lie the entries of what was just claimed, until they are cleaned up.
  // Those that never ran have no index of their own: they are what is left of all, or read past few others; else null.
  return `with c as materialized (select ${bounded(`from ${schema}.ready where ${lanes} order by lane desc, pos desc`)} as ready,
    ${few(`from ${schema}.delayed where ${lanes}`)} as waiting,
    ${few(`from ${schema}.delayed where ${lanes} and history is not null`)} as retrying,
    ${bounded(`from ${schema}.lease l, unnest(l.jobs) with ordinality j where j.lane / 64 = $1 and get_bit(l.open, j.ordinality::int - 1) = 1`)} as running,
    ${bounded(`from ${schema}.ended where queue = $1 and state = 1`)} as completed,
    ${bounded(`from ${schema}.ended where queue = $1 and state = 2`)} as cancelled,
    ${few(`from ${schema}.dead where queue = $1`)} as dead)
  select c.ready, c.retrying, c.running, c.completed, c.cancelled, c.dead,
    case when c.waiting <= ${RARE_COUNT_EXACT_MAX} then c.waiting - c.retrying
      when c.retrying <= ${RARE_COUNT_EXACT_MAX} then ${few(`from ${schema}.delayed where ${lanes} and history is null`)} end as delayed
  from c`
}

/** EXPLAIN takes no parameters; the number of a queue is an integer of ours. */
function estimates(schema: string): Record<JobState, (queueId: number) => Statement> {
  const explain = (from: (queueId: number) => string) => (queueId: number) => ({
    name: '', // not prepared: each queue has a text of its own
    text: `explain (format json) select from ${from(queueId)}`,
  })
  const lanes = (queueId: number): string => `lane between ${queueId * 64} and ${queueId * 64 + 63}`
  return {
    ready: explain((id) => `${schema}.ready where ${lanes(id)}`),
    delayed: explain((id) => `${schema}.delayed where ${lanes(id)} and history is null`),
    retrying: explain((id) => `${schema}.delayed where ${lanes(id)} and history is not null`),
    running: explain(() => `${schema}.lease l, unnest(l.jobs) j`),
    completed: explain((id) => `${schema}.ended where queue = ${id} and state = 1`),
    cancelled: explain((id) => `${schema}.ended where queue = ${id} and state = 2`),
    dead: explain((id) => `${schema}.dead where queue = ${id}`),
  }
}
