/** A database of its own on a test server, for tests that spoil more than a schema. */
import pg from 'pg'
import { serverUrl } from './postgres.js'

export interface OwnDatabase {
  url: string
  /** Runs SQL in it as the server's owner. */
  sql(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  drop(): Promise<void>
}

let counter = 0

export async function ownDatabase(major: 18 | 15 = 18): Promise<OwnDatabase> {
  counter += 1
  const name = `own_${process.pid}_${counter}`
  const server = new pg.Client(serverUrl(major))
  await server.connect()
  await server.query(`create database ${name}`)
  const url = new URL(serverUrl(major))
  url.pathname = `/${name}`
  const admin = new pg.Client(url.href)
  // The server may still have it when the database is dropped under it.
  admin.on('error', () => {})
  await admin.connect()
  return {
    url: url.href,
    sql: async (text, values) => (await admin.query(text, values)).rows,
    drop: async () => {
      await admin.end()
      await server.query(`drop database ${name} with (force)`)
      await server.end()
    },
  }
}
