/** Migration 7: limits of what may wait. Applied by migrate.ts; `:schema` is the only substitution. */

export const DEPTH_LIMITS = `
alter table :schema.queue_limit
  add column depth int,          -- jobs that may wait; null: no limit
  add column depth_kinds json;   -- and of single kinds: an object of names and limits

-- Whether enqueues have to count what waits: beside what they look at anyhow.
alter table :schema.queue add column bounded boolean not null default false;

-- Rights of single columns that were granted before reach the new one, else its first enqueue would be a producer's last.
do $$
declare v_grantee text;
begin
  for v_grantee in select distinct case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end
      from pg_attribute t, aclexplode(t.attacl) a
     where t.attrelid = ':schema_text.queue'::regclass and t.attname = 'draining' and a.privilege_type = 'SELECT' loop
    execute format('grant select (bounded) on :schema_text.queue to %s', v_grantee);
  end loop;
end $$;
`
