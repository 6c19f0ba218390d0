/** A process that migrates, to be killed. It tells what it has applied. */
import { openPostgres } from '../../src/storage/postgres/index.js'

const [url, schema] = process.argv.slice(2)
// Told to begin once all are up, so that they really come at once.
process.send?.('up')
process.once('message', async () => {
  const storage = openPostgres({ url: url!, schema: schema!, connections: 1 })
  try {
    const { applied } = await storage.setup.migrate()
    await storage.setup.check()
    process.send?.({ applied })
  } catch (error) {
    process.send?.({ error: String(error) })
  }
  await storage.close()
  process.disconnect()
})
