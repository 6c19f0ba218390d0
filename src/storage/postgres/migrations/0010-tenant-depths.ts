/** Migration 10: limits of what may wait of each tenant. Applied by migrate.ts; `:schema` is the only substitution. */

export const TENANT_DEPTHS = `
alter table :schema.queue_limit
  add column depth_tenant int;   -- jobs of each tenant that may wait, inside of depth; null: no limit
`
