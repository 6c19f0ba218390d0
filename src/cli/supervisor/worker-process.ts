/**
 * A worker process of a supervisor: the same worker as `leasehold work` alone, that takes orders and reports. Without
 * its supervisor nobody would end it, so it drains when that is gone. Started by process.ts, as an entry.
 */
import { childSettings } from '../demo/child.js'
import { onEnding, watchReader } from '../ending.js'
import { EXIT, type ExitCode } from '../exit-codes.js'
import { failureOf, stacksOf } from '../failure.js'
import { Invocation } from '../invocation.js'
import { printableLines } from '../printable.js'
import { realTerminal } from '../terminal.js'
import { isWatched, type OpenWorker, openWorker, queuesOf, statsLine } from '../worker-run.js'
import type { ProcessMessage, ProcessOrder, ProcessSettings } from './messages.js'
import { Sample } from './sample.js'

const UP_LOOK_MS = 50
const REPORT_MS = 500

const settings = childSettings<ProcessSettings>()
const terminal = realTerminal(settings)
const invocation = new Invocation(terminal, settings.store)
let opened: OpenWorker | undefined

watchReader()
process.on('message', (order: ProcessOrder) => obey(order))
process.once('disconnect', () => {
  terminal.note(terminal.notePaint('yellow', 'the supervisor of this worker is gone: draining'))
  obey('drain')
})
onEnding((cause, before) => {
  if (cause === 'reader gone') void tell({ type: 'reader gone' })
  obey(before === 0 ? 'drain' : 'end')
})
await leave(await run())

async function run(): Promise<ExitCode> {
  try {
    opened = await openWorker(invocation, settings.module, { choice: settings.choice, speaks: settings.speaks })
    const stopReports = reports(opened)
    await opened.worker.run()
    stopReports()
    const stats = opened.worker.stats()
    if (!isWatched(terminal)) terminal.answer(statsLine(stats))
    await tell({ type: 'done', stats })
    return EXIT.ok
  } catch (error) {
    if (settings.verbose) terminal.note(printableLines(stacksOf(error)))
    const { code, message, fix, exit } = failureOf(error)!
    await tell({ type: 'failed', code, message, exit, ...(fix === undefined ? {} : { fix }) })
    return exit
  }
}

/** What has not begun has nothing to put down. */
function obey(order: ProcessOrder): void {
  if (opened === undefined) process.exit(EXIT.ok)
  void opened.worker.stop(order === 'end' ? { grace: 0 } : {})
}

function reports({ queue, handlers, worker }: OpenWorker): () => void {
  const waits = new Sample(queue.connection.env)
  queue.connection.events.on((event) => {
    if (event.type === 'job.started') waits.add(event.waitedMs)
  })
  let timer = setInterval(() => {
    if (worker.health().lastBeatAgoMs === null) return
    void tell({ type: 'up', kinds: handlers.map(({ kind }) => kind), queues: queuesOf(handlers, settings.choice) })
    clearInterval(timer)
    timer = setInterval(
      () => void tell({ type: 'report', busy: worker.health().running, waits: waits.take() }),
      REPORT_MS,
    )
  }, UP_LOOK_MS)
  return () => clearInterval(timer)
}

/** Resolves when it was sent, or there is nobody to hear it. */
function tell(message: ProcessMessage): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected) process.send!(message, () => resolve())
    else resolve()
  })
}

/** What was written has to arrive; what a module of handlers has left open must not keep the process alive. */
async function leave(code: ExitCode): Promise<never> {
  await invocation.close()
  await Promise.all([process.stdout, process.stderr].map((one) => new Promise((resolve) => one.write('', resolve))))
  process.exit(code)
}
