/** A job of any place in one shape: the select lists of get and of lists. Used by inspect-sql.ts and list-sql.ts. */

/** Counts are exact up to here; above, an estimate is taken or it is said that there are more. */
export const COUNT_EXACT_MAX = 5_000
/** The same for the states whose exact number nobody acts upon when it is large. One call counts all states, again and again. */
export const RARE_COUNT_EXACT_MAX = 1_000

/** One shape for a job of any place. Instants as milliseconds. `result` as text, so that null and no result differ. */
export const READY = `r.id, r.kind, r.lane / 64 as queue, r.lane % 16 as level, 'ready' as state, r.payload, r.spec, r.history,
  coalesce(r.enqueued, r.pos) / 1000.0::float8 as enqueued, coalesce(r.due, r.pos) / 1000.0::float8 as due, null::float8 as started, null::float8 as ended, null::int as ran,
  null::uuid as worker, null::text as result_text, null::text as reason, false as cancelling`
export const DELAYED = `d.id, d.kind, d.lane / 64 as queue, d.lane % 16 as level, case when d.lane & 16 = 16 then 'blocked' when d.history is null then 'delayed' else 'retrying' end as state, d.payload, d.spec, d.history,
  d.enqueued / 1000.0::float8 as enqueued, d.due / 1000.0::float8 as due, null::float8 as started, null::float8 as ended, null::int as ran,
  null::uuid as worker, null::text as result_text, null::text as reason, false as cancelling`
export const ENDED = `e.id, e.kind, e.queue, e.level::int, case e.state when 1 then 'completed' else 'cancelled' end as state, e.payload, e.spec, e.history,
  extract(epoch from e.enqueued)::float8 * 1000 as enqueued, null::float8 as due, extract(epoch from e.started)::float8 * 1000 as started,
  extract(epoch from e.ended)::float8 * 1000 as ended, e.ran_ms as ran, e.worker, e.result::text as result_text, null::text as reason, false as cancelling`
export const DEAD = `x.id, x.kind, x.queue, x.level::int, 'dead' as state, x.payload, x.spec, x.history,
  extract(epoch from x.enqueued)::float8 * 1000 as enqueued, null::float8 as due, extract(epoch from x.started)::float8 * 1000 as started,
  extract(epoch from x.ended)::float8 * 1000 as ended, x.ran_ms as ran, x.worker, null::text as result_text, x.reason, false as cancelling`

/**
 * `l` is the lease, `j` the job in it. When it started is told by beats as how long it had run: not before its claim,
 * whatever a beat took on its way.
 */
export function leased(schema: string): string {
  return `j.id, j.kind, j.lane / 64 as queue, j.lane % 16 as level, 'running' as state, j.payload, j.spec, j.history,
  coalesce(j.enqueued, j.pos) / 1000.0::float8 as enqueued, coalesce(j.due, j.pos) / 1000.0::float8 as due,
  (select greatest(l.claimed / 1000.0::float8, w.main_seen / 1000.0::float8 - (s ->> 2)::float8)
    from ${schema}.worker w, json_array_elements(w.started) s
    where w.id = l.worker and (s ->> 2) is not null and (s ->> 0)::bigint = l.fence and (s ->> 1)::bigint = j.ordinality - 1 limit 1) as started,
  null::float8 as ended, null::int as ran, l.worker, null::text as result_text, null::text as reason,
  coalesce(get_bit(l.cancelled, j.ordinality::int - 1) = 1, false) as cancelling`
}
