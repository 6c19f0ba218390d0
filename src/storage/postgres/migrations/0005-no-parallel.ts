/** Migration 5: bounded reads are never done in parallel. Applied by migrate.ts; `:schema` is the only substitution. */

export const NO_PARALLEL = `
-- All reads of these are bounded, and none gains by a second process. But a table that grows and shrinks within seconds
-- looks large to the planner where it is nearly empty, and starting a process takes longer than the whole read.
alter table :schema.lease set (parallel_workers = 0);
alter table :schema.ready set (parallel_workers = 0);
alter table :schema.delayed set (parallel_workers = 0);
alter table :schema.dead set (parallel_workers = 0);
`
