/** A statement that is held open in a transaction of its own, so that another one meets it at a named point. */
import type pg from 'pg'
import type { Scratch } from './postgres.js'

export interface Held {
  client: pg.Client
  /** Resolves when somebody waits for what this one has locked. */
  waitedFor(): Promise<void>
  commit(): Promise<void>
  rollback(): Promise<void>
}

/** Runs `text` and leaves its transaction open. `:s` is the schema. */
export async function held(store: Scratch, text: string, values: unknown[] = []): Promise<Held> {
  const client = await store.client()
  await client.query('begin')
  await client.query(text.replaceAll(':s', store.quoted), values)
  const { rows } = await client.query('select pg_backend_pid() as pid')
  return {
    client,
    waitedFor: () => waitedFor(store, rows[0].pid),
    commit: async () => {
      await client.query('commit')
    },
    rollback: async () => {
      await client.query('rollback')
    },
  }
}

/** Resolves when a session waits for what the one with this process at the server has locked. */
export async function waitedFor(store: Scratch, pid: number): Promise<void> {
  while ((await store.sql('select from pg_stat_activity where $1 = any(pg_blocking_pids(pid))', [pid])).length === 0)
    await new Promise((resolve) => setTimeout(resolve, 1))
}

/** Resolves when some session of this schema's statements waits for a lock. Looks at the server, not at the clock. */
export async function someoneWaits(store: Scratch): Promise<void> {
  for (;;) {
    const [row] = await store.sql(
      `select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and query like '%' || $1 || '%'`,
      [store.schema],
    )
    if ((row!.n as number) > 0) return
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
