/** Migration 10: order keys and limit keys. Applied by migrate.ts; `:schema` is the only substitution. */

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
