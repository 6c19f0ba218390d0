/** A worker of a drill, a process of its own that may be killed. Started by the crew with its settings. */
import { connect } from '../../connect.js'
import { LogFile, logPath, sharedNow } from '../../testing/checker/log-file.js'
import type { DrillName, Pace } from '../../testing/verify/drill-plan.js'
import { CREWS, PREFETCH_WINDOW_MS } from '../../testing/verify/drill-plan.js'
import { worker } from '../../worker/index.js'
import { childSettings } from '../demo/child.js'
import { handlerOf } from './drill-kinds.js'
import { writesTold } from './told.js'

export interface DrillSettings {
  url: string
  schema: string
  drill: DrillName
  name: string
  /** Where logs and marks are. */
  folder: string
  pace: Pace
}

/** What it tells the command, a few times a second. */
export interface WorkerReport {
  /** The store knows it. */
  up: boolean
  memoryMb: number
}

const REPORT_MS = 100
/** Of leases: by then somebody else must have taken its jobs, or never will. */
const STALL_LEASES_MAX = 8

const { url, schema, drill, name, folder, pace } = childSettings<DrillSettings>()
const log = new LogFile(logPath(folder, name))

// Without the command nobody would ever stop it.
const abandoned = (): void => process.exit(1)
process.once('disconnect', abandoned)

const queue = await connect(url, { schema, migrate: false, log: writesTold(log) })
const handler = handlerOf(drill, { name, log, folder, stallMsMax: STALL_LEASES_MAX * pace.leaseMs })
const own = worker(queue, [handler], {
  name,
  concurrency: CREWS[drill].perWorker,
  lease: pace.leaseMs,
  beat: pace.beatMs,
  prefetchWindow: PREFETCH_WINDOW_MS,
})
let beatenAt = Number.NEGATIVE_INFINITY
const timer = setInterval(report, REPORT_MS)
await own.run()
clearInterval(timer)
await queue.close()
process.off('disconnect', abandoned)
process.disconnect()

function report(): void {
  const { id, lastBeatAgoMs } = own.health()
  const memoryMb = process.memoryUsage.rss() / 1_048_576
  process.send?.({ up: lastBeatAgoMs !== null, memoryMb } satisfies WorkerReport)
  if (id === undefined || lastBeatAgoMs === null) return
  const confirmedAt = sharedNow() - lastBeatAgoMs
  // Of each beat once: what is reckoned back differs by a little.
  if (confirmedAt - beatenAt < pace.beatMs / 2) return
  beatenAt = confirmedAt
  log.write({ what: 'worker', worker: id, is: 'beaten', confirmedAt })
}
