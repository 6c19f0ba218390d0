/** Functions: the one clock. Views and indexes depend on them, so they are made before the tables, too. */

export const CLOCK = `
-- The one clock: microseconds since 1970. STABLE, so that an index condition can use it; clock_timestamp() and not
-- now(), which in a caller's old transaction lies in the past. A test moves time by replacing this function.
create or replace function :schema.clock() returns bigint language plpgsql stable as $$
begin return (extract(epoch from clock_timestamp()) * 1000000)::bigint; end $$;

create or replace function :schema.instant(p_us bigint) returns timestamptz language sql stable parallel safe as
$$ select timestamptz 'epoch' + p_us * interval '1 microsecond' $$;
`
