/** Functions: what is written into the history of a job by the store itself. Called by functions that end or revive jobs. */

export const HISTORY = `
-- A history with one entry more, the newest 20 kept; as core/settlement.ts does it.
create or replace function :schema.history_with(p_history json, p_entry json) returns json language plpgsql immutable as $$
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

-- Somebody wanted it cancelled.
create or replace function :schema.history_cancelled(p_history json, p_now bigint) returns json language sql immutable as $$
  select :schema.history_with(p_history, json_build_object('at', p_now / 1000,
    'attempt', coalesce((p_history ->> 'attempts')::int, 0) + 1, 'outcome', 'cancelled'))
$$;

create or replace function :schema.history_redriven(p_history json, p_now bigint) returns json language sql immutable as $$
  select json_object_agg(key, case
      when key in ('attempts', 'crashes', 'crashesAlone') then '0'::json
      when key = 'redrives' then to_json((value #>> '{}')::int + 1)
      else value end)
    from json_each(:schema.history_with(p_history, json_build_object('at', p_now / 1000, 'attempt', 1, 'outcome', 'redriven')))
   where key <> 'firstStartedAt'
$$;

-- Only a job that was never started expires; brought back from the dead it does not, as its enqueue lies long behind.
create or replace function :schema.may_expire(p_history json) returns boolean language sql stable as $$
  select p_history ->> 'firstStartedAt' is null and coalesce(p_history ->> 'redrives', '0') = '0'
$$;

-- Whether a waiting job is to end for not having started in time. Its own spec says so: the entry in expiry may be that
-- of an earlier job with its id. Entries of older versions may lie up to a millisecond before.
create or replace function :schema.is_late(p_history json, p_spec json, p_enqueued bigint, p_now bigint) returns boolean language sql stable as $$
  select p_enqueued + (p_spec ->> 'expiresInMs')::bigint * 1000 <= p_now + 1000 and :schema.may_expire(p_history)
$$;
`
