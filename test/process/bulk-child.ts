/** Redrives dead letters in a process of its own, to be killed in the middle. Tells its parent after each batch. */
import { connect } from '../../src/index.js'

/** What a test tells it, as JSON in the first argument. */
export interface BulkSettings {
  url: string
  schema: string
  queue: string
  rate: number
}

if (process.argv[2] !== undefined) {
  const { url, schema, queue: name, rate } = JSON.parse(process.argv[2]) as BulkSettings
  const queue = await connect(url, { schema, migrate: false })
  const result = await queue.redriveAll(
    { queue: name },
    { rate, batch: 20, onProgress: ({ done }) => process.send?.(done) },
  )
  process.send?.(result.ended)
  await queue.close()
  process.disconnect?.()
}
