/** The process of a drill's worker, as the command sees it: started, killed, ended. Made by the stage. */
import { Child } from '../demo/child.js'
import type { DrillSettings, WorkerReport } from './drill-process.js'

export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
  /** The end of what it wrote to stderr. */
  errors: string
}

export class DrillWorker extends Child<WorkerReport> {
  constructor(settings: DrillSettings) {
    super(settings.name, new URL('./drill-process.js', import.meta.url).href, settings)
  }

  /** How it ended; undefined while it lives. */
  get exit(): Exit | undefined {
    if (this.alive) return undefined
    return { code: this.process.exitCode, signal: this.process.signalCode, errors: this.errors.trim() }
  }
}
