/** Functions: limits of what may wait, and what a queue has to do. Called by enqueues of queues with a limit, see core/limits.ts, and by inspect.ts. */

export const DEPTH = `
-- What waits of a queue with a depth limit: a row for the whole queue (kind and tenant null), one for each kind that has a limit
-- of its own, and where tenants have one, one for each tenant of the items of a call that are for this queue ('': those
-- without one). Nothing is counted beyond the limit of the queue: what is below it is counted whole, of whomever it is. From
-- the newest jobs on: at the other end lie the index entries of what was just claimed.
create or replace function :schema.depths(p_queue int, p_lanes int[], p_specs json[]) returns table (kind text, tenant text, most int, depth int) language plpgsql
set enable_seqscan = off set enable_sort = off as $$
#variable_conflict use_column
declare
  v_most int;
  v_kinds json;
  v_tenant int;
begin
  select x.depth, x.depth_kinds, x.depth_tenant into v_most, v_kinds, v_tenant from :schema.queue_limit x where x.queue = p_queue;
  if v_most is null then return; end if;
  return query
  with w as materialized (
    (select r.kind, case when v_tenant is not null then coalesce(r.spec ->> 'tenant', '') end as tenant
      from :schema.ready r where r.lane between p_queue * 64 and p_queue * 64 + 63 order by r.lane desc, r.pos desc limit v_most + 1)
    union all
    (select d.kind, case when v_tenant is not null then coalesce(d.spec ->> 'tenant', '') end
      from :schema.delayed d where d.lane between p_queue * 64 and p_queue * 64 + 63 order by d.lane desc, d.due desc limit v_most + 1)),
  t as materialized (select w.tenant, count(*)::int as depth from w where v_tenant is not null group by w.tenant)
  select null::text, null::text, v_most, (select count(*)::int from w)
  union all
  select k.key, null, k.value::int, (select count(*)::int from w where w.kind = k.key) from json_each_text(v_kinds) k
  union all
  select null, c.tenant, v_tenant, coalesce(t.depth, 0) from (
    select distinct coalesce(u.spec ->> 'tenant', '') as tenant from unnest(p_lanes, p_specs) u(lane, spec)
     where v_tenant is not null and u.lane / 64 = p_queue) c left join t on t.tenant = c.tenant;
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
create or replace function :schema.overflow(p_lanes int[], p_kinds text[], p_specs json[], p_keys text[], p_order int[], p_skip bigint[])
returns table (o bigint, scope text, most int, depth int, ended int, since_us bigint) language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  v_item record;
  v_at jsonb;                -- where a queue, a kind in it and a tenant in it stand in these three
  v_room int[];
  v_most int[];
  v_depth int[];
  v_tenants boolean;         -- some tenant has a limit
  v_paces jsonb := '{}';
  v_taken text[] := '{}';    -- keys of items before: a later one with the same key is a duplicate
  v_full int;
  v_whose text;
begin
  select jsonb_object_agg(d.name, d.n), array_agg(d.most - d.depth order by d.n), array_agg(d.most order by d.n), array_agg(d.depth order by d.n), bool_or(d.tenant is not null)
    into v_at, v_room, v_most, v_depth, v_tenants
    from (select x.*, row_number() over () as n, q.id || coalesce(' ' || x.kind, '  ' || x.tenant, '') as name
      from :schema.queue q, :schema.depths(q.id, p_lanes, p_specs) x
     where q.bounded and q.id in (select l.lane / 64 from unnest(p_lanes) l(lane))) d;
  if v_at is null or (select min(r.room) from unnest(v_room) r(room)) >= cardinality(p_lanes) then return; end if;
  for v_item in select u.o, (u.lane / 64)::text as queue, u.kind || ' ' || u.key as key,
        (v_at -> (u.lane / 64)::text)::int as whole, (v_at -> (u.lane / 64 || ' ' || u.kind))::int as part,
        case when v_tenants then (v_at -> (u.lane / 64 || '  ' || coalesce(u.spec ->> 'tenant', '')))::int end as share
      from unnest(p_lanes, p_kinds, p_specs, p_keys) with ordinality u(lane, kind, spec, key, o)
     where u.o <> all(p_skip) order by p_order[u.o], u.o loop
    continue when v_item.key = any(v_taken);
    v_whose := case when v_room[v_item.whole] <= 0 then 'queue' when v_room[v_item.part] <= 0 then 'kind' when v_room[v_item.share] <= 0 then 'tenant' end;
    if v_whose is not null then
      v_full := case v_whose when 'queue' then v_item.whole when 'kind' then v_item.part else v_item.share end;
      if v_paces -> v_item.queue is null then
        v_paces := v_paces || (select jsonb_build_object(v_item.queue, jsonb_build_array(d.ended, d.since_us)) from :schema.drained(v_item.queue::int) d);
      end if;
      return query select v_item.o, v_whose, v_most[v_full], greatest(v_most[v_full], v_depth[v_full]),
        (v_paces -> v_item.queue ->> 0)::int, (v_paces -> v_item.queue ->> 1)::bigint;
      continue;
    end if;
    if v_item.key is not null then v_taken := v_taken || v_item.key; end if;
    if v_item.whole is not null then v_room[v_item.whole] := v_room[v_item.whole] - 1; end if;
    if v_item.part is not null then v_room[v_item.part] := v_room[v_item.part] - 1; end if;
    if v_item.share is not null then v_room[v_item.share] := v_room[v_item.share] - 1; end if;
  end loop;
end $$;

-- What a queue has to do, and who does it: see CapacityFacts of storage/views.ts. Of more than is counted the planner's estimate
-- is told. It runs with the rights of the owner: a producer may know how many wait, and nothing of them.
create or replace function :schema.capacity_of(p_name text) returns table (workers int, slots int, busy int, paused boolean,
  ready int, later int, exact boolean, ended int, since_us float8, ran_ms float8,
  concurrency int, rate_count int, rate_us float8, rate_burst int, depth int, depth_kinds json, depth_tenant int,
  intake_count int, intake_us float8, intake_burst int, key_limits json) language plpgsql
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
    select x.concurrency, x.rate_count, x.rate_us, x.rate_burst, x.depth, x.depth_kinds, x.depth_tenant, x.intake_count, x.intake_us, x.intake_burst, x.key_limits
      into concurrency, rate_count, rate_us, rate_burst, depth, depth_kinds, depth_tenant, intake_count, intake_us, intake_burst, key_limits
      from :schema.queue_limit x where x.queue = v_queue;
  end if;
  return next;
end $$;

revoke all on function :schema.overflow(int[], text[], json[], text[], int[], bigint[]), :schema.capacity_of(text) from public;
`
