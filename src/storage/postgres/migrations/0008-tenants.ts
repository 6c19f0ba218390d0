/** Migration 8: fair shares of tenants. Applied by migrate.ts; `:schema` is the only substitution. */

export const TENANTS = `
-- A level that has had jobs of tenants has a fair list beside its backlog: range 3 of its lane. pos is there a virtual time
-- (see core/tenants.ts), due and enqueued are kept. served: the virtual time up to which the list was claimed, a moment
-- behind; what comes in starts there.
create table :schema.fair_lane (
  lane int primary key,
  served bigint not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, parallel_workers = 0);

-- bit n: level n has a fair list.
alter table :schema.queue add column fair int not null default 0;

-- Rights of single columns that were granted before reach the new one, else its first enqueue would be a producer's last.
do $$
declare v_grantee text;
begin
  for v_grantee in select distinct case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end
      from pg_attribute t, aclexplode(t.attacl) a
     where t.attrelid = ':schema_text.queue'::regclass and t.attname = 'draining' and a.privilege_type = 'SELECT' loop
    execute format('grant select (fair) on :schema_text.queue to %s', v_grantee);
  end loop;
  -- Whoever claims writes what is served.
  for v_grantee in select distinct case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end
      from pg_class c, aclexplode(c.relacl) a
     where c.oid = ':schema_text.claim_request'::regclass and a.privilege_type = 'INSERT' and a.grantee <> c.relowner loop
    execute format('grant select, insert, update, delete on :schema_text.fair_lane to %s', v_grantee);
  end loop;
end $$;
`
