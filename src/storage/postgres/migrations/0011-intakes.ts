/** Migration 11: how many jobs producers may bring into a queue. Applied by migrate.ts; `:schema` is the only substitution. */

export const INTAKES = `
-- How far the tokens are taken stands in a sequence of the queue, intake_<its number>: see functions/intake.ts.
alter table :schema.queue_limit
  add column intake_count int,   -- so many jobs ...
  add column intake_us bigint,   -- ... in so many microseconds; null: no limit
  add column intake_burst int;
`
