/** Migration 15: numbers of claims of 64 bits. Applied by migrate.ts; `:schema` is the only substitution. */

export const LONG_NUMBERS = `
-- Small tables, which hold what runs at this moment: all three at once, in the order in which a claim comes to them.
lock table :schema.worker, :schema.claim_request, :schema.lease in access exclusive mode;

-- Written anew row by row, and not by a change of the type: a table that is rewritten as a whole is empty to whoever has
-- an older snapshot, and somebody's transaction would enqueue a job again that runs.
alter table :schema.worker add column number bigint not null default 0;
update :schema.worker set number = known;
alter table :schema.worker drop column known;
alter table :schema.worker rename column number to known;

alter table :schema.claim_request add column number bigint;
update :schema.claim_request set number = request;
alter table :schema.claim_request drop column request;
alter table :schema.claim_request rename column number to request;
alter table :schema.claim_request add constraint claim_request_pkey primary key (worker, request);

alter table :schema.lease add column number bigint;  -- null: adopted by take-over; such a lease is never given back by a beat
update :schema.lease set number = request;
alter table :schema.lease drop column request;
alter table :schema.lease rename column number to request;
create index lease_worker on :schema.lease (worker, request);
`
