/** A worker of a run, a process of its own with default options, to be killed. Started by the driver. */

import { childSettings } from '../src/cli/demo/child.js'
import { connect, worker } from '../src/index.js'
import { QUEUES } from '../src/testing/chaos/plan.js'
import { LogFile, sharedNow } from '../src/testing/checker/log-file.js'
import { writesClaims } from './claim-log.js'
import { type CutOrder, FaultPoints } from './fault-points.js'
import { type Backlog, handlersOf, type Pace } from './handlers.js'
import { kindNames } from './kinds.js'
import { writesTold } from './told.js'

export interface WorkerSettings {
  url: string
  schema: string
  name: string
  logPath: string
  pace: Pace
  /** What the store's clock is ahead of the clock that all processes of the run share. */
  storeAheadMs: number
  /** Where this process has a wrong clock: the file that says by how much. Read by wrong-clock.ts. */
  clock?: string
}

/** What the driver tells it. */
export type WorkerOrder = { pace: Pace } | { die: CutOrder }

/** What it tells the driver, a few times a second. */
export interface WorkerReport {
  backlogDone: number
}

const LOOK_MS = 250

const settings = childSettings<WorkerSettings>()
const log = new LogFile(settings.logPath)
const backlog: Backlog = { pace: settings.pace, done: 0 }

// Without the driver nobody would ever stop it.
const abandoned = (): void => process.exit(1)
process.once('disconnect', abandoned)

const queue = await connect(settings.url, {
  schema: settings.schema,
  migrate: false,
  log: writesTold(log, kindNames()),
})
const points = new FaultPoints(log)
const handlers = handlersOf({ log, backlog, storeNow: () => sharedNow() + settings.storeAheadMs })
const connection = { ...queue.connection, storage: writesClaims(points.wrap(queue.connection.storage), log) }
const own = worker({ connection }, handlers, { name: settings.name, queues: QUEUES })

process.on('message', (order: WorkerOrder) => {
  if ('pace' in order) backlog.pace = order.pace
  else points.arm(order.die)
})

let beatenAt = 0
const looking = setInterval(look, LOOK_MS)
await own.run()
clearInterval(looking)
await queue.close()
process.off('disconnect', abandoned)
process.disconnect()

function look(): void {
  process.send?.({ backlogDone: backlog.done } satisfies WorkerReport)
  writeBeat()
}

/** When the store last confirmed that this worker is alive: nobody may take it over for a lease from then on. */
function writeBeat(): void {
  const { id, lastBeatAgoMs } = own.health()
  if (id === undefined || lastBeatAgoMs === null) return
  const confirmedAt = sharedNow() - lastBeatAgoMs
  if (confirmedAt - beatenAt < LOOK_MS) return
  beatenAt = confirmedAt
  log.write({ what: 'worker', worker: id, is: 'beaten', confirmedAt })
}
