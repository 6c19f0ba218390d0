/** A server that refuses to write, as one does that has lost its role, and writes again later. */
import pg from 'pg'
import type { Fault } from '../../src/testing/chaos/acts.js'
import type { Crew } from '../crew.js'
import type { OwnServer } from '../server.js'
import { freshly } from '../session.js'
import type { Begun, Stage, StageParts } from '../stage.js'

export class ReadOnlyStage implements Stage {
  private readonly server: OwnServer

  constructor(private readonly parts: StageParts) {
    this.server = parts.store.server!
  }

  urlOf(): string {
    return this.parts.store.url
  }

  async begin(fault: Fault, crew: Crew): Promise<Begun> {
    if (fault.act !== 'read-only') throw new Error(`no fault of this form: ${fault.act}`)
    await this.say([`alter role ${this.role} reset default_transaction_read_only`, ...system('on')])
    if (fault.sessions === 'end') await this.server.endSessions()
    return {
      touches: crew.namesOf(crew.everybody),
      outage: true,
      end: () =>
        // What a role says is read when a session begins, and outdoes the system: those there are stay read-only.
        fault.back === 'all'
          ? this.say(system('off'))
          : this.say([`alter role ${this.role} set default_transaction_read_only = off`]),
    }
  }

  async close(): Promise<void> {
    await this.say([`alter role ${this.role} reset default_transaction_read_only`, ...system('off')])
  }

  private get role(): string {
    return pg.escapeIdentifier(decodeURIComponent(new URL(this.parts.store.url).username))
  }

  private async say(statements: readonly string[]): Promise<void> {
    await freshly(this.server.adminUrl, async (client) => {
      for (const statement of statements) await client.query(statement)
    })
  }
}

function system(state: 'on' | 'off'): string[] {
  return [`alter system set default_transaction_read_only = ${state}`, 'select pg_reload_conf()']
}
