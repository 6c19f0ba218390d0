/**
 * What the server itself can do: fixed statements on a table with one index, on the same server in the same run. It
 * knows nothing of leases, fences or records; what a queue does on top is the difference. Called by enqueue and drain.
 */
import pg from 'pg'
import { newJobId } from '../src/index.js'
import { type Cost, costed, ownCost } from './cost.js'
import { payloadOf } from './kinds.js'
import type { Place, Setting } from './setting.js'

/** As many as enqueueMany sends in a statement, and as many as a claim brings. */
export const BOUND_INSERT_ROWS = 1_000
export const BOUND_DELETE_ROWS = 500

const TABLE = `create table :s.bound (id uuid not null, lane int not null, kind text not null, payload json not null);
  create index bound_order on :s.bound (lane, id)`
const INSERT = `insert into :s.bound (id, lane, kind, payload)
  select u.id, 68, 'bench.noop', u.payload
  from rows from (unnest($1::uuid[]), json_array_elements($2::json)) u(id, payload)`
const DELETE = `with d as (select ctid from :s.bound where lane = 68 order by id limit ${BOUND_DELETE_ROWS} for update skip locked)
  delete from :s.bound where ctid = any(array(select ctid from d)) returning id, kind, payload`

/** What is done, for the reader of the figures. */
export const BOUND_ENQUEUE = `one connection inserts batches of ${BOUND_INSERT_ROWS} rows (id, lane, kind, payload; one index), one statement and commit each, its parameters made before`
export const BOUND_DRAIN = `each connection deletes batches of ${BOUND_DELETE_ROWS} rows in order (SKIP LOCKED), one statement and commit each, and the driver parses what they return`

export interface Bound {
  jobs: number
  ms: number
  cost: Cost
}

export async function enqueueBound(setting: Setting, jobs: number): Promise<Bound> {
  return inTable(setting, async (place) => {
    const batches = batchesOf(jobs)
    const { result, cost } = await costed(setting, place, () =>
      ownCost(() => withClients(place, 1, ([client]) => timed(() => insertAll(place, client!, batches)))),
    )
    return { jobs, ms: result, cost }
  })
}

/** The rows are put there before, by the statements of `enqueueBound`. */
export async function drainBound(setting: Setting, jobs: number, connections: number): Promise<Bound> {
  return inTable(setting, async (place) => {
    await withClients(place, 1, ([client]) => insertAll(place, client!, batchesOf(jobs)))
    await place.sql('analyze :s.bound')
    const { result, cost } = await costed(setting, place, () =>
      ownCost(() => withClients(place, connections, (clients) => drainedBy(place, clients))),
    )
    if (result.deleted !== jobs) throw new Error(`the bound deleted ${result.deleted} of ${jobs} rows`)
    return { jobs, ms: result.ms, cost }
  })
}

async function drainedBy(place: Place, clients: pg.Client[]): Promise<{ deleted: number; ms: number }> {
  let deleted = 0
  const ms = await timed(async () => {
    const counts = await Promise.all(clients.map((client) => deleteAll(place, client)))
    deleted = counts.reduce((sum, count) => sum + count, 0)
  })
  return { deleted, ms }
}

async function deleteAll(place: Place, client: pg.Client): Promise<number> {
  const text = DELETE.replaceAll(':s', `"${place.schema}"`)
  for (let deleted = 0; ; ) {
    const { rows } = await client.query({ name: 'bound_delete', text, values: [] })
    if (rows.length === 0) return deleted
    deleted += rows.length
  }
}

async function insertAll(place: Place, client: pg.Client, batches: string[][]): Promise<void> {
  const text = INSERT.replaceAll(':s', `"${place.schema}"`)
  for (const values of batches) await client.query({ name: 'bound_insert', text, values })
}

function batchesOf(jobs: number): string[][] {
  const batches: string[][] = []
  for (let from = 0; from < jobs; from += BOUND_INSERT_ROWS) {
    const size = Math.min(BOUND_INSERT_ROWS, jobs - from)
    const ids = Array.from({ length: size }, () => newJobId())
    const payloads = Array.from({ length: size }, (_, n) => payloadOf(from + n))
    batches.push([`{${ids.join(',')}}`, JSON.stringify(payloads)])
  }
  return batches
}

async function inTable<T>(setting: Setting, work: (place: Place) => Promise<T>): Promise<T> {
  const place = setting.place()
  try {
    await place.sql(`create schema :s; ${TABLE}`)
    await setting.checkpoint()
    return await work(place)
  } finally {
    await place.drop()
  }
}

async function withClients<T>(place: Place, count: number, work: (clients: pg.Client[]) => Promise<T>): Promise<T> {
  const clients = Array.from({ length: count }, () => new pg.Client(place.url))
  try {
    await Promise.all(clients.map((client) => client.connect()))
    return await work(clients)
  } finally {
    await Promise.all(clients.map((client) => client.end().catch(() => {})))
  }
}

async function timed(work: () => Promise<void>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}
