/** Functions: limits of queues. Called by claims; see core/limits.ts, which holds the rules. */

export const LIMITS = `
-- How much the limits of these queues allow: permits by their concurrency, tokens by their rate, null where it has none; and
-- the instant for which that holds. A queue has no row here where it has no limits, or where another claim is at them: their
-- rows are locked from here to the end of the claim, so that one claim at a time counts and takes, and nobody waits for it.
-- What it counts was committed before, and what is settled meanwhile only makes it less.
create or replace function :schema.allowances(p_queues int[]) returns table (queue int, permits int, tokens int, at_us bigint) language plpgsql as $$
#variable_conflict use_column
declare
  v_locked int[];
  v_at bigint;
begin
  v_locked := array(select l.queue from (select x.queue from :schema.queue_limit x
    where x.queue = any(p_queues) and (x.concurrency is not null or x.rate_count is not null) order by x.queue for no key update skip locked) l);
  -- A statement of its own sees what was committed before the locks were free.
  v_at := :schema.clock();
  return query select x.queue, case when x.concurrency is not null then greatest(0, x.concurrency - :schema.held(x.queue)) end,
      :schema.tokens(x, v_at), v_at
    from :schema.queue_limit x where x.queue = any(v_locked);
end $$;

-- Whole tokens that a queue has; null where it has no rate.
create or replace function :schema.tokens(x :schema.queue_limit, p_at bigint) returns int language sql stable as $$
  select case when x.rate_count is not null then
    greatest(0, least(x.rate_burst, floor((p_at - least(x.rate_taken, p_at))::numeric * x.rate_count / x.rate_us)))::int end
$$;

-- Jobs of a queue in leases.
create or replace function :schema.held(p_queue int) returns int language sql stable as $$
  select coalesce(sum(bit_count(o.open)), 0)::int from (
    select l.open from :schema.lease l where l.queue = p_queue
    union all select l.open from :schema.lease l where l.queue is null and (l.jobs[1]).lane / 64 = p_queue) o
$$;

-- Takes tokens of a queue that has a rate.
create or replace function :schema.take_tokens(p_queue int, p_count int, p_at bigint) returns void language sql as $$
  -- What lies ahead was taken by a clock that has stepped back since.
  update :schema.queue_limit x set rate_taken = greatest(least(x.rate_taken, p_at), p_at - x.rate_burst::bigint * x.rate_us / x.rate_count)
      + ceil(p_count::numeric * x.rate_us / x.rate_count)::bigint
    where x.queue = p_queue and x.rate_count is not null
$$;

-- Until a queue that has used its tokens up has the next one.
create or replace function :schema.until_token(p_queue int, p_at bigint) returns bigint language sql stable as $$
  select greatest(0, least(x.rate_taken, p_at) + ceil(x.rate_us::numeric / x.rate_count)::bigint - p_at)
    from :schema.queue_limit x where x.queue = p_queue and x.rate_count is not null
$$;
`
