/**
 * Named points inside the store's own statements. A handle is opened whose statements stop at one of them, until the test
 * lets them go on or fail: so a race between two operations is played in an order that the test chooses, by the real
 * adapter and not by a copy of its SQL. Used by the races.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { PostgresStorage } from '../../src/storage/postgres/index.js'
import { waitedFor } from './held.js'
import type { Scratch } from './postgres.js'

const TABLES = [
  'ready',
  'delayed',
  'lease',
  'dead',
  'worker',
  'queue',
  'idempotency',
  'expiry',
  'claim_request',
  'revoked',
] as const

type Table = (typeof TABLES)[number]

/**
 * `clock`: where the time is read. `insert:ready`: before a row is written. `inserted:ready`: after the statement that
 * inserts, also where it inserted nothing, before the next one of the same function. `commit:ready`: all is done and
 * locked, and nothing visible to others yet.
 */
export type Point = 'clock' | `${'insert' | 'update' | 'delete' | 'inserted' | 'commit'}:${Table}`

/** An operation that has come to its point. */
export interface Stopped<T> {
  /** What it answers once it may go on. Rejects when it was made to fail. */
  readonly answer: Promise<T>
  /** Resolves when somebody waits for what this one has locked. */
  waitedFor(): Promise<void>
  /** Lets it go on, and waits for its end. */
  goOn(): Promise<T>
  /** Rolls it back. */
  fail(): Promise<void>
}

/** Makes a schema ready for points. Once, before anything is held. */
export async function withPoints(store: Scratch): Promise<void> {
  await store.sql('create table :s.test_failing (number bigint primary key)')
  // A limit on locks, as some statements have one for themselves, is not meant for the test.
  await store.sql(`create function :s.test_wait() returns void language plpgsql set lock_timeout = 0 as $$
    declare v_number bigint := current_setting('test.number')::bigint;
    begin
      perform pg_advisory_xact_lock_shared(v_number);
      if exists (select from :s.test_failing f where f.number = v_number) then raise exception 'failed at its point'; end if;
    end $$`)
  await store.sql(`create function :s.test_stop() returns trigger language plpgsql as $$
    begin
      if current_setting('test.point', true) = tg_argv[0] then perform :s.test_wait(); end if;
      if tg_op = 'DELETE' then return old; end if;
      return new;
    end $$`)
  for (const table of TABLES) await store.sql(triggersOf(table))
  await store.sql(`create or replace function :s.clock() returns bigint language plpgsql stable as $$
    begin
      if current_setting('test.point', true) = 'clock' then perform :s.test_wait(); end if;
      return (extract(epoch from clock_timestamp()) * 1000000)::bigint + (select us from :s.test_clock);
    end $$`)
}

function triggersOf(table: Table): string {
  const rows = (['insert', 'update', 'delete'] as const).map(
    (act) =>
      `create trigger test_${act} before ${act} on :s.${table} for each row execute function :s.test_stop('${act}:${table}')`,
  )
  return [
    ...rows,
    `create trigger test_inserted after insert on :s.${table} for each statement execute function :s.test_stop('inserted:${table}')`,
    `create constraint trigger test_commit after insert or update or delete on :s.${table} deferrable initially deferred
      for each row execute function :s.test_stop('commit:${table}')`,
  ].join(';\n')
}

/** A handle whose statements stop at a point, while its number is locked. Used again and again, as opening one costs more than a race. */
interface Stopping {
  readonly number: number
  readonly storage: PostgresStorage
}

const idle = new WeakMap<Scratch, Map<Point, Stopping[]>>()
let counter = 0

function stopping(store: Scratch, point: Point): Stopping {
  const known = idle.get(store)?.get(point)?.pop()
  if (known !== undefined) return known
  counter += 1
  const number = process.pid * 100_000 + counter
  const url = new URL(store.url)
  url.searchParams.set('options', `-c test.point=${point} -c test.number=${number}`)
  return { number, storage: store.open({ url: url.href, connections: 1 }) }
}

function rest(store: Scratch, point: Point, one: Stopping): void {
  const points = idle.get(store) ?? new Map<Point, Stopping[]>()
  idle.set(store, points)
  points.set(point, [...(points.get(point) ?? []), one])
}

/** Runs `call` on a handle of its own, until it has come to the point. */
export async function stopped<T>(
  store: Scratch,
  point: Point,
  call: (storage: PostgresStorage) => Promise<T>,
): Promise<Stopped<T>> {
  const one = stopping(store, point)
  const { number, storage } = one
  await store.sql('select pg_advisory_lock($1)', [number])
  const answer = call(storage)
  const pid = await reached(store, number, point, answer)
  const end = async (): Promise<void> => {
    await store.sql('select pg_advisory_unlock($1)', [number])
    await answer.catch(() => {})
    // An error is told before its transaction has let go of its locks.
    while ((await store.sql(`select from pg_locks where pid = $1 and locktype = 'transactionid'`, [pid])).length > 0)
      await sleep(1)
    rest(store, point, one)
  }
  return {
    answer,
    waitedFor: () => waitedFor(store, pid),
    goOn: async () => {
      await end()
      return answer
    },
    fail: async () => {
      await store.sql('insert into :s.test_failing values ($1)', [number])
      await end()
      await store.sql('delete from :s.test_failing where number = $1', [number])
    },
  }
}

/** The process at the server that has come to the point; fails when the operation ends without it. */
async function reached(store: Scratch, number: number, point: Point, answer: Promise<unknown>): Promise<number> {
  let end: string | undefined
  answer.then(
    (value) => {
      end = `it answered ${JSON.stringify(value)}`
    },
    (error: Error) => {
      end = `it failed: ${error.message}`
    },
  )
  for (;;) {
    const [row] = await store.sql(
      `select pid from pg_locks where locktype = 'advisory' and not granted and (classid::bigint << 32) | objid::bigint = $1`,
      [number],
    )
    if (row !== undefined) return row.pid as number
    if (end !== undefined) throw new Error(`the operation never came to ${point}: ${end}`)
    await sleep(1)
  }
}
