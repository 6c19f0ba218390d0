/** Functions: limits of queues. Called by claims; see core/limits.ts, which holds the rules. */

export const LIMITS = `
-- How much the limits of these queues allow, in the order of p_queues: permits by their concurrency, tokens by their rate,
-- both null where there is no limit; and the instant for which that holds. Their rows are locked from here to the end of
-- the claim, in the order of the queues' numbers, so that one claim at a time counts and takes. What it counts was committed
-- before, and what is settled meanwhile only makes it less.
create or replace function :schema.allowances(p_queues int[]) returns table (permits int[], tokens int[], at_us bigint) language plpgsql as $$
#variable_conflict use_variable
begin
  perform from :schema.queue_limit x where x.queue = any(p_queues) order by x.queue for no key update;
  -- A statement of its own sees what others have committed while this one waited for their locks.
  at_us := :schema.clock();
  select array_agg(case when x.concurrency is not null then greatest(0, x.concurrency - :schema.held(u.queue)) end order by u.o),
      array_agg(case when x.rate_count is not null then
        greatest(0, least(x.rate_burst, floor((at_us - x.rate_taken)::numeric * x.rate_count / x.rate_us)))::int end order by u.o)
    into permits, tokens
    from unnest(p_queues) with ordinality u(queue, o) left join :schema.queue_limit x on x.queue = u.queue;
  return next;
end $$;

-- Jobs of a queue in leases.
create or replace function :schema.held(p_queue int) returns int language sql stable as $$
  select coalesce(sum(bit_count(o.open)), 0)::int from (
    select l.open from :schema.lease l where l.queue = p_queue
    union all select l.open from :schema.lease l where l.queue is null and (l.jobs[1]).lane / 64 = p_queue) o
$$;

-- Takes tokens of a queue that has a rate.
create or replace function :schema.take_tokens(p_queue int, p_count int, p_at bigint) returns void language sql as $$
  update :schema.queue_limit x set rate_taken = greatest(x.rate_taken, p_at - x.rate_burst::bigint * x.rate_us / x.rate_count)
      + ceil(p_count::numeric * x.rate_us / x.rate_count)::bigint
    where x.queue = p_queue and x.rate_count is not null
$$;

-- Until a queue that has used its tokens up has the next one.
create or replace function :schema.until_token(p_queue int, p_at bigint) returns bigint language sql stable as $$
  select greatest(0, x.rate_taken + ceil(x.rate_us::numeric / x.rate_count)::bigint - p_at)
    from :schema.queue_limit x where x.queue = p_queue and x.rate_count is not null
$$;
`
