/**
 * Ways to break one promise of a store, in a schema of verify's own and nowhere else: so that anybody can see that
 * verify would notice. Triggers, as they fit whatever the functions of the schema look like. Called by ground.ts.
 */

export const SABOTAGE_NAMES = ['fence', 'take-over', 'settle'] as const
export type SabotageName = (typeof SABOTAGE_NAMES)[number]

export interface Sabotage {
  /** What it does, for people. */
  sentence: string
  /** SQL with `:schema` for the name of the schema; each a statement of its own. */
  statements: readonly string[]
}

export const SABOTAGES: Record<SabotageName, Sabotage> = {
  fence: {
    sentence: 'a job that is taken over keeps its old fence, so that the worker that lost it can still settle it',
    statements: [
      `create function :schema.sabotaged_lease() returns trigger language plpgsql as $$
        begin new.fence := old.fence; return new; end $$`,
      `create trigger sabotage before update on :schema.lease for each row when (new.fence <> old.fence)
        execute function :schema.sabotaged_lease()`,
      `create function :schema.sabotaged_revoked() returns trigger language plpgsql as $$ begin return null; end $$`,
      `create trigger sabotage before insert on :schema.revoked for each row execute function :schema.sabotaged_revoked()`,
    ],
  },
  'take-over': {
    sentence: 'whoever takes a lease over forgets the first job in it',
    statements: [
      `create function :schema.sabotaged_lease() returns trigger language plpgsql as $$
        begin
          if bit_count(new.open) <= 1 then delete from :schema.lease where fence = new.fence;
          else update :schema.lease set open = set_bit(open, position(B'1' in open) - 1, 0) where fence = new.fence;
          end if;
          return null;
        end $$`,
      `create trigger sabotage after update on :schema.lease for each row when (new.worker <> old.worker)
        execute function :schema.sabotaged_lease()`,
    ],
  },
  settle: {
    sentence: 'a failed attempt is settled with "ok", and its retry is not stored',
    statements: [
      `create function :schema.sabotaged_delayed() returns trigger language plpgsql as $$ begin return null; end $$`,
      `create trigger sabotage before insert on :schema.delayed for each row when (new.history is not null)
        execute function :schema.sabotaged_delayed()`,
    ],
  },
}
