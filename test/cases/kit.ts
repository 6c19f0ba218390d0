/** What the cases share: workers on a real schema that tell their events, a judge that writes the living off, named points in the store's statements. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { Queue } from '../../src/client/queue.js'
import { realEnv } from '../../src/core/env.js'
import type { JobView, RecoveredLease, Settlement, Storage } from '../../src/storage/storage.js'
import type { WorkerOptions } from '../../src/worker/options.js'
import { Recovered } from '../../src/worker/upkeep.js'
import { type Held, held, someoneWaits } from '../support/held.js'
import { INFO, TestWorker } from '../support/jobs.js'
import { type Scratch, scratch } from '../support/postgres.js'
import { changed, Kit } from '../worker/kit.js'

/** A short lease, so that tests of lost ones are. */
export const QUICK: WorkerOptions = { lease: '1s', beat: '250ms' }

/** A connection of its own to the store, with its events recorded. */
export function kitOn(storage: Storage): Kit {
  return new Kit(realEnv, storage)
}

export function queueOn({ connection }: Kit): Queue {
  return new Queue(connection)
}

export interface Stage {
  store: Scratch
  /** On a connection of its own, for who enqueues and looks. */
  queue: Queue
}

/** A schema of its own for one case, so that several can be played at once; gone with the test. */
export async function staged(t: TestContext): Promise<Stage> {
  const store = await scratch()
  t.after(() => store.drop())
  return { store, queue: queueOn(kitOn(store.storage)) }
}

/** Beats go through the object, so that a test can hold them up; they come from a thread otherwise. */
export function inlineBeats(storage: Storage, beat: Storage['beat'] = (one) => storage.beat(one)): Storage {
  return changed(storage, { beat, beatSource: undefined } as unknown as Partial<Storage>)
}

/** Far beyond what is expected: it tells a hang from an end, and decides nothing else. */
const PATIENCE_MS = 60_000

/** Looks again and again until there is something to see. */
export async function until<T>(look: () => Promise<T | undefined | false>): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS
  while (performance.now() < deadline) {
    const seen = await look()
    if (seen !== undefined && seen !== false) return seen
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error(`waited ${PATIENCE_MS} ms in vain: ${look}`)
}

/** Fails when the promise hangs. */
export async function settles<T>(what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const hung = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not settle`)), PATIENCE_MS)
  })
  try {
    return await Promise.race([promise, hung])
  } finally {
    clearTimeout(timer)
  }
}

export async function ended(queue: Queue, ids: readonly string[]): Promise<JobView[]> {
  return until(async () => {
    const views = await Promise.all(ids.map((id) => queue.get(id)))
    return views.every((view) => view?.endedAt != null) && (views as JobView[])
  })
}

/** How many jobs there are in each state, by the view for people. */
export async function places(store: Scratch): Promise<Record<string, number>> {
  const rows = await store.sql('select state, count(*)::int as n from :s.job group by 1')
  return Object.fromEntries(rows.map((row) => [row.state as string, row.n as number]))
}

export function sum(counts: Record<string, number>): number {
  return Object.values(counts).reduce((total, n) => total + n, 0)
}

/** Resolves when beats have reported so many starts. */
export async function startsReported(store: Scratch, count: number): Promise<void> {
  await until(async () => {
    const [row] = await store.sql('select coalesce(sum(json_array_length(started)), 0)::int as n from :s.worker')
    return (row!.n as number) >= count
  })
}

/** A worker that may judge others at once, as if it had been in touch for a long time. */
export async function judge(store: Scratch): Promise<TestWorker> {
  const worker = new TestWorker(store.storage)
  await worker.beat({ info: { ...INFO, leaseMs: 600_000, beatMs: 200_000 } })
  await store.sql('update :s.worker set steady_since = 0 where id = $1', [worker.id])
  return worker
}

/** The judge takes over from a worker that lives, as if nothing had been heard of it. */
export async function writtenOff(store: Scratch, by: TestWorker, worker: string): Promise<RecoveredLease[]> {
  return until(async () => {
    await store.sql('update :s.worker set seen = 0 where id = $1', [worker])
    // Its next beat may come in between.
    const { leases } = await store.storage.takeOver({ worker: by.id, limit: 1_000 })
    return leases.length > 0 && leases
  })
}

/** What the product makes of jobs that were taken over. */
export async function settleCrashes(store: Scratch, by: TestWorker, leases: RecoveredLease[]): Promise<void> {
  const facts = { worker: by.id, nowMs: Date.now(), random: 0.5 }
  const settlements = leases.flatMap(({ fence, jobs, crashes }) =>
    crashes.flatMap((crash, ordinal): Settlement[] =>
      crash === null ? [] : [new Recovered({ fence, ordinal }, jobs[ordinal]!, crash, facts).settlement],
    ),
  )
  assert.deepEqual(
    await store.storage.settle(settlements),
    settlements.map(() => 'ok'),
  )
}

/** Where a statement of the store may be stopped: before a row of this table is written, or at the commit after it. */
export interface Point {
  table: string
  when: 'insert' | 'update' | 'commit'
}

/** Statements that come to the point wait there from now on, until it is opened. */
export async function stopAt(store: Scratch, { table, when }: Point): Promise<Held> {
  const name = `stop_${table}_${when}`
  const key = `hashtextextended('${store.schema} ${name}', 0)`
  await store.sql(`create or replace function :s.${name}() returns trigger language plpgsql as $$
    begin perform pg_advisory_xact_lock(${key}); return new; end $$`)
  await store.sql(`drop trigger if exists ${name} on :s.${table}`)
  await store.sql(
    when === 'commit'
      ? `create constraint trigger ${name} after insert on :s.${table} deferrable initially deferred for each row execute function :s.${name}()`
      : `create trigger ${name} before ${when} on :s.${table} for each row execute function :s.${name}()`,
  )
  return held(store, `select pg_advisory_xact_lock(${key})`)
}

/** The session that waits at a point is ended, as the server does when its client was killed. */
export async function killWaiting(store: Scratch): Promise<void> {
  await someoneWaits(store)
  const ended = await store.sql(
    `select pg_terminate_backend(pid, 10000) as ended from pg_stat_activity where wait_event_type = 'Lock' and query like '%' || $1 || '%'`,
    [store.quoted],
  )
  assert.deepEqual(
    ended.map((row) => row.ended),
    ended.map(() => true),
  )
}
