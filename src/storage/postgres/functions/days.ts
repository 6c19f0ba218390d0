/** Functions: the day tables of ended jobs. Called by pruning.ts, day-pruning.ts and settlements that find no day. */

export const DAYS = `
-- The day table of a date, made apart and attached, so that no writer waits. Anyone may call it, also twice at once. It
-- runs with the rights of the owner: a worker need not own the tables, and the days are the owner's whoever makes them.
create or replace function :schema.ensure_day(p_day date) returns void language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_schema text := ':schema_text';
  v_name text := 'ended_' || to_char(p_day, 'YYYYMMDD');
  v_from timestamptz := p_day::timestamp at time zone 'UTC';
  v_to timestamptz := (p_day + 1)::timestamp at time zone 'UTC';
begin
  if to_regclass(format('%s.%I', v_schema, v_name)) is not null then return; end if;
  -- Makers of the same day queue up here and find it made.
  perform pg_advisory_xact_lock(hashtextextended(v_schema || v_name, 0));
  -- Asked of the catalog itself: what to_regclass remembers is from before the wait.
  if exists (select from pg_class c where c.relnamespace = v_schema::regnamespace and c.relname = v_name) then return; end if;
  execute format('create table %s.%I (like %s.ended including defaults, check (ended >= %L and ended < %L))',
    v_schema, v_name, v_schema, v_from, v_to);
  execute format('alter table %s.ended attach partition %s.%I for values from (%L) to (%L)',
    v_schema, v_schema, v_name, v_from, v_to);
end $$;

-- Drops the day table of a date that is over, for a worker that does not own it and so cannot detach it beside the others:
-- a detach that waits for nobody may stand in no function. 'dropped', or what could be done while others use the records:
-- 'emptied', or nothing ('kept'). It waits for no lock, as all settlements would wait behind it; it looks some times for a
-- moment in which nobody is writing.
create or replace function :schema.drop_day(p_day date) returns text language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_table text := format('%s.%I', ':schema_text', 'ended_' || to_char(p_day, 'YYYYMMDD'));
begin
  if to_regclass(v_table) is null then return 'dropped'; end if;
  if p_day >= (:schema.instant(:schema.clock()) at time zone 'UTC')::date then return 'kept'; end if;
  for v_try in 1 .. 20 loop
    begin
      lock table only :schema.ended in access exclusive mode nowait;
      -- Somebody else may have come first.
      if to_regclass(v_table) is null then return 'dropped'; end if;
      execute format('lock table only %s in access exclusive mode nowait', v_table);
      execute format('drop table %s', v_table);
      return 'dropped';
    exception when lock_not_available then null;
    end;
    perform pg_sleep(0.005);
  end loop;
  -- The room at least: this needs nothing of the tables of other days.
  if to_regclass(v_table) is not null and pg_relation_size(to_regclass(v_table)) > 0 then
    execute format('lock table only %s in access exclusive mode nowait', v_table);
    execute format('truncate %s', v_table);
  end if;
  return 'emptied';
exception when lock_not_available or undefined_table then return 'kept';
end $$;

revoke all on function :schema.ensure_day(date), :schema.drop_day(date) from public;

create or replace function :schema.ensure_days() returns void language plpgsql as $$
begin
  perform :schema.ensure_day(((:schema.instant(:schema.clock())) at time zone 'UTC')::date + d)
    from generate_series(0, 7) d;
end $$;

select :schema.ensure_days();
`
