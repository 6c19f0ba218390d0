/**
 * What decides whether a job runs now: one statement, so that all of it is of one instant. Probes of indexes, each with
 * a bound; the rules that judge it are in core/explain.ts. Used by facts.ts.
 */
import { HOLDERS_SEEN_MAX, LIST_ENTRIES_MAX, WORKERS_SEEN_MAX } from '../../core/job-facts.js'
import type { Statement } from './database.js'
import { IS_BLOCKED, keyText } from './functions/keys.js'
import { DEAD, DELAYED, ENDED, leased, READY } from './job-sql.js'

/** $1 the job. Instants in milliseconds. */
export function factsStatement(schema: string): Statement {
  const none = 'null::bigint as claimed, null::boolean as adopted'
  return {
    name: 'lh_facts',
    text: `with n as materialized (select ${schema}.clock() as now),
    j as materialized (select g.id, g.kind, g.queue, g.level, g.state, g.spec, g.history, g.enqueued, g.due, g.started, g.ended,
        g.worker, g.reason, g.cancelling, g.lane, g.claimed, g.adopted from (
      select ${READY}, r.lane, ${none} from ${schema}.ready r where r.id = $1::uuid
      union all select ${DELAYED}, d.lane, ${none} from ${schema}.delayed d where d.id = $1::uuid
      union all select ${leased(schema)}, j.lane, l.claimed, l.request is null from ${schema}.lease l, unnest(l.jobs) with ordinality j
        where l.ids && array[$1::uuid] and j.id = $1::uuid and get_bit(l.open, j.ordinality::int - 1) = 1
      union all select ${ENDED}, null::int, ${none} from ${schema}.ended e where e.id = $1::uuid
      union all select ${DEAD}, null::int, ${none} from ${schema}.dead x where x.id = $1::uuid) g limit 1),
    q as materialized (select q.* from ${schema}.queue q where q.id = (select j.queue from j)),
    w as materialized (select w.id, w.info, w.started_at, coalesce((w.info -> 'queues')::jsonb ? (select q.name from q), false) as serves
      from ${schema}.worker w where least(w.seen, w.main_seen) >= (select n.now from n) - w.lease_us)
    select j.*, q.name as queue_name, q.paused, q.draining, q.ordering, n.now / 1000.0::float8 as now_ms, coalesce(j.lane & 48 = 32, false) as suspect,
      ${workersText(schema)} as workers,
      (select count(*)::int from w where not w.serves) as elsewhere,
      (select json_build_object('name', h.info ->> 'name', 'lastBeatAgoMs', (n.now - h.seen) / 1000.0::float8,
          'mainLagMs', greatest(0, h.seen - h.main_seen) / 1000.0::float8, 'leaseMs', h.lease_us / 1000.0::float8, 'beatMs', h.beat_us / 1000.0::float8)
        from ${schema}.worker h where j.state = 'running' and h.id = j.worker) as holder,
      (select json_build_object('id', a.ids[1], 'worker', a.worker) from ${schema}.lease a
        where a.alone and exists (select from unnest(a.jobs) b where b.lane / 64 = j.queue) limit 1) as suspect_running,
      ${limitsText(schema)} as limits,
      ${keySeenText(schema)} as key,
      ${listsText(schema)} as lists
    from j, q, n`,
  }
}

/** Those that serve the queue, the oldest first. */
function workersText(schema: string): string {
  return `(select json_agg(json_build_object('id', s.id, 'name', s.info ->> 'name', 'kinds', s.info -> 'kinds',
        'concurrency', (s.info ->> 'concurrency')::int, 'jobs', (select coalesce(sum(bit_count(l.open)), 0)::int from ${schema}.lease l where l.worker = s.id))
        order by s.started_at, s.id)
      from (select * from w where w.serves order by w.started_at, w.id limit ${WORKERS_SEEN_MAX}) s)`
}

/** Where the queue has any: its rules are in core/limits.ts. The functions see what this statement sees. */
function limitsText(schema: string): string {
  return `(select json_build_object('concurrency', case when x.concurrency is not null then json_build_object('limit', x.concurrency, 'held', ${schema}.held(q.id),
          'holders', (select coalesce(json_agg(json_build_object('id', h.id, 'worker', h.worker)), '[]') from (
            select i.id, l.worker from ${schema}.lease l, unnest(l.ids) with ordinality i(id, n)
            where coalesce(l.queue, (l.jobs[1]).lane / 64) = q.id and get_bit(l.open, i.n::int - 1) = 1 order by l.fence, i.n limit ${HOLDERS_SEEN_MAX}) h)) end,
        'rate', case when x.rate_count is not null then json_build_object(
          'tokens', ${schema}.tokens(x, n.now),
          'nextAt', (n.now + ${schema}.until_token(q.id, n.now)) / 1000.0::float8) end)
      from ${schema}.queue_limit x where x.queue = q.id)`
}

/** Who goes first of an order key is looked for as a claim does. */
function keySeenText(schema: string): string {
  const first = (from: string, due: string, condition: string) =>
    `(select w.id, ${due} as due from ${schema}.${from} w where w.lane / 64 = q.id and ${condition} order by ${due}, w.id limit 1)`
  const ofReady = `w.spec ->> 'orderKey' is not null and w.spec ->> 'orderKey' = substr(k.name, 2)`
  const ofBlocked = `w.${IS_BLOCKED} and ${keyText('w.spec')} = k.name`
  return `(select json_build_object('key', substr(k.name, 2), 'ordered', k.name like 'o%', 'limit', ${schema}.permits_of(q.id, k.name),
        'held', coalesce(cardinality(p.holders), 0), 'holders', coalesce(p.holders[1:${HOLDERS_SEEN_MAX}], '{}'), 'holds', coalesce(j.id = any(p.holders), false),
        'ahead', case when k.name like 'o%' then (select nullif(f.id, j.id) from (
          ${first('ready', 'coalesce(w.due, w.pos)', ofReady)} union all ${first('delayed', 'w.due', ofBlocked)}) f order by f.due, f.id limit 1) end)
      from (select ${keyText('j.spec')} as name) k left join ${schema}.permit p on p.queue = q.id and p.key = k.name where k.name is not null)`
}

/**
 * [range, level, kinds, dues in microseconds, index of the job or null, more], of each lane that has anything. The lanes
 * of suspects are read as one list, the higher level first.
 */
function listsText(schema: string): string {
  const list = (range: string, level: string, from: string): string =>
    `(select json_build_array(${range}, ${level}, json_agg(h.kind order by h.n) filter (where h.n <= ${LIST_ENTRIES_MAX}),
          json_agg(h.due order by h.n) filter (where h.n <= ${LIST_ENTRIES_MAX}),
          min(h.n - 1) filter (where h.id = j.id and h.n <= ${LIST_ENTRIES_MAX}), bool_or(h.n > ${LIST_ENTRIES_MAX})) as list
        from (${from} limit ${LIST_ENTRIES_MAX + 1}) h having count(*) > 0)`
  const row = 'r.id, r.kind, coalesce(r.due, r.pos) as due'
  const lane = 'q.id * 64 + g.n * 16 + v.n'
  const ofLane = `select ${row}, row_number() over (order by r.pos) as n from ${schema}.ready r where r.lane = ${lane} order by r.pos`
  const suspects = `select ${row}, row_number() over (order by r.lane desc, r.pos) as n from ${schema}.ready r
          where r.lane between q.id * 64 + 32 and q.id * 64 + 47 order by r.lane desc, r.pos`
  return `(select json_agg(t.list) from (
        select s.list from (values (0), (1), (3)) g(n), generate_series(0, 15) v(n), lateral ${list('g.n', 'v.n', ofLane)} s
          where j.state = 'ready' and j.lane & 48 <> 32 and (q.levels >> v.n) & 1 = 1
        union all select s.list from (values (2)) g(n), lateral ${list('g.n', '0', suspects)} s where j.state = 'ready' and j.lane & 48 = 32) t)`
}
