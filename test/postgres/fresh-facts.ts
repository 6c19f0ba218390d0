/** The facts of a schema that this version has just made. */
import { realEnv } from '../../src/core/env.js'
import { type Facts, readCatalog } from '../../src/storage/postgres/catalog.js'
import { Database } from '../../src/storage/postgres/database.js'
import { openPostgres } from '../../src/storage/postgres/index.js'
import { schemaName } from '../../src/storage/postgres/schema-name.js'
import { serverUrl } from '../support/postgres.js'

export async function freshFacts(major: 18 | 15): Promise<Facts> {
  const schema = schemaName(`facts_${process.pid}`)
  const url = serverUrl(major)
  const database = new Database({
    client: { connectionString: url },
    connections: 1,
    callTimeoutMs: 30_000,
    env: realEnv,
  })
  const storage = openPostgres({ url, schema: schema.name })
  try {
    await storage.setup.migrate()
    return (await readCatalog(database, schema)).facts
  } finally {
    await storage.close()
    await database.run({ name: '', text: `drop schema ${schema.quoted} cascade` }, [])
    await database.close()
  }
}
