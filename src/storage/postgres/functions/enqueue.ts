/** Functions: how jobs come in. Called by enqueue.ts and by producers that are not Node. */

export const ENQUEUE = `
-- New jobs that may start now and have no key, in groups of one lane, kind and spec. p_payloads is one JSON array for
-- each group, in an array: elements keep their own text, and nobody had to quote them; where p_sizes is null there is one
-- group, and p_payloads is its array. p_order: places in the call, where groups took the jobs out of order. Null when all were
-- stored, else what was not: "draining", the queues that are being drained, and "full" and "early", what overflow() and
-- without_token() say of each item.
create or replace function :schema.enqueue_plain(p_ids uuid[], p_payloads json, p_sizes int[], p_lanes int[], p_kinds text[], p_specs json[], p_order int[], p_always boolean)
returns json language plpgsql as $$
declare
  v_now bigint := :schema.clock();
  v_queue record;
  v_draining int[];
  v_bounded boolean;
  v_full bigint[];          -- items that find no room, or no token; null: nobody has asked
  v_bounds json;
  v_early bigint[];
  v_waits json;
  v_item_lanes int[];       -- and kinds and specs, of each item
  v_item_kinds text[];
  v_item_specs json[];
  v_from int := 1;
  v_fair boolean;           -- a level has a fair list
  v_fair_lanes int[];       -- of each item, where it goes into such a list
  v_places bigint[];
  v_payloads json;
  g int := 0;
begin
  if p_sizes is null then
    -- The form of single enqueues: one look at all there is to know of the queue.
    select q.draining, q.bounded, (q.fair >> (p_lanes[1] % 16)) & 1 = 1 as fair, case when p_always or exists (select from :schema.idle i where i.queue = q.id and i.until > v_now and not i.limited) then q.name end as told
      into v_queue from :schema.queue q where q.id = p_lanes[1] / 64;
    if v_queue.draining then return json_build_object('draining', array[p_lanes[1] / 64]); end if;
    if v_queue.bounded then
      select array_agg(x.o), json_agg(x) into v_full, v_bounds
        from :schema.overflow(array_fill(p_lanes[1], array[cardinality(p_ids)]), array_fill(p_kinds[1], array[cardinality(p_ids)]),
          array_fill(p_specs[1], array[cardinality(p_ids)]), null, null, '{}') x;
      select array_agg(x.o), json_agg(x) into v_early, v_waits
        from :schema.without_token(array_fill(p_lanes[1], array[cardinality(p_ids)]), null, coalesce(v_full, '{}')) x;
      v_full := v_full || v_early;
    end if;
    if v_queue.fair then
      insert into :schema.ready (lane, bytes, pos, id, kind, payload, spec, enqueued, due)
      select f.lane, octet_length(u.payload::text), f.pos, u.id, p_kinds[1], u.payload, p_specs[1], v_now + u.o, v_now + u.o
        from rows from (unnest(p_ids), json_array_elements(p_payloads)) with ordinality u(id, payload, o)
        join :schema.fair_positions(array_fill(p_lanes[1], array[cardinality(p_ids)]), array(select i.id from unnest(p_ids) with ordinality i(id, o) where v_full is null or i.o <> all(v_full) order by i.o),
          array_fill(p_specs[1], array[cardinality(p_ids)])) f on f.id = u.id;
    else
      insert into :schema.ready (lane, bytes, pos, id, kind, payload, spec)
      select p_lanes[1], octet_length(u.payload::text), v_now + u.o, u.id, p_kinds[1], u.payload, p_specs[1]
        from rows from (unnest(p_ids), json_array_elements(p_payloads)) with ordinality u(id, payload, o)
       where v_full is null or u.o <> all(v_full);
    end if;
    if v_queue.told is not null then perform pg_notify(':channel', v_queue.told); end if;
    return case when v_full is not null then json_build_object('full', v_bounds, 'early', v_waits) end;
  end if;
  select array_agg(q.id) filter (where q.draining), bool_or(q.bounded), bool_or(q.fair <> 0) into v_draining, v_bounded, v_fair from :schema.queue q
   where q.id in (select lane / 64 from unnest(p_lanes) lane);
  if v_bounded then
    select array_agg(p_lanes[s.g] order by s.g), array_agg(p_kinds[s.g] order by s.g), array_agg(p_specs[s.g] order by s.g)
      into v_item_lanes, v_item_kinds, v_item_specs from (select g from generate_subscripts(p_sizes, 1) g, generate_series(1, p_sizes[g])) s;
    select array_agg(x.o), json_agg(x) into v_full, v_bounds from :schema.overflow(v_item_lanes, v_item_kinds, v_item_specs, null, p_order, '{}') x;
    select array_agg(x.o), json_agg(x) into v_early, v_waits from :schema.without_token(v_item_lanes, p_order,
      coalesce(v_full, '{}') || array(select u.o from unnest(v_item_lanes) with ordinality u(lane, o) where u.lane / 64 = any(v_draining))) x;
    v_full := v_full || v_early;
  end if;
  if v_fair then
    with t as materialized (select row_number() over (order by s.g, s.i) as n, p_lanes[s.g] as lane, p_specs[s.g] as spec
        from (select g, i from generate_subscripts(p_sizes, 1) g, generate_series(1, p_sizes[g]) i) s),
    a as (select array_agg(t.lane order by o.nth) as lanes, array_agg(p_ids[t.n] order by o.nth) as ids, array_agg(t.spec order by o.nth) as specs
        from t, lateral (select case when p_order is null then t.n else p_order[t.n] end as nth) o
       where (v_draining is null or t.lane / 64 <> all(v_draining)) and (v_full is null or t.n <> all(v_full)))
    select array_agg(f.lane order by t.n), array_agg(f.pos order by t.n) into v_fair_lanes, v_places
      from t left join (select f.* from a, :schema.fair_positions(a.lanes, a.ids, a.specs) f) f on f.id = p_ids[t.n];
  end if;
  for v_payloads in select value from json_array_elements(p_payloads) loop
    g := g + 1;
    if v_draining is null or p_lanes[g] / 64 <> all(v_draining) then
      -- Consecutive microseconds keep the order of the call inside a lane.
      insert into :schema.ready (lane, bytes, pos, id, kind, payload, spec, enqueued, due)
      select coalesce(v_fair_lanes[v_from - 1 + u.o], p_lanes[g]), octet_length(u.payload::text), coalesce(v_places[v_from - 1 + u.o], i.at), u.id, p_kinds[g], u.payload, p_specs[g],
          case when v_places[v_from - 1 + u.o] is not null then i.at end, case when v_places[v_from - 1 + u.o] is not null then i.at end
        from rows from (unnest(p_ids[v_from : v_from + p_sizes[g] - 1]), json_array_elements(v_payloads)) with ordinality u(id, payload, o),
          lateral (select v_now + case when p_order is null then v_from - 1 + u.o else p_order[v_from - 1 + u.o] end as at) i
       where v_full is null or v_from - 1 + u.o <> all(v_full);
    end if;
    v_from := v_from + p_sizes[g];
  end loop;
  perform :schema.hint(array(select distinct lane / 64 from unnest(p_lanes) lane), p_always);
  return case when v_draining is not null or v_full is not null then json_build_object('draining', v_draining, 'full', v_bounds, 'early', v_waits) end;
end $$;

-- New jobs of any form: delayed, with a key, with an expiry. One answer each, in the order of the call:
-- 'created', 'duplicate', 'mismatch' (with the first job's id), 'known' (somebody chose an id that a job has, in any
-- place), 'draining', 'full' or 'early' (with what overflow() or without_token() says of it). A key that is being decided in
-- somebody's open transaction raises lock_not_available after a moment; the caller then halves its batch to find it.
create or replace function :schema.enqueue_any(p_ids uuid[], p_lanes int[], p_kinds text[], p_payloads json[], p_specs json[],
  p_delays bigint[], p_ats bigint[], p_expires bigint[], p_keys text[], p_hashes text[], p_retentions bigint[], p_chosen boolean[], p_always boolean)
returns table (status text, first uuid, bound json) language plpgsql set lock_timeout = '50ms' as $$
#variable_conflict use_column
declare
  v_now bigint := :schema.clock();
  v_draining int[];
  v_bounded boolean;
  v_fair boolean;           -- a level has a fair list
  v_full bigint[] := '{}'; -- items that find no room
  v_bounds json[];
  v_new uuid[] := '{}';
  v_firsts uuid[];          -- of each item with a key: the job that has it
  v_hashes text[];
  v_freed boolean := false;
  v_known uuid[] := '{}';  -- chosen ids that jobs have
  v_repeats bigint[] := '{}'; -- items whose id stands before them in the call
begin
  -- What is decided here has to see what was committed while it waited: an older snapshot would find a key, or an id, free
  -- that is taken, or taken by a job that is gone.
  if p_keys is not null or p_chosen is not null then perform :schema.must_be_read_committed(); end if;
  -- No stranger can decide anything about these: a lock that they wait for is the server's own (a table that grows, a
  -- vacuum that cuts it off), and soon over. The end of the function takes the setting back.
  if p_keys is null and p_chosen is null then perform set_config('lock_timeout', '10s', true); end if;
  select coalesce(array_agg(q.id) filter (where q.draining), '{}'), bool_or(q.bounded), bool_or(q.fair <> 0) into v_draining, v_bounded, v_fair from :schema.queue q
   where q.id in (select lane / 64 from unnest(p_lanes) lane);
  if p_chosen is not null then
    -- Two callers with one id: the second one looks when the first has committed.
    perform pg_advisory_xact_lock(hashtextextended(':schema_text job ' || c.id, 0)) from (
      select u.id from unnest(p_ids, p_chosen) u(id, chosen) where u.chosen order by u.id) c;
    v_known := array(select u.id from unnest(p_ids, p_chosen) u(id, chosen) where u.chosen and :schema.is_known(u.id));
    v_repeats := array(select t.o from (select u.o, row_number() over (partition by u.id order by u.o) as nth
      from unnest(p_ids) with ordinality u(id, o)) t where t.nth > 1);
  end if;
  if p_keys is not null then perform :schema.free_expired_keys(p_kinds, p_keys, v_now); end if;
  if v_bounded then
    -- What is not stored anyhow takes no room.
    select coalesce(array_agg(x.o), '{}'), array_agg(row_to_json(x)) into v_full, v_bounds
      from :schema.overflow(p_lanes, p_kinds, p_specs, p_keys, null, array(
        select u.o from unnest(p_ids, p_lanes, p_kinds, p_keys) with ordinality u(id, lane, kind, key, o)
         where u.lane / 64 = any(v_draining) or u.id = any(v_known) or u.o = any(v_repeats)
           or exists (select from :schema.idempotency i where i.kind = u.kind and i.key = u.key))) x;
  end if;
  if p_keys is not null then
    for v_try in 1 .. 10 loop
      -- Sorted, so that two callers with the same keys meet at the same one first.
      with i as (insert into :schema.idempotency (kind, key, id, payload_hash, expires)
      select distinct on (u.kind, u.key) u.kind, u.key, u.id, u.hash, greatest(v_now, coalesce(u.at, v_now + u.delay)) + u.retention
        from unnest(p_ids, p_lanes, p_kinds, p_keys, p_hashes, p_retentions, p_delays, p_ats)
          with ordinality u(id, lane, kind, key, hash, retention, delay, at, o)
       -- What is refused takes no key along.
       where u.key is not null and u.lane / 64 <> all(v_draining) and u.id <> all(v_known) and u.o <> all(v_repeats) and u.o <> all(v_full)
       order by u.kind, u.key, u.o
      on conflict (kind, key) do nothing returning id)
      select v_new || coalesce(array_agg(i.id), '{}') into v_new from i;
      -- One look for all that follows. A key that was there a moment ago may have been freed since, by a discard, a purge
      -- or pruning: without another try its job would be stored, and its key not.
      select array_agg(i.id order by u.o), array_agg(i.payload_hash order by u.o),
          bool_or(u.key is not null and i.id is null and u.lane / 64 <> all(v_draining) and u.id <> all(v_known) and u.o <> all(v_repeats) and u.o <> all(v_full))
        into v_firsts, v_hashes, v_freed
        from unnest(p_ids, p_kinds, p_keys, p_lanes) with ordinality u(id, kind, key, lane, o)
          left join :schema.idempotency i on i.kind = u.kind and i.key = u.key;
      exit when not v_freed;
    end loop;
    if v_freed then raise exception 'a key changes hands all the time' using errcode = 'lock_not_available'; end if;
  end if;
  return query
  with u as materialized (
    select x.*, greatest(v_now, coalesce(x.at, v_now + x.delay)) as due, n.id is not null as is_new
      from unnest(p_ids, p_lanes, p_kinds, p_payloads, p_specs, p_delays, p_ats, p_expires, p_keys, p_hashes, p_chosen, v_firsts, v_hashes)
        with ordinality x(id, lane, kind, payload, spec, delay, at, expires, key, hash, chosen, first_id, first_hash, o)
      -- The key was taken by this very item of this very call: a call sent again finds it taken before.
      left join unnest(v_new) n(id) on n.id = x.id and n.id = x.first_id),
  v as materialized (
    select u.*, case
      -- A later one of the call has the key only where this one was not stored.
      when u.first_id is not null and not u.is_new and not exists (select from u t where t.is_new and t.id = u.first_id and t.o > u.o) then case when u.first_hash = u.hash then 'duplicate' else 'mismatch' end
      when u.chosen and (u.id = any(v_known) or u.o = any(v_repeats)) then 'known'
      when u.lane / 64 = any(v_draining) then 'draining'
      when u.o = any(v_full) then 'full'
      else 'created' end as fitting
    from u),
  m as materialized (select a.items[t.o] as o, row_to_json(t) as bound
    from (select array_agg(v.lane order by v.o) as lanes, array_agg(v.o order by v.o) as items from v where v.fitting = 'created') a,
      :schema.without_token(a.lanes, null, '{}') t where v_bounded),
  -- Where the first of a key finds no token, the others of the call have none either.
  l as materialized (select distinct on (v.id) v.id, v.kind, v.key, m.bound from m join v on v.o = m.o where v.is_new order by v.id, v.o),
  k as (delete from :schema.idempotency i using l where i.kind = l.kind and i.key = l.key and i.id = l.id),
  w as materialized (
    select v.*, case when m.o is not null or l.id is not null then 'early' else v.fitting end as verdict, coalesce(m.bound, l.bound) as early
      from v left join m on m.o = v.o left join l on l.id = v.first_id and v.fitting in ('duplicate', 'mismatch')),
  f as materialized (select p.* from (select array_agg(v.lane order by v.o) as lanes, array_agg(v.id order by v.o) as ids, array_agg(v.spec order by v.o) as specs
      from w v where v.verdict = 'created' and v.due <= v_now) a, :schema.fair_positions(a.lanes, a.ids, a.specs) p where v_fair),
  r as (insert into :schema.ready (lane, bytes, pos, id, kind, payload, spec, enqueued, due)
    select coalesce(f.lane, v.lane), octet_length(v.payload::text), coalesce(f.pos, v_now + v.o), v.id, v.kind, v.payload, v.spec,
        case when f.id is not null then v_now + v.o end, case when f.id is not null then v_now + v.o end
      from w v left join f on f.id = v.id where v.verdict = 'created' and v.due <= v_now),
  d as (insert into :schema.delayed (lane, bytes, due, id, kind, payload, spec, enqueued)
    select v.lane, octet_length(v.payload::text), v.due, v.id, v.kind, v.payload, v.spec, v_now + v.o from w v where v.verdict = 'created' and v.due > v_now),
  e as (insert into :schema.expiry (at, id)
    -- Reckoned from what a give-back takes for its enqueue, so that it finds this entry.
    select v_now + v.o + v.expires, v.id from w v where v.verdict = 'created' and v.expires is not null)
  select v.verdict, case when v.verdict in ('duplicate', 'mismatch') then v.first_id end,
    case v.verdict when 'full' then v_bounds[array_position(v_full, v.o)] when 'early' then v.early end from w v order by v.o;
  perform :schema.hint(array(select distinct u.lane / 64 from unnest(p_lanes, p_delays, p_ats) u(lane, delay, at)
    -- A worker that knows of no due time looks for one each 20 s.
    where coalesce(u.at, v_now + u.delay) <= v_now + 20000000), p_always);
end $$;

-- Whether somebody holds a job with this id. What was settled stands in its lease until the last of it is.
create or replace function :schema.is_leased(p_id uuid) returns boolean language sql stable as $$
  select exists (select from :schema.lease x where p_id = any(x.ids) and get_bit(x.open, array_position(x.ids, p_id) - 1) = 1)
$$;

-- Whether any place holds a job with this id.
create or replace function :schema.is_known(p_id uuid) returns boolean language sql stable as $$
  select exists (select from :schema.ready x where x.id = p_id) or exists (select from :schema.delayed x where x.id = p_id)
    or :schema.is_leased(p_id) or exists (select from :schema.ended x where x.id = p_id)
    or exists (select from :schema.dead x where x.id = p_id)
$$;

-- A key is free again when its retention is over and its job has ended.
create or replace function :schema.free_expired_keys(p_kinds text[], p_keys text[], p_now bigint) returns void language sql as $$
  delete from :schema.idempotency i
   using unnest(p_kinds, p_keys) u(kind, key)
   where i.kind = u.kind and i.key = u.key and i.expires <= p_now
     and not exists (select from :schema.ready r where r.id = i.id)
     and not exists (select from :schema.delayed d where d.id = i.id)
     and not :schema.is_leased(i.id)
     -- A dead letter may be brought back, and keeps its key for as long.
     and not exists (select from :schema.dead x where x.id = i.id)
$$;
`
