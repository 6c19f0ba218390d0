/** Functions: what becomes due, and what has waited too long. Called by upkeep.ts. */

import { keysOf } from './keys.js'

export const UPKEEP = `
-- Due jobs become ready, each lane's earliest first. p_since: nothing that is due lies before it (a cursor over time).
create or replace function :schema.promote(p_since bigint, p_limit int) returns table (moved json, count int, next_due bigint) language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_variable
declare
  v_now bigint := :schema.clock();
begin
  with lanes as (select q.id * 64 + r.n * 16 + l.n as lane from :schema.queue q, generate_series(0, 15) l(n), (values (0), (2)) r(n)
      where (q.levels >> l.n) & 1 = 1),
  c as (select d.ctid as c from lanes, lateral (select h.ctid, h.due, h.id from :schema.delayed h
      where h.lane = lanes.lane and h.due >= p_since and h.due <= v_now
        -- One bad record, an id that is ready already, stops nobody else.
        and not exists (select from :schema.ready r where r.id = h.id) order by h.due, h.id limit p_limit for update skip locked) d
      -- Those of one call may be due at one instant; their ids rise.
      order by d.due, d.id limit p_limit),
  x as (delete from :schema.delayed where ctid = any(array(select c.c from c)) returning *),
  -- A tenant gets its share from now on: jobs for tomorrow delay nobody today.
  f as materialized (select p.* from (select array_agg(x.lane order by x.due, x.id) as lanes, array_agg(x.id order by x.due, x.id) as ids,
      array_agg(x.spec order by x.due, x.id) as specs from x where x.lane & 48 = 0) a, :schema.fair_positions(a.lanes, a.ids, a.specs) p
    where exists (select from :schema.queue q where q.fair <> 0)),
  i as (insert into :schema.ready (lane, bytes, pos, id, kind, payload, spec, history, enqueued, due)
    -- A new position, so that no cursor lies beyond it; in due order among themselves.
    select coalesce(f.lane, o.lane), o.bytes, coalesce(f.pos, v_now + o.n), o.id, o.kind, o.payload, o.spec, o.history, o.enqueued, o.due
      from (select x.*, row_number() over (order by x.due, x.id) as n from x) o left join f on f.id = o.id)
  select json_agg(json_build_array(x.id, x.kind, x.lane / 64) order by x.due, x.id), count(*)::int into moved, count from x;
  perform :schema.hint(array(select distinct (m ->> 2)::int from json_array_elements(coalesce(moved, '[]')) m), false);
  next_due := (select min(d.due) from (select q.id * 64 + r.n * 16 + l.n as lane from :schema.queue q, generate_series(0, 15) l(n), (values (0), (2)) r(n)
      where (q.levels >> l.n) & 1 = 1) lanes,
    lateral (select d.due from :schema.delayed d where d.lane = lanes.lane and d.due >= p_since order by d.due limit 1) d) - :schema.clock();
  return next;
end $$;

-- Jobs that have not started in time. What runs, or ran before, is left alone.
create or replace function :schema.expire(p_limit int) returns json language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_now bigint := :schema.clock();
  v_rows tid[];
  v_ids uuid[];
  v_moved json;
  v_key_queues int[];
  v_keys text[];
  v_key_ids uuid[];
begin
  select array_agg(e.ctid), array_agg(e.id) into v_rows, v_ids from (
    select x.ctid, x.id from :schema.expiry x where x.at <= v_now order by x.at limit p_limit for update skip locked) e;
  if v_ids is not null then
    with r as (delete from :schema.ready where ctid = any(array(select h.ctid from :schema.ready h where h.id = any(v_ids)
        and :schema.is_late(h.history, h.spec, coalesce(h.enqueued, h.pos), v_now) for update skip locked)) returning id, kind, lane, payload, spec, history, coalesce(enqueued, pos) as enqueued),
    d as (delete from :schema.delayed where ctid = any(array(select h.ctid from :schema.delayed h where h.id = any(v_ids)
        and :schema.is_late(h.history, h.spec, h.enqueued, v_now) order by h.id for update skip locked))
        returning id, kind, lane, payload, spec, history, enqueued),
    a as materialized (select * from r union all select * from d),
    i as (insert into :schema.dead (id, queue, level, kind, reason, enqueued, ended, payload, spec, history)
      select id, lane / 64, lane % 16, kind, 'expired', :schema.instant(enqueued), :schema.instant(v_now), payload, spec,
        :schema.history_with(history, json_build_object('at', v_now / 1000, 'attempt', 1, 'outcome', 'expired', 'note', 'not started in time')) from a)
    select json_agg(json_build_array(id, kind, lane / 64)), ${keysOf('a')}
      into v_moved, v_key_queues, v_keys, v_key_ids from a;
    if v_keys is not null then perform :schema.release(v_key_queues, v_keys, v_key_ids); end if;
    -- What others had in their hands at that moment (to promote it, to claim it and fail) still waits: the next sweep looks again.
    delete from :schema.expiry e where e.ctid = any(v_rows)
      and not exists (select from :schema.ready h where h.id = e.id and :schema.is_late(h.history, h.spec, coalesce(h.enqueued, h.pos), v_now))
      and not exists (select from :schema.delayed h where h.id = e.id and :schema.is_late(h.history, h.spec, h.enqueued, v_now));
  end if;
  -- Last, as it waits for no key: locks of keys would be taken in two orders.
  perform :schema.free_keys(null, 100) where exists (select from :schema.queue q where q.keyed);
  return coalesce(v_moved, '[]');
end $$;
`
