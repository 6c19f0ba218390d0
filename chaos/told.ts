/** Writes down what a worker was told: the events of its connection, as far as the checker needs them. Used by the worker processes. */
import type { EventListener } from '../src/index.js'
import type { LogFile } from '../src/testing/checker/log-file.js'
import { saidOf } from '../src/testing/checker/told.js'

/** `kinds`: what the worker can run. */
export function writesTold(log: LogFile, kinds: readonly string[]): EventListener {
  return (event) => {
    const said = saidOf(event)
    // Claims are written as the store answers them, with more than the events tell.
    if (said === undefined || said.what === 'claimed') return
    log.write(said.what === 'worker' && said.is === 'up' ? { ...said, kinds } : said)
  }
}
