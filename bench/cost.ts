/**
 * What a piece of work has cost: round trips, rows written, WAL, dead tuples, CPU of the server and of the process that
 * used it. Counted by the server itself and by the driver. Called by the scenarios around what they measure.
 */
import { significant } from './figures.js'
import { postmasterOf, serverCpuUs } from './proc.js'
import { roundTrips } from './round-trips.js'
import type { Place, Setting } from './setting.js'

/** Of the process or processes that did the work. */
export interface ClientCost {
  cpuUs: number
  roundTrips: number
}

export interface Cost {
  roundTrips: number
  rowsInserted: number
  rowsUpdated: number
  rowsDeleted: number
  toastRowWrites: number
  walBytes: number
  /** Left behind at the end: what vacuum did not clean up meanwhile. */
  deadTuples: number
  serverCpuUs: number | null
  clientCpuUs: number
}

export type CostPerJob = Readonly<Record<string, number | null>>

interface Sample {
  walBytes: number
  serverCpuUs: number | null
  inserted: number
  updated: number
  deleted: number
  toast: number
  dead: number
}

/**
 * Runs `work` and says what it has cost. The server writes its counts down when a connection ends, so no connection
 * may be open in the schema when `work` begins, and none when it ends.
 */
export async function costed<T>(
  setting: Setting,
  place: Place,
  work: () => Promise<{ result: T; client: ClientCost }>,
): Promise<{ result: T; cost: Cost }> {
  const before = await sample(setting, place)
  const { result, client } = await work()
  const after = await sample(setting, place)
  const cost: Cost = {
    roundTrips: client.roundTrips,
    rowsInserted: after.inserted - before.inserted,
    rowsUpdated: after.updated - before.updated,
    rowsDeleted: after.deleted - before.deleted,
    toastRowWrites: after.toast - before.toast,
    walBytes: after.walBytes - before.walBytes,
    deadTuples: Math.max(0, after.dead - before.dead),
    serverCpuUs: difference(after.serverCpuUs, before.serverCpuUs),
    clientCpuUs: client.cpuUs,
  }
  return { result, cost }
}

/** What this very process spends on `work`. */
export async function ownCost<T>(work: () => Promise<T>): Promise<{ result: T; client: ClientCost }> {
  const sentBefore = roundTrips()
  const cpuBefore = process.cpuUsage()
  const result = await work()
  const { user, system } = process.cpuUsage(cpuBefore)
  return { result, client: { cpuUs: user + system, roundTrips: roundTrips() - sentBefore } }
}

/** For a job; of the rounds together where there were several. The client is named by what it does. */
export function costPerJob(costs: readonly Cost[], jobs: number, client: 'worker' | 'producer' | 'client'): CostPerJob {
  const total = (key: keyof Cost): number | null =>
    costs.reduce<number | null>((sum, cost) => (sum === null || cost[key] === null ? null : sum + cost[key]), 0)
  const each = (key: keyof Cost): number | null => {
    const sum = total(key)
    return sum === null ? null : significant(sum / jobs, 3)
  }
  const rows = (total('rowsInserted') ?? 0) + (total('rowsUpdated') ?? 0) + (total('rowsDeleted') ?? 0)
  return {
    roundTrips: each('roundTrips'),
    rowWrites: significant(rows / jobs, 3),
    rowsInserted: each('rowsInserted'),
    rowsUpdated: each('rowsUpdated'),
    rowsDeleted: each('rowsDeleted'),
    toastRowWrites: each('toastRowWrites'),
    walBytes: each('walBytes'),
    deadTuples: each('deadTuples'),
    serverCpuUs: each('serverCpuUs'),
    [`${client}CpuUs`]: each('clientCpuUs'),
  }
}

/** Microseconds of CPU of the server since its start; null where it cannot be seen. */
export async function serverCpu(setting: Setting): Promise<number | null> {
  const [row] = await setting.sql('select pg_backend_pid() as pid')
  const postmaster = await postmasterOf(row!.pid as number)
  return postmaster === null ? null : serverCpuUs(postmaster)
}

export function difference(after: number | null, before: number | null): number | null {
  return after === null || before === null ? null : after - before
}

/** WAL is of the whole server: on one that others use it is not ours alone. */
export async function walPosition(setting: Setting): Promise<number> {
  const [row] = await setting.sql("select (pg_current_wal_insert_lsn() - '0/0')::float8 as bytes")
  return row!.bytes as number
}

async function sample(setting: Setting, place: Place): Promise<Sample> {
  await setting.left()
  // What the connection beside has done, filled for one, shall be in the counts before and not after.
  await setting.sql('select pg_stat_force_next_flush()')
  const [rows] = await setting.sql(
    `select coalesce(sum(t.n_tup_ins) filter (where not toast), 0)::float8 as inserted,
      coalesce(sum(t.n_tup_upd) filter (where not toast), 0)::float8 as updated,
      coalesce(sum(t.n_tup_del) filter (where not toast), 0)::float8 as deleted,
      coalesce(sum(t.n_tup_ins + t.n_tup_upd + t.n_tup_del) filter (where toast), 0)::float8 as toast,
      coalesce(sum(t.n_dead_tup), 0)::float8 as dead
    from (select s.*, c.relkind = 't' as toast from pg_class c join pg_stat_all_tables s on s.relid = c.oid
      where c.oid in (select k.oid from pg_class k join pg_namespace n on n.oid = k.relnamespace where n.nspname = $1
        union all select k.reltoastrelid from pg_class k join pg_namespace n on n.oid = k.relnamespace where n.nspname = $1)) t`,
    [place.schema],
  )
  const counts = rows as unknown as Omit<Sample, 'walBytes' | 'serverCpuUs'>
  return { ...counts, walBytes: await walPosition(setting), serverCpuUs: await serverCpu(setting) }
}
