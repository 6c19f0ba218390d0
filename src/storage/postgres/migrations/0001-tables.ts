/** Migration 1: the places of a job and what stands beside them. Applied by migrate.ts; `:schema` is the only substitution. */

export const TABLES = `
-- Every claim and every take-over draws from it, after its last lock: a later fence is a larger one.
create sequence :schema.fence as bigint;
-- Positions of the front range of a lane.
create sequence :schema.front as bigint;

create table :schema.queue (
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
create table :schema.ready (
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
create index ready_claim on :schema.ready (lane, pos);
create unique index ready_id on :schema.ready (id);

create table :schema.delayed (
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
create index delayed_promote on :schema.delayed (lane, due);
create unique index delayed_id on :schema.delayed (id);

-- A worker process. Two times: of the thread that beats and of the main loop.
create table :schema.worker (
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
create table :schema.lease (
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
  jobs :schema.ready[] not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index lease_worker on :schema.lease (worker, request);

-- Taken before a claim takes anything: the same request never takes twice.
create table :schema.claim_request (
  worker uuid not null,
  request int not null,
  at bigint not null,
  primary key (worker, request)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

-- Dead fences, for an hour, and what was open when they died: so that a late settlement hears 'lost' and a repeat of
-- one that was done hears 'already'.
create table :schema.revoked (
  fence bigint primary key,
  open varbit not null,
  at bigint not null
);
create index revoked_at on :schema.revoked (at);

create table :schema.ended (
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
create index ended_id on :schema.ended (id);
create index ended_list on :schema.ended (queue, state, ended);

create table :schema.dead (
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
create index dead_list on :schema.dead (queue, ended);
create index dead_ended on :schema.dead (ended);

create table :schema.idempotency (
  kind text not null,
  key text not null,
  id uuid not null,
  payload_hash text not null,
  expires bigint not null,
  primary key (kind, key)
);
create index idempotency_expires on :schema.idempotency (expires);

-- Jobs that must have started by an instant.
create table :schema.expiry (
  at bigint not null,
  id uuid not null,
  primary key (at, id)
);

-- Workers that found nothing a moment ago: only for them an enqueue sends a hint.
create table :schema.idle (
  queue int not null,
  worker uuid not null,
  until bigint not null,
  primary key (queue, worker)
) with (fillfactor = 50);

-- All places as one table, for people.
create view :schema.job as
  select id, 'ready' as state, (select name from :schema.queue where queue.id = lane / 64) as queue,
    kind, lane % 16 as priority, :schema.instant(coalesce(enqueued, pos)) as enqueued, :schema.instant(coalesce(due, pos)) as due,
    null::timestamptz as started, null::timestamptz as ended, null::uuid as worker, null::text as reason, payload, spec, history, null::json as result
  from :schema.ready
  union all
  select id, case when history is null then 'delayed' else 'retrying' end, (select name from :schema.queue where queue.id = lane / 64),
    kind, lane % 16, :schema.instant(enqueued), :schema.instant(due), null, null, null, null, payload, spec, history, null
  from :schema.delayed
  union all
  select j.id, 'running', (select name from :schema.queue where queue.id = j.lane / 64), j.kind, j.lane % 16,
    :schema.instant(coalesce(j.enqueued, j.pos)), :schema.instant(coalesce(j.due, j.pos)), null, null, l.worker, null, j.payload, j.spec, j.history, null
  from :schema.lease l, unnest(l.jobs) with ordinality j
  where get_bit(l.open, j.ordinality::int - 1) = 1
  union all
  select id, case state when 1 then 'completed' else 'cancelled' end, (select name from :schema.queue where queue.id = ended.queue),
    kind, level, enqueued, null, started, ended, worker, null, payload, spec, history, result
  from :schema.ended
  union all
  select id, 'dead', (select name from :schema.queue where queue.id = dead.queue), kind, level, enqueued, null, started, ended, worker,
    reason, payload, spec, history, null
  from :schema.dead;
`
