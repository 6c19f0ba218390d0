/** Functions: what dead workers held goes to a living one. Called by beat.ts. */

export const TAKE_OVER = `
-- Leases of dead workers come under new fences of p_worker, with what is known of the crash. First those it adopted
-- before and has not settled, so that a lost answer is asked for again; at most p_bytes of payload beyond the first
-- lease, the rest comes when these are settled. Answer: leases as in claim, and the crash.
create or replace function :schema.take_over(p_worker uuid, p_limit int, p_bytes bigint) returns table (leases text, now_us bigint) language plpgsql as $$
#variable_conflict use_variable
declare
  v_now bigint;
  v_me record;
  v_dead record;
  v_dead_id uuid;
  v_dead_ids uuid[] := '{}';
  v_jobs int;
  v_bytes bigint;
  v_jobs_next int;
  v_bytes_next bigint;
  v_silent cursor for select w.id from :schema.worker w where w.id <> p_worker
    -- A beat from the future was seen by a clock that has stepped back since; a living worker has beaten anew.
    and (least(w.seen, w.main_seen) < v_now - w.lease_us or w.seen > v_now + w.lease_us)
    order by w.seen for update skip locked;
begin
  perform :schema.must_be_read_committed();
  v_now := :schema.clock();
  now_us := v_now;
  -- SHARE: whoever would judge this worker meanwhile passes it by, and what it adopts cannot be left without an owner.
  select * into v_me from :schema.worker w where w.id = p_worker for share;
  if not found then return next; return; end if;
  select coalesce(sum(bit_count(l.open)), 0), coalesce(sum(l.bytes), 0) into v_jobs, v_bytes from :schema.lease l where l.worker = p_worker and l.request is null;
  -- After an outage nobody has beaten: whoever judges must first have been steady for a whole lease itself.
  if v_now - v_me.seen <= 2 * v_me.beat_us and v_now - v_me.steady_since >= v_me.lease_us then
    -- One at a time, and no more of them than will be adopted: the others are for other sweepers. Those that held nothing
    -- have a bound of their own.
    v_jobs_next := v_jobs;
    v_bytes_next := v_bytes;
    open v_silent;
    while v_jobs_next < p_limit and v_bytes_next < p_bytes and cardinality(v_dead_ids) < greatest(p_limit, 100) loop
      fetch v_silent into v_dead_id;
      exit when not found;
      v_dead_ids := v_dead_ids || v_dead_id;
      select v_jobs_next + coalesce(sum(bit_count(l.open)), 0), v_bytes_next + coalesce(sum(l.bytes), 0) into v_jobs_next, v_bytes_next
        from :schema.lease l where l.worker = v_dead_id;
    end loop;
    close v_silent;
    -- One order for all leases, whoever held them: somebody else may be locking some of them by their fences.
    perform from :schema.lease l where l.worker = any(v_dead_ids) order by l.fence for update;
    for v_dead in select w.* from :schema.worker w where w.id = any(v_dead_ids) order by w.seen loop
      exit when v_jobs >= p_limit or v_bytes >= p_bytes;
      select v_jobs + a.jobs, v_bytes + a.bytes into v_jobs, v_bytes
        from :schema.adopt(p_worker, v_dead.id, v_dead.started, p_limit - v_jobs, p_bytes - v_bytes, v_now) a;
      if not exists (select from :schema.lease l where l.worker = v_dead.id) then
        delete from :schema.claim_request c where c.worker = v_dead.id;
        delete from :schema.idle i where i.worker = v_dead.id;
        delete from :schema.worker w where w.id = v_dead.id;
      end if;
    end loop;
    -- The safety net: a lease whose worker has no row would be looked for by nobody. From here on nothing is waited for,
    -- as its fence may be lower than those that are locked.
    for v_dead in select l.worker as id from :schema.lease l where not exists (select from :schema.worker w where w.id = l.worker)
        group by l.worker order by min(l.fence) limit p_limit loop
      exit when v_jobs >= p_limit or v_bytes >= p_bytes;
      select v_jobs + a.jobs, v_bytes + a.bytes into v_jobs, v_bytes
        from :schema.adopt(p_worker, v_dead.id, '[]', p_limit - v_jobs, p_bytes - v_bytes, v_now) a;
    end loop;
  end if;
  select '[' || string_agg('[' || :schema.lease_text(l) || ',' || l.crash || ',"' || l.open::text || '","' || coalesce(l.started::text, '')
      || '","' || coalesce(l.cancelled::text, '') || '"]', ',' order by l.fence) || ']'
    into leases from :schema.lease l where l.fence in (
      select b.fence from (select x.fence, sum(x.bytes) over w - x.bytes as before, sum(bit_count(x.open)) over w - bit_count(x.open) as jobs_before
        from :schema.lease x where x.worker = p_worker and x.request is null window w as (order by x.fence)) b
       where b.before < p_bytes and b.jobs_before < p_limit);
  return next;
end $$;

-- One dead worker's leases, whole ones until p_limit jobs or p_bytes are reached. The caller has locked the worker's row
-- and its leases; where it has no row, what somebody else holds is left to the next sweep.
create or replace function :schema.adopt(p_worker uuid, p_dead uuid, p_started json, p_limit int, p_bytes bigint, p_now bigint)
returns table (jobs int, bytes bigint) language plpgsql as $$
#variable_conflict use_variable
declare
  v_lease record;
  v_started varbit;
begin
  jobs := 0;
  bytes := 0;
  for v_lease in select l.fence, l.open, l.started, l.crash, l.bytes from :schema.lease l where l.worker = p_dead order by l.fence for update skip locked loop
    exit when jobs >= p_limit or bytes >= p_bytes;
    jobs := jobs + bit_count(v_lease.open)::int;
    bytes := bytes + v_lease.bytes;
    v_started := v_lease.started;
    if v_lease.crash is null then
      v_started := :schema.with(coalesce(v_lease.started, repeat('0', bit_length(v_lease.open))::varbit),
        array(select (s ->> 1)::int from json_array_elements(p_started) s where (s ->> 0)::bigint = v_lease.fence and (s ->> 1)::int < bit_length(v_lease.open)));
    end if;
    insert into :schema.revoked (fence, open, at) values (v_lease.fence, v_lease.open, p_now) on conflict do nothing;
    -- Facts of an earlier crash stay: nothing has run since.
    update :schema.lease l set fence = nextval(':schema_text.fence'), worker = p_worker, request = null, started = v_started,
        crash = coalesce(l.crash, json_build_object('worker', p_dead, 'at', p_now))
      where l.fence = v_lease.fence;
  end loop;
  return next;
end $$;
`
