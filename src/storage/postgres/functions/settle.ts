/** Functions: how attempts end. Called by settle.ts, and by the claim that settlements ride on. */
import { keyText } from './keys.js'

/** Of one job named twice in a call the first counts; a report of its start beside its end counts, too. */
const ONCE = `
        and row_number() over (partition by s.fence, s.ordinal, s.fate = 6 order by s.i) = 1`

/** Where jobs go that neither completed nor were cancelled. */
const ELSEWHERE = `
  d as (insert into :schema.delayed (lane, bytes, due, id, kind, payload, spec, history, enqueued)
    select case when flag then (lane / 64) * 64 + 32 + lane % 16 else (lane / 64) * 64 + lane % 16 end,
      bytes, v_now + delay, id, kind, payload, spec, history, enqueued from e where mine and fate = 2),
  r as (insert into :schema.ready (lane, bytes, pos, id, kind, payload, spec, history, enqueued, due)
    select (lane / 64) * 64 + case when flag then 32 else 16 end + lane % 16, bytes, nextval(':schema_text.front'),
      id, kind, payload, spec, history, enqueued, due from (select * from e where mine and fate = 3 order by due, i) f),
  -- Given back before it ever started, it can still expire. Where its entry is still there it is locked, as a sweep that
  -- finds the job running would take it away.
  y as (insert into :schema.expiry (at, id) select enqueued + (spec ->> 'expiresInMs')::bigint * 1000, id from e
    where mine and fate in (2, 3) and spec ->> 'expiresInMs' is not null and :schema.may_expire(history) on conflict (at, id) do update set id = excluded.id),
  x as (insert into :schema.dead (id, queue, level, kind, reason, fingerprint, enqueued, started, ran_ms, ended, worker, payload, spec, history)
    select id, lane / 64, lane % 16, kind, reason, coalesce(history #>> '{entries,-1,fingerprint}', ''), :schema.instant(enqueued),
      :schema.instant(started), case when ran is not null then least(ran / 1000, 2147483647)::int end, :schema.instant(v_now), worker, payload, spec, history from e where mine and fate = 4),`

/** Jobs that hold no permit of their key any more: an order key keeps it until its job has ended. */
const FREED = `e.mine and e.fate <> 6 and (e.spec ->> 'limitKey' is not null or e.spec ->> 'orderKey' is not null
      and e.fate not in (2, 3) and not (e.fate = 4 and coalesce(e.spec ->> 'afterDead' = 'block', false)))`
const KEYS_FREED = `,
    array_agg(e.lane / 64 order by e.i) filter (where ${FREED}), array_agg(${keyText('e.spec')} order by e.i) filter (where ${FREED}),
    array_agg(e.id order by e.i) filter (where ${FREED})`

/** Moves the jobs of one call. once: what else makes a settlement count; elsewhere: places beside the records; keys: what they free. */
function moved(once: string, elsewhere: string, keys: string): string {
  return `  with s as materialized (
    select * from unnest(p_fences, p_ordinals, p_tos, p_flags, p_delays, p_started, p_ran, p_reasons, p_histories, p_results)
      with ordinality u(fence, ordinal, fate, flag, delay, after, ran, reason, history, result, i)),
  o as (select l.fence, coalesce((l.crash ->> 'worker')::uuid, l.worker) as worker, l.claimed, l.open, l.cancelled, l.jobs from :schema.lease l where l.fence = any(p_fences)),
  j as (select o.fence, o.worker, o.claimed, o.open, o.cancelled, (u.ordinality - 1)::int as ordinal,
      u.lane, u.bytes, u.pos, u.id, u.kind, u.payload, u.spec, u.enqueued, u.due
    from o, unnest(o.jobs) with ordinality u),
  e as materialized (
    select s.i, s.fence, s.ordinal, s.delay, s.ran, s.flag, s.reason, s.history, s.result, j.worker, j.lane, j.bytes, j.id, j.kind, j.payload, j.spec,
      coalesce(j.enqueued, j.pos) as enqueued, coalesce(j.due, j.pos) as due,
      -- The worker reckons from when it asked for the job, a moment before the claim.
      case when s.after is not null then least(j.claimed + s.after, v_now) end as started, s.fate as asked,
      case when s.fate in (2, 3) and j.cancelled is not null and get_bit(j.cancelled, s.ordinal) = 1 then 5 else s.fate end as fate,
      coalesce(get_bit(j.open, s.ordinal) = 1, false) as is_open,
      coalesce(get_bit(j.open, s.ordinal) = 1, false)${once} as mine
    from s left join j on j.fence = s.fence and j.ordinal = s.ordinal),
  c as (insert into :schema.ended (id, queue, state, level, kind, enqueued, started, ran_ms, ended, worker, payload, spec, history, result)
    select id, lane / 64, case fate when 1 then 1 else 2 end, lane % 16, kind, :schema.instant(enqueued), :schema.instant(started),
      case when ran is not null then least(ran / 1000, 2147483647)::int end, :schema.instant(v_now), worker, payload, spec,
      case when fate <> asked then :schema.history_cancelled(history, v_now) else history end, result
    from e where mine and (fate = 1 and flag or fate = 5 and coalesce(spec ->> 'keep', 'all') <> 'none')),${elsewhere}
  p as (select o.fence, o.open, bit_length(o.open) as size,
      array_agg(e.ordinal) filter (where e.fate <> 6) as closed, array_agg(e.ordinal) filter (where e.fate = 6) as begun
    from o join e on e.fence = o.fence and e.mine group by o.fence, o.open),
  g as (delete from :schema.lease l using p where l.fence = p.fence and cardinality(p.closed) = bit_count(p.open)),
  k as (update :schema.lease l set open = :schema.without(l.open, p.closed),
      started = case when p.begun is null then l.started else :schema.with(coalesce(l.started, repeat('0', p.size)::varbit), p.begun) end
    from p where l.fence = p.fence and coalesce(cardinality(p.closed), 0) < bit_count(p.open))
  select array_agg(case
      when e.mine then case when e.fate <> e.asked then 3 else 0 end
      when e.asked = 6 and e.is_open then 0
      when exists (select from :schema.revoked v where v.fence = e.fence
        and e.ordinal < bit_length(v.open) and get_bit(v.open, e.ordinal) = 1) then 2
      else 1 end order by e.i),
    array_agg(distinct e.lane / 64) filter (where e.mine and e.fate in (2, 3) and coalesce(e.delay, 0) <= 20000000),
    array_agg(distinct e.lane / 64) filter (where e.mine and e.fate <> 6
      and e.lane / 64 in (select x.queue from :schema.queue_limit x where x.concurrency is not null))${keys}
    into v_answers, v_queues, v_freed${keys === '' ? '' : ', v_key_queues, v_keys, v_ids'} from e;`
}

export const SETTLE = `
-- Fates, in p_tos: 1 completed, 2 delayed, 3 ready, 4 dead, 5 cancelled, 6 started.
-- Answers: 0 ok, 1 already, 2 lost, 3 cancelled. Only what this call finds open is moved. p_flags: for completed,
-- keep a record; for delayed and ready, the job is a suspect. Times in microseconds; of an attempt of more than 24 days
-- the record says that it ran for 24, as its column has 32 bits, and a refused settlement would never end.
create or replace function :schema.settle(p_fences bigint[], p_ordinals int[], p_tos int[], p_flags boolean[], p_delays bigint[],
  p_started bigint[], p_ran bigint[], p_reasons text[], p_histories json[], p_results json[])
returns int[] language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
  v_now bigint;
  v_answers int[];
  v_queues int[];
  v_freed int[];
  v_key_queues int[];
  v_keys text[];
  v_ids uuid[];
begin
  if current_setting('transaction_isolation') <> 'read committed' then perform :schema.must_be_read_committed(); end if;
  -- Lock first, look second: a take-over or a repeat of this call that got here first has committed when we go on.
  perform from :schema.lease l where l.fence = any(p_fences) order by l.fence for update;
  v_now := :schema.clock();
  -- A call that completes jobs, each of them once, is by far the most frequent one, and this statement the dearest of
  -- all: it is spared what only other fates need.
  if p_tos <@ array[1] and (select count(distinct u.fence # (u.ordinal::bigint << 48)) from unnest(p_fences, p_ordinals) u(fence, ordinal)) = cardinality(p_fences)
      and not exists (select from :schema.lease l join :schema.queue q on q.id = coalesce(l.queue, (l.jobs[1]).lane / 64) where l.fence = any(p_fences) and q.keyed) then
    ${moved('', '', '')}
  else
    ${moved(ONCE, ELSEWHERE, KEYS_FREED)}
    if v_keys is not null then perform :schema.release(v_key_queues, v_keys, v_ids); end if;
  end if;
  -- Jobs that may run again at once, or soon, and permits of a limited queue: somebody idle shall hear of them.
  if v_queues is not null then perform :schema.hint(v_queues, false); end if;
  if v_freed is not null then perform :schema.hint_limited(v_freed); end if;
  return v_answers;
end $$;
`
