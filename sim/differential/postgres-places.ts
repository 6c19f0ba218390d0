/** What is in the tables of a PostgreSQL store, in the form that all stores share. Used by postgres-side.ts. */
import { type Places, type Range, textOfLane } from './places.js'

/** One statement, so that no row is seen twice. `:s` is the schema. */
export const PLACES_SQL = `select json_build_object(
  'ready', (select coalesce(json_agg(json_build_array(q.name, r.lane % 64, r.id) order by r.lane, r.pos), '[]')
    from :s.ready r join :s.queue q on q.id = r.lane / 64),
  'delayed', (select coalesce(json_agg(json_build_array(d.id, d.due / 1000.0, d.lane & 32 = 32)), '[]') from :s.delayed d where d.lane & 16 = 0),
  'blocked', (select coalesce(json_agg(json_build_array(d.id, d.due / 1000.0, d.lane & 32 = 32)), '[]') from :s.delayed d where d.lane & 16 = 16),
  'permits', (select coalesce(json_agg(json_build_array(q.name, p.key, h)), '[]') from :s.permit p join :s.queue q on q.id = p.queue, unnest(p.holders) h),
  'expiring', (select coalesce(json_agg(json_build_array(w.id, e.at / 1000.0)), '[]') from :s.expiry e
    join (select id, history, spec, coalesce(enqueued, pos) as enqueued from :s.ready
      union all select id, history, spec, enqueued from :s.delayed) w on w.id = e.id
    where :s.may_expire(w.history) and abs(w.enqueued + (w.spec ->> 'expiresInMs')::bigint * 1000 - e.at) < 1000),
  'leases', (select coalesce(json_agg(json_build_object('fence', fence, 'worker', worker, 'request', request, 'alone', alone,
      'claimedAt', claimed / 1000.0, 'ids', ids, 'open', open::text,
      'started', coalesce(started, repeat('0', bit_length(open))::varbit)::text,
      'cancelled', coalesce(cancelled, repeat('0', bit_length(open))::varbit)::text, 'crashed', crash ->> 'worker')), '[]') from :s.lease),
  'deadFences', (select coalesce(json_agg(json_build_array(fence, open::text, at / 1000.0)), '[]') from :s.revoked),
  'keys', (select coalesce(json_agg(json_build_array(kind, key, id, payload_hash, expires / 1000.0)), '[]') from :s.idempotency),
  'workers', (select coalesce(json_agg(json_build_array(id, n, known, seen / 1000.0, main_seen / 1000.0, steady_since / 1000.0)), '[]')
    from :s.worker)) as places`

type Rows = Omit<Places, 'lanes' | 'deadFences'> & {
  ready: [queue: string, lane: number, id: string][]
  deadFences: [fence: number, open: string, at: number][]
}

const RANGES: readonly Range[] = ['backlog', 'front', 'suspects', 'fair']

export function readPlaces({ ready, deadFences, ...rows }: Rows, numberOf: (fence: number) => number): Places {
  const lanes: Places['lanes'] = {}
  for (const [queue, lane, id] of ready) {
    const name = textOfLane(queue, lane % 16, RANGES[lane >> 4]!)
    lanes[name] = [...(lanes[name] ?? []), id]
  }
  return {
    ...rows,
    lanes,
    leases: rows.leases.map((lease) => ({ ...lease, fence: numberOf(lease.fence) })),
    deadFences: deadFences.map(([fence, open, at]) => [numberOf(fence), ordinalsOf(open), at]),
  }
}

function ordinalsOf(bits: string): number[] {
  return [...bits].flatMap((bit, ordinal) => (bit === '1' ? [ordinal] : []))
}
