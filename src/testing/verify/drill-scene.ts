/**
 * What the command waits on while a drill is played: which runs have begun and ended, and counts that grow with the logs.
 * Whatever else they tell, the judge reads at the end from the stories that the checker makes of them. Pure folding.
 */
import type { HistoryEvent, Witnessed } from '../checker/history.js'

/** One start of a handler. Instants of the clock that the processes share. */
export interface DrillRun {
  n: number
  id: string
  process: string
  attempt: number
  startedAt: number
  /** When its code ended; undefined while it runs, and where its process died with it. */
  endedAt?: number
}

/** How much goes on in one process. */
export interface ProcessLoad {
  /** The newest moment at which the store knew it to be alive. */
  confirmedAt: number
  /** Claimed and not ended, now and at the most. */
  held: number
  mostHeld: number
  running: number
  mostRunning: number
}

export class DrillScene {
  readonly runs: DrillRun[] = []
  /** By job id, how often a crash was noted on it. */
  readonly crashes = new Map<string, number>()
  private readonly loads = new Map<string, ProcessLoad>()

  add({ process, event }: Witnessed): void {
    const load = this.load(process)
    switch (event.what) {
      case 'claimed':
        load.held += 1
        load.mostHeld = Math.max(load.mostHeld, load.held)
        return
      case 'started':
        this.started(process, event)
        return
      case 'effect':
      case 'finished':
        this.ended(process, event)
        return
      case 'crash noted':
        this.crashes.set(event.id, (this.crashes.get(event.id) ?? 0) + 1)
        return
      case 'worker':
        if (event.confirmedAt !== undefined) load.confirmedAt = Math.max(load.confirmedAt, event.confirmedAt)
        return
      default:
    }
  }

  runsOf(n: number): DrillRun[] {
    return this.runs.filter((run) => run.n === n).sort((a, b) => a.startedAt - b.startedAt)
  }

  load(process: string): ProcessLoad {
    const known = this.loads.get(process)
    if (known !== undefined) return known
    const load = { confirmedAt: Number.NEGATIVE_INFINITY, held: 0, mostHeld: 0, running: 0, mostRunning: 0 }
    this.loads.set(process, load)
    return load
  }

  /** What else runs in the process of that run when it starts. */
  beside(run: DrillRun): DrillRun[] {
    return this.runs.filter(
      (other) =>
        other !== run &&
        other.process === run.process &&
        other.startedAt <= run.startedAt &&
        (other.endedAt ?? Number.POSITIVE_INFINITY) > run.startedAt,
    )
  }

  private started(process: string, { n, id, attempt, at }: HistoryEvent & { what: 'started' }): void {
    this.runs.push({ n, id, process, attempt, startedAt: at })
    const load = this.load(process)
    load.running += 1
    load.mostRunning = Math.max(load.mostRunning, load.running)
  }

  private ended(process: string, { n, at }: HistoryEvent & { what: 'effect' | 'finished' }): void {
    const run = this.runs.findLast((one) => one.process === process && one.n === n && one.endedAt === undefined)
    if (run === undefined) return
    run.endedAt = at
    const load = this.load(process)
    load.running -= 1
    load.held -= 1
  }
}
