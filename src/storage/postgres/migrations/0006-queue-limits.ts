/** Migration 6: limits of queues. Applied by migrate.ts; `:schema` is the only substitution. */

export const QUEUE_LIMITS = `
-- Only queues that have a limit have a row. A claim of such a queue locks it before it looks and takes.
create table :schema.queue_limit (
  queue int primary key,
  concurrency int,        -- jobs in leases at once; null: no limit
  rate_count int,         -- so many starts ...
  rate_us bigint,         -- ... in so many microseconds; null: no limit
  rate_burst int,
  rate_taken bigint not null default -4000000000000000000  -- until when its tokens are taken, see core/limits.ts; long ago: none is
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, parallel_workers = 0);

-- All jobs of a lease are of one queue: what is held of a queue is counted by it.
lock table :schema.lease in access exclusive mode;
alter table :schema.lease add column queue int;  -- null: claimed by functions of an older version
update :schema.lease set queue = (jobs[1]).lane / 64;
create index lease_queue on :schema.lease (queue);

-- A worker that a limit keeps idle needs no hint of an enqueue, but of what ends.
alter table :schema.idle add column limited boolean not null default false;
`
