/** The logs of all drills in one folder, read as they grow. Called by the stage. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { eventOf, type Witnessed } from '../../testing/checker/history.js'
import { LOG_SUFFIX, LogTail } from '../../testing/checker/log-file.js'

export class LogFolder {
  private readonly tails = new Map<string, LogTail>()

  constructor(private readonly folder: string) {}

  /** What was written to any log of the folder since it was last asked. */
  *fresh(): Generator<Witnessed, void> {
    for (const name of readdirSync(this.folder)) {
      if (!name.endsWith(LOG_SUFFIX)) continue
      const tail = this.tails.get(name) ?? new LogTail(join(this.folder, name))
      this.tails.set(name, tail)
      for (const line of tail.lines()) {
        const event = eventOf(line)
        if (event !== undefined) yield { process: name.slice(0, -LOG_SUFFIX.length), event }
      }
    }
  }
}
