/** The statements of diagnosis.ts: samples and probes by index, each with a bound. */
import { SPEC_DEFAULTS } from '../../core/job.js'
import type { Statement } from './database.js'

/** Counts are exact up to here. */
export const COUNT_MAX = 10_000
/** Of a lane so many are looked at. */
export const HEAD_MAX = 200
/** Records that run times are taken from, over all queues. */
const RUNS_MAX = 20_000
const RUNS_OF_QUEUE_MIN = 50
/** Dead letters and retrying jobs that are looked through for time-outs. */
const FAILED_MAX = 2_000
const QUEUES_MAX = 1_000
/** Promotion is asked for within seconds: what is late by this much is not being promoted. */
const OVERDUE_US = 60_000_000

export interface DiagnosisStatements {
  pace: Statement
  endings: Statement
  clock: Statement
  runs: Statement
  waiting: Statement
  overdue: Statement
  crashes: Statement
}

export function diagnosisStatements(schema: string): DiagnosisStatements {
  return {
    pace: { name: 'lh_pace', text: paceText(schema) },
    endings: { name: 'lh_endings', text: endingsText(schema) },
    clock: { name: 'lh_clock', text: `select ${schema}.clock() / 1000.0::float8 as now_ms` },
    runs: { name: 'lh_runs', text: runsText(schema) },
    waiting: { name: 'lh_waiting', text: waitingText(schema) },
    overdue: { name: 'lh_overdue', text: overdueText(schema) },
    crashes: { name: 'lh_crashes', text: crashesText(schema) },
  }
}

/** Every lane of the queues that may hold a job, in the ranges named. */
function lanes(queues: string, ranges: readonly number[]): string {
  const values = ranges.map((range) => `(${range * 16})`).join(', ')
  return `(select q.name as queue, q.id * 64 + g.n + v.n as lane from ${queues} q, (values ${values}) g(n), generate_series(0, 15) v(n)
      where (q.levels >> v.n) & 1 = 1) l`
}

/** $1 the queue. */
function paceText(schema: string): string {
  const queue = `(select * from ${schema}.queue where name = $1)`
  return `with e as materialized (select e.ended from ${queue} q, lateral (
      select e.ended from ${schema}.ended e where e.queue = q.id and e.state = 1 and e.ended >= ${schema}.instant(${schema}.clock() - 3600000000)
      order by e.ended desc limit ${COUNT_MAX + 1}) e)
    select (select (${schema}.clock() - min(r.due)) / 1000.0::float8 from ${lanes(queue, [0, 1, 2, 3])}, lateral (
        select coalesce(r.due, r.pos) as due from ${schema}.ready r where r.lane = l.lane order by r.pos
         -- A fair list is not in the order of time: its oldest job is among the first ones, or behind its tenant's others.
         limit case when l.lane & 48 = 48 then ${HEAD_MAX} else 1 end) r) as oldest_ms,
      (select count(*)::int from e) as hour,
      (select count(*)::int from e where e.ended >= ${schema}.instant(${schema}.clock() - 60000000)) as minute,
      (select extract(epoch from ${schema}.instant(${schema}.clock()) - min(e.ended))::float8 * 1000 from e) as since_ms`
}

/** $1 queue or null, $2 kind or null, $3 states, $4 and $5 the cursor or nulls, $6 microseconds back, $7 limit. */
function endingsText(schema: string): string {
  const from = `coalesce($4::timestamptz, ${schema}.instant(${schema}.clock())) - $6::bigint * interval '1 microsecond'`
  // Going on behind a row is the row and no time: the id tells those of one instant apart.
  const id = `case when $6::bigint = 0 then $5::uuid else '00000000-0000-0000-0000-000000000000' end`
  const part = (table: string, more: string, condition: string): string => `select e.* from queues q, lateral (
      select e.id, e.kind, e.queue, e.level::int as level, ${more}, coalesce((e.history ->> 'attempts')::int, 0) as attempts,
        extract(epoch from e.enqueued)::float8 * 1000 as enqueued, extract(epoch from e.started)::float8 * 1000 as started,
        extract(epoch from e.ended)::float8 * 1000 as ended_ms, e.ended as instant, e.ran_ms as ran, e.worker, e.history #> '{entries,-1}' as last
      from ${table} e where ${condition} and e.queue = q.id and ($2::text is null or e.kind = $2)
        and e.ended >= ${from} and (e.ended, e.id) > (${from}, ${id})
      order by e.ended, e.id limit $7::int) e`
  return `with queues as (select id from ${schema}.queue where $1::text is null or name = $1)
    select e.*, e.instant::text as at from (
      ${part(`${schema}.ended`, `'completed' as state, null::text as reason`, `'completed' = any($3::text[]) and e.state = 1`)}
      union all ${part(`${schema}.ended`, `'cancelled' as state, null::text as reason`, `'cancelled' = any($3::text[]) and e.state = 2`)}
      union all ${part(`${schema}.dead`, `'dead' as state, e.reason`, `'dead' = any($3::text[])`)}
    ) e order by e.instant, e.id limit $7::int`
}

function runsText(schema: string): string {
  const timeout = (spec: string): string =>
    `coalesce((${spec} ->> 'timeoutMs')::float8, ${SPEC_DEFAULTS.timeoutMs}::float8)`
  return `with q as materialized (select id, greatest(${RUNS_OF_QUEUE_MIN}, ${RUNS_MAX} / count(*) over ()) as most from ${schema}.queue order by id limit ${QUEUES_MAX}),
    s as materialized (select q.id as queue, e.kind, e.ran_ms, ${timeout('e.spec')} as timeout from q, lateral (
      select e.kind, e.ran_ms, e.spec from ${schema}.ended e where e.queue = q.id and e.state = 1 order by e.ended desc limit q.most) e
      where e.ran_ms is not null),
    f as materialized (select * from (
        (select x.queue, x.kind, x.spec, x.history from ${schema}.dead x order by x.ended desc limit ${FAILED_MAX})
        union all (select d.lane / 64, d.kind, d.spec, d.history from ${schema}.delayed d where d.history is not null limit ${FAILED_MAX})) f),
    t as (select f.queue, f.kind, mode() within group (order by ${timeout('f.spec')}) as timeout, count(*)::int as timed_out
      from f, json_array_elements(f.history -> 'entries') e where e.value ->> 'outcome' = 'timed out' group by f.queue, f.kind),
    c as (select s.queue, s.kind, count(*)::int as completed, max(s.ran_ms) as longest, mode() within group (order by s.timeout) as timeout,
        percentile_disc(array[0.5, 0.95, 0.99]) within group (order by s.ran_ms) as p
      from s group by s.queue, s.kind)
    select queue, kind, coalesce(c.completed, 0) as completed, coalesce(c.p[1], 0) as p50, coalesce(c.p[2], 0) as p95, coalesce(c.p[3], 0) as p99,
      coalesce(c.longest, 0) as longest, coalesce(c.timeout, t.timeout) as timeout, coalesce(t.timed_out, 0) as timed_out
    from c full join t using (queue, kind) order by queue, kind limit ${RUNS_MAX}`
}

/** $1 names of queues, or null. */
function waitingText(schema: string): string {
  const queues = `(select * from ${schema}.queue where $1::text[] is null or name = any($1::text[]) order by id limit ${QUEUES_MAX})`
  return `with h as materialized (select l.queue, l.lane, r.kind, r.due from ${lanes(queues, [0, 1, 2, 3])}, lateral (
      select r.kind, coalesce(r.due, r.pos) as due from ${schema}.ready r where r.lane = l.lane order by r.pos limit ${HEAD_MAX}) r),
    s as (select h.*, count(*) over (partition by h.lane) >= ${HEAD_MAX} as cut from h)
    select s.queue, s.kind, count(*)::int as count, bool_or(s.cut) as cut, (${schema}.clock() - min(s.due)) / 1000.0::float8 as oldest_ms
    from s group by s.queue, s.kind order by s.queue, s.kind limit ${COUNT_MAX}`
}

function overdueText(schema: string): string {
  return `with h as materialized (select l.lane, d.due from ${lanes(`${schema}.queue`, [0, 2])}, lateral (
      select d.due from ${schema}.delayed d where d.lane = l.lane and d.due < ${schema}.clock() - ${OVERDUE_US} order by d.due limit ${COUNT_MAX}) d
      limit ${COUNT_MAX + 1})
    select count(*)::int as count, coalesce((${schema}.clock() - min(due)) / 1000.0::float8, 0) as oldest_ms from h`
}

function crashesText(schema: string): string {
  const bounded = (from: string): string => `(select count(*)::int from (select ${from} limit ${COUNT_MAX + 1}) b)`
  const dead = (reason: string): string =>
    bounded(
      `from ${schema}.dead x where x.ended >= ${schema}.instant(${schema}.clock() - 86400000000) and x.reason = '${reason}'`,
    )
  const waiting = (table: string): string =>
    bounded(`from ${lanes(`${schema}.queue`, [2])} join ${schema}.${table} r on r.lane = l.lane`)
  return `select ${bounded(`from ${schema}.revoked where at >= ${schema}.clock() - 3600000000`)} as leases,
    ${waiting('ready')} + ${waiting('delayed')} as suspects, ${dead('poison')} as poison, ${dead('lost')} as lost`
}
