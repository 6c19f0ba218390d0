/**
 * Deletes idempotency keys whose retention is over and whose job has ended. Called by pruning.ts.
 */

import { FIRST_ID } from './codec.js'
import type { Database, Statement } from './database.js'

/**
 * Keys that one step looks at. A dead letter keeps its key for as long as it is there, so many keys that are over may have
 * to stay; one step does not go through all of them, but goes on where the one before has stopped.
 */
const LOOKED_MAX = 5_000

interface Place {
  us: string
  id: string
}

const START: Place = { us: '0', id: FIRST_ID }

export class KeyPruning {
  private readonly step: Statement
  private from = START

  constructor(
    private readonly database: Database,
    schema: string,
  ) {
    this.step = { name: 'lh_prune_keys', text: stepText(schema) }
  }

  /** Deletes at most `limit` keys; how many. At the end it begins anew the next time. */
  async prune(limit: number): Promise<number> {
    const { us, id } = this.from
    const [row] = await this.database.run(this.step, [limit, us, id])
    const { deleted, last } = row as { deleted: number; last: Place | null }
    this.from = last ?? START
    return deleted
  }
}

/**
 * $1 the limit, $2 and $3 from where on. Whether somebody runs its job is asked only of keys that nothing else holds, as
 * it reads all leases.
 */
function stepText(schema: string): string {
  const no = (table: string): string => `not exists (select from ${schema}.${table} x where x.id = w.id)`
  return `with w as materialized (select i.ctid as c, i.id, i.expires from ${schema}.idempotency i
      where i.expires >= $2::bigint and i.expires <= ${schema}.clock() and (i.expires, i.id) > ($2::bigint, $3::uuid)
      order by i.expires, i.id limit ${LOOKED_MAX}),
    u as materialized (select w.* from w where ${no('ready')} and ${no('delayed')} and ${no('dead')}),
    f as materialized (select u.* from u where not ${schema}.is_leased(u.id) order by u.expires, u.id limit $1),
    k as (delete from ${schema}.idempotency where ctid = any(array(select i.ctid from ${schema}.idempotency i
      where i.ctid = any(array(select f.c from f)) for update skip locked)) returning 1)
    select (select count(*) from k)::int as deleted, case
      when (select count(*) from f) = $1 then (select json_build_object('us', f.expires::text, 'id', f.id) from f order by f.expires desc, f.id desc limit 1)
      when (select count(*) from w) = ${LOOKED_MAX} then (select json_build_object('us', w.expires::text, 'id', w.id) from w order by w.expires desc, w.id desc limit 1)
      end as last`
}
