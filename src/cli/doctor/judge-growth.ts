/** Judges what grows: old snapshots, dead rows, tables, day tables. Facts in, findings out. Called by checks.ts. */
import { formatDuration } from '../../core/duration.js'
import type { DatabaseSettings, DayFacts, SnapshotHolder, TableFacts } from '../../storage/storage.js'
import { printable } from '../printable.js'
import { type Fault, type Finding, findingOf, many } from './finding.js'

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

/** By either: a quiet database shows it by time, a busy one by what has died since. */
const HELD = {
  warn: { openMs: 5 * MINUTE_MS, transactions: 100_000 },
  fail: { openMs: 60 * MINUTE_MS, transactions: 5_000_000 },
} as const
const HOLDERS_SHOWN = 5

export function judgeHolders(holders: readonly SnapshotHolder[]): Finding {
  const old = holders.filter((one) => isHeld(one, HELD.warn))
  const measured = { holders: old }
  if (old.length === 0)
    return { verdict: 'ok', text: 'nobody keeps the remains of old rows from being removed', measured }
  return {
    verdict: old.some((one) => isHeld(one, HELD.fail)) ? 'fail' : 'warn',
    text: 'rows that have died since cannot be removed, and claims get slower, because of:',
    measured,
    items: old.slice(0, HOLDERS_SHOWN).map(holderText),
    fix: [...new Set(old.map(({ what }) => FIXES[what]))].join('; '),
  }
}

function isHeld({ openMs, transactions }: SnapshotHolder, least: { openMs: number; transactions: number }): boolean {
  return transactions >= least.transactions || (openMs !== null && openMs >= least.openMs)
}

const FIXES: Record<SnapshotHolder['what'], string> = {
  connection: 'end it (select pg_terminate_backend(PID)), and set idle_in_transaction_session_timeout',
  'prepared transaction': "commit prepared 'NAME' or rollback prepared 'NAME', by whoever knows what became of it",
  'replication slot': "select pg_drop_replication_slot('NAME'), if its standby or consumer will not come back",
  standby: 'long queries on a standby with hot_standby_feedback do this: end them there',
}

function holderText({ what, name, application, user, state, openMs, transactions }: SnapshotHolder): string {
  const who = [application, user].filter((part) => part !== '').join(', ')
  const parts = [
    what === 'connection' ? `pid ${name}` : `${what} ${name}`,
    who === '' ? '' : `(${who})`,
    state,
    openMs === null ? '' : `for ${formatDuration(openMs)}`,
    `${many(transactions, 'transaction')} ago`,
  ]
  return printable(parts.filter((part) => part !== '').join(' '))
}

/** Tables whose rows come and go: the ones that claims and beats read. */
const HOT = ['ready', 'delayed', 'lease', 'worker', 'claim_request', 'queue', 'idle']
/** Autovacuum lags behind when it has not come by so many times its own threshold, and that is much. */
const LAG_FACTOR = 4
const DEAD_ROWS_MIN = 100_000
const DEAD_ROWS_FAIL = 5_000_000

export function judgeVacuum(tables: readonly TableFacts[], { autovacuum }: DatabaseSettings): Finding {
  const faults: Fault[] = []
  if (!autovacuum)
    faults.push({
      verdict: 'fail',
      text: 'autovacuum is off for the whole server: tables only grow, and claims get slower',
      fix: 'set autovacuum = on and track_counts = on',
    })
  for (const { table } of tables.filter((one) => !one.autovacuum && HOT.includes(one.table)))
    faults.push({
      verdict: 'warn',
      text: `autovacuum is disabled for table ${table}`,
      fix: `alter table ${table} reset (autovacuum_enabled)`,
    })
  for (const { table, deadRows, liveRows } of tables.filter(lags))
    faults.push({
      verdict: deadRows >= DEAD_ROWS_FAIL ? 'fail' : 'warn',
      text: `table ${table} has ${many(deadRows, 'dead row')} beside ${many(liveRows, 'live one')}`,
      fix: 'look for old snapshots first; then vacuum it, and give autovacuum more to work with',
    })
  const dead = tables.reduce((sum, { deadRows }) => sum + deadRows, 0)
  const told = tables.filter(({ table, deadRows }) => HOT.includes(table) || deadRows > 0)
  return findingOf(faults, `autovacuum keeps up: ${many(dead, 'dead row')} in all tables`, { autovacuum, tables: told })
}

function lags({ deadRows, vacuumFrom }: TableFacts): boolean {
  return deadRows >= DEAD_ROWS_MIN && deadRows >= LAG_FACTOR * vacuumFrom
}

const BYTES_MIN = 256 * 1024 ** 2
/** A row of a job is rarely more; what is beyond is empty room. */
const BYTES_OF_ROW_MAX = 64 * 1024

export function judgeGrowth(tables: readonly TableFacts[]): Finding {
  const faults = tables
    .filter(
      ({ table, bytes, liveRows }) => HOT.includes(table) && bytes >= BYTES_MIN && bytes > liveRows * BYTES_OF_ROW_MAX,
    )
    .map(
      ({ table, bytes, liveRows }): Fault => ({
        verdict: 'warn',
        text: `table ${table} takes ${size(bytes)} for ${many(liveRows, 'row')}`,
        fix: 'a backlog was there once, and its room is used again; to give it back: VACUUM FULL, while no worker runs',
      }),
    )
  const days = tables.filter(({ table }) => table.startsWith('ended_'))
  const sum = (some: readonly TableFacts[]): number => some.reduce((total, { bytes }) => total + bytes, 0)
  const bytes = { all: sum(tables), ready: bytesOf(tables, 'ready'), ended: sum(days), dead: bytesOf(tables, 'dead') }
  const well = `${size(bytes.all)} in all: ready ${size(bytes.ready)}, records ${size(bytes.ended)} in ${many(days.length, 'day')}, dead letters ${size(bytes.dead)}`
  return findingOf(faults, well, { bytes })
}

function bytesOf(tables: readonly TableFacts[], name: string): number {
  return tables.find(({ table }) => table === name)?.bytes ?? 0
}

export function size(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  const at = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log(bytes) / Math.log(1024)))
  const value = bytes / 1024 ** at
  return `${at === 0 || value >= 100 ? Math.round(value) : Math.round(value * 10) / 10} ${units[at]}`
}

/** A week is made ahead; with less than this much left something has stopped making them. */
const DAYS_AHEAD_MIN = 2
/** Dropped by the next prune after its end; a reader may hold it up for a while. */
const DROP_SLACK_DAYS = 2

/** `retentionMs`: the shortest among the workers alive; undefined where none says. */
export function judgeDays(days: DayFacts, retentionMs: number | undefined): Finding {
  const ahead = days.attached.filter((day) => day > days.today).length
  const faults: Fault[] = []
  if (!days.attached.includes(days.today))
    faults.push({ verdict: 'warn', text: 'there is no day table for today', fix: PRUNES })
  else if (ahead < DAYS_AHEAD_MIN)
    faults.push({ verdict: 'warn', text: `day tables are made for ${many(ahead, 'day')} ahead only`, fix: PRUNES })
  for (const day of days.pending)
    faults.push({ verdict: 'warn', text: `the detach of day ${day} was begun and not finished`, fix: HELD_UP })
  for (const day of days.detached)
    faults.push({ verdict: 'warn', text: `day ${day} is detached and not dropped`, fix: HELD_UP })
  const over = retentionMs === undefined ? [] : overDays(days, retentionMs)
  if (over.length > 0)
    faults.push({
      verdict: 'warn',
      text: `${many(over.length, 'day')} should have been dropped, from ${over[0]} on`,
      fix: HELD_UP,
    })
  const well = `${many(days.attached.length - ahead, 'day')} of records, and day tables for ${many(ahead, 'day')} ahead`
  return findingOf(faults, well, { ...days, ahead, retentionMs: retentionMs ?? null })
}

const PRUNES = 'run a worker with upkeep, which makes them; a settlement that finds none does, too'
const HELD_UP =
  'workers with upkeep go on with it each minute: look for old snapshots and open transactions that hold it up'

function overDays({ attached, today }: DayFacts, retentionMs: number): string[] {
  const oldestMs = Date.parse(today) - retentionMs - (1 + DROP_SLACK_DAYS) * DAY_MS
  return attached.filter((day) => Date.parse(day) < oldestMs)
}
