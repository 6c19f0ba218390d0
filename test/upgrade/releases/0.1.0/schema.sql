-- 1 tables, functions 1
begin;
select pg_advisory_xact_lock(hashtextextended('leasehold migrate "release_under_test"', 0));
do $$ begin if not exists (select from pg_namespace where nspname = 'release_under_test') then create schema "release_under_test"; end if; end $$;
create table if not exists "release_under_test".migration (version int primary key, name text not null, oldest_client int not null, applied_at timestamptz not null default clock_timestamp());
create table if not exists "release_under_test".functions (one boolean primary key default true check (one), revision int not null, digest text not null, applied_at timestamptz not null default clock_timestamp());
-- The one clock: microseconds since 1970. STABLE, so that an index condition can use it; clock_timestamp() and not
-- now(), which in a caller's old transaction lies in the past. A test moves time by replacing this function.
create or replace function "release_under_test".clock() returns bigint language plpgsql stable as $$
begin return (extract(epoch from clock_timestamp()) * 1000000)::bigint; end $$;

create or replace function "release_under_test".instant(p_us bigint) returns timestamptz language sql stable parallel safe as
$$ select timestamptz 'epoch' + p_us * interval '1 microsecond' $$;
-- Every claim and every take-over draws from it, after its last lock: a later fence is a larger one.
create sequence "release_under_test".fence as bigint;
-- Positions of the front range of a lane.
create sequence "release_under_test".front as bigint;

create table "release_under_test".queue (
  id int primary key,
  name text not null unique,
  -- bit n: level n was used. Claims look at these levels only.
  levels int not null default 0,
  paused boolean not null default false,
  draining boolean not null default false,
  ordering text not null default 'ageing' check (ordering in ('ageing', 'strict', 'weighted'))
) with (fillfactor = 50);

-- lane = queue * 64 + range * 16 + level; range 0 is the backlog (pos = the instant it became due), range 1 the front
-- (pos from a sequence, due kept), range 2 suspects.
create table "release_under_test".ready (
  lane int not null,
  bytes int not null,  -- of the payload's text: claims are bounded by it; beside lane it takes no room
  pos bigint not null,
  id uuid not null,
  kind text not null,
  payload json not null,
  spec json,          -- null: all defaults
  history json,       -- null: nothing has happened yet
  enqueued bigint,    -- null: pos
  due bigint          -- null: pos
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
  autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 200000);
create index ready_claim on "release_under_test".ready (lane, pos);
create unique index ready_id on "release_under_test".ready (id);

create table "release_under_test".delayed (
  lane int not null,
  bytes int not null,
  due bigint not null,
  id uuid not null,
  kind text not null,
  payload json not null,
  spec json,
  history json,
  enqueued bigint not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
  autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0);
create index delayed_promote on "release_under_test".delayed (lane, due);
create unique index delayed_id on "release_under_test".delayed (id);

-- A worker process. Two times: of the thread that beats and of the main loop.
create table "release_under_test".worker (
  id uuid primary key,
  n bigint not null,
  known int not null default 0,
  seen bigint not null,
  main_seen bigint not null,
  steady_since bigint not null,
  started_at bigint not null,
  lease_us bigint not null,
  beat_us bigint not null,
  started json not null default '[]',
  info json not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- One row for the jobs that end together, holding the very rows it took from ready. open has a 1 for each job that
-- is not settled yet: a settlement moves only what it finds open.
create table "release_under_test".lease (
  fence bigint primary key,
  worker uuid not null,
  request int,         -- null: adopted by take-over; such a lease is never given back by a beat
  alone boolean not null default false,
  claimed bigint not null,
  open varbit not null,
  started varbit,
  cancelled varbit,
  crash json,          -- of an adopted one: who died, what had started
  bytes bigint not null,  -- of the payloads: take-over goes in steps by it
  ids uuid[] not null,  -- of jobs, in order: looked through to find a running one, without unpacking it
  jobs "release_under_test".ready[] not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index lease_worker on "release_under_test".lease (worker, request);

-- Taken before a claim takes anything: the same request never takes twice.
create table "release_under_test".claim_request (
  worker uuid not null,
  request int not null,
  at bigint not null,
  primary key (worker, request)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

-- Dead fences, for an hour, and what was open when they died: so that a late settlement hears 'lost' and a repeat of
-- one that was done hears 'already'.
create table "release_under_test".revoked (
  fence bigint primary key,
  open varbit not null,
  at bigint not null
);
create index revoked_at on "release_under_test".revoked (at);

create table "release_under_test".ended (
  id uuid not null,
  queue int not null,
  state smallint not null,   -- 1 completed, 2 cancelled
  level smallint not null,
  kind text not null,
  enqueued timestamptz not null,
  started timestamptz,
  ran_ms int,          -- of the last attempt; null: it never ran
  ended timestamptz not null,
  worker uuid,
  payload json not null,
  spec json,
  history json,
  result json
) partition by range (ended);
create index ended_id on "release_under_test".ended (id);
create index ended_list on "release_under_test".ended (queue, state, ended);

create table "release_under_test".dead (
  id uuid primary key,
  queue int not null,
  level smallint not null,
  kind text not null,
  reason text not null,
  enqueued timestamptz not null,
  started timestamptz,
  ran_ms int,          -- of the last attempt; null: it never ran
  ended timestamptz not null,
  worker uuid,
  payload json not null,
  spec json,
  history json not null
);
create index dead_list on "release_under_test".dead (queue, ended);
create index dead_ended on "release_under_test".dead (ended);

create table "release_under_test".idempotency (
  kind text not null,
  key text not null,
  id uuid not null,
  payload_hash text not null,
  expires bigint not null,
  primary key (kind, key)
);
create index idempotency_expires on "release_under_test".idempotency (expires);

-- Jobs that must have started by an instant.
create table "release_under_test".expiry (
  at bigint not null,
  id uuid not null,
  primary key (at, id)
);

-- Workers that found nothing a moment ago: only for them an enqueue sends a hint.
create table "release_under_test".idle (
  queue int not null,
  worker uuid not null,
  until bigint not null,
  primary key (queue, worker)
) with (fillfactor = 50);

-- All places as one table, for people.
create view "release_under_test".job as
  select id, 'ready' as state, (select name from "release_under_test".queue where queue.id = lane / 64) as queue,
    kind, lane % 16 as priority, "release_under_test".instant(coalesce(enqueued, pos)) as enqueued, "release_under_test".instant(coalesce(due, pos)) as due,
    null::timestamptz as started, null::timestamptz as ended, null::uuid as worker, null::text as reason, payload, spec, history, null::json as result
  from "release_under_test".ready
  union all
  select id, case when history is null then 'delayed' else 'retrying' end, (select name from "release_under_test".queue where queue.id = lane / 64),
    kind, lane % 16, "release_under_test".instant(enqueued), "release_under_test".instant(due), null, null, null, null, payload, spec, history, null
  from "release_under_test".delayed
  union all
  select j.id, 'running', (select name from "release_under_test".queue where queue.id = j.lane / 64), j.kind, j.lane % 16,
    "release_under_test".instant(coalesce(j.enqueued, j.pos)), "release_under_test".instant(coalesce(j.due, j.pos)), null, null, l.worker, null, j.payload, j.spec, j.history, null
  from "release_under_test".lease l, unnest(l.jobs) with ordinality j
  where get_bit(l.open, j.ordinality::int - 1) = 1
  union all
  select id, case state when 1 then 'completed' else 'cancelled' end, (select name from "release_under_test".queue where queue.id = ended.queue),
    kind, level, enqueued, null, started, ended, worker, null, payload, spec, history, result
  from "release_under_test".ended
  union all
  select id, 'dead', (select name from "release_under_test".queue where queue.id = dead.queue), kind, level, enqueued, null, started, ended, worker,
    reason, payload, spec, history, null
  from "release_under_test".dead;
insert into "release_under_test".migration (version, name, oldest_client) values (1, 'tables', 1);
-- The one clock: microseconds since 1970. STABLE, so that an index condition can use it; clock_timestamp() and not
-- now(), which in a caller's old transaction lies in the past. A test moves time by replacing this function.
create or replace function "release_under_test".clock() returns bigint language plpgsql stable as $$
begin return (extract(epoch from clock_timestamp()) * 1000000)::bigint; end $$;

create or replace function "release_under_test".instant(p_us bigint) returns timestamptz language sql stable parallel safe as
$$ select timestamptz 'epoch' + p_us * interval '1 microsecond' $$;

-- A queue's id; the queue and the level are made where they are missing. No sequence: nothing is used up by asking.
create or replace function "release_under_test".ensure_queue(p_name text, p_level int) returns int language plpgsql as $$
declare v_id int;
begin
  loop
    update "release_under_test".queue set levels = levels | (1 << p_level) where name = p_name and levels & (1 << p_level) = 0;
    select id into v_id from "release_under_test".queue where name = p_name;
    if v_id is not null then return v_id; end if;
    begin
      insert into "release_under_test".queue (id, name, levels) select coalesce(max(id), 0) + 1, p_name, 1 << p_level from "release_under_test".queue
        on conflict (name) do nothing;
    exception when unique_violation then null; -- another queue took the number: again
    end;
  end loop;
end $$;

-- Wakes idle workers: one notification a call at most, none while nobody is idle. In somebody's own transaction the
-- mark of a worker that falls idle before the commit could not be seen, so there p_always tells anyway.
create or replace function "release_under_test".hint(p_queues int[], p_always boolean) returns void language plpgsql as $$
declare v_names text;
begin
  select string_agg(q.name, ',') into v_names from "release_under_test".queue q
   where q.id = any(p_queues) and (p_always or exists (select from "release_under_test".idle i where i.queue = q.id and i.until > "release_under_test".clock()));
  if v_names is not null then
    perform pg_notify('leasehold_release_under_test', case when length(v_names) > 7000 then '*' else v_names end);
  end if;
end $$;

-- The day table of a date, made apart and attached, so that no writer waits. Anyone may call it, also twice at once.
create or replace function "release_under_test".ensure_day(p_day date) returns void language plpgsql as $$
declare
  v_schema text := '"release_under_test"';
  v_name text := 'ended_' || to_char(p_day, 'YYYYMMDD');
  v_from timestamptz := p_day::timestamp at time zone 'UTC';
  v_to timestamptz := (p_day + 1)::timestamp at time zone 'UTC';
begin
  if to_regclass(format('%s.%I', v_schema, v_name)) is not null then return; end if;
  -- Makers of the same day queue up here and find it made.
  perform pg_advisory_xact_lock(hashtextextended(v_schema || v_name, 0));
  if to_regclass(format('%s.%I', v_schema, v_name)) is not null then return; end if;
  execute format('create table %s.%I (like %s.ended including defaults, check (ended >= %L and ended < %L))',
    v_schema, v_name, v_schema, v_from, v_to);
  execute format('alter table %s.ended attach partition %s.%I for values from (%L) to (%L)',
    v_schema, v_schema, v_name, v_from, v_to);
end $$;

create or replace function "release_under_test".ensure_days() returns void language plpgsql as $$
begin
  perform "release_under_test".ensure_day((("release_under_test".instant("release_under_test".clock())) at time zone 'UTC')::date + d)
    from generate_series(0, 7) d;
end $$;

select "release_under_test".ensure_days();

-- A history with one entry more, the newest 20 kept; as core/settlement.ts does it.
create or replace function "release_under_test".history_with(p_history json, p_entry json) returns json language plpgsql immutable as $$
declare
  v_entries json;
begin
  p_history := coalesce(p_history, '{"attempts":0,"crashes":0,"crashesAlone":0,"snoozes":0,"redrives":0,"entries":[]}');
  select json_agg(e.value order by e.n) into v_entries from (
    select * from (select value, ordinality as n from json_array_elements(p_history -> 'entries') with ordinality
      order by ordinality desc limit 19) last
    union all select p_entry, 1000000) e;
  return (select json_object_agg(key, case key when 'entries' then v_entries else value end) from json_each(p_history));
end $$;

create or replace function "release_under_test".history_redriven(p_history json, p_now bigint) returns json language sql immutable as $$
  select json_object_agg(key, case
      when key in ('attempts', 'crashes', 'crashesAlone') then '0'::json
      when key = 'redrives' then to_json((value #>> '{}')::int + 1)
      else value end)
    from json_each("release_under_test".history_with(p_history, json_build_object('at', p_now / 1000, 'attempt', 1, 'outcome', 'redriven')))
   where key <> 'firstStartedAt'
$$;

-- Only a job that was never started expires; brought back from the dead it does not, as its enqueue lies long behind.
create or replace function "release_under_test".may_expire(p_history json) returns boolean language sql stable as $$
  select p_history ->> 'firstStartedAt' is null and coalesce(p_history ->> 'redrives', '0') = '0'
$$;

-- New jobs that may start now and have no key, in groups of one lane, kind and spec. p_payloads is one JSON array for
-- each group, in an array: elements keep their own text, and nobody had to quote them; where p_sizes is null there is one
-- group, and p_payloads is its array. Answers the queues that are
-- being drained; their jobs were not stored. p_order: places in the call, where groups took the jobs out of order.
create or replace function "release_under_test".enqueue_ready(p_ids uuid[], p_payloads json, p_sizes int[], p_lanes int[], p_kinds text[], p_specs json[], p_order int[], p_always boolean)
returns int[] language plpgsql as $$
declare
  v_now bigint := "release_under_test".clock();
  v_queue record;
  v_draining int[];
  v_from int := 1;
  v_payloads json;
  g int := 0;
begin
  if p_sizes is null then
    -- The form of single enqueues: one look at all there is to know of the queue.
    select q.draining, case when p_always or exists (select from "release_under_test".idle i where i.queue = q.id and i.until > v_now) then q.name end as told
      into v_queue from "release_under_test".queue q where q.id = p_lanes[1] / 64;
    if v_queue.draining then return array[p_lanes[1] / 64]; end if;
    insert into "release_under_test".ready (lane, bytes, pos, id, kind, payload, spec)
    select p_lanes[1], octet_length(u.payload::text), v_now + u.o, u.id, p_kinds[1], u.payload, p_specs[1]
      from rows from (unnest(p_ids), json_array_elements(p_payloads)) with ordinality u(id, payload, o);
    if v_queue.told is not null then perform pg_notify('leasehold_release_under_test', v_queue.told); end if;
    return null;
  end if;
  select array_agg(q.id) into v_draining from "release_under_test".queue q
   where q.draining and q.id in (select lane / 64 from unnest(p_lanes) lane);
  for v_payloads in select value from json_array_elements(p_payloads) loop
    g := g + 1;
    if v_draining is null or p_lanes[g] / 64 <> all(v_draining) then
      -- Consecutive microseconds keep the order of the call inside a lane.
      insert into "release_under_test".ready (lane, bytes, pos, id, kind, payload, spec)
      select p_lanes[g], octet_length(u.payload::text), v_now + case when p_order is null then v_from - 1 + u.o else p_order[v_from - 1 + u.o] end, u.id, p_kinds[g], u.payload, p_specs[g]
        from rows from (unnest(p_ids[v_from : v_from + p_sizes[g] - 1]), json_array_elements(v_payloads))
        with ordinality u(id, payload, o);
    end if;
    v_from := v_from + p_sizes[g];
  end loop;
  perform "release_under_test".hint(array(select distinct lane / 64 from unnest(p_lanes) lane), p_always);
  return v_draining;
end $$;

-- New jobs of any form: delayed, with a key, with an expiry. One answer each, in the order of the call:
-- 'created', 'duplicate', 'mismatch' (with the first job's id), 'known' (somebody chose an id that a job has, in any
-- place) or 'draining'. A key that is being decided in
-- somebody's open transaction raises lock_not_available after a moment; the caller then halves its batch to find it.
create or replace function "release_under_test".enqueue_mixed(p_ids uuid[], p_lanes int[], p_kinds text[], p_payloads json[], p_specs json[],
  p_delays bigint[], p_ats bigint[], p_expires bigint[], p_keys text[], p_hashes text[], p_retentions bigint[], p_chosen boolean[], p_always boolean)
returns table (status text, first uuid) language plpgsql set lock_timeout = '50ms' as $$
#variable_conflict use_column
declare
  v_now bigint := "release_under_test".clock();
  v_draining int[];
  v_new uuid[] := '{}';
begin
  select coalesce(array_agg(q.id), '{}') into v_draining from "release_under_test".queue q
   where q.draining and q.id in (select lane / 64 from unnest(p_lanes) lane);
  if p_keys is not null then
    perform "release_under_test".free_expired_keys(p_kinds, p_keys, v_now);
    -- Sorted, so that two callers with the same keys meet at the same one first.
    with i as (insert into "release_under_test".idempotency (kind, key, id, payload_hash, expires)
    select distinct on (u.kind, u.key) u.kind, u.key, u.id, u.hash, greatest(v_now, coalesce(u.at, v_now + u.delay)) + u.retention
      from unnest(p_ids, p_lanes, p_kinds, p_keys, p_hashes, p_retentions, p_delays, p_ats)
        with ordinality u(id, lane, kind, key, hash, retention, delay, at, o)
     where u.key is not null and u.lane / 64 <> all(v_draining)
     order by u.kind, u.key, u.o
    on conflict (kind, key) do nothing returning id)
    select coalesce(array_agg(i.id), '{}') into v_new from i;
  end if;
  if p_chosen is not null then
    -- Two callers with one id: the second one looks when the first has committed.
    perform pg_advisory_xact_lock(hashtextextended('"release_under_test" job ' || c.id, 0)) from (
      select u.id from unnest(p_ids, p_chosen) u(id, chosen) where u.chosen order by u.id) c;
  end if;
  return query
  with u as materialized (
    select x.*, greatest(v_now, coalesce(x.at, v_now + x.delay)) as due, i.id as first_id, i.payload_hash as first_hash, n.id is not null as is_new
      from unnest(p_ids, p_lanes, p_kinds, p_payloads, p_specs, p_delays, p_ats, p_expires, p_keys, p_hashes, p_chosen)
        with ordinality x(id, lane, kind, payload, spec, delay, at, expires, key, hash, chosen, o)
      left join "release_under_test".idempotency i on i.kind = x.kind and i.key = x.key
      -- The key was taken by this very item of this very call: a call sent again finds it taken before.
      left join unnest(v_new) n(id) on n.id = x.id and n.id = i.id),
  v as materialized (
    select u.*, case
      when u.first_id is not null and not u.is_new then case when u.first_hash = u.hash then 'duplicate' else 'mismatch' end
      when u.chosen and ("release_under_test".is_known(u.id) or exists (select from u t where t.id = u.id and t.o < u.o)) then 'known'
      when u.lane / 64 = any(v_draining) then 'draining'
      else 'created' end as verdict
    from u),
  r as (insert into "release_under_test".ready (lane, bytes, pos, id, kind, payload, spec)
    select v.lane, octet_length(v.payload::text), v_now + v.o, v.id, v.kind, v.payload, v.spec from v where v.verdict = 'created' and v.due <= v_now),
  d as (insert into "release_under_test".delayed (lane, bytes, due, id, kind, payload, spec, enqueued)
    select v.lane, octet_length(v.payload::text), v.due, v.id, v.kind, v.payload, v.spec, v_now from v where v.verdict = 'created' and v.due > v_now),
  e as (insert into "release_under_test".expiry (at, id)
    select v_now + v.expires, v.id from v where v.verdict = 'created' and v.expires is not null)
  select v.verdict, case when v.verdict in ('duplicate', 'mismatch') then v.first_id end from v order by v.o;
  perform "release_under_test".hint(array(select distinct u.lane / 64 from unnest(p_lanes, p_delays, p_ats) u(lane, delay, at)
    -- A worker that knows of no due time looks for one each 20 s.
    where coalesce(u.at, v_now + u.delay) <= v_now + 20000000), p_always);
end $$;

-- Whether any place holds a job with this id.
create or replace function "release_under_test".is_known(p_id uuid) returns boolean language sql stable as $$
  select exists (select from "release_under_test".ready x where x.id = p_id) or exists (select from "release_under_test".delayed x where x.id = p_id)
    or exists (select from "release_under_test".lease x where p_id = any(x.ids)) or exists (select from "release_under_test".ended x where x.id = p_id)
    or exists (select from "release_under_test".dead x where x.id = p_id)
$$;

-- A key is free again when its retention is over and its job has ended.
create or replace function "release_under_test".free_expired_keys(p_kinds text[], p_keys text[], p_now bigint) returns void language sql as $$
  delete from "release_under_test".idempotency i
   using unnest(p_kinds, p_keys) u(kind, key)
   where i.kind = u.kind and i.key = u.key and i.expires <= p_now
     and not exists (select from "release_under_test".ready r where r.id = i.id)
     and not exists (select from "release_under_test".delayed d where d.id = i.id)
     and not exists (select from "release_under_test".lease l where i.id = any(l.ids))
     -- A dead letter may be brought back, and keeps its key for as long.
     and not exists (select from "release_under_test".dead x where x.id = i.id)
$$;

create or replace function "release_under_test".must_be_read_committed() returns void language plpgsql as $$
begin
  -- Each statement below has to see what was committed while the one before it waited for a lock.
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'the queue needs transactions at READ COMMITTED, not %', current_setting('transaction_isolation')
      using errcode = 'invalid_transaction_state', hint = 'set default_transaction_isolation to ''read committed'' for the role that runs workers';
  end if;
end $$;

create or replace function "release_under_test".without(p_bits varbit, p_ordinals int[]) returns varbit language plpgsql immutable as $$
begin
  for n in 1 .. coalesce(cardinality(p_ordinals), 0) loop p_bits := set_bit(p_bits, p_ordinals[n], 0); end loop;
  return p_bits;
end $$;

create or replace function "release_under_test".with(p_bits varbit, p_ordinals int[]) returns varbit language plpgsql immutable as $$
begin
  for n in 1 .. coalesce(cardinality(p_ordinals), 0) loop p_bits := set_bit(p_bits, p_ordinals[n], 1); end loop;
  return p_bits;
end $$;

-- A lease as JSON text: [fence, alone, claimed, [[id, kind, lane, pos, due, enqueued, payload, spec, history], ...]].
-- Kinds need no escaping: their characters are held to a safe set. Text, as building JSON values costs three times it.
-- STABLE and each argument used little, so that it is inlined.
create or replace function "release_under_test".job_text(p_id uuid, p_kind text, p_lane int, p_pos bigint, p_due bigint, p_enqueued bigint, p_payload json, p_spec json, p_history json)
returns text language sql stable as $$
  select '["' || p_id::text || '","' || p_kind || '",' || p_lane::text || ',' || p_pos::text || ',' || coalesce(p_due::text, 'null') || ','
    || coalesce(p_enqueued::text, 'null') || ',' || p_payload::text || ',' || coalesce(p_spec::text, 'null') || ',' || coalesce(p_history::text, 'null') || ']'
$$;

create or replace function "release_under_test".lease_text(l "release_under_test".lease) returns text language sql stable as $$
  select '[' || l.fence || ',' || l.alone || ',' || l.claimed || ',[' || (
    select string_agg("release_under_test".job_text(j.id, j.kind, j.lane, j.pos, j.due, j.enqueued, j.payload, j.spec, j.history), ',' order by j.ordinality)
    from unnest(l.jobs) with ordinality j) || ']]'
$$;

-- The answer of an earlier request again. A lease of which something was settled has reached its worker, so no repeat
-- may hand it out once more.
create or replace function "release_under_test".leases_text(p_worker uuid, p_request int) returns text language sql stable as $$
  select '[' || string_agg("release_under_test".lease_text(l), ',' order by l.fence) || ']' from "release_under_test".lease l
   where l.worker = p_worker and l.request = p_request and bit_count(l.open) = bit_length(l.open)
$$;

-- Jobs of a lease that are still open go to the front of their lanes; nothing is used up. The lease ends, its fence
-- is remembered as dead. The caller holds the lease's lock. An at-most-once job that started may have had its effect:
-- it is lost, and never given back.
create or replace function "release_under_test".give_back(p_fences bigint[], p_now bigint) returns void language plpgsql as $$
declare
  v_queues int[];
begin
  with l as (delete from "release_under_test".lease where fence = any(p_fences) returning fence, worker, open, started, cancelled, jobs),
  v as (insert into "release_under_test".revoked (fence, open, at) select l.fence, l.open, p_now from l on conflict do nothing),
  j as materialized (select l.fence, l.worker, u.ordinality, coalesce(get_bit(l.cancelled, u.ordinality::int - 1) = 1, false) as cancelled,
      coalesce(get_bit(l.started, u.ordinality::int - 1) = 1, false) and u.spec ->> 'delivery' = 'at-most-once' as lost,
      u.lane, u.bytes, u.pos, u.id, u.kind, u.payload, u.spec, u.history, u.enqueued, u.due
    from l, unnest(l.jobs) with ordinality u where get_bit(l.open, u.ordinality::int - 1) = 1),
  c as (insert into "release_under_test".ended (id, queue, state, level, kind, enqueued, ended, worker, payload, spec, history)
    select id, lane / 64, 2, lane % 16, kind, "release_under_test".instant(coalesce(enqueued, pos)), "release_under_test".instant(p_now), worker, payload, spec, history
    from j where j.cancelled and coalesce(spec ->> 'keep', 'all') <> 'none'),
  y as (insert into "release_under_test".expiry (at, id) select coalesce(enqueued, pos) + (spec ->> 'expiresInMs')::bigint * 1000, id from j
    where not j.cancelled and spec ->> 'expiresInMs' is not null and "release_under_test".may_expire(history) on conflict do nothing),
  x as (insert into "release_under_test".dead (id, queue, level, kind, reason, enqueued, ended, worker, payload, spec, history)
    select id, lane / 64, lane % 16, kind, 'lost', "release_under_test".instant(coalesce(enqueued, pos)), "release_under_test".instant(p_now), worker, payload, spec,
      "release_under_test".history_with(history, json_build_object('at', p_now / 1000, 'attempt', coalesce((history ->> 'attempts')::int, 0) + 1,
        'outcome', 'lost', 'note', 'its worker forgot it after its start'))
    from j where j.lost and not j.cancelled),
  r as (insert into "release_under_test".ready (lane, bytes, pos, id, kind, payload, spec, history, enqueued, due)
    select case when f.lane % 64 >= 32 then f.lane else (f.lane / 64) * 64 + 16 + f.lane % 16 end, f.bytes, nextval('"release_under_test".front'),
      f.id, f.kind, f.payload, f.spec, f.history, coalesce(f.enqueued, f.pos), coalesce(f.due, f.pos)
    from (select * from j where not j.cancelled and j.lost is not true order by coalesce(due, pos), fence, ordinality) f
    returning lane / 64 as queue)
  select array_agg(distinct r.queue) into v_queues from r;
  if v_queues is not null then perform "release_under_test".hint(v_queues, false); end if;
end $$;

-- Fates, in p_tos: 1 completed, 2 delayed, 3 ready, 4 dead, 5 cancelled, 6 started.
-- Answers: 0 ok, 1 already, 2 lost, 3 cancelled. Only what this call finds open is moved. p_flags: for completed,
-- keep a record; for delayed and ready, the job is a suspect. Times in microseconds.
create or replace function "release_under_test".settle(p_fences bigint[], p_ordinals int[], p_tos int[], p_flags boolean[], p_delays bigint[],
  p_started bigint[], p_ran bigint[], p_reasons text[], p_histories json[], p_results json[])
returns int[] language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
declare
  v_now bigint;
  v_answers int[];
  v_queues int[];
begin
  if current_setting('transaction_isolation') <> 'read committed' then perform "release_under_test".must_be_read_committed(); end if;
  -- Lock first, look second: a take-over or a repeat of this call that got here first has committed when we go on.
  perform from "release_under_test".lease l where l.fence = any(p_fences) order by l.fence for update;
  v_now := "release_under_test".clock();
  with s as materialized (
    select * from unnest(p_fences, p_ordinals, p_tos, p_flags, p_delays, p_started, p_ran, p_reasons, p_histories, p_results)
      with ordinality u(fence, ordinal, fate, flag, delay, after, ran, reason, history, result, i)),
  o as (select l.fence, l.worker, l.claimed, l.open, l.cancelled, l.jobs from "release_under_test".lease l where l.fence = any(p_fences)),
  j as (select o.fence, o.worker, o.claimed, o.open, o.cancelled, (u.ordinality - 1)::int as ordinal,
      u.lane, u.bytes, u.pos, u.id, u.kind, u.payload, u.spec, u.enqueued, u.due
    from o, unnest(o.jobs) with ordinality u),
  e as materialized (
    select s.i, s.fence, s.ordinal, s.delay, s.ran, s.flag, s.reason, s.history, s.result, j.worker, j.lane, j.bytes, j.id, j.kind, j.payload, j.spec,
      coalesce(j.enqueued, j.pos) as enqueued, coalesce(j.due, j.pos) as due,
      j.claimed + s.after as started, s.fate as asked,
      case when s.fate in (2, 3) and j.cancelled is not null and get_bit(j.cancelled, s.ordinal) = 1 then 5 else s.fate end as fate,
      coalesce(get_bit(j.open, s.ordinal) = 1, false) as is_open,
      coalesce(get_bit(j.open, s.ordinal) = 1, false)
        and row_number() over (partition by s.fence, s.ordinal, s.fate = 6 order by s.i) = 1 as mine
    from s left join j on j.fence = s.fence and j.ordinal = s.ordinal),
  m as materialized (select * from e where mine),
  c as (insert into "release_under_test".ended (id, queue, state, level, kind, enqueued, started, ran_ms, ended, worker, payload, spec, history, result)
    select id, lane / 64, case fate when 1 then 1 else 2 end, lane % 16, kind, "release_under_test".instant(enqueued), "release_under_test".instant(started),
      (ran / 1000)::int, "release_under_test".instant(v_now), worker, payload, spec, history, result
    from m where fate = 1 and flag or fate = 5 and coalesce(spec ->> 'keep', 'all') <> 'none'),
  d as (insert into "release_under_test".delayed (lane, bytes, due, id, kind, payload, spec, history, enqueued)
    select case when flag then (lane / 64) * 64 + 32 + lane % 16 else (lane / 64) * 64 + lane % 16 end,
      bytes, v_now + delay, id, kind, payload, spec, history, enqueued from m where fate = 2),
  r as (insert into "release_under_test".ready (lane, bytes, pos, id, kind, payload, spec, history, enqueued, due)
    select (lane / 64) * 64 + case when flag then 32 else 16 end + lane % 16, bytes, nextval('"release_under_test".front'),
      id, kind, payload, spec, history, enqueued, due from (select * from m where fate = 3 order by due, i) f),
  -- Given back before it ever started, it can still expire.
  y as (insert into "release_under_test".expiry (at, id) select enqueued + (spec ->> 'expiresInMs')::bigint * 1000, id from m
    where fate = 3 and spec ->> 'expiresInMs' is not null and "release_under_test".may_expire(history) on conflict do nothing),
  x as (insert into "release_under_test".dead (id, queue, level, kind, reason, enqueued, started, ran_ms, ended, worker, payload, spec, history)
    select id, lane / 64, lane % 16, kind, reason, "release_under_test".instant(enqueued), "release_under_test".instant(started), (ran / 1000)::int, "release_under_test".instant(v_now),
      worker, payload, spec, history from m where fate = 4),
  p as (select o.fence, o.open, bit_length(o.open) as size,
      array_agg(m.ordinal) filter (where m.fate <> 6) as closed, array_agg(m.ordinal) filter (where m.fate = 6) as begun
    from o join m on m.fence = o.fence group by o.fence, o.open),
  g as (delete from "release_under_test".lease l using p where l.fence = p.fence and cardinality(p.closed) = bit_count(p.open)),
  k as (update "release_under_test".lease l set open = "release_under_test".without(l.open, p.closed), 
      started = case when p.begun is null then l.started else "release_under_test".with(coalesce(l.started, repeat('0', p.size)::varbit), p.begun) end
    from p where l.fence = p.fence and coalesce(cardinality(p.closed), 0) < bit_count(p.open))
  select array_agg(case
      when e.mine then case when e.fate <> e.asked then 3 else 0 end
      when e.asked = 6 and e.is_open then 0
      when exists (select from "release_under_test".revoked v where v.fence = e.fence
        and e.ordinal < bit_length(v.open) and get_bit(v.open, e.ordinal) = 1) then 2
      else 1 end order by e.i),
    array_agg(distinct e.lane / 64) filter (where e.mine and e.fate in (2, 3) and coalesce(e.delay, 0) <= 20000000)
    into v_answers, v_queues from e;
  -- Jobs that may run again at once, or soon: somebody idle shall hear of them.
  if v_queues is not null then perform "release_under_test".hint(v_queues, false); end if;
  return v_answers;
end $$;

-- The lanes of a queue that may have work, with the cursor that the caller keeps for each.
create or replace function "release_under_test".lanes(p_queue int, p_levels int, p_lanes int[], p_cursors bigint[])
returns table (lane int, cur bigint) language sql stable as $$
  select p_queue * 64 + r.n * 16 + l.n, coalesce(c.cur, 0)
    from generate_series(0, 15) l(n) cross join (values (0), (1)) r(n)
    left join unnest(p_lanes, p_cursors) c(lane, cur) on c.lane = p_queue * 64 + r.n * 16 + l.n
   where (p_levels >> l.n) & 1 = 1
$$;

-- How many jobs to take from which lane of a queue: the heads are merged without locks, so that only what is taken
-- gets locked. p_level_us: what a level is worth in waiting time. p_turn: jobs of the queue that the worker has
-- claimed so far. p_pattern: the tier of each turn, round and round. See core/priority.ts, which holds the rules.
create or replace function "release_under_test".quotas(p_lanes int[], p_cursors bigint[], p_limit int, p_kinds text[], p_ordering text,
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
      select t.lane, t.lane % 16 as level, r.due from unnest(p_lanes, p_cursors) t(lane, cur),
        lateral (select coalesce(r.due, r.pos) as due from "release_under_test".ready r
          where r.lane = t.lane and r.pos >= t.cur and r.kind = any(p_kinds) order by r.pos limit p_limit) r),
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
    with h as materialized (
      select t.lane, r.due from unnest(p_lanes, p_cursors) t(lane, cur),
        lateral (select coalesce(r.due, r.pos) as due from "release_under_test".ready r
          where r.lane = t.lane and r.pos >= t.cur and r.kind = any(p_kinds) order by r.pos limit p_limit) r),
    k as (select h.lane from h order by h.lane % 16 desc, h.due limit p_limit)
    select k.lane, count(*)::int from k group by k.lane;
  else
    v_tiers := array(select count(*) filter (where p_pattern[(p_turn + i) % cardinality(p_pattern) + 1] = tier)::int
      from generate_series(0, 3) tier, generate_series(0, p_limit - 1) i group by tier order by tier);
    return query
    with h as materialized (
      select t.lane, r.due, 4 - (t.lane % 16) / 4 as tier from unnest(p_lanes, p_cursors) t(lane, cur),
        lateral (select coalesce(r.due, r.pos) as due from "release_under_test".ready r
          where r.lane = t.lane and r.pos >= t.cur and r.kind = any(p_kinds) order by r.pos limit p_limit) r),
    k as (select h.*, row_number() over (partition by h.tier order by h.lane % 16 desc, h.due) <= v_tiers[h.tier] as due_share from h),
    m as (select k.lane from k order by k.due_share desc, k.lane % 16 desc, k.due limit p_limit)
    select m.lane, count(*)::int from m group by m.lane;
  end if;
end $$;

-- Takes the jobs of the quotas into leases and answers them as text. A lease holds at most 100 jobs, and one of its own
-- where its kind is in p_apart or its payload is large. Beyond p_bytes of payload nothing is taken but the first job.
-- held: something of the quotas was left, beyond the bytes or in the hands of other claims.
create or replace function "release_under_test".take(p_worker uuid, p_request int, p_now bigint, p_lanes int[], p_cursors bigint[], p_quotas int[],
  p_kinds text[], p_apart text[], p_level_us bigint, p_bytes int, p_alone boolean)
returns table (leases text, taken int, held boolean) language plpgsql as $$
#variable_conflict use_column
begin
  return query
  with k as materialized (
    select s.* from unnest(p_lanes, p_cursors, p_quotas) t(lane, cur, quota),
      lateral (select h.ctid as c, h.bytes, h.pos, coalesce(h.due, h.pos) - (h.lane % 16) * p_level_us as key from "release_under_test".ready h
        where h.lane = t.lane and h.pos >= t.cur and h.kind = any(p_kinds) order by h.pos limit t.quota for update skip locked) s),
  f as (select k.c, sum(k.bytes) over w - k.bytes as before from k window w as (order by k.key, k.pos)),
  x as (delete from "release_under_test".ready r where r.ctid = any(array(select f.c from f where f.before < p_bytes))
    returning r as job, r.lane, r.bytes, r.pos, r.id, r.kind, r.payload, r.spec, r.history, r.enqueued, r.due),
  o as materialized (
    select x.*, x.kind = any(p_apart) or x.bytes > 16384 as apart,
      row_number() over (order by coalesce(x.due, x.pos) - (x.lane % 16) * p_level_us, x.pos) as n
    from x),
  g as materialized (
    select min(o.n) as n, count(*)::int as size, sum(o.bytes) as bytes, array_agg(o.job) as jobs, array_agg(o.id) as ids,
      string_agg("release_under_test".job_text(o.id, o.kind, o.lane, o.pos, o.due, o.enqueued, o.payload, o.spec, o.history), ',') as text
    from o group by case when o.apart then -o.n else (o.n - 1) / 100 end),
  e as materialized (select nextval('"release_under_test".fence') as fence, g.* from (select * from g order by g.n) g),
  l as (insert into "release_under_test".lease (fence, worker, request, alone, claimed, open, bytes, jobs, ids)
    select e.fence, p_worker, p_request, p_alone, p_now, repeat('1', e.size)::varbit, e.bytes, e.jobs, e.ids from e)
  select string_agg('[' || e.fence || ',' || p_alone || ',' || p_now || ',[' || e.text || ']]', ',' order by e.n),
    coalesce(sum(e.size), 0)::int,
    -- Subqueries of their own are run only when they are come to: the heads are read again only by a claim that fell short.
    (select count(*) from k) > coalesce(sum(e.size), 0) or (select count(*) from k) < (select sum(q) from unnest(p_quotas) q)
      and (select count(*) from k) < (select count(*) from unnest(p_lanes, p_cursors, p_quotas) t(lane, cur, quota),
        lateral (select from "release_under_test".ready h where h.lane = t.lane and h.pos >= t.cur and h.kind = any(p_kinds) order by h.pos limit t.quota) h)
  from e;
end $$;

-- SHARE: a beat waits for the claim, so that it knows all of its leases, and so does who writes the worker off; other
-- claims do not wait. Answers the last request that a beat told of; null when the worker is written off.
create or replace function "release_under_test".lock_worker(p_worker uuid) returns int language sql as $$
  select w.known from "release_under_test".worker w where w.id = p_worker for share
$$;

-- One round trip of a worker: settle what ended, then claim. Its settings hold for the functions it calls, too: generic
-- plans, as planning anew costs more than running, and no plan for a table that was empty when it was made. p_idle_us:
-- how long the idle mark shall last when nothing was found. The request row is taken before anything is taken from
-- ready: asked again, it gives the same batch.
create or replace function "release_under_test".claim(p_worker uuid, p_request int, p_queues int[], p_shares int[], p_turns bigint[], p_limit int, p_kinds text[], p_apart text[],
  p_level_us bigint, p_pattern int[], p_suspects boolean, p_lanes int[], p_cursors bigint[], p_since bigint, p_idle_us bigint, p_bytes int,
  s_fences bigint[], s_ordinals int[], s_tos int[], s_flags boolean[], s_delays bigint[], s_started bigint[], s_ran bigint[],
  s_reasons text[], s_histories json[], s_results json[])
returns table (status text, leases text, settled int[], more boolean, next_due bigint, paused int[], now_us bigint) language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_variable
declare
  v_known int;
  v_repeat boolean;
  v_marks int;
  v_levels int[];           -- of each queue of p_queues
  v_orderings text[];
  v_suspects boolean;
  v_some_lanes int[];       -- lanes of all these queues that have anything to take
  v_some_cursors bigint[];
  v_lanes int[];
  v_cursors bigint[];
  v_quotas int[];
  v_take record;
  v_left int := p_limit;
  v_want int;
  v_busy boolean := false;
  v_held boolean := false;
  v_cut boolean := false;   -- a queue may have more than its share
begin
  if current_setting('transaction_isolation') <> 'read committed' then perform "release_under_test".must_be_read_committed(); end if;
  -- A claim that takes nothing shall write nothing, so the row is locked only when something is there to take; but
  -- before leases are, as the worker's row comes first in the order of locks.
  if cardinality(s_fences) > 0 then perform "release_under_test".lock_worker(p_worker); end if;
  -- Few statements, each of which looks at many things: on a connection that was idle each one costs some 50 µs.
  select (select w.known from "release_under_test".worker w where w.id = p_worker),
      exists (select from "release_under_test".claim_request c where c.worker = p_worker and c.request = p_request),
      coalesce(array_agg(q.id) filter (where q.paused), '{}'), array_agg(q.levels order by u.o), array_agg(q.ordering order by u.o), count(i.queue)
    into v_known, v_repeat, paused, v_levels, v_orderings, v_marks
    from unnest(p_queues) with ordinality u(id, o) left join "release_under_test".queue q on q.id = u.id
      left join "release_under_test".idle i on i.queue = q.id and i.worker = p_worker and i.until > "release_under_test".clock() + p_idle_us / 2;
  status := case when v_known is null then 'gone' else 'ok' end;
  more := true;
  if cardinality(s_fences) > 0 then
    settled := "release_under_test".settle(s_fences, s_ordinals, s_tos, s_flags, s_delays, s_started, s_ran, s_reasons, s_histories, s_results);
  end if;
  now_us := "release_under_test".clock();
  if status = 'gone' then return next; return; end if;
  if v_repeat or p_request <= v_known then
    leases := "release_under_test".leases_text(p_worker, p_request);
    return next; return;
  end if;

  -- LIMIT in a LATERAL keeps it a probe of the index; an EXISTS was planned as a join with the whole table.
  select "release_under_test".next_due(p_queues, p_since) - now_us,
      p_suspects and exists (select from unnest(p_queues) q(id), lateral (select from "release_under_test".ready r
        where r.lane between q.id * 64 + 32 and q.id * 64 + 47 and r.kind = any(p_kinds) limit 1) r),
      array_agg(l.lane), array_agg(l.cur)
    into next_due, v_suspects, v_some_lanes, v_some_cursors
    from unnest(p_queues, v_levels) q(id, levels), "release_under_test".lanes(q.id, q.levels, p_lanes, p_cursors) l,
      lateral (select from "release_under_test".ready r where r.lane = l.lane and r.pos >= l.cur and r.kind = any(p_kinds) limit 1) r
   where q.id <> all(paused);

  if v_suspects then
    leases := "release_under_test".take_suspect(p_worker, p_request, now_us, p_queues, p_kinds);
    if leases is not null then return next; return; end if;
  end if;

  for v_pass in 1 .. case when v_some_lanes is null then 0 else 2 end loop
    v_held := false;
    for q in 1 .. cardinality(p_queues) loop
      v_want := case when v_pass = 1 then least(p_shares[q], v_left) else v_left end;
      v_cut := v_cut or v_want < v_left;
      continue when v_want <= 0;
      if cardinality(p_queues) = 1 then
        v_lanes := v_some_lanes;
        v_cursors := v_some_cursors;
      else
        select array_agg(t.lane), array_agg(t.cur) into v_lanes, v_cursors
          from unnest(v_some_lanes, v_some_cursors) t(lane, cur) where t.lane / 64 = p_queues[q];
        continue when v_lanes is null;
      end if;
      if not v_busy then
        with w as (select w.known from "release_under_test".worker w where w.id = p_worker for share)
        insert into "release_under_test".claim_request (worker, request, at) select p_worker, p_request, now_us from w where w.known < p_request
          on conflict do nothing;
        if not found then
          -- Written off, given up, or the same call was here at the same time and has committed.
          if "release_under_test".lock_worker(p_worker) is null then status := 'gone'; end if;
          leases := "release_under_test".leases_text(p_worker, p_request);
          return next; return;
        end if;
        v_busy := true;
      end if;
      if cardinality(v_lanes) = 1 then
        v_quotas := array[v_want];
      else
        select array_agg(k.lane), array_agg(t.cur), array_agg(k.quota) into v_lanes, v_cursors, v_quotas
          from "release_under_test".quotas(v_lanes, v_cursors, v_want, p_kinds, v_orderings[q], p_level_us, p_turns[q], p_pattern) k
          join unnest(v_lanes, v_cursors) t(lane, cur) on t.lane = k.lane;
        continue when v_lanes is null;
      end if;
      select * into v_take from "release_under_test".take(p_worker, p_request, now_us, v_lanes, v_cursors, v_quotas, p_kinds, p_apart,
        case v_orderings[q] when 'ageing' then p_level_us else 4000000000000000 end, p_bytes, false) t;
      v_held := v_held or v_take.held;
      if v_take.leases is not null then
        leases := concat_ws(',', leases, v_take.leases);
        v_left := v_left - v_take.taken;
        p_turns[q] := p_turns[q] + v_take.taken;
      end if;
    end loop;
    exit when v_left <= 0 or not v_cut;
  end loop;

  -- Short of what it asked for: either nothing is left that it could take, or other claims hold it at this moment.
  more := v_left <= 0 or v_held;
  if leases is not null then leases := '[' || leases || ']'; end if;
  -- A worker that got less than it asked for may fall idle: from now on enqueues send it hints. Written at most each half
  -- of the mark's life; a worker that gets all it asks for takes its marks away, and enqueues stop paying for it.
  if v_left > 0 and v_marks < cardinality(p_queues) and p_idle_us > 0 then
    insert into "release_under_test".idle (queue, worker, until) select q, p_worker, now_us + p_idle_us from unnest(p_queues) q order by q
      on conflict (queue, worker) do update set until = excluded.until;
  elsif v_left <= 0 and v_marks > 0 then
    delete from "release_under_test".idle i where i.worker = p_worker and i.queue = any(p_queues);
  end if;
  return next;
end $$;

-- A suspect runs alone: one worker of a queue at a time gets one, and nothing with it.
create or replace function "release_under_test".take_suspect(p_worker uuid, p_request int, p_now bigint, p_queues int[], p_kinds text[]) returns text language plpgsql as $$
declare
  v_queue int;
  v_lane int;
  v_take record;
begin
  for v_queue in select q.id from "release_under_test".queue q where q.id = any(p_queues) and not q.paused
      and exists (select from "release_under_test".ready r where r.lane between q.id * 64 + 32 and q.id * 64 + 47 and r.kind = any(p_kinds)) loop
    -- The queue's row is the guard; who does not get it at once leaves the suspect to the other.
    perform from "release_under_test".queue q where q.id = v_queue for no key update skip locked;
    continue when not found;
    continue when exists (select from "release_under_test".lease l, unnest(l.jobs) j where l.alone and j.lane / 64 = v_queue);
    select r.lane into v_lane from "release_under_test".ready r where r.lane between v_queue * 64 + 32 and v_queue * 64 + 47 and r.kind = any(p_kinds)
      order by r.lane desc, r.pos limit 1;
    continue when v_lane is null;
    -- As in claim: written off or given up meanwhile, it takes nothing.
    continue when p_request <= coalesce("release_under_test".lock_worker(p_worker), p_request);
    insert into "release_under_test".claim_request (worker, request, at) values (p_worker, p_request, p_now) on conflict do nothing;
    if not found then return "release_under_test".leases_text(p_worker, p_request); end if;
    select * into v_take from "release_under_test".take(p_worker, p_request, p_now, array[v_lane], array[0::bigint], array[1], p_kinds, '{}', 0, 2000000000, true);
    if v_take.leases is not null then return '[' || v_take.leases || ']'; end if;
  end loop;
  return null;
end $$;

-- The earliest instant at which a delayed job of these queues is due. p_since: what was due before it was promoted, and
-- under an old snapshot its dead entries would be walked over by each claim.
create or replace function "release_under_test".next_due(p_queues int[], p_since bigint) returns bigint language sql stable as $$
  select min(d.due) from "release_under_test".queue q, generate_series(0, 15) l(n), (values (0), (2)) r(n),
    lateral (select d.due from "release_under_test".delayed d where d.lane = q.id * 64 + r.n * 16 + l.n and d.due >= p_since
      order by d.due limit 1) d
   where q.id = any(p_queues) and (q.levels >> l.n) & 1 = 1
$$;

-- status 0 ok, 1 stale, 2 gone. One row written per worker, whatever it holds.
create or replace function "release_under_test".beat(p_worker uuid, p_n bigint, p_known int, p_fences bigint[], p_started json, p_main_lag bigint,
  p_lease bigint, p_beat bigint, p_info json, p_queues text[])
returns table (status int, lost bigint[], cancel json, paused text[]) language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_variable
declare
  v_now bigint;
  v_was record;
  v_unnamed bigint[];
begin
  perform "release_under_test".must_be_read_committed();
  select w.n, w.known into v_was from "release_under_test".worker w where w.id = p_worker for no key update;
  v_now := "release_under_test".clock();
  if not found and p_n > 1 then status := 2; return next; return; end if;
  if v_was.n > p_n then status := 1; return next; return; end if;
  status := 0;
  if v_was.n is null then
    insert into "release_under_test".worker (id, n, known, seen, main_seen, steady_since, started_at, lease_us, beat_us, started, info)
      values (p_worker, p_n, p_known, v_now, v_now - p_main_lag, v_now, v_now, p_lease, p_beat, p_started, p_info)
      on conflict (id) do nothing;
  else
    -- A repeat is a sign of life like any other; only what it says of leases and requests was heard before.
    update "release_under_test".worker w set n = p_n, known = greatest(w.known, p_known), seen = v_now, main_seen = v_now - p_main_lag, started = p_started,
        lease_us = p_lease, beat_us = p_beat,
        -- A gap of two beats, or a clock that stepped back, and the worker has seen nothing of the others for a while:
        -- it must not judge them yet.
        steady_since = case when v_now - w.seen > 2 * w.beat_us or v_now < w.seen then v_now else w.steady_since end
      where w.id = p_worker;
  end if;
  if v_was.n < p_n then
    delete from "release_under_test".claim_request c where c.worker = p_worker and c.request > v_was.known - 2 and c.request <= p_known - 2;
    -- A claim whose answer never arrived: its jobs go back. Adopted leases have no request and are not touched.
    v_unnamed := array(select l.fence from "release_under_test".lease l where l.worker = p_worker and l.request <= p_known and l.fence <> all(p_fences) order by l.fence for update);
    if cardinality(v_unnamed) > 0 then perform "release_under_test".give_back(v_unnamed, v_now); end if;
  end if;
  lost := array(select f from unnest(p_fences) f where not exists (select from "release_under_test".lease l where l.fence = f and l.worker = p_worker)
    and exists (select from "release_under_test".revoked v where v.fence = f));
  select coalesce(json_agg(json_build_array(l.fence, o)), '[]') into cancel
    from "release_under_test".lease l, generate_series(0, bit_length(l.cancelled) - 1) o
   where l.fence = any(p_fences) and l.worker = p_worker and l.cancelled is not null and get_bit(l.cancelled, o) = 1 and get_bit(l.open, o) = 1;
  paused := array(select q.name from "release_under_test".queue q where q.name = any(p_queues) and q.paused);
  return next;
end $$;

create or replace function "release_under_test".unregister(p_worker uuid) returns void language plpgsql as $$
begin
  perform from "release_under_test".worker w where w.id = p_worker for update;
  -- A claim whose answer was lost right before the good-bye: nothing of it has started, nobody has died.
  perform "release_under_test".give_back(array(select l.fence from "release_under_test".lease l where l.worker = p_worker and l.request is not null
    order by l.fence for update), "release_under_test".clock());
  if not exists (select from "release_under_test".lease l where l.worker = p_worker) then
    delete from "release_under_test".worker w where w.id = p_worker;
  else
    -- What it adopted and did not settle keeps its facts: dead at once, so that the next sweep takes it over.
    update "release_under_test".worker w set seen = 0 where w.id = p_worker;
  end if;
  delete from "release_under_test".claim_request c where c.worker = p_worker;
  delete from "release_under_test".idle i where i.worker = p_worker;
end $$;

-- Leases of dead workers come under new fences of p_worker, with what is known of the crash. First those it adopted
-- before and has not settled, so that a lost answer is asked for again; at most p_bytes of payload beyond the first
-- lease, the rest comes when these are settled. Answer: leases as in claim, and the crash.
create or replace function "release_under_test".take_over(p_worker uuid, p_limit int, p_bytes bigint) returns table (leases text, now_us bigint) language plpgsql as $$
#variable_conflict use_variable
declare
  v_now bigint;
  v_me record;
  v_dead record;
  v_dead_ids uuid[];
  v_jobs int;
  v_bytes bigint;
begin
  perform "release_under_test".must_be_read_committed();
  v_now := "release_under_test".clock();
  now_us := v_now;
  -- SHARE: whoever would judge this worker meanwhile passes it by, and what it adopts cannot be left without an owner.
  select * into v_me from "release_under_test".worker w where w.id = p_worker for share;
  if not found then return next; return; end if;
  select coalesce(sum(cardinality(l.ids)), 0), coalesce(sum(l.bytes), 0) into v_jobs, v_bytes from "release_under_test".lease l where l.worker = p_worker and l.request is null;
  -- After an outage nobody has beaten: whoever judges must first have been steady for a whole lease itself.
  if v_now - v_me.seen <= 2 * v_me.beat_us and v_now - v_me.steady_since >= v_me.lease_us then
    -- One order for all leases, whoever held them: somebody else may be locking some of them by their fences.
    v_dead_ids := array(select w.id from "release_under_test".worker w where w.id <> p_worker
        -- A beat from the future was seen by a clock that has stepped back since; a living worker has beaten anew.
        and (least(w.seen, w.main_seen) < v_now - w.lease_us or w.seen > v_now + w.lease_us)
        order by w.seen for update skip locked);
    perform from "release_under_test".lease l where l.worker = any(v_dead_ids) order by l.fence for update;
    for v_dead in select w.* from "release_under_test".worker w where w.id = any(v_dead_ids) order by w.seen loop
      exit when v_jobs >= p_limit or v_bytes >= p_bytes;
      select v_jobs + a.jobs, v_bytes + a.bytes into v_jobs, v_bytes
        from "release_under_test".adopt(p_worker, v_dead.id, v_dead.started, p_limit - v_jobs, p_bytes - v_bytes, v_now) a;
      if not exists (select from "release_under_test".lease l where l.worker = v_dead.id) then
        delete from "release_under_test".claim_request c where c.worker = v_dead.id;
        delete from "release_under_test".idle i where i.worker = v_dead.id;
        delete from "release_under_test".worker w where w.id = v_dead.id;
      end if;
    end loop;
    -- The safety net: a lease whose worker has no row would be looked for by nobody.
    for v_dead in select distinct l.worker as id from "release_under_test".lease l where not exists (select from "release_under_test".worker w where w.id = l.worker) loop
      exit when v_jobs >= p_limit or v_bytes >= p_bytes;
      select v_jobs + a.jobs, v_bytes + a.bytes into v_jobs, v_bytes
        from "release_under_test".adopt(p_worker, v_dead.id, '[]', p_limit - v_jobs, p_bytes - v_bytes, v_now) a;
    end loop;
  end if;
  select '[' || string_agg('[' || "release_under_test".lease_text(l) || ',' || l.crash || ',"' || l.open::text || '","' || coalesce(l.started::text, '')
      || '","' || coalesce(l.cancelled::text, '') || '"]', ',' order by l.fence) || ']'
    into leases from "release_under_test".lease l where l.fence in (
      select b.fence from (select x.fence, sum(x.bytes) over (order by x.fence) - x.bytes as before from "release_under_test".lease x
        where x.worker = p_worker and x.request is null) b where b.before < p_bytes);
  return next;
end $$;

-- One dead worker's leases, whole ones until p_limit jobs or p_bytes are reached. The worker's row is locked by the caller.
create or replace function "release_under_test".adopt(p_worker uuid, p_dead uuid, p_started json, p_limit int, p_bytes bigint, p_now bigint)
returns table (jobs int, bytes bigint) language plpgsql as $$
#variable_conflict use_variable
declare
  v_lease record;
  v_started varbit;
begin
  jobs := 0;
  bytes := 0;
  for v_lease in select l.fence, l.open, l.started, l.crash, l.bytes from "release_under_test".lease l where l.worker = p_dead order by l.fence for update loop
    exit when jobs >= p_limit or bytes >= p_bytes;
    jobs := jobs + bit_count(v_lease.open)::int;
    bytes := bytes + v_lease.bytes;
    v_started := v_lease.started;
    if v_lease.crash is null then
      v_started := "release_under_test".with(coalesce(v_lease.started, repeat('0', bit_length(v_lease.open))::varbit),
        array(select (s ->> 1)::int from json_array_elements(p_started) s where (s ->> 0)::bigint = v_lease.fence and (s ->> 1)::int < bit_length(v_lease.open)));
    end if;
    insert into "release_under_test".revoked (fence, open, at) values (v_lease.fence, v_lease.open, p_now) on conflict do nothing;
    -- Facts of an earlier crash stay: nothing has run since.
    update "release_under_test".lease l set fence = nextval('"release_under_test".fence'), worker = p_worker, request = null, started = v_started,
        crash = coalesce(l.crash, json_build_object('worker', p_dead, 'at', p_now))
      where l.fence = v_lease.fence;
  end loop;
  return next;
end $$;

-- Due jobs become ready, each lane's earliest first. p_since: nothing that is due lies before it (a cursor over time).
create or replace function "release_under_test".promote(p_since bigint, p_limit int) returns table (moved json, count int, next_due bigint) language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_variable
declare
  v_now bigint := "release_under_test".clock();
begin
  with lanes as (select q.id * 64 + r.n * 16 + l.n as lane from "release_under_test".queue q, generate_series(0, 15) l(n), (values (0), (2)) r(n)
      where (q.levels >> l.n) & 1 = 1),
  c as (select d.ctid as c from lanes, lateral (select h.ctid, h.due from "release_under_test".delayed h
      where h.lane = lanes.lane and h.due >= p_since and h.due <= v_now
        -- One bad record, an id that is ready already, stops nobody else.
        and not exists (select from "release_under_test".ready r where r.id = h.id) order by h.due limit p_limit for update skip locked) d
      order by d.due limit p_limit),
  x as (delete from "release_under_test".delayed where ctid = any(array(select c.c from c)) returning *),
  i as (insert into "release_under_test".ready (lane, bytes, pos, id, kind, payload, spec, history, enqueued, due)
    -- A new position, so that no cursor lies beyond it; in due order among themselves.
    select o.lane, o.bytes, v_now + o.n, o.id, o.kind, o.payload, o.spec, o.history, o.enqueued, o.due
      from (select x.*, row_number() over (order by x.due) as n from x) o)
  select json_agg(json_build_array(x.id, x.kind, x.lane / 64)), count(*)::int into moved, count from x;
  perform "release_under_test".hint(array(select distinct (m ->> 2)::int from json_array_elements(coalesce(moved, '[]')) m), false);
  next_due := (select min(d.due) from (select q.id * 64 + r.n * 16 + l.n as lane from "release_under_test".queue q, generate_series(0, 15) l(n), (values (0), (2)) r(n)
      where (q.levels >> l.n) & 1 = 1) lanes,
    lateral (select d.due from "release_under_test".delayed d where d.lane = lanes.lane and d.due >= p_since order by d.due limit 1) d) - "release_under_test".clock();
  return next;
end $$;

-- Jobs that have not started in time. What runs, or ran before, is left alone.
create or replace function "release_under_test".expire(p_limit int) returns json language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_now bigint := "release_under_test".clock();
  v_ids uuid[];
  v_moved json;
begin
  with x as (delete from "release_under_test".expiry where ctid = any(array(
      select e.ctid from "release_under_test".expiry e where e.at <= v_now order by e.at limit p_limit for update skip locked)) returning id)
  select array_agg(x.id) into v_ids from x;
  if v_ids is null then return '[]'; end if;
  with r as (delete from "release_under_test".ready where ctid = any(array(select h.ctid from "release_under_test".ready h where h.id = any(v_ids)
      and "release_under_test".may_expire(h.history) for update skip locked)) returning id, kind, lane, payload, spec, history, coalesce(enqueued, pos) as enqueued),
  d as (delete from "release_under_test".delayed where ctid = any(array(select h.ctid from "release_under_test".delayed h where h.id = any(v_ids)
      and "release_under_test".may_expire(h.history) order by h.id for update skip locked))
      returning id, kind, lane, payload, spec, history, enqueued),
  a as materialized (select * from r union all select * from d),
  i as (insert into "release_under_test".dead (id, queue, level, kind, reason, enqueued, ended, payload, spec, history)
    select id, lane / 64, lane % 16, kind, 'expired', "release_under_test".instant(enqueued), "release_under_test".instant(v_now), payload, spec,
      "release_under_test".history_with(history, json_build_object('at', v_now / 1000, 'attempt', 1, 'outcome', 'expired', 'note', 'not started in time')) from a)
  select json_agg(json_build_array(id, kind, lane / 64)) into v_moved from a;
  return coalesce(v_moved, '[]');
end $$;

-- Waiting jobs end now, running ones are marked for their worker: 'cancelled', 'signalled' or 'ended' for each that is
-- found. One that moves between two of these looks may be missed; the caller asks again for what was not answered.
create or replace function "release_under_test".cancel(p_ids uuid[]) returns table (id uuid, answer text, kind text, queue int) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := "release_under_test".clock();
begin
    return query
    with r as (delete from "release_under_test".ready w where w.ctid = any(array(
        select h.ctid from "release_under_test".ready h where h.id = any(p_ids) order by h.id for update)) returning w.id, w.lane, w.kind, w.payload, w.spec, w.history, coalesce(w.enqueued, w.pos) as enqueued),
    d as (delete from "release_under_test".delayed w where w.ctid = any(array(
        select h.ctid from "release_under_test".delayed h where h.id = any(p_ids) order by h.id for update)) returning w.id, w.lane, w.kind, w.payload, w.spec, w.history, w.enqueued),
    a as materialized (select * from r union all select * from d),
    e as (insert into "release_under_test".ended (id, queue, state, level, kind, enqueued, ended, payload, spec, history)
      select a.id, a.lane / 64, 2, a.lane % 16, a.kind, "release_under_test".instant(a.enqueued), "release_under_test".instant(v_now), a.payload, a.spec,
        "release_under_test".history_with(a.history, json_build_object('at', v_now / 1000, 'attempt', coalesce((a.history ->> 'attempts')::int, 0) + 1, 'outcome', 'cancelled'))
      from a where coalesce(a.spec ->> 'keep', 'all') <> 'none')
    select a.id, 'cancelled', a.kind, a.lane / 64 from a;

    perform from "release_under_test".lease l where l.ids && p_ids order by l.fence for update;
    return query
    with f as materialized (select l.fence, l.open, j.id, j.kind, j.lane, j.ordinality::int - 1 as ordinal from "release_under_test".lease l, unnest(l.jobs) with ordinality j
        where l.ids && p_ids and j.id = any(p_ids) and get_bit(l.open, j.ordinality::int - 1) = 1),
    u as (update "release_under_test".lease l set cancelled = "release_under_test".with(coalesce(l.cancelled, repeat('0', bit_length(l.open))::varbit), m.ordinals)
      from (select f.fence, array_agg(f.ordinal) as ordinals from f group by f.fence) m where l.fence = m.fence)
    select f.id, 'signalled', f.kind, f.lane / 64 from f;

    return query select x.id, 'ended', x.kind, x.queue from "release_under_test".ended x where x.id = any(p_ids);
    return query select x.id, 'ended', x.kind, x.queue from "release_under_test".dead x where x.id = any(p_ids);
end $$;

-- Delayed and retrying jobs become ready now, at the front of their lanes.
create or replace function "release_under_test".retry(p_ids uuid[]) returns table (id uuid, kind text, queue int) language plpgsql as $$
#variable_conflict use_column
begin
  return query
  with x as (delete from "release_under_test".delayed d where d.ctid = any(array(
      select h.ctid from "release_under_test".delayed h where h.id = any(p_ids) order by h.id for update)) returning d.*),
  i as (insert into "release_under_test".ready (lane, bytes, pos, id, kind, payload, spec, history, enqueued, due)
    select case when o.lane % 64 >= 32 then o.lane else (o.lane / 64) * 64 + 16 + o.lane % 16 end, o.bytes, nextval('"release_under_test".front'),
      o.id, o.kind, o.payload, o.spec, "release_under_test".history_with(o.history, json_build_object('at', "release_under_test".clock() / 1000,
        'attempt', coalesce((o.history ->> 'attempts')::int, 0) + 1, 'outcome', 'retried')),
      -- Due since its enqueue: it goes ahead of what came in after it.
      o.enqueued, o.enqueued from (select * from x order by x.due) o)
  select x.id, x.kind, x.lane / 64 from x;
  perform "release_under_test".hint(array(select distinct r.lane / 64 from "release_under_test".ready r where r.id = any(p_ids)), false);
end $$;

-- Dead letters start anew: fresh attempts, the same id, key, payload and history.
create or replace function "release_under_test".redrive(p_ids uuid[], p_force boolean) returns table (id uuid, kind text, queue int) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := "release_under_test".clock();
begin
  return query
  with x as (delete from "release_under_test".dead d where d.ctid = any(array(
      select h.ctid from "release_under_test".dead h where h.id = any(p_ids) and (p_force or h.reason <> 'lost') order by h.id for update)) returning d.*),
  i as (insert into "release_under_test".ready (lane, bytes, pos, id, kind, payload, spec, history, enqueued)
    select o.queue * 64 + o.level, octet_length(o.payload::text), v_now + o.n, o.id, o.kind, o.payload, o.spec, "release_under_test".history_redriven(o.history, v_now),
      (extract(epoch from o.enqueued) * 1000000)::bigint from (select x.*, row_number() over (order by x.ended) as n from x) o)
  select x.id, x.kind, x.queue from x;
  perform "release_under_test".hint(array(select distinct r.lane / 64 from "release_under_test".ready r where r.id = any(p_ids)), false);
end $$;

-- Deletes what waits in a queue; the keys of what it deletes are free.
create or replace function "release_under_test".purge(p_queue int, p_limit int) returns int language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_deleted int;
begin
  with r as (delete from "release_under_test".ready where ctid = any(array(select h.ctid from "release_under_test".ready h
      where h.lane between p_queue * 64 and p_queue * 64 + 63 order by h.lane, h.pos limit p_limit for update skip locked)) returning id, kind, spec),
  k as (delete from "release_under_test".idempotency i using r where i.kind = r.kind and i.key = r.spec ->> 'idempotencyKey' and i.id = r.id)
  select count(*)::int into v_deleted from r;
  if v_deleted < p_limit then
    with d as (delete from "release_under_test".delayed where ctid = any(array(select h.ctid from "release_under_test".delayed h
        where h.lane between p_queue * 64 and p_queue * 64 + 63 order by h.lane, h.due limit p_limit - v_deleted for update skip locked)) returning id, kind, spec),
    k as (delete from "release_under_test".idempotency i using d where i.kind = d.kind and i.key = d.spec ->> 'idempotencyKey' and i.id = d.id)
    select v_deleted + count(*)::int into v_deleted from d;
  end if;
  return v_deleted;
end $$;
insert into "release_under_test".functions (revision, digest) values (1, '15e7e5171cc2f42328a8bb60dfad4ccf')
  on conflict (one) do update set revision = excluded.revision, digest = excluded.digest, applied_at = excluded.applied_at;
commit;

select "release_under_test".ensure_day(("release_under_test".instant(1795766767733551) at time zone 'UTC')::date);
select "release_under_test".ensure_day(("release_under_test".instant(1795853168059848) at time zone 'UTC')::date);
select "release_under_test".ensure_day(("release_under_test".instant(1795939568515064) at time zone 'UTC')::date);
select "release_under_test".ensure_day(("release_under_test".instant(1796026031142801) at time zone 'UTC')::date);
insert into "release_under_test"."claim_request" ("worker", "request", "at") values
  ('01a22b7d-6dd7-70b4-856e-08b73e5bade4', '1', '1796026031141162');
insert into "release_under_test"."dead" ("id", "queue", "level", "kind", "reason", "enqueued", "started", "ran_ms", "ended", "worker", "payload", "spec", "history") values
  ('01a22b7d-64a5-7c98-bf0e-e3968e2918bb', '1', '4', 'work', 'expired', "release_under_test".instant(1795766767782320), null, NULL, "release_under_test".instant(1795766769792815), NULL, 'null', '{"expiresInMs":1000}', '{ "attempts" : 0, "crashes" : 0, "crashesAlone" : 0, "snoozes" : 0, "redrives" : 0, "entries" : [{"at" : 1795766769792, "attempt" : 1, "outcome" : "expired", "note" : "not started in time"}] }'),
  ('01a22b7d-64a5-7c98-bf0e-e3978d938f82', '1', '4', 'work', 'expired', "release_under_test".instant(1795766767782319), null, NULL, "release_under_test".instant(1795766769792815), NULL, 'null', '{"expiresInMs":1000}', '{ "attempts" : 0, "crashes" : 0, "crashesAlone" : 0, "snoozes" : 0, "redrives" : 0, "entries" : [{"at" : 1795766769792, "attempt" : 1, "outcome" : "expired", "note" : "not started in time"}] }'),
  ('01a22b7d-64b8-73ef-8b3d-623df3a63cf4', '1', '4', 'work', 'failed', "release_under_test".instant(1795766769800424), "release_under_test".instant(1795766769812329), '5', "release_under_test".instant(1795766769815987), '01a22b7d-64b6-7a78-bb2e-d297efc5d7e3', 'null', '{"attempts":1}', '{"attempts":1,"crashes":0,"crashesAlone":0,"snoozes":0,"redrives":0,"entries":[{"at":1795766769812,"attempt":1,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"}}],"firstStartedAt":1795766769807}'),
  ('01a22b7d-64ba-73f6-ada3-4fa9ac493a68', '1', '4', 'work', 'rejected', "release_under_test".instant(1795766769802820), "release_under_test".instant(1795766769812329), '5', "release_under_test".instant(1795766769815987), '01a22b7d-64b6-7a78-bb2e-d297efc5d7e3', 'null', '{"attempts":1}', '{"attempts":1,"crashes":0,"crashesAlone":0,"snoozes":0,"redrives":0,"entries":[{"at":1795766769812,"attempt":1,"worker":"some worker","outcome":"rejected","ranMs":5,"error":{"name":"Error","message":"never"}}],"firstStartedAt":1795766769807}'),
  ('01a22b7d-64de-7b5a-b4e8-d7d2793a2fe4', '1', '4', 'work', 'lost', "release_under_test".instant(1795766769838871), null, NULL, "release_under_test".instant(1795766830874185), '01a22b7d-64e3-7a79-b456-1a370bee6fb1', 'null', '{"attempts":1,"delivery":"at-most-once"}', '{"attempts":1,"crashes":1,"crashesAlone":0,"snoozes":0,"redrives":0,"entries":[{"at":1795766830870,"attempt":1,"worker":"01a22b7d-64e2-7848-a1a1-0e508c814afb","outcome":"lost","note":"the worker died while this job was running in it"}],"firstStartedAt":1795766830870}'),
  ('01a22b7d-6506-7eed-872c-5f44da44f429', '1', '4', 'work', 'poison', "release_under_test".instant(1795766830879332), null, NULL, "release_under_test".instant(1795781475039468), '01a22b7d-658d-7c99-b07d-24bda4457423', 'null', NULL, '{"attempts":4,"crashes":4,"crashesAlone":2,"snoozes":0,"redrives":0,"entries":[{"at":1795770491908,"attempt":1,"worker":"01a22b7d-650a-7366-af4b-63cd9f6cabf1","outcome":"crashed","note":"the worker died while this job was running in it"},{"at":1795774152944,"attempt":2,"worker":"01a22b7d-6538-7b81-a1ef-337d29726125","outcome":"crashed","note":"the worker died while this job was running in it","delayMs":2000},{"at":1795777813997,"attempt":3,"worker":"01a22b7d-6550-76a0-a09c-2217025c4add","outcome":"crashed","note":"the worker died while this job ran alone in it","delayMs":4000},{"at":1795781475031,"attempt":4,"worker":"01a22b7d-658b-7a14-a2b9-ab2265b09f85","outcome":"crashed","note":"the worker died while this job ran alone in it"}],"firstStartedAt":1795770491908}'),
  ('01a22b7d-65c8-7348-8d69-c2f91a7c4585', '1', '4', 'work', 'expired', "release_under_test".instant(1795853168072817), null, NULL, "release_under_test".instant(1795853170082482), NULL, 'null', '{"expiresInMs":1000}', '{ "attempts" : 0, "crashes" : 0, "crashesAlone" : 0, "snoozes" : 0, "redrives" : 0, "entries" : [{"at" : 1795853170082, "attempt" : 1, "outcome" : "expired", "note" : "not started in time"}] }'),
  ('01a22b7d-65c8-7348-8d69-c2fa095b24d7', '1', '4', 'work', 'expired', "release_under_test".instant(1795853168072816), null, NULL, "release_under_test".instant(1795853170082482), NULL, 'null', '{"expiresInMs":1000}', '{ "attempts" : 0, "crashes" : 0, "crashesAlone" : 0, "snoozes" : 0, "redrives" : 0, "entries" : [{"at" : 1795853170082, "attempt" : 1, "outcome" : "expired", "note" : "not started in time"}] }'),
  ('01a22b7d-65d6-7705-8dba-713e514837f5', '1', '4', 'work', 'failed', "release_under_test".instant(1795853170089146), "release_under_test".instant(1795853170100160), '5', "release_under_test".instant(1795853170106871), '01a22b7d-65d4-7987-a07e-8f2ed361b5fc', 'null', '{"attempts":1}', '{"attempts":1,"crashes":0,"crashesAlone":0,"snoozes":0,"redrives":0,"entries":[{"at":1795853170100,"attempt":1,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"}}],"firstStartedAt":1795853170095}'),
  ('01a22b7d-65dc-74c5-a008-697b9a93c43c', '1', '4', 'work', 'rejected', "release_under_test".instant(1795853170093394), "release_under_test".instant(1795853170100160), '5', "release_under_test".instant(1795853170106871), '01a22b7d-65d4-7987-a07e-8f2ed361b5fc', 'null', '{"attempts":1}', '{"attempts":1,"crashes":0,"crashesAlone":0,"snoozes":0,"redrives":0,"entries":[{"at":1795853170100,"attempt":1,"worker":"some worker","outcome":"rejected","ranMs":5,"error":{"name":"Error","message":"never"}}],"firstStartedAt":1795853170095}'),
  ('01a22b7d-65f5-7533-9e36-5ca155aaba87', '1', '4', 'work', 'lost', "release_under_test".instant(1795853170117615), null, NULL, "release_under_test".instant(1795853231159537), '01a22b7d-65fd-7e11-8d23-cf88b861ecab', 'null', '{"attempts":1,"delivery":"at-most-once"}', '{"attempts":1,"crashes":1,"crashesAlone":0,"snoozes":0,"redrives":0,"entries":[{"at":1795853231154,"attempt":1,"worker":"01a22b7d-65fa-7445-bf18-1ab30a89981a","outcome":"lost","note":"the worker died while this job was running in it"}],"firstStartedAt":1795853231154}'),
  ('01a22b7d-6623-7698-a890-8a03d6566565', '1', '4', 'work', 'poison', "release_under_test".instant(1795853231164420), null, NULL, "release_under_test".instant(1795867875415774), '01a22b7d-66df-7575-be2b-792e2becd88b', 'null', NULL, '{"attempts":4,"crashes":4,"crashesAlone":2,"snoozes":0,"redrives":0,"entries":[{"at":1795856892202,"attempt":1,"worker":"01a22b7d-6628-7b68-988c-0bf4c6a77874","outcome":"crashed","note":"the worker died while this job was running in it"},{"at":1795860553298,"attempt":2,"worker":"01a22b7d-6667-7af2-aff1-5aaaf5458672","outcome":"crashed","note":"the worker died while this job was running in it","delayMs":2000},{"at":1795864214333,"attempt":3,"worker":"01a22b7d-66bd-7d55-8605-529e24dfd5f4","outcome":"crashed","note":"the worker died while this job ran alone in it","delayMs":4000},{"at":1795867875412,"attempt":4,"worker":"01a22b7d-66dc-79e3-9d14-c7ae5088f86f","outcome":"crashed","note":"the worker died while this job ran alone in it"}],"firstStartedAt":1795856892202}'),
  ('01a22b7d-6791-7b98-83b3-bed2c28a5554', '1', '4', 'work', 'expired', "release_under_test".instant(1795939568530297), null, NULL, "release_under_test".instant(1795939570544033), NULL, 'null', '{"expiresInMs":1000}', '{ "attempts" : 0, "crashes" : 0, "crashesAlone" : 0, "snoozes" : 0, "redrives" : 0, "entries" : [{"at" : 1795939570544, "attempt" : 1, "outcome" : "expired", "note" : "not started in time"}] }'),
  ('01a22b7d-6791-7b98-83b3-bed32015167c', '1', '4', 'work', 'expired', "release_under_test".instant(1795939568530296), null, NULL, "release_under_test".instant(1795939570544033), NULL, 'null', '{"expiresInMs":1000}', '{ "attempts" : 0, "crashes" : 0, "crashesAlone" : 0, "snoozes" : 0, "redrives" : 0, "entries" : [{"at" : 1795939570544, "attempt" : 1, "outcome" : "expired", "note" : "not started in time"}] }'),
  ('01a22b7d-67a9-73ec-a15c-b03c9d1b0b23', '1', '4', 'work', 'failed', "release_under_test".instant(1795939570554421), "release_under_test".instant(1795939570571162), '5', "release_under_test".instant(1795939570590128), '01a22b7d-67a6-7eee-af2e-e83011748c8e', 'null', '{"attempts":1}', '{"attempts":1,"crashes":0,"crashesAlone":0,"snoozes":0,"redrives":0,"entries":[{"at":1795939570571,"attempt":1,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"}}],"firstStartedAt":1795939570566}'),
  ('01a22b7d-67af-70ad-9ac3-017d72334df2', '1', '4', 'work', 'rejected', "release_under_test".instant(1795939570559333), "release_under_test".instant(1795939570571162), '5', "release_under_test".instant(1795939570590128), '01a22b7d-67a6-7eee-af2e-e83011748c8e', 'null', '{"attempts":1}', '{"attempts":1,"crashes":0,"crashesAlone":0,"snoozes":0,"redrives":0,"entries":[{"at":1795939570571,"attempt":1,"worker":"some worker","outcome":"rejected","ranMs":5,"error":{"name":"Error","message":"never"}}],"firstStartedAt":1795939570566}'),
  ('01a22b7d-67eb-7b32-8927-6cfb8af07913', '1', '4', 'work', 'lost', "release_under_test".instant(1795939570622172), null, NULL, "release_under_test".instant(1795939631728154), '01a22b7d-67f8-722b-b354-6534e9aa11f0', 'null', '{"attempts":1,"delivery":"at-most-once"}', '{"attempts":1,"crashes":1,"crashesAlone":0,"snoozes":0,"redrives":0,"entries":[{"at":1795939631712,"attempt":1,"worker":"01a22b7d-67f4-749a-852e-038a9d193220","outcome":"lost","note":"the worker died while this job was running in it"}],"firstStartedAt":1795939631712}'),
  ('01a22b7d-6867-7d4c-b431-2ea3290c50ad', '1', '4', 'work', 'poison', "release_under_test".instant(1795939631743644), null, NULL, "release_under_test".instant(1795954276242705), '01a22b7d-6a05-77e6-886b-406f31ee070d', 'null', NULL, '{"attempts":4,"crashes":4,"crashesAlone":2,"snoozes":0,"redrives":0,"entries":[{"at":1795943292886,"attempt":1,"worker":"01a22b7d-687a-7d98-95fb-3625c8a54c08","outcome":"crashed","note":"the worker died while this job was running in it"},{"at":1795946953990,"attempt":2,"worker":"01a22b7d-6911-7a7e-a963-7e6ba5f9e9eb","outcome":"crashed","note":"the worker died while this job was running in it","delayMs":2000},{"at":1795950615114,"attempt":3,"worker":"01a22b7d-698c-7ea6-a9b4-df4178b8cd38","outcome":"crashed","note":"the worker died while this job ran alone in it","delayMs":4000},{"at":1795954276234,"attempt":4,"worker":"01a22b7d-6a03-712c-90b6-99baec8a9e0d","outcome":"crashed","note":"the worker died while this job ran alone in it"}],"firstStartedAt":1795943292886}');
insert into "release_under_test"."delayed" ("lane", "bytes", "due", "id", "kind", "payload", "spec", "history", "enqueued") values
  ('164', '11', '1796026782059831', '01a22b7d-6d0b-7076-a85b-4ac2fde5c6e6', 'work', '"a suspect"', NULL, '{"attempts":1,"crashes":2,"crashesAlone":0,"snoozes":0,"redrives":0,"entries":[{"at":1796025430981,"attempt":1,"worker":"01a22b7d-6d0d-7e4d-94e9-8d384aa11bf5","outcome":"crashed","note":"the worker that held it died; its start was not reported, no attempt was used"},{"at":1796025492041,"attempt":1,"worker":"01a22b7d-6d51-7f8b-8d3d-235bfc630b8b","outcome":"crashed","note":"the worker that held it died; its start was not reported, no attempt was used","delayMs":2000},{"at":1796025582058,"attempt":1,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":1200000}],"firstStartedAt":1796025582053}', '1796025369932019'),
  ('452', '6', '1796112431142801', '01a22b7d-6dd8-7baf-b6f3-4a6bd0ddfafe', 'work', '"held"', NULL, '{"attempts":1,"crashes":0,"crashesAlone":0,"snoozes":0,"redrives":0,"entries":[{"at":1796026031141,"attempt":1,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":86400000}],"firstStartedAt":1796026031136}', '1796026031138344'),
  ('68', '16', '1796026269290568', '01a22b7d-6a88-70b4-9c4a-e9480408dedb', 'work', '9007199254740993', NULL, NULL, '1796025369290568'),
  ('68', '16502', '1796026269290568', '01a22b7d-6a88-70b4-9c4a-e950389e5603', 'work', '"long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long "', NULL, NULL, '1796025369290568'),
  ('68', '19', '1796026269290568', '01a22b7d-6a88-70b4-9c4a-e94a51ef9f48', 'work', E'"\\u0000 and \\ud800"', NULL, NULL, '1796025369290568'),
  ('68', '19', '1796026269290568', '01a22b7d-6a88-70b4-9c4a-e94c5c8c28fe', 'work', '{"b":1,"a":2,"b":3}', NULL, NULL, '1796025369290568'),
  ('68', '2', '1796026269290568', '01a22b7d-6a88-70b4-9c4a-e944471e2ba0', 'work', '""', NULL, NULL, '1796025369290568'),
  ('68', '2', '1796026269290568', '01a22b7d-6a88-70b4-9c4a-e94570e91a2f', 'work', '{}', NULL, NULL, '1796025369290568'),
  ('68', '2', '1796026269290568', '01a22b7d-6a88-70b4-9c4a-e9462a16d584', 'work', '[]', NULL, NULL, '1796025369290568'),
  ('68', '2', '1796026269290568', '01a22b7d-6a88-70b4-9c4a-e9471088a750', 'work', '-0', NULL, NULL, '1796025369290568'),
  ('68', '200', '1796026269290568', '01a22b7d-6a88-70b4-9c4a-e94f74861e4a', 'work', '[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]', NULL, NULL, '1796025369290568'),
  ('68', '24', '1796026269290568', '01a22b7d-6a88-70b4-9c4a-e94e3c876b55', 'work', '{ "spaces" :	[ 1 , 2 ] }', NULL, NULL, '1796025369290568'),
  ('68', '35', '1796026269290568', '01a22b7d-6a88-70b4-9c4a-e94d92e7397c', 'work', '{"":{"Ключ 🗝":"‮ אבג"}}', NULL, NULL, '1796025369290568'),
  ('68', '36', '1796026269290568', '01a22b7d-6a88-70b4-9c4a-e94b121549bb', 'work', E'"it''s \\"quoted\\" \\\\ $$ :schema %s ;"', NULL, NULL, '1796025369290568'),
  ('68', '4', '1796026029367783', '01a22b7d-6ad7-7a5f-b68c-f15a42377817', 'work', 'null', NULL, NULL, '1796025369367783'),
  ('68', '4', '1796026269290568', '01a22b7d-6a88-70b4-9c4a-e9428c135c2d', 'work', 'null', NULL, NULL, '1796025369290568'),
  ('68', '4', '1796026269290568', '01a22b7d-6a88-70b4-9c4a-e943db0a2da1', 'work', 'true', NULL, NULL, '1796025369290568'),
  ('68', '4', '1796026269290568', '01a22b7d-6a88-70b4-9c4a-e949b1a379b9', 'work', '1e21', NULL, NULL, '1796025369290568'),
  ('68', '4', '1796111769367783', '01a22b7d-6ad7-7a5f-b68c-f15bb328c583', 'work', 'null', NULL, NULL, '1796025369367783'),
  ('68', '4', '1796284569351583', '01a22b7d-6ac7-7fa4-a1fd-cba3db66a7b5', 'work', 'null', '{"idempotencyKey":"waits for days"}', NULL, '1796025369351583'),
  ('79', '11', '1796026029397251', '01a22b7d-6ae5-7659-b1d0-b4f3ac1ffda3', 'work', '"came back"', NULL, '{"attempts":1,"crashes":0,"crashesAlone":0,"snoozes":0,"redrives":0,"entries":[{"at":1796025369387,"attempt":1,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":660000}],"firstStartedAt":1796025369382}', '1796025369381803'),
  ('79', '11', '1796026089397251', '01a22b7d-6ae5-7659-b1d0-b4f5300bfcbb', 'work', '"came back"', NULL, '{"attempts":0,"crashes":0,"crashesAlone":0,"snoozes":1,"redrives":0,"entries":[{"at":1796025369387,"attempt":1,"worker":"some worker","outcome":"snoozed","ranMs":5,"delayMs":720000}],"firstStartedAt":1796025369382}', '1796025369381805'),
  ('79', '11', '1796111769397251', '01a22b7d-6ae5-7659-b1d0-b4f48e223c3c', 'work', '"came back"', NULL, '{"attempts":1,"crashes":0,"crashesAlone":0,"snoozes":0,"redrives":0,"entries":[{"at":1796025369387,"attempt":1,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":86400000}],"firstStartedAt":1796025369382}', '1796025369381804');
insert into "release_under_test"."ended" ("id", "queue", "state", "level", "kind", "enqueued", "started", "ran_ms", "ended", "worker", "payload", "spec", "history", "result") values
  ('01a22b7d-63d6-7e39-be29-78d9953a4c10', '1', '1', '4', 'work', "release_under_test".instant(1795766767587722), "release_under_test".instant(1795766767632983), '5', "release_under_test".instant(1795766767733551), '01a22b7d-63b5-7564-8960-e7d9abc8ecce', 'null', NULL, NULL, NULL),
  ('01a22b7d-63e6-70c2-81b3-f782b3298e3a', '1', '1', '4', 'work', "release_under_test".instant(1795766767597340), "release_under_test".instant(1795766767632983), '5', "release_under_test".instant(1795766767733551), '01a22b7d-63b5-7564-8960-e7d9abc8ecce', 'null', '{"idempotencyKey":"ended 01a22b7d-63d6-7e39-be29-78d9953a4c10"}', NULL, NULL),
  ('01a22b7d-63e6-70c2-81b3-f783f20b15e0', '1', '1', '4', 'work', "release_under_test".instant(1795766767591053), "release_under_test".instant(1795766767632983), '5', "release_under_test".instant(1795766767733551), '01a22b7d-63b5-7564-8960-e7d9abc8ecce', 'null', NULL, NULL, 'null'),
  ('01a22b7d-63e6-70c2-81b3-f784488e2f31', '1', '1', '4', 'work', "release_under_test".instant(1795766767591054), "release_under_test".instant(1795766767632983), '5', "release_under_test".instant(1795766767733551), '01a22b7d-63b5-7564-8960-e7d9abc8ecce', 'null', NULL, NULL, '{"rows":[1,2]}'),
  ('01a22b7d-647d-7aec-b91b-234e53ea5550', '1', '2', '4', 'work', "release_under_test".instant(1795766767741967), null, NULL, "release_under_test".instant(1795766767760855), NULL, 'null', NULL, '{ "attempts" : 0, "crashes" : 0, "crashesAlone" : 0, "snoozes" : 0, "redrives" : 0, "entries" : [{"at" : 1795766767760, "attempt" : 1, "outcome" : "cancelled"}] }', NULL),
  ('01a22b7d-64b9-70da-bfa1-f9e45307b80c', '1', '1', '4', 'work', "release_under_test".instant(1795766769804634), "release_under_test".instant(1795766769832125), '5', "release_under_test".instant(1795766769834295), '01a22b7d-64b6-7a78-bb2e-d297efc5d7e3', 'null', '{"attempts":1,"idempotencyKey":"dead 01a22b7d-64b8-73ef-8b3d-623df3a63cf4"}', '{"attempts":1,"crashes":0,"crashesAlone":0,"snoozes":0,"redrives":1,"entries":[{"at":1795766769812,"attempt":1,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"}},{"at":1795766769825,"attempt":1,"outcome":"redriven"},{"at":1795766769832,"attempt":1,"worker":"some worker","outcome":"completed","ranMs":5}],"firstStartedAt":1795766769827}', NULL),
  ('01a22b7d-65b0-7b86-b6e5-c9b173a7a0f4', '1', '1', '4', 'work', "release_under_test".instant(1795853168049255), "release_under_test".instant(1795853168057304), '5', "release_under_test".instant(1795853168059848), '01a22b7d-65ae-707f-9b06-24b848aaa05c', 'null', NULL, NULL, NULL),
  ('01a22b7d-65b2-7d6f-a9fc-1c44aa30c87f', '1', '1', '4', 'work', "release_under_test".instant(1795853168054340), "release_under_test".instant(1795853168057304), '5', "release_under_test".instant(1795853168059848), '01a22b7d-65ae-707f-9b06-24b848aaa05c', 'null', '{"idempotencyKey":"ended 01a22b7d-65b0-7b86-b6e5-c9b173a7a0f4"}', NULL, NULL),
  ('01a22b7d-65b2-7d6f-a9fc-1c45c62750c2', '1', '1', '4', 'work', "release_under_test".instant(1795853168051205), "release_under_test".instant(1795853168057304), '5', "release_under_test".instant(1795853168059848), '01a22b7d-65ae-707f-9b06-24b848aaa05c', 'null', NULL, NULL, 'null'),
  ('01a22b7d-65b2-7d6f-a9fc-1c46281ba0e3', '1', '1', '4', 'work', "release_under_test".instant(1795853168051206), "release_under_test".instant(1795853168057304), '5', "release_under_test".instant(1795853168059848), '01a22b7d-65ae-707f-9b06-24b848aaa05c', 'null', NULL, NULL, '{"rows":[1,2]}'),
  ('01a22b7d-65bf-742c-9c4d-84d5d2727432', '1', '2', '4', 'work', "release_under_test".instant(1795853168064617), null, NULL, "release_under_test".instant(1795853168069018), NULL, 'null', NULL, '{ "attempts" : 0, "crashes" : 0, "crashesAlone" : 0, "snoozes" : 0, "redrives" : 0, "entries" : [{"at" : 1795853168069, "attempt" : 1, "outcome" : "cancelled"}] }', NULL),
  ('01a22b7d-65dc-74c5-a008-697a069b741d', '1', '1', '4', 'work', "release_under_test".instant(1795853170096122), "release_under_test".instant(1795853170111378), '5', "release_under_test".instant(1795853170114835), '01a22b7d-65d4-7987-a07e-8f2ed361b5fc', 'null', '{"attempts":1,"idempotencyKey":"dead 01a22b7d-65d6-7705-8dba-713e514837f5"}', '{"attempts":1,"crashes":0,"crashesAlone":0,"snoozes":0,"redrives":1,"entries":[{"at":1795853170100,"attempt":1,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"}},{"at":1795853170108,"attempt":1,"outcome":"redriven"},{"at":1795853170111,"attempt":1,"worker":"some worker","outcome":"completed","ranMs":5}],"firstStartedAt":1795853170106}', NULL),
  ('01a22b7d-675f-7632-9233-75a8f18ee88d', '1', '1', '4', 'work', "release_under_test".instant(1795939568480998), "release_under_test".instant(1795939568504805), '5', "release_under_test".instant(1795939568515064), '01a22b7d-6754-708c-9917-e8f35277b99a', 'null', NULL, NULL, NULL),
  ('01a22b7d-6762-7f56-8a36-e3db35441cd6', '1', '1', '4', 'work', "release_under_test".instant(1795939568488718), "release_under_test".instant(1795939568504805), '5', "release_under_test".instant(1795939568515064), '01a22b7d-6754-708c-9917-e8f35277b99a', 'null', '{"idempotencyKey":"ended 01a22b7d-675f-7632-9233-75a8f18ee88d"}', NULL, NULL),
  ('01a22b7d-6762-7f56-8a36-e3dc6520da22', '1', '1', '4', 'work', "release_under_test".instant(1795939568483115), "release_under_test".instant(1795939568504805), '5', "release_under_test".instant(1795939568515064), '01a22b7d-6754-708c-9917-e8f35277b99a', 'null', NULL, NULL, 'null'),
  ('01a22b7d-6762-7f56-8a36-e3dd6728fbe9', '1', '1', '4', 'work', "release_under_test".instant(1795939568483116), "release_under_test".instant(1795939568504805), '5', "release_under_test".instant(1795939568515064), '01a22b7d-6754-708c-9917-e8f35277b99a', 'null', NULL, NULL, '{"rows":[1,2]}'),
  ('01a22b7d-6786-79c1-80e5-35880fdae53a', '1', '2', '4', 'work', "release_under_test".instant(1795939568519067), null, NULL, "release_under_test".instant(1795939568521357), NULL, 'null', NULL, '{ "attempts" : 0, "crashes" : 0, "crashesAlone" : 0, "snoozes" : 0, "redrives" : 0, "entries" : [{"at" : 1795939568521, "attempt" : 1, "outcome" : "cancelled"}] }', NULL),
  ('01a22b7d-67ae-70b7-a512-dd76a262e451', '1', '1', '4', 'work', "release_under_test".instant(1795939570563954), "release_under_test".instant(1795939570600175), '5', "release_under_test".instant(1795939570614065), '01a22b7d-67a6-7eee-af2e-e83011748c8e', 'null', '{"attempts":1,"idempotencyKey":"dead 01a22b7d-67a9-73ec-a15c-b03c9d1b0b23"}', '{"attempts":1,"crashes":0,"crashesAlone":0,"snoozes":0,"redrives":1,"entries":[{"at":1795939570571,"attempt":1,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"}},{"at":1795939570595,"attempt":1,"outcome":"redriven"},{"at":1795939570600,"attempt":1,"worker":"some worker","outcome":"completed","ranMs":5}],"firstStartedAt":1795939570595}', NULL),
  ('01a22b7d-6dd8-7baf-b6f3-4a6a7fa5294b', '7', '1', '4', 'work', "release_under_test".instant(1796026031138343), "release_under_test".instant(1796026031141162), '5', "release_under_test".instant(1796026031142801), '01a22b7d-6dd7-70b4-856e-08b73e5bade4', '"held"', NULL, NULL, NULL);
insert into "release_under_test"."expiry" ("at", "id") values
  ('1796028969361608', '01a22b7d-6ad1-7abb-b232-9dccbbc7703d');
insert into "release_under_test"."idempotency" ("kind", "key", "id", "payload_hash", "expires") values
  ('work', 'dead 01a22b7d-64b8-73ef-8b3d-623df3a63cf4', '01a22b7d-64b9-70da-bfa1-f9e45307b80c', 'hash of null', '1795770369804633'),
  ('work', 'dead 01a22b7d-65d6-7705-8dba-713e514837f5', '01a22b7d-65dc-74c5-a008-697a069b741d', 'hash of null', '1795856770096121'),
  ('work', 'dead 01a22b7d-67a9-73ec-a15c-b03c9d1b0b23', '01a22b7d-67ae-70b7-a512-dd76a262e451', 'hash of null', '1795943170563953'),
  ('work', 'ended 01a22b7d-63d6-7e39-be29-78d9953a4c10', '01a22b7d-63e6-70c2-81b3-f782b3298e3a', 'hash of null', '1795766768597339'),
  ('work', 'ended 01a22b7d-65b0-7b86-b6e5-c9b173a7a0f4', '01a22b7d-65b2-7d6f-a9fc-1c44aa30c87f', 'hash of null', '1795853169054339'),
  ('work', 'ended 01a22b7d-675f-7632-9233-75a8f18ee88d', '01a22b7d-6762-7f56-8a36-e3db35441cd6', 'hash of null', '1795939569488717'),
  ('work', 'waits for days', '01a22b7d-6ac7-7fa4-a1fd-cba3db66a7b5', 'hash of null', '1796288169351583'),
  ('work', 'waits', '01a22b7d-6ac7-7fa4-a1fd-cba27dd5bcf3', 'hash of null', '1796028969351583');
insert into "release_under_test"."idle" ("queue", "worker", "until") values
  ('7', '01a22b7d-6dd7-70b4-856e-08b73e5bade4', '1796026046141162');
insert into "release_under_test"."lease" ("fence", "worker", "request", "alone", "claimed", "open", "started", "cancelled", "crash", "bytes", "ids", "jobs") values
  ('69', '01a22b7d-6dbd-7f3b-8bb4-96ac3654a371', NULL, 'false', '1796025970112600', '11', '10', NULL, '{"worker" : "01a22b7d-6dbc-718f-a5cf-264370c7c3a7", "at" : 1796026031131339}', '18', '{01a22b7d-6dba-70e3-a0d1-b51017e46f76,01a22b7d-6dba-70e3-a0d1-b51190507762}', E'{"(452,9,1796025970108076,01a22b7d-6dba-70e3-a0d1-b51017e46f76,work,\\"\\"\\"adopted\\"\\"\\",,,,)","(452,9,1796025970108077,01a22b7d-6dba-70e3-a0d1-b51190507762,work,\\"\\"\\"adopted\\"\\"\\",,,,)"}'),
  ('70', '01a22b7d-6dd7-70b4-856e-08b73e5bade4', '1', 'false', '1796026031141162', '001111', NULL, '001000', NULL, '36', '{01a22b7d-6dd8-7baf-b6f3-4a6a7fa5294b,01a22b7d-6dd8-7baf-b6f3-4a6bd0ddfafe,01a22b7d-6dd8-7baf-b6f3-4a6c62dd1b81,01a22b7d-6dd8-7baf-b6f3-4a6de222d317,01a22b7d-6dd8-7baf-b6f3-4a6e5bd5d8e9,01a22b7d-6dd8-7baf-b6f3-4a6fcde71eef}', E'{"(452,6,1796026031138343,01a22b7d-6dd8-7baf-b6f3-4a6a7fa5294b,work,\\"\\"\\"held\\"\\"\\",,,,)","(452,6,1796026031138344,01a22b7d-6dd8-7baf-b6f3-4a6bd0ddfafe,work,\\"\\"\\"held\\"\\"\\",,,,)","(452,6,1796026031138345,01a22b7d-6dd8-7baf-b6f3-4a6c62dd1b81,work,\\"\\"\\"held\\"\\"\\",,,,)","(452,6,1796026031138346,01a22b7d-6dd8-7baf-b6f3-4a6de222d317,work,\\"\\"\\"held\\"\\"\\",,,,)","(452,6,1796026031138347,01a22b7d-6dd8-7baf-b6f3-4a6e5bd5d8e9,work,\\"\\"\\"held\\"\\"\\",,,,)","(452,6,1796026031138348,01a22b7d-6dd8-7baf-b6f3-4a6fcde71eef,work,\\"\\"\\"held\\"\\"\\",,,,)"}'),
  ('71', '01a22b7d-6dd7-70b4-856e-08b73e5bade4', '1', 'false', '1796026031141162', '1', '1', NULL, NULL, '12', '{01a22b7d-6dda-7650-9083-50d6872fd2d3}', E'{"(452,12,1796026031139108,01a22b7d-6dda-7650-9083-50d6872fd2d3,other,\\"\\"\\"held apart\\"\\"\\",\\"{\\"\\"delivery\\"\\":\\"\\"at-most-once\\"\\"}\\",,,)"}');
insert into "release_under_test"."queue" ("id", "name", "levels", "paused", "draining", "ordering") values
  ('1', 'q', '37137', 'false', 'false', 'ageing'),
  ('2', 'suspects', '16', 'false', 'false', 'ageing'),
  ('3', 'paused', '272', 'true', 'false', 'ageing'),
  ('4', 'draining', '272', 'false', 'true', 'ageing'),
  ('5', 'strict', '272', 'false', 'false', 'strict'),
  ('6', 'weighted', '272', 'false', 'false', 'weighted'),
  ('7', 'held', '16', 'false', 'false', 'ageing');
insert into "release_under_test"."ready" ("lane", "bytes", "pos", "id", "kind", "payload", "spec", "history", "enqueued", "due") values
  ('164', '11', '1796025582055203', '01a22b7d-6d0b-7076-a85b-4ac38d5e7e54', 'work', '"a suspect"', NULL, '{"attempts":0,"crashes":2,"crashesAlone":0,"snoozes":0,"redrives":0,"entries":[{"at":1796025430981,"attempt":1,"worker":"01a22b7d-6d0d-7e4d-94e9-8d384aa11bf5","outcome":"crashed","note":"the worker that held it died; its start was not reported, no attempt was used"},{"at":1796025492041,"attempt":1,"worker":"01a22b7d-6d51-7f8b-8d3d-235bfc630b8b","outcome":"crashed","note":"the worker that held it died; its start was not reported, no attempt was used","delayMs":2000}]}', '1796025369932020', '1796025494047147'),
  ('196', '4', '1796025582067999', '01a22b7d-6d8e-7ba2-8ff9-d8ec6f0372c0', 'work', 'null', NULL, NULL, NULL, NULL),
  ('200', '4', '1796025582068000', '01a22b7d-6d8e-7ba2-8ff9-d8ed4709316e', 'work', 'null', NULL, NULL, NULL, NULL),
  ('260', '4', '1796025582073224', '01a22b7d-6d96-7bb2-9c2f-db1bc0ce5b6b', 'work', 'null', NULL, NULL, NULL, NULL),
  ('264', '4', '1796025582073225', '01a22b7d-6d96-7bb2-9c2f-db1c7231d59b', 'work', 'null', NULL, NULL, NULL, NULL),
  ('324', '4', '1796025582079078', '01a22b7d-6d99-70e1-aeaa-1d4c8b1c071e', 'work', 'null', NULL, NULL, NULL, NULL),
  ('328', '4', '1796025582079079', '01a22b7d-6d99-70e1-aeaa-1d4d08d3ec9b', 'work', 'null', NULL, NULL, NULL, NULL),
  ('388', '4', '1796025582082765', '01a22b7d-6da0-7cd5-ab40-fb666e0ae220', 'work', 'null', NULL, NULL, NULL, NULL),
  ('392', '4', '1796025582082766', '01a22b7d-6da0-7cd5-ab40-fb67edc28461', 'work', 'null', NULL, NULL, NULL, NULL),
  ('64', '4', '1796025369314813', '01a22b7d-6a9a-7ed5-9ceb-e158de586c4c', 'other', 'null', NULL, NULL, NULL, NULL),
  ('68', '26', '1796025369374384', '01a22b7d-6ade-7391-9d28-edbd3b27ea7d', 'nobody', '"no worker knows its kind"', NULL, NULL, NULL, NULL),
  ('68', '4', '1796025369320716', '01a22b7d-6aa8-7d82-bc28-5e34bfe9a108', 'work', 'null', NULL, NULL, NULL, NULL),
  ('68', '4', '1796025369320717', '01a22b7d-6aa8-7d82-bc28-5e35c8d7e192', 'other', 'null', NULL, NULL, NULL, NULL),
  ('68', '4', '1796025369351584', '01a22b7d-6ac7-7fa4-a1fd-cba27dd5bcf3', 'work', 'null', '{"idempotencyKey":"waits"}', NULL, NULL, NULL),
  ('68', '4', '1796025369361609', '01a22b7d-6ad1-7abb-b232-9dccbbc7703d', 'work', 'null', '{"backoff":{"type":"fixed","baseMs":1000,"jitter":0},"expiresInMs":3600000}', NULL, NULL, NULL),
  ('72', '16502', '1796025369284102', '01a22b7d-6a74-7684-b42a-d70ee8abf7b4', 'work', '"long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long "', NULL, NULL, NULL, NULL),
  ('72', '19', '1796025369284098', '01a22b7d-6a74-7684-b42a-d70ac64886c1', 'work', '{"b":1,"a":2,"b":3}', NULL, NULL, NULL, NULL),
  ('72', '200', '1796025369284101', '01a22b7d-6a74-7684-b42a-d70d088d778f', 'work', '[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]', NULL, NULL, NULL, NULL),
  ('72', '24', '1796025369284100', '01a22b7d-6a74-7684-b42a-d70c7ca21f4e', 'work', '{ "spaces" :	[ 1 , 2 ] }', NULL, NULL, NULL, NULL),
  ('72', '35', '1796025369284099', '01a22b7d-6a74-7684-b42a-d70bc6577a92', 'work', '{"":{"Ключ 🗝":"‮ אבג"}}', NULL, NULL, NULL, NULL),
  ('79', '11', '1796025369924213', '01a22b7d-6b05-776a-a4fb-73ff9c3e2b49', 'work', '"came back"', '{"attempts":50}', '{"attempts":22,"crashes":0,"crashesAlone":0,"snoozes":0,"redrives":0,"entries":[{"at":1796025369550,"attempt":3,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":0},{"at":1796025369573,"attempt":4,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":0},{"at":1796025369617,"attempt":5,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":0},{"at":1796025369657,"attempt":6,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":0},{"at":1796025369704,"attempt":7,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":0},{"at":1796025369727,"attempt":8,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":0},{"at":1796025369745,"attempt":9,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":0},{"at":1796025369760,"attempt":10,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":0},{"at":1796025369772,"attempt":11,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":0},{"at":1796025369785,"attempt":12,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":0},{"at":1796025369791,"attempt":13,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":0},{"at":1796025369805,"attempt":14,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":0},{"at":1796025369815,"attempt":15,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":0},{"at":1796025369823,"attempt":16,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":0},{"at":1796025369832,"attempt":17,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":0},{"at":1796025369840,"attempt":18,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":0},{"at":1796025369846,"attempt":19,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":0},{"at":1796025369853,"attempt":20,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":0},{"at":1796025369903,"attempt":21,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":0},{"at":1796025369911,"attempt":22,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":0}],"firstStartedAt":1796025369424}', '1796025369418374', '1796025369922743'),
  ('80', '4', '415', '01a22b7d-6a9a-7ed5-9ceb-e157ff68747b', 'work', 'null', NULL, NULL, '1796025369314812', '1796025369314812'),
  ('88', '16', '412', '01a22b7d-6a74-7684-b42a-d706b72f5732', 'work', '9007199254740993', NULL, NULL, '1796025369284094', '1796025369284094'),
  ('88', '19', '414', '01a22b7d-6a74-7684-b42a-d708c241033f', 'work', E'"\\u0000 and \\ud800"', NULL, NULL, '1796025369284096', '1796025369284096'),
  ('88', '2', '408', '01a22b7d-6a74-7684-b42a-d702d757c03b', 'work', '""', NULL, NULL, '1796025369284090', '1796025369284090'),
  ('88', '2', '409', '01a22b7d-6a74-7684-b42a-d703df8a6e77', 'work', '{}', NULL, NULL, '1796025369284091', '1796025369284091'),
  ('88', '2', '410', '01a22b7d-6a74-7684-b42a-d704710416eb', 'work', '[]', NULL, NULL, '1796025369284092', '1796025369284092'),
  ('88', '2', '411', '01a22b7d-6a74-7684-b42a-d705009075a7', 'work', '-0', NULL, NULL, '1796025369284093', '1796025369284093'),
  ('88', '36', '395', '01a22b7d-6a74-7684-b42a-d70944367c81', 'work', E'"it''s \\"quoted\\" \\\\ $$ :schema %s ;"', NULL, NULL, '1796025369284097', '1796025369284097'),
  ('88', '4', '406', '01a22b7d-6a74-7684-b42a-d7003ad3a3e0', 'work', 'null', NULL, NULL, '1796025369284088', '1796025369284088'),
  ('88', '4', '407', '01a22b7d-6a74-7684-b42a-d7014e9a0d36', 'work', 'true', NULL, NULL, '1796025369284089', '1796025369284089'),
  ('88', '4', '413', '01a22b7d-6a74-7684-b42a-d70717d7e73c', 'work', '1e21', NULL, NULL, '1796025369284095', '1796025369284095'),
  ('92', '4', '416', '01a22b7d-6ab2-7c34-bc71-aeea221c808f', 'work', 'null', NULL, NULL, '1796025369335320', '1796025369335320'),
  ('92', '4', '417', '01a22b7d-6ab2-7c34-bc71-aeebe5cf243f', 'other', 'null', NULL, NULL, '1796025369335321', '1796025369335321'),
  ('95', '11', '420', '01a22b7d-6ae5-7659-b1d0-b4f6896c4e9b', 'work', '"came back"', NULL, '{"attempts":1,"crashes":0,"crashesAlone":0,"snoozes":0,"redrives":0,"entries":[{"at":1796025369387,"attempt":1,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":86400000},{"at":1796025369403,"attempt":2,"outcome":"retried"}],"firstStartedAt":1796025369382}', '1796025369381806', '1796025369381806'),
  ('95', '11', '421', '01a22b7d-6ae5-7659-b1d0-b4f967c172cc', 'work', '"came back"', NULL, NULL, '1796025369381809', '1796025369381809'),
  ('95', '11', '422', '01a22b7d-6ae5-7659-b1d0-b4fa24ba2273', 'work', '"came back"', NULL, NULL, '1796025369381810', '1796025369381810'),
  ('95', '11', '423', '01a22b7d-6ae5-7659-b1d0-b4f8d889900c', 'work', '"came back"', NULL, '{"attempts":1,"crashes":0,"crashesAlone":0,"snoozes":0,"redrives":0,"entries":[{"at":1796025369387,"attempt":1,"worker":"some worker","outcome":"failed","ranMs":5,"error":{"name":"Error","message":"it broke"},"delayMs":0}],"firstStartedAt":1796025369382}', '1796025369381808', '1796025369397251'),
  ('95', '11', '424', '01a22b7d-6ae5-7659-b1d0-b4f76e5269a9', 'work', '"came back"', NULL, '{"attempts":0,"crashes":0,"crashesAlone":0,"snoozes":0,"redrives":1,"entries":[{"at":1796025369387,"attempt":1,"worker":"some worker","outcome":"rejected","ranMs":5,"error":{"name":"Error","message":"never"}},{"at":1796025369411,"attempt":1,"outcome":"redriven"}]}', '1796025369381807', '1796025369411833'),
  ('95', '4', '418', '01a22b7d-6abb-7f54-b5ce-19b4350e2628', 'work', 'null', NULL, NULL, '1796025369341231', '1796025369341231'),
  ('95', '4', '419', '01a22b7d-6abb-7f54-b5ce-19b55a9799da', 'other', 'null', NULL, NULL, '1796025369341232', '1796025369341232');
insert into "release_under_test"."revoked" ("fence", "open", "at") values
  ('10', '1', '1795777813996529'),
  ('12', '1', '1795781475030828'),
  ('17', '1', '1795853231153509'),
  ('19', '1', '1795856892202213'),
  ('21', '1', '1795860553297807'),
  ('23', '1', '1795864214332781'),
  ('25', '1', '1795867875411560'),
  ('30', '1', '1795939631711576'),
  ('32', '1', '1795943292885767'),
  ('34', '1', '1795946953989730'),
  ('36', '1', '1795950615113587'),
  ('38', '1', '1795954276234107'),
  ('4', '1', '1795766830869883'),
  ('6', '1', '1795770491908020'),
  ('63', '11', '1796025430981170'),
  ('65', '11', '1796025492040644'),
  ('68', '11', '1796026031131339'),
  ('8', '1', '1795774152943657');
insert into "release_under_test"."worker" ("id", "n", "known", "seen", "main_seen", "steady_since", "started_at", "lease_us", "beat_us", "started", "info") values
  ('01a22b7d-6dbd-7f3b-8bb4-96ac3654a371', '5', '0', '1796026031127746', '1796026031127746', '1796025970110538', '1796025970110538', '60000000', '20000000', '[]', '{"name":"host:1","queues":["q"],"concurrency":10,"leaseMs":60000,"beatMs":20000}'),
  ('01a22b7d-6dd7-70b4-856e-08b73e5bade4', '2', '1', '1796026031147967', '1796026031147967', '1796026031135631', '1796026031135631', '60000000', '20000000', '[[70,3]]', '{"name":"host:1","queues":["q"],"concurrency":10,"leaseMs":60000,"beatMs":20000}');
select setval('"release_under_test"."fence"', 71);
select setval('"release_under_test"."front"', 426);
