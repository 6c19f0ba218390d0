/** Functions: the life of a worker as the store sees it. Called by beat.ts and heartbeat-source.ts. */

export const BEAT = `
-- status 0 ok, 1 stale, 2 gone. One row written per worker, whatever it holds.
create or replace function :schema.beat_worker(p_worker uuid, p_n bigint, p_known bigint, p_fences bigint[], p_started json, p_main_lag bigint,
  p_lease bigint, p_beat bigint, p_info json, p_queues text[])
returns table (status int, lost bigint[], cancel json, paused text[]) language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_variable
declare
  v_now bigint;
  v_was record;
  v_unnamed bigint[];
begin
  perform :schema.must_be_read_committed();
  select w.n, w.known into v_was from :schema.worker w where w.id = p_worker for no key update;
  v_now := :schema.clock();
  if not found and p_n > 1 then status := 2; lost := p_fences; return next; return; end if;
  if v_was.n > p_n then status := 1; return next; return; end if;
  status := 0;
  if v_was.n is null then
    insert into :schema.worker (id, n, known, seen, main_seen, steady_since, started_at, lease_us, beat_us, started, info)
      values (p_worker, p_n, p_known, v_now, v_now - p_main_lag, v_now, v_now, p_lease, p_beat, p_started, p_info)
      on conflict (id) do nothing;
  else
    -- A repeat is a sign of life like any other; only what it says of leases and requests was heard before.
    update :schema.worker w set n = p_n, known = greatest(w.known, p_known), seen = v_now, main_seen = v_now - p_main_lag, started = p_started,
        lease_us = p_lease, beat_us = p_beat, info = p_info,
        -- A gap of two beats, or a clock that stepped back, and the worker has seen nothing of the others for a while:
        -- it must not judge them yet.
        steady_since = case when v_now - w.seen > 2 * w.beat_us or v_now < w.seen then v_now else w.steady_since end
      where w.id = p_worker;
  end if;
  if v_was.n < p_n then
    delete from :schema.claim_request c where c.worker = p_worker and c.request > v_was.known - 2 and c.request <= p_known - 2;
    -- A claim whose answer never arrived: its jobs go back. Adopted leases have no request and are not touched.
    v_unnamed := array(select l.fence from :schema.lease l where l.worker = p_worker and l.request <= p_known and l.fence <> all(p_fences) order by l.fence for update);
    if cardinality(v_unnamed) > 0 then perform :schema.give_back(v_unnamed, v_now); end if;
  end if;
  lost := array(select f from unnest(p_fences) f where not exists (select from :schema.lease l where l.fence = f and l.worker = p_worker)
    and exists (select from :schema.revoked v where v.fence = f));
  select coalesce(json_agg(json_build_array(l.fence, o)), '[]') into cancel
    from :schema.lease l, generate_series(0, bit_length(l.cancelled) - 1) o
   where l.fence = any(p_fences) and l.worker = p_worker and l.cancelled is not null and get_bit(l.cancelled, o) = 1 and get_bit(l.open, o) = 1;
  paused := array(select q.name from :schema.queue q where q.name = any(p_queues) and q.paused);
  return next;
end $$;

create or replace function :schema.unregister(p_worker uuid) returns void language plpgsql as $$
begin
  perform from :schema.worker w where w.id = p_worker for update;
  -- A claim whose answer was lost right before the good-bye: nothing of it has started, nobody has died.
  perform :schema.give_back(array(select l.fence from :schema.lease l where l.worker = p_worker and l.request is not null
    order by l.fence for update), :schema.clock());
  -- What it adopted and did not settle keeps its facts, and nobody holds it now: the next sweep takes it over.
  delete from :schema.worker w where w.id = p_worker;
  delete from :schema.claim_request c where c.worker = p_worker;
  delete from :schema.idle i where i.worker = p_worker;
end $$;
`
