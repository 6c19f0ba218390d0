/** A worker of the demo, a process of its own. Started by the demo with its settings; tells it how it is doing. */
import { connect } from '../../connect.js'
import { worker } from '../../worker/index.js'
import { childSettings } from './child.js'
import { deliverWebhookHandler } from './deliver.js'

export interface WorkerSettings {
  url: string
  name: string
  concurrency: number
}

/** What it sends, a few times a second, and a last time when it has drained. */
export interface WorkerReport {
  /** As the store knows it; undefined until it is registered. */
  id: string | undefined
  running: number
  completed: number
  givenBack: number
  draining: boolean
}

const REPORT_MS = 200

const { url, name, concurrency } = childSettings<WorkerSettings>()

// Without the demo nobody would ever stop it.
process.on('disconnect', () => process.exit(1))

const queue = await connect(url, { migrate: false })
const own = worker(queue, [deliverWebhookHandler], { name, concurrency })
const timer = setInterval(() => process.send?.(report()), REPORT_MS)
// Until SIGTERM, as for any worker.
await own.run()
clearInterval(timer)
await queue.close()
process.send?.(report(), () => process.disconnect())

function report(): WorkerReport {
  const { id, running, draining, lastBeatAgoMs } = own.health()
  const { completed, givenBack } = own.stats()
  return { id: lastBeatAgoMs === null ? undefined : id, running, completed, givenBack, draining }
}
