/**
 * Functions as clients of earlier releases call them, and as their own functions did that are still under way while they
 * are replaced. Each hands on to the one of today. Called by clients and workers of 0.1.0.
 */

export const RELEASED = `
-- Until 0.1.0 the number of a claim had 32 bits, and nothing was left by a claim that got less than it asked for. Cursors of
-- those clients lie behind the last job taken, beyond those who come into a fair list: of fair lists they have none.
create or replace function :schema.claim(p_worker uuid, p_request int, p_queues int[], p_shares int[], p_turns bigint[], p_limit int, p_kinds text[], p_apart text[],
  p_level_us bigint, p_pattern int[], p_suspects boolean, p_lanes int[], p_cursors bigint[], p_since bigint, p_idle_us bigint, p_bytes int,
  s_fences bigint[], s_ordinals int[], s_tos int[], s_flags boolean[], s_delays bigint[], s_started bigint[], s_ran bigint[],
  s_reasons text[], s_histories json[], s_results json[])
returns table (status text, leases text, settled int[], more boolean, next_due bigint, paused int[], now_us bigint) language plpgsql as $$
begin
  return query select c.status, c.leases, c.settled, c.more or cardinality(c.limited) > 0, c.next_due, c.paused, c.now_us from :schema.claim_jobs(p_worker, p_request, p_queues, p_shares, p_turns, p_limit, p_kinds, p_apart,
    p_level_us, p_pattern, p_suspects, array(select t.lane from unnest(p_lanes, p_cursors) t(lane, cur) where t.lane & 48 <> 48),
    array(select t.cur from unnest(p_lanes, p_cursors) t(lane, cur) where t.lane & 48 <> 48), p_since, p_idle_us, p_bytes,
    s_fences, s_ordinals, s_tos, s_flags, s_delays, s_started, s_ran, s_reasons, s_histories, s_results) c;
end $$;

create or replace function :schema.beat(p_worker uuid, p_n bigint, p_known int, p_fences bigint[], p_started json, p_main_lag bigint,
  p_lease bigint, p_beat bigint, p_info json, p_queues text[])
returns table (status int, lost bigint[], cancel json, paused text[]) language plpgsql as $$
begin
  return query select * from :schema.beat_worker(p_worker, p_n, p_known, p_fences, p_started, p_main_lag, p_lease, p_beat, p_info, p_queues);
end $$;

create or replace function :schema.take(p_worker uuid, p_request int, p_now bigint, p_lanes int[], p_cursors bigint[], p_quotas int[],
  p_kinds text[], p_apart text[], p_level_us bigint, p_bytes int, p_alone boolean)
returns table (leases text, taken int, held boolean) language plpgsql as $$
begin
  return query select t.leases, t.taken, t.held from :schema.take_jobs(p_worker, p_request, p_now, p_lanes, p_cursors, p_quotas, p_kinds, p_apart, p_level_us, p_bytes, p_alone) t;
end $$;

create or replace function :schema.take_suspect(p_worker uuid, p_request int, p_now bigint, p_queues int[], p_kinds text[]) returns text language plpgsql as $$
begin
  return :schema.take_suspect_job(p_worker, p_request, p_now, p_queues, p_kinds);
end $$;

create or replace function :schema.leases_text(p_worker uuid, p_request int) returns text language sql stable as $$
  select :schema.answer_text(p_worker, p_request)
$$;

create or replace function :schema.lock_worker(p_worker uuid) returns int language sql as $$
  -- Null when the worker is written off: least() alone would pass over the null.
  select least(h.known, 2147483647)::int from :schema.hold_worker(p_worker) h(known) where h.known is not null
$$;

-- Until 0.1.0 no level had a fair list.
create or replace function :schema.lanes(p_queue int, p_levels int, p_lanes int[], p_cursors bigint[])
returns table (lane int, cur bigint) language sql stable as
$$ select * from :schema.lanes_in_use(p_queue, p_levels, 0, p_lanes, p_cursors) $$;

-- Until 0.1.0 nobody could say which states or which age were meant.
create or replace function :schema.cancel(p_ids uuid[]) returns table (id uuid, answer text, kind text, queue int) language sql as
$$ select * from :schema.cancel_in(p_ids, null) $$;

create or replace function :schema.retry(p_ids uuid[]) returns table (id uuid, kind text, queue int) language sql as
$$ select * from :schema.retry_in(p_ids, null) $$;

create or replace function :schema.redrive(p_ids uuid[], p_force boolean) returns table (id uuid, kind text, queue int) language sql as
$$ select * from :schema.redrive_before(p_ids, p_force, null) $$;

-- Until 0.1.0 no queue could be full, and its clients could not be told: they hear that the store refuses it, and find what
-- fits by halving their call.
create or replace function :schema.enqueue_ready(p_ids uuid[], p_payloads json, p_sizes int[], p_lanes int[], p_kinds text[], p_specs json[], p_order int[], p_always boolean)
returns int[] language plpgsql as $$
declare
  v_refused json;
begin
  if exists (select from :schema.queue q where q.bounded and q.id in (select u.lane / 64 from unnest(p_lanes) u(lane))) then
    perform :schema.must_have_tokens(p_lanes, coalesce(p_sizes, array[cardinality(p_ids)]));
  end if;
  v_refused := :schema.enqueue_plain(p_ids, p_payloads, p_sizes, p_lanes, p_kinds, p_specs, p_order, p_always);
  if json_typeof(v_refused -> 'early') = 'array' then raise exception 'the queue takes no more at present'; end if;
  if json_typeof(v_refused -> 'full') = 'array' then raise exception 'the queue is full'; end if;
  return (select array_agg(x.value::int) from json_array_elements_text(nullif((v_refused -> 'draining')::text, 'null')::json) x);
end $$;

create or replace function :schema.enqueue_mixed(p_ids uuid[], p_lanes int[], p_kinds text[], p_payloads json[], p_specs json[],
  p_delays bigint[], p_ats bigint[], p_expires bigint[], p_keys text[], p_hashes text[], p_retentions bigint[], p_chosen boolean[], p_always boolean)
returns table (status text, first uuid) language plpgsql as $$
begin
  if exists (select from :schema.queue q where q.bounded and q.id in (select u.lane / 64 from unnest(p_lanes) u(lane))) then
    perform :schema.must_have_tokens(p_lanes, null);
  end if;
  for status, first in select x.status, x.first from :schema.enqueue_any(p_ids, p_lanes, p_kinds, p_payloads, p_specs,
      p_delays, p_ats, p_expires, p_keys, p_hashes, p_retentions, p_chosen, p_always) x loop
    if status = 'full' then raise exception 'the queue is full'; end if;
    if status = 'early' then raise exception 'the queue takes no more at present'; end if;
    return next;
  end loop;
end $$;
`
