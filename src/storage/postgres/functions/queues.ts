/** Functions: the ids of queues, and hints to their idle workers. Called by queues.ts and by functions that make jobs ready. */

export const QUEUES = `
-- A queue's id; the queue and the level are made where they are missing. No sequence: nothing is used up by asking.
create or replace function :schema.ensure_queue(p_name text, p_level int) returns int language plpgsql as $$
declare v_id int;
begin
  loop
    update :schema.queue set levels = levels | (1 << p_level) where name = p_name and levels & (1 << p_level) = 0;
    select id into v_id from :schema.queue where name = p_name;
    if v_id is not null then return v_id; end if;
    begin
      insert into :schema.queue (id, name, levels) select coalesce(max(id), 0) + 1, p_name, 1 << p_level from :schema.queue
        on conflict (name) do nothing;
    exception when unique_violation then null; -- another queue took the number: again
    end;
  end loop;
end $$;

-- Wakes idle workers: one notification a call at most, none while nobody is idle. In somebody's own transaction the
-- mark of a worker that falls idle before the commit could not be seen, so there p_always tells anyway.
create or replace function :schema.hint(p_queues int[], p_always boolean) returns void language plpgsql as $$
declare v_names text;
begin
  select string_agg(q.name, ',') into v_names from :schema.queue q
   where q.id = any(p_queues) and (p_always or exists (select from :schema.idle i where i.queue = q.id and i.until > :schema.clock() and not i.limited));
  if v_names is not null then
    perform pg_notify(':channel', case when length(v_names) > 7000 then '*' else v_names end);
  end if;
end $$;

-- The same for workers that a limit of the queue keeps idle: permits are free.
create or replace function :schema.hint_limited(p_queues int[]) returns void language plpgsql as $$
declare v_names text;
begin
  select string_agg(q.name, ',') into v_names from :schema.queue q
   where q.id = any(p_queues) and exists (select from :schema.idle i where i.queue = q.id and i.until > :schema.clock() and i.limited);
  if v_names is not null then
    perform pg_notify(':channel', case when length(v_names) > 7000 then '*' else v_names end);
  end if;
end $$;
`
