/** Migration 2: what a dead letter died of, to group by. Applied by migrate.ts; `:schema` is the only substitution. */

export const FINGERPRINTS = `
-- Of the last entry of the history; '' where that has none. A constant, so that no row is rewritten.
alter table :schema.dead add column fingerprint text not null default '';
`
