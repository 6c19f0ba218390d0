/**
 * Counts what this process sends to the server, at the driver: one for each query, transaction control included. Beats
 * go out from a thread with a driver of its own and are not in it (one each 3 seconds). Imported once in a process.
 */
import pg from 'pg'

let sent = 0

const query = pg.Client.prototype.query as (...args: unknown[]) => unknown
pg.Client.prototype.query = function counted(this: pg.Client, ...args: unknown[]) {
  sent += 1
  return query.apply(this, args)
} as typeof pg.Client.prototype.query

export function roundTrips(): number {
  return sent
}
