/**
 * A process of its own for what a network does to it: `load` works and enqueues until told to stop, `worker` and
 * `producer` wait. `unreached` is a worker whose store was never there.
 */
import { Queue } from '../../src/client/queue.js'
import { realEnv } from '../../src/core/env.js'
import { connect, defineJob, worker } from '../../src/index.js'
import { EventBus } from '../../src/observe/events.js'
import { LocalHints } from '../../src/storage/connection.js'
import { openPostgres } from '../../src/storage/postgres/index.js'

const [url, schema, role] = process.argv.slice(2) as [string, string, 'worker' | 'producer' | 'load' | 'unreached']
const kind = defineJob<{ n: number }>('kind', { queue: 'queue' })
const queue = role === 'unreached' ? unreached() : await connect(url, { schema })
let ran = 0
const running = worker(
  queue,
  [
    kind.handle(() => {
      ran += 1
    }),
  ],
  { signals: false },
)
if (role !== 'producer') await running.start()
if (role !== 'unreached') {
  const job = await queue.enqueue(kind, { n: 1 })
  if (role !== 'producer') await job.result({ timeout: '5s' })
}
let on = role === 'load'
process.on('warning', ({ name, message }) => process.send?.(`warning ${name} ${message}`))
process.on('message', async (message) => {
  if (message === 'ran') {
    process.send!(`ran ${ran}`)
    return
  }
  on = false
  await running.stop({ grace: '200ms' })
  process.send!('stopped')
  await queue.close()
  process.send!('closed')
  process.disconnect()
})
process.send!('up')
while (on) await Promise.all(Array.from({ length: 20 }, (_, n) => queue.enqueue(kind, { n }).catch(() => {})))

/** As `connect` makes it, but for the first look at the store. */
function unreached(): Queue {
  const storage = openPostgres({ url, schema })
  return new Queue({ storage, env: realEnv, events: new EventBus(), hints: new LocalHints() })
}
