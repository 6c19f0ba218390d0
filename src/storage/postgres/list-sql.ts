/**
 * The statements of lists. A page begins where the one before ended: what stands in its cursor bounds the index scan, so
 * that the thousandth page costs what the first one does. Used by inspect.ts.
 */
import type { JobState } from '../../core/job.js'
import type { ListRequest } from '../storage.js'
import { FIRST_ID, instant } from './codec.js'
import type { Statement } from './database.js'
import { groupsOfPrint } from './dead-sql.js'
import { DEAD, DELAYED, ENDED, leased, READY } from './job-sql.js'

export interface ListStatement extends Statement {
  /** What it takes. A first page has no cursor. */
  values(request: ListRequest, cursor: readonly string[]): unknown[]
}

/** $1 queue or null, $2 kind or null, $3 limit, then the cursor, then more filters. */
export function listStatements(schema: string): Record<JobState | 'dead of one failure', ListStatement> {
  // In parentheses as a whole: what follows is joined to it.
  const queues = `(select q.id, q.levels from ${schema}.queue q where $1::text is null or q.name = $1) q`
  return {
    ready: ready(schema, queues),
    delayed: waiting(schema, queues, 'lh_list_delayed', 'd.history is null'),
    retrying: waiting(schema, queues, 'lh_list_retrying', 'd.history is not null'),
    blocked: waiting(schema, queues, 'lh_list_blocked', 'true', '(values (16), (48))'),
    running: running(schema),
    completed: ended(schema, queues, 'lh_list_completed', 1),
    cancelled: ended(schema, queues, 'lh_list_cancelled', 2),
    dead: dead(schema, queues),
    'dead of one failure': deadOfOne(schema, queues),
  }
}

function ready(schema: string, queues: string): ListStatement {
  const lane = 'q.id * 64 + g.n + v.n'
  return {
    name: 'lh_list_ready',
    // Fair lists, suspects and front ranges have higher lane numbers and come before the backlog of their level.
    text: `select r.*, array[r.lane::text, r.pos::text, r.id::text] as cursor from ${queues}, (values (0), (16), (32), (48)) g(n), generate_series(0, 15) v(n), lateral (
        select ${READY}, r.lane, r.pos from ${schema}.ready r where r.lane = ${lane} and ($2::text is null or r.kind = $2)
          and (r.pos, r.id) > (case ${lane} when $4::int then $5::bigint else -1 end, case ${lane} when $4::int then $6::uuid else '${FIRST_ID}' end)
        order by r.pos, r.id limit $3) r
      where (q.levels >> v.n) & 1 = 1
        and ($4::int is null or (q.id, -v.n, -g.n) >= ($4::int / 64, -($4::int % 16), -(($4::int % 64) / 16 * 16)))
      order by q.id, v.n desc, g.n desc, r.pos, r.id limit $3`,
    values: (request, [lane = null, pos = null, id = null]) => [...base(request), lane, pos, id],
  }
}

function waiting(
  schema: string,
  queues: string,
  name: string,
  condition: string,
  ranges = '(values (0), (32))',
): ListStatement {
  return {
    name,
    text: `select d.*, array[d.at, d.id::text] as cursor from ${queues}, ${ranges} r(n), generate_series(0, 15) v(n), lateral (
        select ${DELAYED}, d.due::text as at, d.due as instant from ${schema}.delayed d
        where d.lane = q.id * 64 + r.n + v.n and ${condition} and ($2::text is null or d.kind = $2)
          and (d.due, d.id) > (coalesce($4::bigint, -1), coalesce($5::uuid, '${FIRST_ID}'))
        order by d.due, d.id limit $3) d where (q.levels >> v.n) & 1 = 1 order by d.instant, d.id limit $3`,
    values: (request, [due = null, id = null]) => [...base(request), due, id],
  }
}

function running(schema: string): ListStatement {
  return {
    name: 'lh_list_running',
    text: `select ${leased(schema)}, array[l.fence::text, j.ordinality::text] as cursor from ${schema}.lease l, unnest(l.jobs) with ordinality j
      where get_bit(l.open, j.ordinality::int - 1) = 1 and ($1::text is null or j.lane / 64 = (select id from ${schema}.queue where name = $1))
        and ($2::text is null or j.kind = $2) and (l.fence, j.ordinality) > (coalesce($4::bigint, 0), coalesce($5::bigint, 0))
      order by l.fence, j.ordinality limit $3`,
    values: (request, [fence = null, ordinality = null]) => [...base(request), fence, ordinality],
  }
}

function ended(schema: string, queues: string, name: string, state: number): ListStatement {
  return {
    name,
    text: `select e.*, array[e.at, e.id::text] as cursor from ${queues}, lateral (
        select ${ENDED}, e.ended::text as at, e.ended as instant from ${schema}.ended e
        where e.queue = q.id and e.state = ${state} and ($2::text is null or e.kind = $2) and ${newestFirst(schema, 'e')}
        order by e.ended desc, e.id desc limit $3) e order by e.instant desc, e.id desc limit $3`,
    values: endedValues,
  }
}

function dead(schema: string, queues: string): ListStatement {
  return {
    name: 'lh_list_dead',
    text: `select x.*, array[x.at, x.id::text] as cursor from ${queues}, lateral (
        select ${DEAD}, x.ended::text as at, x.ended as instant from ${schema}.dead x
        where x.queue = q.id and ($2::text is null or x.kind = $2) and ($8::text is null or x.reason = $8) and ${newestFirst(schema, 'x')}
        order by x.ended desc, x.id desc limit $3) x order by x.instant desc, x.id desc limit $3`,
    values: (request, cursor) => [...endedValues(request, cursor), request.reason ?? null],
  }
}

/** Where the fingerprint is named: few of millions may have it, and each group of it is read in its order. */
function deadOfOne(schema: string, queues: string): ListStatement {
  return {
    name: 'lh_list_dead_of_one',
    text: `select x.*, array[x.at, x.id::text] as cursor from ${queues}, lateral (${groupsOfPrint(schema, 'q.id', '$9')}) g, lateral (
        select ${DEAD}, x.ended::text as at, x.ended as instant from ${schema}.dead x
        where x.queue = q.id and x.fingerprint = $9 and x.kind = g.kind and x.reason = g.reason and ${newestFirst(schema, 'x')}
        order by x.ended desc, x.id desc limit $3) x
      where ($2::text is null or g.kind = $2) and ($8::text is null or g.reason = $8) order by x.instant desc, x.id desc limit $3`,
    values: (request, cursor) => [...endedValues(request, cursor), request.reason ?? null, request.fingerprint ?? ''],
  }
}

/** The cursor $4, $5 or, on the first page, the instant $7; not before the instant $6. One bound on each side: see match-sql.ts. */
function newestFirst(schema: string, row: string): string {
  return `(${row}.ended, ${row}.id) < (coalesce($4::timestamptz, ${schema}.instant($7::bigint), 'infinity'), coalesce($5::uuid, '${FIRST_ID}'))
          and ${row}.ended >= coalesce(${schema}.instant($6::bigint), '-infinity')`
}

function base({ queue, kind, limit }: ListRequest): unknown[] {
  return [queue ?? null, kind ?? null, limit]
}

function endedValues(request: ListRequest, [at, id]: readonly string[]): unknown[] {
  const { endedAfter, endedBefore } = request
  return [...base(request), at ?? null, id ?? null, instant(endedAfter), instant(endedBefore)]
}
