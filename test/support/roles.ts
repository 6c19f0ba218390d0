/** Roles of a server for a test, with few rights, and the URLs that they connect by. */
import { randomUUID } from 'node:crypto'
import type { OwnDatabase } from './database.js'

export interface Role {
  name: string
  url: string
}

export class Roles {
  private readonly names: string[] = []

  constructor(private readonly database: OwnDatabase) {}

  /** A role that may log in, and nothing else: no superuser, none who makes databases or roles. */
  async make(word: string): Promise<Role> {
    // Roles belong to the whole server; the name is one that wants quoting.
    const name = `The "${word}" ${randomUUID().slice(0, 8)}`
    const password = randomUUID()
    await this.database.sql(
      `create role ${quoted(name)} login nosuperuser nocreatedb nocreaterole password '${password}'`,
    )
    this.names.push(name)
    const url = new URL(this.database.url)
    url.username = encodeURIComponent(name)
    url.password = password
    return { name, url: url.href }
  }

  /** After all that they own is gone. */
  async drop(sql: OwnDatabase['sql']): Promise<void> {
    for (const name of this.names) await sql(`drop role if exists ${quoted(name)}`)
  }
}

export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
