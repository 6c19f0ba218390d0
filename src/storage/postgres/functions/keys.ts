/** Functions: permits of order keys and limit keys. Called by claims and by all that ends a job; see core/keys.ts, which holds the rules. */

/** The key of a job as the index of blocked jobs has it: `o` before an order key, `l` before a limit key. */
export function keyText(spec: string): string {
  return `coalesce('o' || (${spec} ->> 'orderKey'), 'l' || (${spec} ->> 'limitKey'))`
}

/** Of what was ended: queues, keys and ids of jobs with a key. */
export function keysOf(jobs: string): string {
  const key = keyText(`${jobs}.spec`)
  const list = (column: string) => `array_agg(${column} order by ${jobs}.id) filter (where ${key} is not null)`
  return `${list(`${jobs}.lane / 64`)}, ${list(key)}, ${list(`${jobs}.id`)}`
}

/** For letters of `rows` that are no more: what they block goes on. A scalar subquery. */
export function lettersReleased(schema: string, rows: string): string {
  return `(select ${schema}.release(array_agg(b.queue), array_agg('o' || (b.spec ->> 'orderKey')), array_agg(b.id))::text
    from ${rows} b where b.spec ->> 'afterDead' = 'block' having count(*) > 0)`
}

/** A blocked job stands among the delayed ones, in ranges that no promotion reads: 1, and 3 for suspects. */
export const IS_BLOCKED = 'lane & 16 = 16'

const BLOCKED_KEY = keyText('d.spec')

export const KEYS = `
-- Marks a queue as one with keys: its claims look for them. With the rights of the owner, as a producer sets nothing of a queue.
create or replace function :schema.ensure_keyed(p_queue int) returns void language sql
security definer set search_path = pg_catalog, pg_temp as $$
  update :schema.queue set keyed = true where id = p_queue and not keyed
$$;

-- Permits that a key has; null: no limit.
create or replace function :schema.permits_of(p_queue int, p_key text) returns int language sql stable as $$
  select case when p_key like 'o%' then 1 else (select coalesce((x.key_limits -> 'keys' ->> substr(p_key, 2))::int, (x.key_limits ->> 'limit')::int)
    from :schema.queue_limit x where x.queue = p_queue) end
$$;

-- Of jobs of a queue that a claim has locked, in the order in which it would take them: those that may go, as they have a
-- permit of their key now. Those that find none are blocked. Neither happens to those whose key is in other hands at this
-- moment: nobody waits for a key here, so that claims cannot wait for each other. Lock first, look second: what was
-- decided about a key before the lock was ours has been committed, and is seen by the statement that decides.
create or replace function :schema.admit(p_queue int, p_ids uuid[], p_keys text[], p_dues bigint[]) returns uuid[] language plpgsql
-- Each key is met with each job else: nobody knows how many there are when the plan is made.
set enable_nestloop = off as $$
#variable_conflict use_column
declare
  v_keys text[] := array(select distinct k.key from unnest(p_keys) k(key));
  v_locked text[];
  v_goes uuid[];
begin
  -- Whoever makes the row of a key holds a lock on its name until he has committed: so nobody waits for it. Few at a time,
  -- as these locks lie in memory that all sessions share.
  insert into :schema.permit (queue, key)
    select p_queue, m.key from (select k.key from unnest(v_keys) k(key)
      except select p.key from :schema.permit p where p.queue = p_queue and p.key = any(v_keys) limit 200) m
     where pg_try_advisory_xact_lock(hashtextextended(':schema_text key ' || p_queue || ' ' || m.key, 0))
    on conflict do nothing;
  v_locked := array(select l.key from (select p.key from :schema.permit p where p.queue = p_queue and p.key = any(v_keys)
    order by p.key for no key update skip locked) l);
  with p as materialized (
    select p.key, p.holders, p.key like 'o%' as ordered, :schema.permits_of(p_queue, p.key) as most
      from :schema.permit p where p.queue = p_queue and p.key = any(v_locked)),
  -- Of an order key the first of all that wait goes.
  f as (select p.key, (select w.id from (
        (select r.id, coalesce(r.due, r.pos) as due from :schema.ready r
          where r.lane / 64 = p_queue and r.spec ->> 'orderKey' is not null and r.spec ->> 'orderKey' = substr(p.key, 2) order by coalesce(r.due, r.pos), r.id limit 1)
        union all
        (select d.id, d.due from :schema.delayed d
          where d.lane / 64 = p_queue and d.${IS_BLOCKED} and ${BLOCKED_KEY} = p.key order by d.due, d.id limit 1)) w order by w.due, w.id limit 1) as id
      from p where p.ordered and cardinality(p.holders) = 0),
  c as materialized (
    select u.id, u.key, u.o, u.id = any(p.holders) as holds, p.ordered, p.most - cardinality(p.holders) as room,
        row_number() over (partition by u.key, u.id = any(p.holders) order by u.o) as nth
      from unnest(p_ids, p_keys, p_dues) with ordinality u(id, key, due, o) join p on p.key = u.key),
  v as materialized (
    select c.id, c.key, c.o, c.holds, case when c.holds then true when c.ordered then coalesce(c.id = f.id, false) else coalesce(c.nth <= c.room, true) end as goes
      from c left join f on f.key = c.key),
  t as (update :schema.permit p set holders = p.holders || n.ids
    from (select v.key, array_agg(v.id order by v.o) as ids from v where v.goes and not v.holds group by v.key) n
   where p.queue = p_queue and p.key = any(v_locked) and p.key = n.key),
  x as (delete from :schema.ready r where r.id = any(array(select v.id from v where not v.goes)) returning r.*),
  b as (insert into :schema.delayed (lane, bytes, due, id, kind, payload, spec, history, enqueued)
    select (x.lane / 64) * 64 + case when x.lane & 48 = 32 then 48 else 16 end + x.lane % 16, x.bytes, coalesce(x.due, x.pos), x.id, x.kind, x.payload, x.spec, x.history,
      coalesce(x.enqueued, x.pos) from x)
  select coalesce(array_agg(v.id) filter (where v.goes), '{}') into v_goes from v;
  return v_goes;
end $$;

-- These jobs hold no permits of their keys any more; what they blocked is ready again, at the front. The arrays name a job
-- each. Keys are locked in one order by all who wait for them.
create or replace function :schema.release(p_queues int[], p_keys text[], p_ids uuid[]) returns void language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_nestloop = off as $$
#variable_conflict use_column
declare
  v_queues int[];
begin
  perform from :schema.permit p where p.queue = any(p_queues) and p.key = any(p_keys)
      and (p.queue, p.key) in (select u.queue, u.key from unnest(p_queues, p_keys) u(queue, key))
    order by p.queue, p.key for no key update;
  with g as materialized (select u.queue, u.key, coalesce(array_agg(u.id) filter (where u.id is not null), '{}') as ids from unnest(p_queues, p_keys, p_ids) u(queue, key, id) group by u.queue, u.key),
  p as materialized (
    select p.queue, p.key, p.holders, array(select h.id from unnest(p.holders) with ordinality h(id, o) where h.id <> all(g.ids) order by h.o) as rest,
        coalesce(:schema.permits_of(p.queue, p.key), 10000) as most
      from :schema.permit p join g on g.queue = p.queue and g.key = p.key where p.queue = any(p_queues) and p.key = any(p_keys)),
  u as (update :schema.permit x set holders = p.rest from p where x.queue = any(p_queues) and x.key = any(p_keys) and x.queue = p.queue and x.key = p.key and cardinality(p.rest) < cardinality(p.holders)),
  -- Without a lock: who is locked is being ended by somebody, who sees to the next one himself.
  n as (select d.c from p, lateral (select d.ctid as c, d.due, d.id from :schema.delayed d
      where d.lane / 64 = p.queue and d.${IS_BLOCKED} and ${BLOCKED_KEY} = p.key order by d.due, d.id limit greatest(0, p.most - cardinality(p.rest))) d
     where p.key not like 'o%' or not exists (select from :schema.ready r where r.lane / 64 = p.queue and r.spec ->> 'orderKey' is not null
       and r.spec ->> 'orderKey' = substr(p.key, 2) and (coalesce(r.due, r.pos), r.id) < (d.due, d.id))),
  s as (select d.ctid as c from :schema.delayed d where d.ctid = any(array(select n.c from n)) for update skip locked),
  x as (delete from :schema.delayed d where d.ctid = any(array(select s.c from s)) returning d.*),
  i as (insert into :schema.ready (lane, bytes, pos, id, kind, payload, spec, history, enqueued, due)
    select case when o.lane & 48 = 48 then o.lane - 16 else o.lane end, o.bytes, nextval(':schema_text.front'), o.id, o.kind, o.payload, o.spec, o.history, o.enqueued, o.due
      from (select * from x order by x.due, x.id) o)
  select array_agg(distinct x.lane / 64) into v_queues from x;
  if v_queues is not null then perform :schema.hint(v_queues, false); end if;
end $$;

-- The safety net, and what a changed limit sets free: keys that have permits and jobs that could take one. An order key whose
-- first job is ready waits for a claim alone. Those in other hands are left to these, and to the next call.
create or replace function :schema.free_keys(p_queue int, p_limit int) returns void language plpgsql as $$
declare
  v_queues int[];
  v_keys text[];
begin
  select array_agg(k.queue), array_agg(k.key) into v_queues, v_keys from (
    select p.queue, p.key from :schema.permit p, lateral (select d.due, d.id from :schema.delayed d
        where d.lane / 64 = p.queue and d.${IS_BLOCKED} and ${BLOCKED_KEY} = p.key order by d.due, d.id limit 1) d
     where (p_queue is null or p.queue = p_queue) and cardinality(p.holders) < coalesce(:schema.permits_of(p.queue, p.key), 2147483647)
       and (p.key not like 'o%' or not exists (select from :schema.ready r where r.lane / 64 = p.queue and r.spec ->> 'orderKey' is not null
         and r.spec ->> 'orderKey' = substr(p.key, 2) and (coalesce(r.due, r.pos), r.id) < (d.due, d.id)))
     limit p_limit for no key update of p skip locked) k;
  if v_keys is not null then perform :schema.release(v_queues, v_keys, array_fill(null::uuid, array[cardinality(v_keys)])); end if;
end $$;

-- Keys that nobody holds and nobody waits for need no row.
create or replace function :schema.prune_permits(p_limit int) returns int language plpgsql as $$
declare
  v_rows tid[] := array(select p.ctid from :schema.permit p where cardinality(p.holders) = 0 limit p_limit for update skip locked);
  v_deleted int;
begin
  -- Locked first: what is blocked from now on waits for the next look.
  delete from :schema.permit p where p.ctid = any(v_rows) and cardinality(p.holders) = 0
    and not exists (select from :schema.delayed d where d.lane / 64 = p.queue and d.${IS_BLOCKED} and ${BLOCKED_KEY} = p.key);
  get diagnostics v_deleted = row_count;
  return v_deleted;
end $$;

revoke all on function :schema.ensure_keyed(int) from public;
`
