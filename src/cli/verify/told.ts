/** Writes down what a worker of a drill was told: the events of its connection, as far as the checker reads them. */
import type { EventListener } from '../../observe/events.js'
import type { LogFile } from '../../testing/checker/log-file.js'
import { saidOf } from '../../testing/checker/told.js'

export function writesTold(log: LogFile): EventListener {
  return (event) => {
    const said = saidOf(event)
    if (said !== undefined) log.write(said)
  }
}
