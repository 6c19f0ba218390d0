/** Functions: how many jobs producers bring into a queue. Called by enqueues of queues with a limit, and by control.ts; see core/limits.ts, which holds the rules. */

export const INTAKE = `
-- Tokens of the intake of a queue, as many as it has, up to p_count: how many it gave, what the limit is, and the time until
-- the next one. No row where the queue has none.
--
-- How far tokens are taken stands in a sequence, as a row would be locked by a caller's open transaction, over all other
-- producers, until its end; what a sequence was set to holds at once and for everybody, and is not taken back with a
-- transaction. It is read and set under a lock of a moment: it is taken in a block that ends by an error, and
-- with a block that failed its locks are given back. So nothing is held when the function returns, whatever transaction it is
-- called in, and nothing can be left behind where it is cut off.
create or replace function :schema.take_intake(p_queue int, p_count int) returns table (granted int, most int, per_us bigint, wait_us bigint) language plpgsql
security definer set search_path = pg_catalog, pg_temp set lock_timeout = '10s' as $$
#variable_conflict use_column
declare
  v_limit :schema.queue_limit;
  v_sequence regclass;
  v_now bigint;
  v_last bigint;
  v_taken bigint;
begin
  select x.* into v_limit from :schema.queue_limit x where x.queue = p_queue and x.intake_count is not null;
  if not found then return; end if;
  v_sequence := (':schema_text.intake_' || p_queue)::regclass;
  begin
    perform pg_advisory_xact_lock(hashtextextended(':schema_text intake ' || p_queue, 0));
    v_now := :schema.clock();
    v_last := pg_sequence_last_value(v_sequence);
    v_taken := :schema.intake_taken(v_limit, v_last, v_now);
    granted := least(p_count, :schema.intake_tokens(v_limit, v_taken, v_now));
    if granted > 0 then
      v_taken := v_taken + ceil(granted::numeric * v_limit.intake_us / v_limit.intake_count)::bigint;
    end if;
    -- Also where nothing was taken but the clock has stepped back: tokens come from now on, and not when it is there again.
    if granted > 0 or v_last > v_now then perform setval(v_sequence, v_taken); end if;
    raise exception using errcode = 'LH001';
  exception when sqlstate 'LH001' then null;
  end;
  most := v_limit.intake_count;
  per_us := v_limit.intake_us;
  wait_us := greatest(0, v_taken + ceil(v_limit.intake_us::numeric / v_limit.intake_count)::bigint - v_now);
  return next;
end $$;

-- Until when tokens are taken; p_last null: the bucket is full. What lies ahead was taken by a clock that has stepped back since, and no more than the burst is left.
create or replace function :schema.intake_taken(x :schema.queue_limit, p_last bigint, p_at bigint) returns bigint language sql immutable as $$
  select greatest(case when p_last is not null then least(p_last, p_at) end, p_at - x.intake_burst::bigint * x.intake_us / x.intake_count)
$$;

create or replace function :schema.intake_tokens(x :schema.queue_limit, p_taken bigint, p_at bigint) returns int language sql immutable as $$
  select least(x.intake_burst, floor((p_at - p_taken)::numeric * x.intake_count / x.intake_us))::int
$$;

-- The items of a call, in its order, for which the intakes of their queues have no token. Items in p_skip are stored by nobody
-- and take none. Called last before they are stored: nothing is waited for any more, and next to nothing can be refused.
create or replace function :schema.without_token(p_lanes int[], p_order int[], p_skip bigint[])
returns table (o bigint, most int, per_us bigint, wait_us bigint) language plpgsql as $$
#variable_conflict use_column
declare
  v_queue int;
  v_items bigint[];
begin
  for v_queue, v_items in select u.lane / 64, array_agg(u.o order by p_order[u.o], u.o) from unnest(p_lanes) with ordinality u(lane, o)
     where u.o <> all(p_skip) and exists (select from :schema.queue q where q.id = u.lane / 64 and q.bounded) group by 1 order by 1 loop
    return query select i.o, t.most, t.per_us, t.wait_us
      from :schema.take_intake(v_queue, cardinality(v_items)) t, unnest(v_items[t.granted + 1 :]) i(o);
  end loop;
end $$;

-- The bucket of a queue is full from now on; its sequence is made where it is missing. It is never dropped: whoever drops it
-- waits for callers' transactions that have used it. It runs with the rights of the owner, who owns them all.
create or replace function :schema.fill_intake(p_queue int) returns void language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_name text := ':schema_text.intake_' || p_queue;
begin
  if to_regclass(v_name) is null then
    -- Who makes the same one queues up here, and finds it made.
    perform pg_advisory_xact_lock(hashtextextended(v_name, 0));
    if not exists (select from pg_class c where c.relnamespace = ':schema_text'::regnamespace and c.relname = 'intake_' || p_queue) then
      execute format('create sequence %s as bigint minvalue %s start 1', v_name, -9223372036854775807);
    end if;
  end if;
  perform setval(v_name::regclass, 1, false);
end $$;

-- For producers of 0.1.0, who store all of a call or nothing, and try parts of it: without it each try would take tokens.
create or replace function :schema.must_have_tokens(p_lanes int[], p_sizes int[]) returns void language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_asked record;
  v_limit :schema.queue_limit;
  v_now bigint;
begin
  for v_asked in select x as bounds, c.n from (
      select u.lane / 64 as queue, sum(coalesce(u.size, 1)) as n from unnest(p_lanes, p_sizes) u(lane, size) group by 1) c
      join :schema.queue_limit x on x.queue = c.queue and x.intake_count is not null loop
    v_limit := v_asked.bounds;
    v_now := :schema.clock();
    if :schema.intake_tokens(v_limit, :schema.intake_taken(v_limit, pg_sequence_last_value((':schema_text.intake_' || v_limit.queue)::regclass), v_now), v_now) < v_asked.n then
      raise exception 'the queue takes no more at present';
    end if;
  end loop;
end $$;

revoke all on function :schema.take_intake(int, int), :schema.fill_intake(int), :schema.must_have_tokens(int[], int[]) from public;
`
