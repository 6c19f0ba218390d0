/** A worker in a process of its own that tells when each handler starts. Started by the latency scenario, as an entry. */
import { once } from 'node:events'
import { connect } from '../../connect.js'
import { worker } from '../../worker/index.js'
import { noop } from './kind.js'

const [url, schema] = process.argv.slice(2) as [string, string]
// Ctrl-C goes to the whole group; whoever started it says when to end, and that it was left alone says so, too.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
const asked = Promise.race([once(process, 'message'), once(process, 'disconnect')])

const queue = await connect(url, { schema, migrate: false })
const running = worker(
  queue,
  [
    noop.handle(() => {
      // The clock of the machine, shared by its processes.
      process.send?.(String(process.hrtime.bigint()))
    }),
  ],
  { signals: false },
)
await running.start()
process.send?.('up')
await asked
await running.stop({ grace: 0 })
await queue.close()
if (process.connected) process.disconnect()
