/**
 * Jobs by filter, in bounded steps: each statement looks at so many rows in the order of an index, from where the last
 * one came to, and answers those that match. So a filter that one in a million matches is many short statements and
 * no long one. Used by inspect.ts.
 */
import type { MatchRequest } from '../storage.js'
import { FIRST_ID, INT_MAX, instant } from './codec.js'
import type { Statement } from './database.js'
import { groupsOfPrint } from './dead-sql.js'

/** Rows that one step looks at. It stops sooner when it has found as many as it was asked for. */
const LOOKS_MAX = 2_000
/** A lease holds up to 100 jobs, and their payloads have to be unpacked with it. */
const LEASES_MAX = 100
/** What a page may hold. Constants, as a plan for any number of rows would be one for very many. */
const PAGE_MAX = 1_000

/** Behind every uuid. */
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

export type MatchStatements = ReturnType<typeof matchStatements>

export function matchStatements(schema: string) {
  const delayed = delayedRows(schema, '')
  const retrying = delayedRows(schema, RETRYING)
  const blocked = delayedRows(schema, BLOCKED)
  const running = runningRows(schema)
  return {
    ready: step(schema, 'lh_match_ready', readyRows(schema), WAITING),
    delayed: step(schema, 'lh_match_delayed', delayed, `${WAITING} and s.is_new`),
    retrying: step(schema, 'lh_match_retrying', retrying, WAITING),
    blocked: step(schema, 'lh_match_blocked', blocked, WAITING),
    running: step(
      schema,
      'lh_match_running',
      running,
      `${WAITING} and s.is_open and s.lane between $8 and $9`,
      nextLease(schema),
    ),
    deadOfQueue: step(schema, 'lh_match_dead_of_queue', deadRows(schema, 'x.queue = $8'), DEAD),
    deadOfAll: step(schema, 'lh_match_dead', deadRows(schema, '$8::int is null'), DEAD),
    // All of these match, so a page that is not full is the last one.
    deadOfOne: step(schema, 'lh_match_dead_of_one', deadOfOneRows(schema), DEAD, 'select null::text[]'),
  }
}

/** $1 kind or null, $2 limit, $3 and $4 instants or null, $5 to $7 the cursor, $8 and $9 which lanes or queue. */
const WAITING = `($1::text is null or s.kind = $1) and ($3::bigint is null or s.enqueued >= $3) and ($4::bigint is null or s.enqueued < $4)`
const DEAD = `($1::text is null or s.kind = $1) and ($9::text is null or s.reason = $9)`
const RETRYING = 'and d.history is not null and d.lane & 16 = 0'
const BLOCKED = 'and d.lane & 16 = 16'

/**
 * `rows`: what is looked at, in order, with `c`, the cursor of each. `rest`: from where the next step looks when this
 * one found too few; null where nothing is left.
 */
function step(schema: string, name: string, rows: string, wanted: string, rest?: string): Statement {
  const last = rest ?? `select s.c from (${rows}) s offset ${LOOKS_MAX - 1} limit 1`
  return {
    name,
    // Without an order of its own, so that it stops when it has enough: the rows come as they were ordered inside.
    text: `with m as materialized (select s.*, row_number() over () as n from (${rows}) s where ${wanted} limit $2)
      select (select json_agg(json_build_array(id, kind, queue, reason, c) order by n) from m) as matched,
        case when (select count(*) from m) < $2 then (${last}) end as rest, ${schema}.clock()::float8 as now_us`,
  }
}

function readyRows(schema: string): string {
  return `select r.id, r.kind, r.lane, r.lane / 64 as queue, null as reason, coalesce(r.enqueued, r.pos) as enqueued, array[r.lane::text, r.pos::text, r.id::text] as c
    from ${schema}.ready r where r.lane <= $9
      and (r.lane, r.pos, r.id) > (coalesce($5::int, $8), coalesce($6::bigint, -1), coalesce($7::uuid, '${FIRST_ID}'))
    order by r.lane, r.pos, r.id limit ${LOOKS_MAX}`
}

function delayedRows(schema: string, condition: string): string {
  return `select d.id, d.kind, d.lane, d.lane / 64 as queue, null as reason, d.enqueued, d.history is null and d.lane & 16 = 0 as is_new, array[d.lane::text, d.due::text, d.id::text] as c
    from ${schema}.delayed d where d.lane <= $9 ${condition}
      and (d.lane, d.due, d.id) > (coalesce($5::int, $8), coalesce($6::bigint, -1), coalesce($7::uuid, '${FIRST_ID}'))
    order by d.lane, d.due, d.id limit ${LOOKS_MAX}`
}

/** By lease and place in it. */
function runningRows(schema: string): string {
  return `select j.id, j.kind, j.lane, j.lane / 64 as queue, null as reason, coalesce(j.enqueued, j.pos) as enqueued,
      get_bit(l.open, j.ordinality::int - 1) = 1 as is_open, array[l.fence::text, j.ordinality::text, ''] as c
    from (select * from ${schema}.lease l where l.fence >= coalesce($5::bigint, 0) order by l.fence limit ${LEASES_MAX}) l, unnest(l.jobs) with ordinality j
    where (l.fence, j.ordinality) > (coalesce($5::bigint, 0), coalesce($6::bigint, 0)) and $7::text is not distinct from $7::text
    order by l.fence, j.ordinality`
}

function nextLease(schema: string): string {
  return `select array[l.fence::text, '0', ''] from ${schema}.lease l where l.fence >= coalesce($5::bigint, 0) order by l.fence offset ${LEASES_MAX} limit 1`
}

/** $10 is the fingerprint, of which nothing is asked here. */
function deadRows(schema: string, queue: string): string {
  return `select x.id, x.kind, x.queue, x.reason, ${cursor('x')} as c
    from ${schema}.dead x where ${queue} and ${oldestFirst(schema, 'x')} and $7::text is not distinct from $7::text and $10::text is null
    order by x.ended, x.id limit ${LOOKS_MAX}`
}

/** Each group with the fingerprint is read in its order, and they are merged. $8 null: in all queues. */
function deadOfOneRows(schema: string): string {
  return `select x.id, x.kind, x.queue, x.reason, ${cursor('x')} as c
    from (select q.id from ${schema}.queue q where $8::int is null or q.id = $8) q, lateral (${groupsOfPrint(schema, 'q.id', '$10')}) g, lateral (
      select x.id, x.kind, x.queue, x.reason, x.ended from ${schema}.dead x
      where x.queue = q.id and x.fingerprint = $10 and x.kind = g.kind and x.reason = g.reason and ${oldestFirst(schema, 'x')}
      order by x.ended, x.id limit ${PAGE_MAX}) x
    where ($1::text is null or g.kind = $1) and ($9::text is null or g.reason = $9) and $7::text is not distinct from $7::text
    order by x.ended, x.id limit ${PAGE_MAX}`
}

function cursor(row: string): string {
  return `array[${row}.ended::text, ${row}.id::text, '']`
}

/**
 * From the cursor or, on the first page, from the instant $3 on: one bound below and one above. Of two on one side the
 * planner would think that hardly anything lies between them, and sort what it takes for a handful of rows.
 */
function oldestFirst(schema: string, row: string): string {
  return `(${row}.ended, ${row}.id) > (coalesce($5::timestamptz, ${schema}.instant($3::bigint - 1), '-infinity'), coalesce($6::uuid, '${LAST_ID}'))
      and ${row}.ended < coalesce(${schema}.instant($4::bigint), 'infinity')`
}

/** What one step runs. `queue`: its number; undefined: all queues. */
export function matchStep(
  statements: MatchStatements,
  request: MatchRequest,
  queue: number | undefined,
  from: readonly string[],
): { statement: Statement; values: unknown[]; limit: number } {
  const [a = null, b = null, c = null] = from
  const { kind = null, since, before } = request
  const limit = Math.min(request.limit, PAGE_MAX)
  const common = [kind, limit, instant(since), instant(before), a, b, c]
  if (request.state !== 'dead') {
    const lanes = queue === undefined ? [0, INT_MAX] : [queue * 64, queue * 64 + 63]
    return { statement: statements[request.state], values: [...common, ...lanes], limit }
  }
  const { reason = null, fingerprint } = request
  const everywhere = queue === undefined ? statements.deadOfAll : statements.deadOfQueue
  const print = fingerprint === undefined ? null : (fingerprint ?? '')
  return {
    statement: print === null ? everywhere : statements.deadOfOne,
    values: [...common, queue ?? null, reason, print],
    limit,
  }
}
