/** Functions: what operators do to jobs. Called by control.ts. */

import { IS_BLOCKED, keysOf } from './keys.js'

/** What waits among the delayed jobs, as a person calls it. */
const WAITS_AS = `case when h.${IS_BLOCKED} then 'blocked' else :schema.waits_as(h.history) end`

export const CONTROL = `
-- What a person calls a job that waits for its time: one that ran before is retrying.
create or replace function :schema.waits_as(p_history json) returns text language sql immutable as
$$ select case when p_history is null then 'delayed' else 'retrying' end $$;

-- Waiting jobs end now, running ones are marked for their worker: 'cancelled', 'signalled' or 'ended' for each that is
-- found, and 'moved on' for those that are in none of the states asked for (null: all). One that moves between two of
-- these looks may be missed; the caller asks again for what was not answered.
create or replace function :schema.cancel_in(p_ids uuid[], p_states text[]) returns table (id uuid, answer text, kind text, queue int) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := :schema.clock();
  v_ids uuid[];
  v_kinds text[];
  v_queues int[];
  v_key_queues int[];
  v_keys text[];
  v_key_ids uuid[];
begin
    with r as (delete from :schema.ready w where w.ctid = any(array(
        select h.ctid from :schema.ready h where h.id = any(p_ids) and (p_states is null or 'ready' = any(p_states)) order by h.id for update)) returning w.id, w.lane, w.kind, w.payload, w.spec, w.history, coalesce(w.enqueued, w.pos) as enqueued),
    d as (delete from :schema.delayed w where w.ctid = any(array(
        select h.ctid from :schema.delayed h where h.id = any(p_ids) and (p_states is null or ${WAITS_AS} = any(p_states)) order by h.id for update)) returning w.id, w.lane, w.kind, w.payload, w.spec, w.history, w.enqueued),
    a as materialized (select * from r union all select * from d),
    e as (insert into :schema.ended (id, queue, state, level, kind, enqueued, ended, payload, spec, history)
      select a.id, a.lane / 64, 2, a.lane % 16, a.kind, :schema.instant(a.enqueued), :schema.instant(v_now), a.payload, a.spec,
        :schema.history_cancelled(a.history, v_now)
      from a where coalesce(a.spec ->> 'keep', 'all') <> 'none')
    select array_agg(a.id order by a.id), array_agg(a.kind order by a.id), array_agg(a.lane / 64 order by a.id),
        ${keysOf('a')}
      into v_ids, v_kinds, v_queues, v_key_queues, v_keys, v_key_ids from a;
    return query select u.id, 'cancelled', u.kind, u.queue from unnest(v_ids, v_kinds, v_queues) u(id, kind, queue);

    if p_states is null or 'running' = any(p_states) then
      perform from :schema.lease l where l.ids && p_ids order by l.fence for update;
      return query
      with f as materialized (select l.fence, l.open, j.id, j.kind, j.lane, j.ordinality::int - 1 as ordinal from :schema.lease l, unnest(l.jobs) with ordinality j
          where l.ids && p_ids and j.id = any(p_ids) and get_bit(l.open, j.ordinality::int - 1) = 1),
      u as (update :schema.lease l set cancelled = :schema.with(coalesce(l.cancelled, repeat('0', bit_length(l.open))::varbit), m.ordinals)
        from (select f.fence, array_agg(f.ordinal) as ordinals from f group by f.fence) m where l.fence = m.fence)
      select f.id, 'signalled', f.kind, f.lane / 64 from f;
    end if;
    -- After the leases, as by settlements.
    if v_keys is not null then perform :schema.release(v_key_queues, v_keys, v_key_ids); end if;

    -- Only those that would not be taken where they are: another one came there after the look, and is asked for again.
    if p_states is not null then
      return query select x.id, 'moved on', x.kind, x.lane / 64 from :schema.ready x
        where x.id = any(p_ids) and not 'ready' = any(p_states);
      return query select x.id, 'moved on', x.kind, x.lane / 64 from :schema.delayed x
        where x.id = any(p_ids) and not ${WAITS_AS.replaceAll('h.', 'x.')} = any(p_states);
      return query select j.id, 'moved on', j.kind, j.lane / 64 from :schema.lease l, unnest(l.jobs) with ordinality j
        where l.ids && p_ids and j.id = any(p_ids) and get_bit(l.open, j.ordinality::int - 1) = 1 and not 'running' = any(p_states);
    end if;
    return query select x.id, 'ended', x.kind, x.queue from :schema.ended x where x.id = any(p_ids);
    return query select x.id, 'ended', x.kind, x.queue from :schema.dead x where x.id = any(p_ids);
    -- Last, as keys come after leases in the order of locks.
    if v_keys is not null then perform :schema.release(v_key_queues, v_keys, v_key_ids); end if;
end $$;

-- Delayed and retrying jobs, or those of one of these states (null: both), become ready now, at the front of their lanes.
create or replace function :schema.retry_in(p_ids uuid[], p_states text[]) returns table (id uuid, kind text, queue int) language plpgsql as $$
#variable_conflict use_column
begin
  return query
  with x as (delete from :schema.delayed d where d.ctid = any(array(
      -- What its key blocks is due already.
      select h.ctid from :schema.delayed h where h.id = any(p_ids) and not h.${IS_BLOCKED} and (p_states is null or :schema.waits_as(h.history) = any(p_states)) order by h.id for update)) returning d.*),
  i as (insert into :schema.ready (lane, bytes, pos, id, kind, payload, spec, history, enqueued, due)
    select case when o.lane & 48 = 32 then o.lane else (o.lane / 64) * 64 + 16 + o.lane % 16 end, o.bytes, nextval(':schema_text.front'),
      o.id, o.kind, o.payload, o.spec, :schema.history_with(o.history, json_build_object('at', :schema.clock() / 1000,
        'attempt', coalesce((o.history ->> 'attempts')::int, 0) + 1, 'outcome', 'retried')),
      -- Due since its enqueue: it goes ahead of what came in after it.
      o.enqueued, o.enqueued from (select * from x order by x.due, x.id) o)
  select x.id, x.kind, x.lane / 64 from x;
  perform :schema.hint(array(select distinct r.lane / 64 from :schema.ready r where r.id = any(p_ids)), false);
end $$;

-- Dead letters that ended before an instant (null: all) start anew: fresh attempts, the same id, key, payload and history.
create or replace function :schema.redrive_before(p_ids uuid[], p_force boolean, p_before bigint) returns table (id uuid, kind text, queue int) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := :schema.clock();
begin
  return query
  with x as (delete from :schema.dead d where d.ctid = any(array(
      select h.ctid from :schema.dead h where h.id = any(p_ids) and (p_force or h.reason <> 'lost')
        and h.ended < coalesce(:schema.instant(p_before), 'infinity') order by h.id for update)) returning d.*),
  f as materialized (select p.* from (select array_agg(x.queue * 64 + x.level order by x.ended, x.id) as lanes, array_agg(x.id order by x.ended, x.id) as ids,
      array_agg(x.spec order by x.ended, x.id) as specs from x) a, :schema.fair_positions(a.lanes, a.ids, a.specs) p),
  i as (insert into :schema.ready (lane, bytes, pos, id, kind, payload, spec, history, enqueued, due)
    select coalesce(f.lane, o.queue * 64 + o.level), octet_length(o.payload::text), coalesce(f.pos, v_now + o.n), o.id, o.kind, o.payload, o.spec,
      :schema.history_redriven(o.history, v_now), (extract(epoch from o.enqueued) * 1000000)::bigint, case when f.id is not null then v_now + o.n end
      from (select x.*, row_number() over (order by x.ended, x.id) as n from x) o left join f on f.id = o.id)
  select x.id, x.kind, x.queue from x;
  perform :schema.hint(array(select distinct r.lane / 64 from :schema.ready r where r.id = any(p_ids)), false);
end $$;

-- Deletes what waits in a queue; the keys of what it deletes are free.
create or replace function :schema.purge(p_queue int, p_limit int) returns int language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_deleted int;
  v_key_queues int[];
  v_keys text[];
  v_key_ids uuid[];
begin
  with r as (delete from :schema.ready where ctid = any(array(select h.ctid from :schema.ready h
      where h.lane between p_queue * 64 and p_queue * 64 + 63 order by h.lane, h.pos limit p_limit for update skip locked)) returning id, kind, spec, lane),
  k as (delete from :schema.idempotency i using r where i.kind = r.kind and i.key = r.spec ->> 'idempotencyKey' and i.id = r.id)
  select count(*)::int, ${keysOf('r')} into v_deleted, v_key_queues, v_keys, v_key_ids from r;
  if v_deleted < p_limit then
    with d as (delete from :schema.delayed where ctid = any(array(select h.ctid from :schema.delayed h
        where h.lane between p_queue * 64 and p_queue * 64 + 63 order by h.lane, h.due limit p_limit - v_deleted for update skip locked)) returning id, kind, spec, lane),
    k as (delete from :schema.idempotency i using d where i.kind = d.kind and i.key = d.spec ->> 'idempotencyKey' and i.id = d.id)
    select v_deleted + x.n::int, v_key_queues || x.queues, v_keys || x.keys, v_key_ids || x.ids
      into v_deleted, v_key_queues, v_keys, v_key_ids from (select count(*) as n, ${keysOf('d')} from d) x(n, queues, keys, ids);
  end if;
  if v_keys is not null then perform :schema.release(v_key_queues, v_keys, v_key_ids); end if;
  return v_deleted;
end $$;

-- Whether something that was enqueued by p_until still waits: in the hands of others when purge passed it by, on its way
-- from one place to another. VOLATILE, so that it sees what a purge in the same statement has deleted.
create or replace function :schema.waits_since(p_queue int, p_until bigint) returns boolean language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  return exists (select from :schema.ready h where h.lane between p_queue * 64 and p_queue * 64 + 63 and coalesce(h.enqueued, h.pos) <= p_until)
    or exists (select from :schema.delayed h where h.lane between p_queue * 64 and p_queue * 64 + 63 and h.enqueued <= p_until);
end $$;
`
