/** Functions: a lease as text, its marks, and giving back what is open in it. Called by those of claims, settlements and beats. */
import { keyText } from './keys.js'

/** Of an order key only what has ended holds no permit any more. */
const KEYS_FREED = `(select j.lane, j.id, ${keyText('j.spec')} as key from j where j.spec ->> 'limitKey' is not null or j.spec ->> 'orderKey' is not null
      and (j.cancelled or j.lost is true and coalesce(j.spec ->> 'afterDead', '') <> 'block'))`

export const LEASE = `
create or replace function :schema.must_be_read_committed() returns void language plpgsql as $$
begin
  -- Each statement below has to see what was committed while the one before it waited for a lock.
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'the queue needs transactions at READ COMMITTED, not %', current_setting('transaction_isolation')
      using errcode = 'invalid_transaction_state', hint = 'set default_transaction_isolation to ''read committed'' for the role that runs workers';
  end if;
end $$;

create or replace function :schema.without(p_bits varbit, p_ordinals int[]) returns varbit language plpgsql immutable as $$
begin
  for n in 1 .. coalesce(cardinality(p_ordinals), 0) loop p_bits := set_bit(p_bits, p_ordinals[n], 0); end loop;
  return p_bits;
end $$;

create or replace function :schema.with(p_bits varbit, p_ordinals int[]) returns varbit language plpgsql immutable as $$
begin
  for n in 1 .. coalesce(cardinality(p_ordinals), 0) loop p_bits := set_bit(p_bits, p_ordinals[n], 1); end loop;
  return p_bits;
end $$;

-- A lease as JSON text: [fence, alone, claimed, [[id, kind, lane, pos, due, enqueued, payload, spec, history], ...]].
-- Kinds need no escaping: their characters are held to a safe set. Text, as building JSON values costs three times it.
-- STABLE and each argument used little, so that it is inlined.
create or replace function :schema.job_text(p_id uuid, p_kind text, p_lane int, p_pos bigint, p_due bigint, p_enqueued bigint, p_payload json, p_spec json, p_history json)
returns text language sql stable as $$
  select '["' || p_id::text || '","' || p_kind || '",' || p_lane::text || ',' || p_pos::text || ',' || coalesce(p_due::text, 'null') || ','
    || coalesce(p_enqueued::text, 'null') || ',' || p_payload::text || ',' || coalesce(p_spec::text, 'null') || ',' || coalesce(p_history::text, 'null') || ']'
$$;

create or replace function :schema.lease_text(l :schema.lease) returns text language sql stable as $$
  select '[' || l.fence || ',' || l.alone || ',' || l.claimed || ',[' || (
    select string_agg(:schema.job_text(j.id, j.kind, j.lane, j.pos, j.due, j.enqueued, j.payload, j.spec, j.history), ',' order by j.ordinality)
    from unnest(l.jobs) with ordinality j) || ']]'
$$;

-- The answer of an earlier request again. A lease of which something was settled has reached its worker, so no repeat
-- may hand it out once more.
create or replace function :schema.answer_text(p_worker uuid, p_request bigint) returns text language sql stable as $$
  select '[' || string_agg(:schema.lease_text(l), ',' order by l.fence) || ']' from :schema.lease l
   where l.worker = p_worker and l.request = p_request and bit_count(l.open) = bit_length(l.open)
$$;

-- Jobs of a lease that are still open go to the front of their lanes; nothing is used up. The lease ends, its fence
-- is remembered as dead. The caller holds the lease's lock. An at-most-once job that started may have had its effect:
-- it is lost, and never given back.
create or replace function :schema.give_back(p_fences bigint[], p_now bigint) returns void language plpgsql as $$
declare
  v_queues int[];
  v_freed int[];
  v_key_queues int[];
  v_keys text[];
  v_ids uuid[];
begin
  with l as (delete from :schema.lease where fence = any(p_fences) returning fence, worker, open, started, cancelled, jobs),
  v as (insert into :schema.revoked (fence, open, at) select l.fence, l.open, p_now from l on conflict do nothing),
  j as materialized (select l.fence, l.worker, u.ordinality, coalesce(get_bit(l.cancelled, u.ordinality::int - 1) = 1, false) as cancelled,
      coalesce(get_bit(l.started, u.ordinality::int - 1) = 1, false) and u.spec ->> 'delivery' = 'at-most-once' as lost,
      u.lane, u.bytes, u.pos, u.id, u.kind, u.payload, u.spec, u.history, u.enqueued, u.due
    from l, unnest(l.jobs) with ordinality u where get_bit(l.open, u.ordinality::int - 1) = 1),
  c as (insert into :schema.ended (id, queue, state, level, kind, enqueued, ended, worker, payload, spec, history)
    select id, lane / 64, 2, lane % 16, kind, :schema.instant(coalesce(enqueued, pos)), :schema.instant(p_now), worker, payload, spec,
      :schema.history_cancelled(history, p_now)
    from j where j.cancelled and coalesce(spec ->> 'keep', 'all') <> 'none'),
  y as (insert into :schema.expiry (at, id) select coalesce(enqueued, pos) + (spec ->> 'expiresInMs')::bigint * 1000, id from j
    where not j.cancelled and spec ->> 'expiresInMs' is not null and :schema.may_expire(history) on conflict (at, id) do update set id = excluded.id),
  x as (insert into :schema.dead (id, queue, level, kind, reason, enqueued, ended, worker, payload, spec, history)
    select id, lane / 64, lane % 16, kind, 'lost', :schema.instant(coalesce(enqueued, pos)), :schema.instant(p_now), worker, payload, spec,
      :schema.history_with(history, json_build_object('at', p_now / 1000, 'attempt', coalesce((history ->> 'attempts')::int, 0) + 1,
        'outcome', 'lost', 'note', 'its worker forgot it after its start'))
    from j where j.lost and not j.cancelled),
  r as (insert into :schema.ready (lane, bytes, pos, id, kind, payload, spec, history, enqueued, due)
    select case when f.lane & 48 = 32 then f.lane else (f.lane / 64) * 64 + 16 + f.lane % 16 end, f.bytes, nextval(':schema_text.front'),
      f.id, f.kind, f.payload, f.spec, f.history, coalesce(f.enqueued, f.pos), coalesce(f.due, f.pos)
    from (select * from j where not j.cancelled and j.lost is not true order by coalesce(due, pos), fence, ordinality) f
    returning lane / 64 as queue)
  select array_agg(distinct r.queue), (select array_agg(distinct j.lane / 64) from j),
      (select array_agg(k.lane / 64 order by k.id) from ${KEYS_FREED} k), (select array_agg(k.key order by k.id) from ${KEYS_FREED} k), (select array_agg(k.id order by k.id) from ${KEYS_FREED} k)
    into v_queues, v_freed, v_key_queues, v_keys, v_ids from r;
  if v_keys is not null then perform :schema.release(v_key_queues, v_keys, v_ids); end if;
  if v_queues is not null then perform :schema.hint(v_queues, false); end if;
  if v_freed is not null then perform :schema.hint_limited(v_freed); end if;
end $$;
`
