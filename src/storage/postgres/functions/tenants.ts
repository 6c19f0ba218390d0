/** Functions: fair shares of tenants. Called by functions that make jobs ready, and by claims; see core/tenants.ts, which holds the rules. */

export const TENANTS = `
-- Marks a level of a queue as one with a fair list: from now on what becomes ready there goes into it, with a tenant or without.
-- Its row of what is served is made with it: two claims that make it would wait for each other. With the rights of the owner,
-- as a producer may not write what is served.
create or replace function :schema.ensure_fair(p_queue int, p_level int) returns void language sql
security definer set search_path = pg_catalog, pg_temp as $$
  insert into :schema.fair_lane (lane, served) values (p_queue * 64 + 48 + p_level, 0) on conflict (lane) do nothing;
  update :schema.queue set fair = fair | (1 << p_level) where id = p_queue and fair & (1 << p_level) = 0
$$;

-- Where jobs that become ready now stand in the fair lists of their levels; nothing of those whose level has none. The
-- arrays are in the order in which they become ready, p_lanes names their backlogs. A tenant goes on behind what waits of it,
-- and starts at what is being served when nothing does: so its turns come by its weight, whoever else floods, and nothing is
-- remembered of a tenant of whom nothing waits. 256 places to a step of virtual time: those who start together stand there by
-- the last byte of their ids. It runs with the rights of the owner, as a producer may read nothing of what others have enqueued.
create or replace function :schema.fair_positions(p_lanes int[], p_ids uuid[], p_specs json[]) returns table (id uuid, lane int, pos bigint) language plpgsql stable
security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_nestloop = off as $$
#variable_conflict use_column
begin
  return query
  with u as materialized (
    select x.o, x.id, x.lane + 48 as lane, coalesce(x.spec ->> 'tenant', '') as tenant,
        greatest(1, round(4096 / coalesce((x.spec ->> 'weight')::float8, 1)))::bigint as cost
      from unnest(p_lanes, p_ids, p_specs) with ordinality x(lane, id, spec, o)
      join :schema.queue q on q.id = x.lane / 64 and (q.fair >> (x.lane % 16)) & 1 = 1),
  g as materialized (
    select d.lane, d.tenant, coalesce((select r.pos from :schema.ready r
          where r.lane = d.lane and r.lane & 48 = 48 and coalesce(r.spec ->> 'tenant', '') = d.tenant and r.pos > d.served
          order by r.pos desc limit 1), d.served) / 256 as base
      from (select distinct u.lane, u.tenant, coalesce((select f.served from :schema.fair_lane f where f.lane = u.lane), 0) as served from u) d)
  select u.id, u.lane, ((g.base + sum(u.cost) over (partition by u.lane, u.tenant order by u.o)) * 256)::bigint
      + ('x' || right(u.id::text, 2))::bit(8)::int
    from u join g on g.lane = u.lane and g.tenant = u.tenant;
end $$;

-- What a claim took last from fair lists, as {lane: position}: those who come in start there. Whoever finds the row in other
-- hands leaves it to them: it is never waited for. It has to follow each claim: were it left behind, those who come in would
-- go before what waits, one after another and for ever.
create or replace function :schema.serve(p_reached json) returns void language plpgsql as $$
declare
  v_lane int;
  v_pos bigint;
begin
  for v_lane, v_pos in select r.key::int, r.value::bigint from json_each_text(p_reached) r order by 1 loop
    perform from :schema.fair_lane f where f.lane = v_lane and f.served < v_pos for no key update skip locked;
    if found then
      update :schema.fair_lane f set served = v_pos where f.lane = v_lane;
    elsif not exists (select from :schema.fair_lane f where f.lane = v_lane) then
      insert into :schema.fair_lane (lane, served) values (v_lane, v_pos) on conflict (lane) do nothing;
    end if;
  end loop;
end $$;

revoke all on function :schema.fair_positions(int[], uuid[], json[]), :schema.ensure_fair(int, int) from public;

-- Functions that roles were granted before call it, where there are no tenants, too.
do $$
declare v_grantee text;
begin
  for v_grantee in select distinct quote_ident(pg_get_userbyid(a.grantee)) from pg_proc f, aclexplode(f.proacl) a
     where f.pronamespace = ':schema_text'::regnamespace and f.proname in ('enqueue_mixed', 'promote') and a.privilege_type = 'EXECUTE' and a.grantee <> 0
       and a.grantee <> f.proowner loop
    execute format('grant execute on function :schema_text.fair_positions(int[], uuid[], json[]), :schema_text.ensure_fair(int, int) to %s', v_grantee);
  end loop;
end $$;
`
