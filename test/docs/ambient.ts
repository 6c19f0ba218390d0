/** What fragments may use without saying where it comes from: the names that all guides share. Read by snippets.ts. */

export const AMBIENT = `
import type { JobKind, Queue, Worker } from 'leasehold'
import type pg from 'pg'

declare global {
  /** From connect(). */
  const queue: Queue
  /** A client between begin and commit. */
  const client: pg.PoolClient
  const pool: pg.Pool
  /** A kind with a payload and a result. */
  const sendEmail: JobKind<{ to: string; subject: string }, { to: string; subject: string }, { messageId: string }>
  /** From worker(). */
  const running: Worker
}
`
