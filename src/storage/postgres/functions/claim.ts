/** Functions: taking jobs into leases. Called by claim.ts. */
import { keyText } from './keys.js'

/** What the statement that takes jobs needs to know of the lists it takes from. */
interface Lists {
  /** Jobs of `jobs` (lane, pos, due) with their `key`: by it those of several lists are merged. */
  readonly keyed: (jobs: string, columns: string) => string
  /** The last position taken of each list, where anybody has to know. */
  readonly reached: string
}

const KEY = 'coalesce(due, pos) - (lane % 16) * p_level_us'

/** By far the most claims meet no fair list: they are spared what those need. */
const IN_ORDER: Lists = {
  keyed: (jobs, columns) => `select ${columns}, ${KEY} as key from ${jobs}`,
  reached: 'null::json',
}

/** In a fair list nobody goes before who stands before it. */
const IN_TURNS: Lists = {
  keyed: (jobs, columns) => `select ${columns}, ${KEY} as key from ${jobs} where lane & 48 <> 48
      union all select ${columns}, max(${KEY}) over (partition by lane order by pos) from ${jobs} where lane & 48 = 48`,
  reached:
    '(select json_object_agg(m.lane, m.pos) from (select x.lane, max(x.pos) as pos from x where x.lane & 48 = 48 group by x.lane) m)',
}

/** Which rows are taken. */
interface Source {
  readonly rows: string
  /** Whether some of what was looked for is left, beside what is beyond the bytes. */
  readonly left: string
  /** Stops a claim that must not go on. */
  readonly guard: string
}

/** The first ones of each lane, as far as nobody else has them. `more`: columns beside those that each claim needs. */
const heads = (more = '') => `
    select s.* from unnest(p_lanes, p_cursors, p_quotas) t(lane, cur, quota),
      lateral (select h.ctid as c, h.lane, h.bytes, h.pos, h.due${more} from :schema.ready h
        where h.lane = t.lane and h.pos >= t.cur and h.kind = any(p_kinds) order by h.pos limit t.quota for update skip locked) s`

// Subqueries of their own are run only when they are come to: the heads are read again only by a claim that fell short.
const moreHeads = (found: string) => `${found} < (select sum(q) from unnest(p_quotas) q)
      and ${found} < (select count(*) from unnest(p_lanes, p_cursors, p_quotas) t(lane, cur, quota),
        lateral (select from :schema.ready h where h.lane = t.lane and h.pos >= t.cur and h.kind = any(p_kinds) order by h.pos limit t.quota) h)`

const OF_LANES: Source = {
  rows: heads(),
  left: moreHeads('(select n from kc)'),
  // Seen by the very statement that sees the first job with a key.
  guard: ':schema.is_keyed_since(p_lanes[1] / 64) or ',
}

/** What was locked before, without what found no permit of its key. */
const ADMITTED: Source = {
  rows: `
    select h.ctid as c, h.lane, h.bytes, h.pos, h.due from :schema.ready h where h.ctid = any(v_rows)`,
  left: `v_found > cardinality(v_rows) or ${moreHeads('v_found')}`,
  guard: '',
}

function taken({ keyed, reached }: Lists, { rows, left, guard }: Source = OF_LANES): string {
  return `  with k as materialized (${rows}),
  kc as materialized (select count(*) as n from k),
  f as (select a.c, sum(a.bytes) over w - a.bytes as before from (
      ${keyed('k', 'c, bytes, pos')}) a
    window w as (order by a.key, a.pos)),
  x as (delete from :schema.ready r where r.ctid = any(array(select f.c from f where f.before < p_bytes))
    -- Few columns, as the rows are copied from one step to the next.
    returning r as job, r.lane, r.bytes, r.pos, r.due, r.id, r.kind = any(p_apart) or r.bytes > 16384 as apart,
      :schema.job_text(r.id, r.kind, r.lane, r.pos, r.due, r.enqueued, r.payload, r.spec, r.history) as text),
  o as (
    select x.job, x.bytes, x.id, x.apart, x.text, row_number() over (order by x.key, x.pos) as n from (
      ${keyed('x', 'x.*')}) x),
  g as materialized (
    select min(o.n) as n, count(*)::int as size, sum(o.bytes) as bytes, array_agg(o.job) as jobs, array_agg(o.id) as ids,
      string_agg(o.text, ',') as text
    from o group by case when o.apart then -o.n else (o.n - 1) / 100 end),
  e as materialized (select nextval(':schema_text.fence') as fence, g.* from (select * from g order by g.n) g),
  l as (insert into :schema.lease (fence, worker, request, alone, claimed, queue, open, bytes, jobs, ids)
    select e.fence, p_worker, p_request, p_alone, p_now, p_lanes[1] / 64, repeat('1', e.size)::varbit, e.bytes, e.jobs, e.ids from e)
  select string_agg('[' || e.fence || ',' || p_alone || ',' || p_now || ',[' || e.text || ']]', ',' order by e.n),
    coalesce(sum(e.size), 0)::int,
    ${guard}(select n from kc) > coalesce(sum(e.size), 0) or ${left},
    ${reached}
  from e;`
}

export const CLAIM = `
-- The lanes of a queue that may have work, with the cursor that the caller keeps for each.
create or replace function :schema.lanes_in_use(p_queue int, p_levels int, p_fair int, p_lanes int[], p_cursors bigint[])
returns table (lane int, cur bigint) language sql stable as $$
  select p_queue * 64 + r.n * 16 + l.n, coalesce(c.cur, 0)
    from generate_series(0, 15) l(n) cross join (values (0), (1), (3)) r(n)
    left join unnest(p_lanes, p_cursors) c(lane, cur) on c.lane = p_queue * 64 + r.n * 16 + l.n
   where (p_levels >> l.n) & 1 = 1 and (r.n < 3 or (p_fair >> l.n) & 1 = 1)
$$;

-- The first jobs of each lane, and since when they are due. In a fair list (range 3) nobody goes before who stands before
-- it: each counts as due no earlier than those.
create or replace function :schema.heads(p_lanes int[], p_cursors bigint[], p_limit int, p_kinds text[])
returns table (lane int, due bigint) language sql stable as $$
  select t.lane, r.due from unnest(p_lanes, p_cursors) t(lane, cur),
    lateral (select coalesce(r.due, r.pos) as due from :schema.ready r
      where r.lane = t.lane and r.pos >= t.cur and r.kind = any(p_kinds) order by r.pos limit p_limit) r
   where t.lane & 48 <> 48
  union all
  select t.lane, max(r.due) over (partition by t.lane order by r.pos) from unnest(p_lanes, p_cursors) t(lane, cur),
    lateral (select r.due, r.pos from :schema.ready r
      where r.lane = t.lane and r.pos >= t.cur and r.kind = any(p_kinds) order by r.pos limit p_limit) r
   where t.lane & 48 = 48
$$;

-- How many jobs to take from which lane of a queue: the heads are merged without locks, so that only what is taken
-- gets locked. p_level_us: what a level is worth in waiting time. p_turn: jobs of the queue that the worker has
-- claimed so far. p_pattern: the tier of each turn, round and round. See core/priority.ts, which holds the rules.
create or replace function :schema.quotas(p_lanes int[], p_cursors bigint[], p_limit int, p_kinds text[], p_ordering text,
  p_level_us bigint, p_turn bigint, p_pattern int[])
returns table (lane int, quota int) language plpgsql as $$
#variable_conflict use_column
declare
  -- Starts of this claim that go to the oldest heads of the levels passed over.
  v_reserve int := (p_turn + p_limit) / 16 - p_turn / 16;
  v_tiers int[];
begin
  if p_ordering = 'ageing' then
    return query
    with h as materialized (
      select t.lane, t.lane % 16 as level, t.due from :schema.heads(p_lanes, p_cursors, p_limit, p_kinds) t),
    k as materialized (
      select h.*, row_number() over (order by h.due - h.level * p_level_us, h.level desc) as n from h),
    passed as materialized (
      select k.lane, row_number() over (order by k.due, k.level desc) as n from k
       where k.level not in (select level from k where n <= p_limit - v_reserve)),
    extra as materialized (select passed.lane from passed where passed.n <= v_reserve),
    main as ((select k.lane from k where k.level not in (select x.lane % 16 from extra x)
        order by k.n limit p_limit - (select count(*) from extra))
      union all select extra.lane from extra)
    select main.lane, count(*)::int from main group by main.lane order by min(main.lane % 16) desc;
  elsif p_ordering = 'strict' then
    return query
    with h as materialized (select * from :schema.heads(p_lanes, p_cursors, p_limit, p_kinds)),
    k as (select h.lane from h order by h.lane % 16 desc, h.due limit p_limit)
    select k.lane, count(*)::int from k group by k.lane;
  else
    v_tiers := array(select count(*) filter (where p_pattern[(p_turn + i) % cardinality(p_pattern) + 1] = tier)::int
      from generate_series(0, 3) tier, generate_series(0, p_limit - 1) i group by tier order by tier);
    return query
    with h as materialized (
      select t.lane, t.due, 4 - (t.lane % 16) / 4 as tier from :schema.heads(p_lanes, p_cursors, p_limit, p_kinds) t),
    k as (select h.*, row_number() over (partition by h.tier order by h.lane % 16 desc, h.due) <= v_tiers[h.tier] as due_share from h),
    m as (select k.lane from k order by k.due_share desc, k.lane % 16 desc, k.due limit p_limit)
    select m.lane, count(*)::int from m group by m.lane;
  end if;
end $$;

-- The queue got its first job with a key while a claim that did not look for keys was under way: it is asked again. STABLE,
-- so that it sees what the statement sees that calls it.
create or replace function :schema.is_keyed_since(p_queue int) returns boolean language plpgsql stable as $$
begin
  if (select q.keyed from :schema.queue q where q.id = p_queue) then
    raise exception 'the first job with a key has come in' using errcode = 'serialization_failure';
  end if;
  return false;
end $$;

-- Takes the jobs of the quotas into leases and answers them as text. A lease holds at most 100 jobs, and one of its own
-- where its kind is in p_apart or its payload is large. Beyond p_bytes of payload nothing is taken but the first job.
-- held: something of the quotas was left, beyond the bytes or in the hands of other claims. reached: of each fair list, the
-- last position taken.
create or replace function :schema.take_jobs(p_worker uuid, p_request bigint, p_now bigint, p_lanes int[], p_cursors bigint[], p_quotas int[],
  p_kinds text[], p_apart text[], p_level_us bigint, p_bytes int, p_alone boolean)
returns table (leases text, taken int, held boolean, reached json) language plpgsql as $$
#variable_conflict use_column
begin
  if exists (select from unnest(p_lanes) l where l & 48 = 48) then
    return query
${taken(IN_TURNS)}
  else
    return query
${taken(IN_ORDER)}
  end if;
end $$;

-- The same for a queue with keys: what finds no permit of its key is blocked, and not taken.
create or replace function :schema.take_keyed_jobs(p_worker uuid, p_request bigint, p_now bigint, p_lanes int[], p_cursors bigint[], p_quotas int[],
  p_kinds text[], p_apart text[], p_level_us bigint, p_bytes int, p_alone boolean)
returns table (leases text, taken int, held boolean, reached json) language plpgsql as $$
#variable_conflict use_column
declare
  v_rows tid[];
  v_ids uuid[];
  v_keys text[];
  v_dues bigint[];
  v_goes uuid[];
  v_found int;
begin
  -- What is beyond the bytes is not asked for: it would hold a permit without running.
  with k as materialized (${heads(', h.id, h.spec')}),
  f as (select a.*, sum(a.bytes) over w - a.bytes as before from (
      ${IN_TURNS.keyed('k', `c, id, bytes, pos, due, ${keyText('spec')} as name`)}) a
    window w as (order by a.key, a.pos)),
  n as (select f.* from f where f.before < p_bytes)
  select coalesce(array_agg(n.c order by n.key, n.pos), '{}'), array_agg(n.id order by n.key, n.pos), array_agg(n.name order by n.key, n.pos),
      array_agg(coalesce(n.due, n.pos) order by n.key, n.pos), (select count(*) from k)
    into v_rows, v_ids, v_keys, v_dues, v_found from n;
  if cardinality(array_remove(v_keys, null)) > 0 then
    select :schema.admit(p_lanes[1] / 64, array_agg(u.id order by u.o), array_agg(u.key order by u.o), array_agg(u.due order by u.o)) into v_goes
      from unnest(v_ids, v_keys, v_dues) with ordinality u(id, key, due, o) where u.key is not null;
    v_rows := array(select u.c from unnest(v_rows, v_ids, v_keys) u(c, id, key) where u.key is null or u.id = any(v_goes));
  end if;
  return query
${taken(IN_TURNS, ADMITTED)}
end $$;

-- SHARE: a beat waits for the claim, so that it knows all of its leases, and so does who writes the worker off; other
-- claims do not wait. Answers the last request that a beat told of; null when the worker is written off.
create or replace function :schema.hold_worker(p_worker uuid) returns bigint language sql as $$
  select w.known from :schema.worker w where w.id = p_worker for share
$$;

-- One round trip of a worker: settle what ended, then claim. Its settings hold for the functions it calls, too: generic
-- plans, as planning anew costs more than running, and no plan for a table that was empty when it was made. p_idle_us:
-- how long the idle mark shall last when nothing was found. The request row is taken before anything is taken from
-- ready: asked again, it gives the same batch.
create or replace function :schema.claim_jobs(p_worker uuid, p_request bigint, p_queues int[], p_shares int[], p_turns bigint[], p_limit int, p_kinds text[], p_apart text[],
  p_level_us bigint, p_pattern int[], p_suspects boolean, p_lanes int[], p_cursors bigint[], p_since bigint, p_idle_us bigint, p_bytes int,
  s_fences bigint[], s_ordinals int[], s_tos int[], s_flags boolean[], s_delays bigint[], s_started bigint[], s_ran bigint[],
  s_reasons text[], s_histories json[], s_results json[])
returns table (status text, leases text, settled int[], more boolean, next_due bigint, paused int[], now_us bigint, limited int[], next_token bigint, fair_lanes int[], fair_served float8[]) language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_variable
declare
  v_known bigint;
  v_repeat boolean;
  v_marks int;
  v_levels int[];           -- of each queue of p_queues
  v_fair int[];
  v_keyed boolean[];
  v_orderings text[];
  v_suspects boolean;
  v_some_lanes int[];       -- lanes of all these queues that have anything to take
  v_some_cursors bigint[];
  v_lanes int[];
  v_cursors bigint[];
  v_quotas int[];
  v_quota int;              -- all of them together
  v_take record;
  v_left int := p_limit;
  v_bytes int := p_bytes;
  v_merged boolean;
  v_want int;
  v_busy boolean := false;
  v_held boolean := false;
  v_cut boolean := false;   -- a queue may have more than its share
  v_limited boolean;        -- a queue has limits
  v_room int[];             -- of each queue: what its limits still allow; null: all
  v_permits int[];
  v_tokens int[];
  v_at bigint;              -- the instant of which that is so
  v_beaten boolean := false; -- another claim was at the limits of a queue
  v_marked int[];           -- queues for which this worker is marked as idle at a limit
begin
  if current_setting('transaction_isolation') <> 'read committed' then perform :schema.must_be_read_committed(); end if;
  -- A claim that takes nothing shall write nothing, so the row is locked only when something is there to take; but
  -- before leases are, as the worker's row comes first in the order of locks.
  if cardinality(s_fences) > 0 then perform :schema.hold_worker(p_worker); end if;
  -- Few statements, each of which looks at many things: on a connection that was idle each one costs some 50 µs.
  select (select w.known from :schema.worker w where w.id = p_worker),
      exists (select from :schema.claim_request c where c.worker = p_worker and c.request = p_request),
      coalesce(array_agg(q.id) filter (where q.paused), '{}'), array_agg(q.levels order by u.o), array_agg(q.fair order by u.o), array_agg(q.ordering order by u.o), array_agg(q.keyed order by u.o), count(i.queue), count(x.queue) > 0, coalesce(array_agg(i.queue) filter (where i.limited), '{}')
    into v_known, v_repeat, paused, v_levels, v_fair, v_orderings, v_keyed, v_marks, v_limited, v_marked
    from unnest(p_queues) with ordinality u(id, o) left join :schema.queue q on q.id = u.id left join :schema.queue_limit x on x.queue = u.id and (x.concurrency is not null or x.rate_count is not null)
      left join :schema.idle i on i.queue = q.id and i.worker = p_worker and i.until > :schema.clock() + p_idle_us / 2;
  status := case when v_known is null then 'gone' else 'ok' end;
  more := true;
  if cardinality(s_fences) > 0 then
    settled := :schema.settle(s_fences, s_ordinals, s_tos, s_flags, s_delays, s_started, s_ran, s_reasons, s_histories, s_results);
  end if;
  now_us := :schema.clock();
  if status = 'gone' then return next; return; end if;
  if v_repeat or p_request <= v_known then
    leases := :schema.answer_text(p_worker, p_request);
    return next; return;
  end if;

  -- LIMIT in a LATERAL keeps it a probe of the index; an EXISTS was planned as a join with the whole table.
  select :schema.next_due(p_queues, p_since) - now_us,
      p_suspects and exists (select from unnest(p_queues) q(id), lateral (select from :schema.ready r
        where r.lane between q.id * 64 + 32 and q.id * 64 + 47 and r.kind = any(p_kinds) limit 1) r),
      array_agg(l.lane), array_agg(l.cur)
    into next_due, v_suspects, v_some_lanes, v_some_cursors
    from unnest(p_queues, v_levels, v_fair) q(id, levels, fair), :schema.lanes_in_use(q.id, q.levels, q.fair, p_lanes, p_cursors) l,
      lateral (select from :schema.ready r where r.lane = l.lane and r.pos >= l.cur and r.kind = any(p_kinds) limit 1) r
   where q.id <> all(paused);

  if v_limited and (v_suspects or v_some_lanes is not null) then
    -- Whoever stops reading in the middle of a large answer would hold the limits of its queues for as long.
    v_bytes := least(v_bytes, 1000000);
    with a as materialized (select * from :schema.allowances(
      case when v_suspects then p_queues else array(select distinct l.lane / 64 from unnest(v_some_lanes) l(lane)) end))
    select array_agg(case when x.queue is not null then coalesce(least(a.permits, a.tokens), 0) end order by u.o), array_agg(a.permits order by u.o),
        array_agg(a.tokens order by u.o), max(a.at_us), coalesce(bool_or(x.queue is not null and a.queue is null
          and (v_suspects or exists (select from unnest(v_some_lanes) l(lane) where l.lane / 64 = u.id))), false)
      into v_room, v_permits, v_tokens, v_at, v_beaten
      from unnest(p_queues) with ordinality u(id, o)
        left join :schema.queue_limit x on x.queue = u.id and (x.concurrency is not null or x.rate_count is not null)
        left join a on a.queue = u.id;
  end if;
  if v_suspects then
    leases := :schema.take_suspect_job(p_worker, p_request, coalesce(v_at, now_us), case when v_room is null then p_queues
      else array(select u.id from unnest(p_queues, v_room) with ordinality u(id, room, o) where coalesce(u.room, 1) > 0 order by u.o) end, p_kinds);
    if leases is not null then return next; return; end if;
  end if;

  for v_pass in 1 .. case when v_some_lanes is null then 0 else 2 end loop
    v_held := false;
    for q in 1 .. cardinality(p_queues) loop
      v_want := case when v_pass = 1 then least(p_shares[q], v_left) else v_left end;
      v_cut := v_cut or v_want < v_left;
      v_want := least(v_want, v_room[q]);
      continue when v_want <= 0;
      if v_bytes <= 0 then
        v_held := true;
        continue;
      end if;
      if cardinality(p_queues) = 1 then
        v_lanes := v_some_lanes;
        v_cursors := v_some_cursors;
      else
        select array_agg(t.lane), array_agg(t.cur) into v_lanes, v_cursors
          from unnest(v_some_lanes, v_some_cursors) t(lane, cur) where t.lane / 64 = p_queues[q];
        continue when v_lanes is null;
      end if;
      if not v_busy then
        with w as (select w.known from :schema.worker w where w.id = p_worker for share)
        insert into :schema.claim_request (worker, request, at) select p_worker, p_request, now_us from w where w.known < p_request
          on conflict do nothing;
        if not found then
          -- Written off, given up, or the same call was here at the same time and has committed.
          if :schema.hold_worker(p_worker) is null then status := 'gone'; end if;
          leases := :schema.answer_text(p_worker, p_request);
          return next; return;
        end if;
        v_busy := true;
      end if;
      v_merged := cardinality(v_lanes) > 1;
      if not v_merged then
        v_quotas := array[v_want];
        v_quota := v_want;
      else
        select array_agg(k.lane), array_agg(t.cur), array_agg(k.quota), sum(k.quota) into v_lanes, v_cursors, v_quotas, v_quota
          from :schema.quotas(v_lanes, v_cursors, v_want, p_kinds, v_orderings[q], p_level_us, p_turns[q], p_pattern) k
          join unnest(v_lanes, v_cursors) t(lane, cur) on t.lane = k.lane;
        continue when v_lanes is null;
      end if;
      if v_keyed[q] then
        select * into v_take from :schema.take_keyed_jobs(p_worker, p_request, now_us, v_lanes, v_cursors, v_quotas, p_kinds, p_apart,
          case v_orderings[q] when 'ageing' then p_level_us else 4000000000000000 end, v_bytes, false) t;
      else
        select * into v_take from :schema.take_jobs(p_worker, p_request, now_us, v_lanes, v_cursors, v_quotas, p_kinds, p_apart,
          case v_orderings[q] when 'ageing' then p_level_us else 4000000000000000 end, v_bytes, false) t;
      end if;
      -- Of several lanes each gives no more than its quota: when one of them was emptied since, the others have more.
      v_held := v_held or v_take.held or v_merged and v_take.taken < v_quota;
      if v_take.reached is not null then perform :schema.serve(v_take.reached); end if;
      if v_take.leases is not null then
        leases := concat_ws(',', leases, v_take.leases);
        v_left := v_left - v_take.taken;
        v_bytes := v_bytes - octet_length(v_take.leases);
        p_turns[q] := p_turns[q] + v_take.taken;
        if v_room[q] is not null then
          v_room[q] := v_room[q] - v_take.taken;
          if v_tokens[q] is not null then perform :schema.take_tokens(p_queues[q], v_take.taken, v_at); end if;
        end if;
      end if;
    end loop;
    exit when v_left <= 0 or not v_cut;
  end loop;

  if exists (select from unnest(v_fair) f where f <> 0) then
    -- A cursor of a fair list goes no further than what comes in starts from.
    select array_agg(f.lane), array_agg(f.served::float8) into fair_lanes, fair_served from :schema.fair_lane f where f.lane = any(v_some_lanes);
  end if;
  limited := '{}';
  if v_room is not null then
    -- What a limit leaves is still there; no cursor may pass it.
    limited := array(select u.id from unnest(p_queues, v_room) u(id, room) where u.room <= 0 and exists (
      select from unnest(v_some_lanes, v_some_cursors) l(lane, cur), lateral (select from :schema.ready r
        where r.lane = l.lane and r.pos >= l.cur and r.kind = any(p_kinds) limit 1) r where l.lane / 64 = u.id));
    -- Where permits are left the next token is all that it waits for.
    next_token := (select min(:schema.until_token(u.id, v_at)) from unnest(p_queues, v_permits, v_tokens) u(id, permits, tokens)
      where u.id = any(limited) and u.tokens < coalesce(u.permits, 2147483647));
  end if;
  -- Short of what it asked for: either nothing is left that it could take, or other claims hold it at this moment.
  more := v_left <= 0 or v_held or v_beaten;
  if leases is not null then leases := '[' || leases || ']'; end if;
  -- A worker that got less than it asked for may fall idle: from now on enqueues send it hints. Written at most each half
  -- of the mark's life; a worker that gets all it asks for takes its marks away, and enqueues stop paying for it.
  -- Where a limit holds back what is there, only what ends helps: enqueues need not tell.
  if v_left > 0 and p_idle_us > 0 and (v_marks < cardinality(p_queues) or not (v_marked @> limited and limited @> v_marked)) then
    insert into :schema.idle (queue, worker, until, limited) select q, p_worker, now_us + p_idle_us, q = any(limited) from unnest(p_queues) q order by q
      on conflict (queue, worker) do update set until = excluded.until, limited = excluded.limited;
  elsif v_left <= 0 and v_marks > 0 then
    delete from :schema.idle i where i.worker = p_worker and i.queue = any(p_queues);
  end if;
  return next;
end $$;

-- A suspect runs alone: one worker of a queue at a time gets one, and nothing with it.
create or replace function :schema.take_suspect_job(p_worker uuid, p_request bigint, p_now bigint, p_queues int[], p_kinds text[]) returns text language plpgsql as $$
declare
  v_queue int;
  v_job record;
  v_take record;
begin
  for v_queue in select q.id from :schema.queue q where q.id = any(p_queues) and not q.paused
      and exists (select from :schema.ready r where r.lane between q.id * 64 + 32 and q.id * 64 + 47 and r.kind = any(p_kinds))
      order by array_position(p_queues, q.id) loop
    -- The queue's row is the guard; who does not get it at once leaves the suspect to the other.
    perform from :schema.queue q where q.id = v_queue for no key update skip locked;
    continue when not found;
    continue when exists (select from :schema.lease l, unnest(l.jobs) j where l.alone and j.lane / 64 = v_queue);
    select r.lane, r.id, coalesce(r.due, r.pos) as due, ${keyText('r.spec')} as key, (select q.keyed from :schema.queue q where q.id = v_queue) as keyed into v_job
      from :schema.ready r where r.lane between v_queue * 64 + 32 and v_queue * 64 + 47 and r.kind = any(p_kinds)
      order by r.lane desc, r.pos limit 1;
    continue when not found;
    -- As in claim: written off or given up meanwhile, it takes nothing. The worker's row is locked before those of keys, as by who writes it off.
    continue when p_request <= coalesce(:schema.hold_worker(p_worker), p_request);
    if v_job.key is not null then
      perform from :schema.ready r where r.id = v_job.id for update skip locked;
      continue when not found or cardinality(:schema.admit(v_queue, array[v_job.id], array[v_job.key], array[v_job.due])) = 0;
    end if;
    insert into :schema.claim_request (worker, request, at) values (p_worker, p_request, p_now) on conflict do nothing;
    if not found then return :schema.answer_text(p_worker, p_request); end if;
    if v_job.keyed then
      select * into v_take from :schema.take_keyed_jobs(p_worker, p_request, p_now, array[v_job.lane], array[0::bigint], array[1], p_kinds, '{}', 0, 2000000000, true);
    else
      select * into v_take from :schema.take_jobs(p_worker, p_request, p_now, array[v_job.lane], array[0::bigint], array[1], p_kinds, '{}', 0, 2000000000, true);
    end if;
    if v_take.leases is not null then
      perform :schema.take_tokens(v_queue, 1, p_now);
      return '[' || v_take.leases || ']';
    end if;
  end loop;
  return null;
end $$;

-- The earliest instant at which a delayed job of these queues is due. p_since: what was due before it was promoted, and
-- under an old snapshot its dead entries would be walked over by each claim.
create or replace function :schema.next_due(p_queues int[], p_since bigint) returns bigint language sql stable as $$
  select min(d.due) from :schema.queue q, generate_series(0, 15) l(n), (values (0), (2)) r(n),
    lateral (select d.due from :schema.delayed d where d.lane = q.id * 64 + r.n * 16 + l.n and d.due >= p_since
      order by d.due limit 1) d
   where q.id = any(p_queues) and (q.levels >> l.n) & 1 = 1
$$;
`
