/**
 * Fills the places of a schema directly, by statements over sets: millions of jobs in minutes, as they lie after days
 * of work. Two statements at a time, into the product's own tables and indexes. Called by backlog, memory and reads.
 */
import { noop, QUEUE } from './kinds.js'
import type { Place, Setting } from './setting.js'

/** How many jobs to put where. Ended ones are completed, all of the present day. */
export interface Filling {
  ready?: number
  delayed?: number
  ended?: number
  /** Those that do nothing, where it is not given. */
  kind?: { readonly name: string }
}

const CHUNK_ROWS = 250_000
const CONNECTIONS = 2

/** $1 and $2: the numbers of the rows. $3: lane or queue. $4: how many there are in all. $5: their kind. */
const ROWS = `select n, format('{"n":%s,"to":"user%s@example.com"}', n, n) as payload from generate_series($1::bigint, $2::bigint) n`
/** Version 7, rising with `us` and `n`: the order in which jobs are made is that of their ids, as in life. */
const id = (us: string): string =>
  `(lpad(to_hex((${us}) / 1000), 12, '0') || '7' || lpad(to_hex(n & 4095), 3, '0') || '8' || lpad(to_hex(n), 15, '0'))::uuid`

/** A microsecond apart, the last of them now: what was enqueued before goes first. */
const READY = `insert into :s.ready (lane, bytes, pos, id, kind, payload)
  select $3::int, octet_length(payload), at, ${id('at')}, $5::text, payload::json
  from (select *, (extract(epoch from now()) * 1000000)::bigint - $4::bigint + n as at from (${ROWS}) r) r`
/** Over the next day, the first of them in an hour: none becomes due meanwhile. */
const DELAYED = `insert into :s.delayed (lane, bytes, due, id, kind, payload, enqueued)
  select $3::int, octet_length(payload), at + 3600000000 + n * 82800000000 / $4::bigint, ${id('at')}, $5::text, payload::json, at
  from (select *, (extract(epoch from now()) * 1000000)::bigint as at from (${ROWS}) r) r`
/** Evenly from the begin of the day (UTC) to now, each a second after its enqueue. */
const ENDED = `insert into :s.ended (id, queue, state, level, kind, enqueued, started, ran_ms, ended, worker, payload)
  select ${id('(extract(epoch from ended) * 1000000)::bigint')}, $3::int / 64, 1, 4, $5::text, ended - interval '1 second', ended - interval '5 milliseconds', 5, ended,
    '01900000-0000-7000-8000-000000000000', payload::json
  from (select *, begun + n * (now() - begun) / $4::bigint as ended
    from (${ROWS}) r, (select date_trunc('day', now() at time zone 'UTC') at time zone 'UTC' as begun) d) r`

const STATEMENTS = { ready: READY, delayed: DELAYED, ended: ENDED } as const
type Table = keyof typeof STATEMENTS

/** Fills, and analyzes as the server's own upkeep would have done by then. */
export async function fill(setting: Setting, place: Place, filling: Filling): Promise<void> {
  await (await place.open()).close()
  const lane = (await queueId(place)) * 64 + 4
  const { kind = noop.all, ...counts } = filling
  for (const [table, count] of Object.entries(counts) as [Table, number][]) {
    if (count === 0) continue
    const began = performance.now()
    await fillTable(setting, place, { table, count, lane, kind: kind.name })
    await place.sql(`analyze :s.${table}`)
    const seconds = ((performance.now() - began) / 1_000).toFixed(1)
    // The figures are on stdout; this tells whoever waits what is going on.
    console.error(`filled ${table} with ${count.toLocaleString('en')} jobs in ${seconds} s`)
  }
  await setting.checkpoint()
}

async function fillTable(
  setting: Setting,
  place: Place,
  { table, count, lane, kind }: { table: Table; count: number; lane: number; kind: string },
): Promise<void> {
  const text = STATEMENTS[table].replaceAll(':s', `"${place.schema}"`)
  let next = 1
  const filler = async (): Promise<void> => {
    const client = await setting.beside()
    try {
      while (next <= count) {
        const from = next
        next += CHUNK_ROWS
        await client.query(text, [from, Math.min(count, from + CHUNK_ROWS - 1), lane, count, kind])
      }
    } finally {
      await client.end()
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, filler))
}

/** As an enqueue of priority 4 would have made it. */
async function queueId(place: Place): Promise<number> {
  await place.sql(
    'insert into :s.queue (id, name, levels) select coalesce(max(id), 0) + 1, $1, 16 from :s.queue on conflict (name) do nothing',
    [QUEUE],
  )
  const [row] = await place.sql('select id from :s.queue where name = $1', [QUEUE])
  return row!.id as number
}
