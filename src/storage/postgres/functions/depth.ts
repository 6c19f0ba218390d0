/** Functions: limits of what may wait, and what a queue has to do. Called by enqueues of queues with a limit, see core/limits.ts, and by inspect.ts. */

export const DEPTH = `
-- What waits of a queue with a depth limit: a row for the whole queue (kind null), and one for each kind that has a limit of
-- its own. Nothing is counted beyond the limit of the queue. From the newest jobs on: at the other end lie the index
-- entries of what was just claimed.
create or replace function :schema.depths(p_queue int) returns table (kind text, most int, depth int) language plpgsql
set enable_seqscan = off set enable_sort = off as $$
#variable_conflict use_column
declare
  v_most int;
  v_kinds json;
begin
  select x.depth, x.depth_kinds into v_most, v_kinds from :schema.queue_limit x where x.queue = p_queue;
  if v_most is null then return; end if;
  return query
  with w as materialized (
    (select r.kind from :schema.ready r where r.lane between p_queue * 64 and p_queue * 64 + 63 order by r.lane desc, r.pos desc limit v_most + 1)
    union all
    (select d.kind from :schema.delayed d where d.lane between p_queue * 64 and p_queue * 64 + 63 order by d.lane desc, d.due desc limit v_most + 1))
  select null::text, v_most, (select count(*)::int from w)
  union all
  select k.key, k.value::int, (select count(*)::int from w where w.kind = k.key) from json_each_text(v_kinds) k;
end $$;

-- The newest completed jobs of a queue: how many, and since when. See core/capacity.ts for the bounds.
create or replace function :schema.drained(p_queue int) returns table (ended int, since_us bigint) language sql stable as $$
  select count(*)::int, coalesce(:schema.clock() - min((extract(epoch from e.ended) * 1000000)::bigint), 0)
    from (select x.ended from :schema.ended x
      where x.queue = p_queue and x.state = 1 and x.ended >= :schema.instant(:schema.clock() - 60000000)
      order by x.ended desc limit 200) e
$$;

-- The items of a call that find no room, by their ordinals: whose limit it is, how many wait, and the pace at which the queue
-- drains. Items in p_skip are stored by nobody and take no room; p_order: places in the call, where the arrays are out of
-- order. Nobody is locked out while this counts: callers at the same time may each take what is left. It runs with the rights
-- of the owner, as a producer may read nothing of what others have enqueued.
create or replace function :schema.overflow(p_lanes int[], p_kinds text[], p_keys text[], p_order int[], p_skip bigint[])
returns table (o bigint, scope text, most int, depth int, ended int, since_us bigint) language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  v_scope record;
  v_item record;
  v_rooms jsonb := '{}';     -- of a queue, and of a kind in it: [room, most, depth]
  v_paces jsonb := '{}';
  v_least int := 2147483647;
  v_taken text[] := '{}';    -- keys of items before: a later one with the same key is a duplicate
  v_whole jsonb;
  v_part jsonb;
  v_full jsonb;
  v_whose text;
begin
  for v_scope in select q.id, d.kind, d.most, d.depth from :schema.queue q, :schema.depths(q.id) d
      where q.bounded and q.id in (select l.lane / 64 from unnest(p_lanes) l(lane)) loop
    v_rooms := v_rooms || jsonb_build_object(concat_ws(' ', v_scope.id, v_scope.kind),
      jsonb_build_array(v_scope.most - v_scope.depth, v_scope.most, v_scope.depth));
    v_least := least(v_least, v_scope.most - v_scope.depth);
  end loop;
  if v_least >= cardinality(p_lanes) then return; end if;
  for v_item in select u.o, (u.lane / 64)::text as queue, u.kind, u.kind || ' ' || u.key as key
      from unnest(p_lanes, p_kinds, p_keys) with ordinality u(lane, kind, key, o)
     where u.o <> all(p_skip) order by p_order[u.o], u.o loop
    continue when v_item.key = any(v_taken);
    v_whole := v_rooms -> v_item.queue;
    v_part := v_rooms -> (v_item.queue || ' ' || v_item.kind);
    v_whose := case when (v_whole ->> 0)::int <= 0 then 'queue' when (v_part ->> 0)::int <= 0 then 'kind' end;
    if v_whose is not null then
      v_full := case v_whose when 'queue' then v_whole else v_part end;
      if v_paces -> v_item.queue is null then
        v_paces := v_paces || (select jsonb_build_object(v_item.queue, jsonb_build_array(d.ended, d.since_us)) from :schema.drained(v_item.queue::int) d);
      end if;
      return query select v_item.o, v_whose, (v_full ->> 1)::int, greatest((v_full ->> 1)::int, (v_full ->> 2)::int),
        (v_paces -> v_item.queue ->> 0)::int, (v_paces -> v_item.queue ->> 1)::bigint;
      continue;
    end if;
    if v_item.key is not null then v_taken := v_taken || v_item.key; end if;
    if v_whole is not null then
      v_rooms := jsonb_set(v_rooms, array[v_item.queue, '0'], to_jsonb((v_whole ->> 0)::int - 1));
    end if;
    if v_part is not null then
      v_rooms := jsonb_set(v_rooms, array[v_item.queue || ' ' || v_item.kind, '0'], to_jsonb((v_part ->> 0)::int - 1));
    end if;
  end loop;
end $$;

-- What a queue has to do, and who does it: see CapacityFacts of storage/views.ts. Of more than is counted the planner's estimate
-- is told. It runs with the rights of the owner: a producer may know how many wait, and nothing of them.
create or replace function :schema.capacity_of(p_name text) returns table (workers int, slots int, busy int, paused boolean,
  ready int, later int, exact boolean, ended int, since_us float8, ran_ms float8,
  concurrency int, rate_count int, rate_us float8, rate_burst int, depth int, depth_kinds json, key_limits json) language plpgsql
security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_sort = off as $$
#variable_conflict use_column
declare
  c_most constant int := 10000;
  v_now bigint := :schema.clock();
  v_queue int;
  v_plan json;
begin
  ready := 0; later := 0; exact := true; ended := 0; since_us := 0; paused := false;
  select q.id, q.paused into v_queue, paused from :schema.queue q where q.name = p_name;
  paused := coalesce(paused, false);
  select count(*), coalesce(sum(x.slots), 0), coalesce(sum(x.busy), 0) into workers, slots, busy from (
    select (w.info ->> 'concurrency')::int as slots, coalesce((w.info ->> 'busy')::int, least((w.info ->> 'concurrency')::int,
        (select coalesce(sum(bit_count(l.open)), 0) from :schema.lease l where l.worker = w.id))) as busy
      from :schema.worker w where least(w.seen, w.main_seen) >= v_now - w.lease_us and (w.info -> 'queues')::jsonb ? p_name) x;
  if v_queue is not null then
    select count(*) into ready from (
      select from :schema.ready r where r.lane between v_queue * 64 and v_queue * 64 + 63 order by r.lane desc, r.pos desc limit c_most + 1) b;
    select count(*) into later from (
      select from :schema.delayed d where d.lane between v_queue * 64 and v_queue * 64 + 63 order by d.lane desc, d.due desc limit c_most + 1) b;
    if ready > c_most then
      exact := false;
      execute 'explain (format json) select from :schema_text.ready r where r.lane between ' || v_queue * 64 || ' and ' || v_queue * 64 + 63 into v_plan;
      ready := greatest(ready, (v_plan -> 0 -> 'Plan' ->> 'Plan Rows')::int);
    end if;
    if later > c_most then
      exact := false;
      execute 'explain (format json) select from :schema_text.delayed d where d.lane between ' || v_queue * 64 || ' and ' || v_queue * 64 + 63 into v_plan;
      later := greatest(later, (v_plan -> 0 -> 'Plan' ->> 'Plan Rows')::int);
    end if;
    select count(*), coalesce(v_now - min((extract(epoch from e.ended) * 1000000)::bigint), 0), avg(e.ran_ms)
      into ended, since_us, ran_ms from (
        select x.ended, x.ran_ms from :schema.ended x
         where x.queue = v_queue and x.state = 1 and x.ended >= :schema.instant(v_now - 60000000)
         order by x.ended desc limit 200) e;
    select x.concurrency, x.rate_count, x.rate_us, x.rate_burst, x.depth, x.depth_kinds, x.key_limits
      into concurrency, rate_count, rate_us, rate_burst, depth, depth_kinds, key_limits
      from :schema.queue_limit x where x.queue = v_queue;
  end if;
  return next;
end $$;

revoke all on function :schema.overflow(int[], text[], text[], int[], bigint[]), :schema.capacity_of(text) from public;
`
