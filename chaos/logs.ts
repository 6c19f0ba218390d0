/** Reads what a run has left on disk, piece by piece. Called by the folder of the run. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { eventOf, type Witnessed } from '../src/testing/checker/history.js'
import { LOG_SUFFIX, LogTail } from '../src/testing/checker/log-file.js'

/** All that was written, file by file: no more than a part of one is in memory. */
export function* witnessedIn(folder: string): Generator<Witnessed, void> {
  for (const name of readdirSync(folder).sort()) {
    if (!name.endsWith(LOG_SUFFIX)) continue
    const process = name.slice(0, -LOG_SUFFIX.length)
    for (const line of new LogTail(join(folder, name)).lines()) {
      const event = eventOf(line)
      if (event === undefined) throw new Error(`${name}: a line is broken and not the last: ${line.slice(0, 200)}`)
      yield { process, event }
    }
  }
}

/** A file of JSON lines, read in pieces. */
export function* itemsIn<Item>(path: string): Generator<Item, void> {
  for (const line of new LogTail(path).lines()) yield JSON.parse(line) as Item
}
