/** A connection of the driver's own for one thing to do, past whatever it spoils. Called by what breaks and mends servers. */
import pg from 'pg'

const CONNECT_MS_MAX = 10_000

/** Opened for this and closed after it. Its writes are done also where the server refuses those of others. */
export async function freshly<Result>(url: string, act: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_MS_MAX,
    application_name: 'chaos',
  })
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query('set default_transaction_read_only = off')
    return await act(client)
  } finally {
    await client.end().catch(() => {})
  }
}
