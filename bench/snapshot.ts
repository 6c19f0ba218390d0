/** An old snapshot: what a forgotten transaction or a long report does to a queue. Vacuum cleans up nothing after it. */
import type { Place, Setting } from './setting.js'

export interface HeldSnapshot {
  /** Makes sure that it was held all the time. */
  release(): Promise<void>
}

export async function holdSnapshot(setting: Setting, place: Place): Promise<HeldSnapshot> {
  const client = await setting.beside()
  await client.query('begin isolation level repeatable read')
  const before = await client.query(`select count(*)::int as n from "${place.schema}".ready`)
  return {
    release: async () => {
      try {
        const after = await client.query(`select count(*)::int as n from "${place.schema}".ready`)
        if (after.rows[0].n !== before.rows[0].n) throw new Error('the snapshot was not held')
        await client.query('commit')
      } finally {
        await client.end()
      }
    },
  }
}
