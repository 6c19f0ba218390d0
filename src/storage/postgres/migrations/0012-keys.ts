/** Migration 12: order keys and limit keys. Applied by migrate.ts; `:schema` is the only substitution. */

export const KEYS = `
-- Who holds permits of a key: ids of jobs that run, or whose order key waits for them. o before an order key, l before a
-- limit key. Locked by whoever decides about the key, for moments only; no caller's transaction touches it.
create table :schema.permit (
  queue int not null,
  key text not null,
  holders uuid[] not null default '{}',
  primary key (queue, key)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, parallel_workers = 0);

-- Whether claims of the queue have to look for keys.
alter table :schema.queue add column keyed boolean not null default false;

-- How many jobs of a limit key may run at once: {"limit": 3, "keys": {"acme": 10}}; null: no limit.
alter table :schema.queue_limit add column key_limits json;

-- Blocked jobs stand among the delayed ones, in ranges 1 and 3 of their lanes.
create or replace view :schema.job as
  select id, 'ready' as state, (select name from :schema.queue where queue.id = lane / 64) as queue,
    kind, lane % 16 as priority, :schema.instant(coalesce(enqueued, pos)) as enqueued, :schema.instant(coalesce(due, pos)) as due,
    null::timestamptz as started, null::timestamptz as ended, null::uuid as worker, null::text as reason, payload, spec, history, null::json as result
  from :schema.ready
  union all
  select id, case when lane & 16 = 16 then 'blocked' when history is null then 'delayed' else 'retrying' end, (select name from :schema.queue where queue.id = lane / 64),
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

do $$
declare v_grantee text;
begin
  -- Rights of single columns that were granted before reach the new one, else its first enqueue would be a producer's last.
  for v_grantee in select distinct case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end
      from pg_attribute t, aclexplode(t.attacl) a
     where t.attrelid = ':schema_text.queue'::regclass and t.attname = 'draining' and a.privilege_type = 'SELECT' loop
    execute format('grant select (keyed) on :schema_text.queue to %s', v_grantee);
  end loop;
  -- Whoever claims takes permits.
  for v_grantee in select distinct case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end
      from pg_class c, aclexplode(c.relacl) a
     where c.oid = ':schema_text.claim_request'::regclass and a.privilege_type = 'INSERT' and a.grantee <> c.relowner loop
    execute format('grant select, insert, update, delete on :schema_text.permit to %s', v_grantee);
  end loop;
end $$;
`
