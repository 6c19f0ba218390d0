/**
 * Dead letters by what they died of. Groups are found by skipping from one to the next in the index dead_group, so that
 * a million letters of one failure cost what ten thousand do, to which they are counted. Used by inspect.ts, list-sql.ts and match-sql.ts.
 */
import type { Statement } from './database.js'
import { COUNT_EXACT_MAX } from './job-sql.js'

/** Groups that one call skips through: a store in which each letter has a failure of its own has millions of them. */
const GROUPS_MAX = 1_000
/** Where there are more groups, those of so many of the newest letters of each queue are looked at, too. */
const NEWEST_MAX = 200

/** The kinds and reasons of the letters with one fingerprint in one queue: nearly always one of each. */
export function groupsOfPrint(schema: string, queue: string, print: string): string {
  const from = `from ${schema}.dead d where d.queue = ${queue} and d.fingerprint = ${print}`
  const next = 'order by d.kind, d.reason limit 1'
  return `with recursive g as (
    (select d.kind, d.reason, 1 as n ${from} ${next})
    union all
    select s.kind, s.reason, g.n + 1 from g, lateral (select d.kind, d.reason ${from} and (d.kind, d.reason) > (g.kind, g.reason) ${next}) s
      where g.n < ${GROUPS_MAX}) select g.kind, g.reason from g`
}

/**
 * $1 and $2 the first and last number of a queue, $3 kind or null, $4 limit. What one is like is told by the newest of
 * a group; the count stops at a bound.
 */
export function groupsStatement(schema: string): Statement {
  const key = 'd.queue, d.fingerprint, d.kind, d.reason'
  const next = `order by ${key} limit 1`
  const same = 'd.queue = g.queue and d.fingerprint = g.fingerprint and d.kind = g.kind and d.reason = g.reason'
  return {
    name: 'lh_dead_groups',
    text: `with recursive g as (
      (select ${key}, 1 as n from ${schema}.dead d where d.queue between $1 and $2 ${next})
      union all
      select s.*, g.n + 1 from g, lateral (select ${key} from ${schema}.dead d
        where (${key}) > (g.queue, g.fingerprint, g.kind, g.reason) and d.queue <= $2 ${next}) s
      where g.n <= ${GROUPS_MAX}),
    -- A failure of this very minute has to be seen, wherever its fingerprint stands in the index.
    k as (select g.queue, g.fingerprint, g.kind, g.reason from g where g.n <= ${GROUPS_MAX}
      union select r.* from ${schema}.queue q, lateral (select ${key} from ${schema}.dead d where d.queue = q.id order by d.ended desc limit ${NEWEST_MAX}) r
        where q.id between $1 and $2 and (select max(n) from g) > ${GROUPS_MAX}),
    n as (select g.*, x.id, x.ended from k g, lateral (select d.id, d.ended from ${schema}.dead d where ${same} order by d.ended desc, d.id desc limit 1) x
      where $3::text is null or g.kind = $3 order by x.ended desc, x.id desc limit $4::int + 1)
    select g.queue, g.fingerprint, g.kind, g.reason, g.id, extract(epoch from g.ended)::float8 * 1000 as newest,
      extract(epoch from o.ended)::float8 * 1000 as oldest,
      (select count(*)::int from (select from ${schema}.dead d where ${same} limit ${COUNT_EXACT_MAX + 1}) b) as count,
      (select d.history -> 'entries' -> -1 from ${schema}.dead d where d.id = g.id) as last,
      (select max(n) > ${GROUPS_MAX} from g) as more
    from n g, lateral (select d.ended from ${schema}.dead d where ${same} order by d.ended, d.id limit 1) o
    order by g.ended desc, g.id desc`,
  }
}
