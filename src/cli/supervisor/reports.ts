/** What the worker processes have reported lately: how busy they are, and how long jobs had waited that they started. Called by supervise.ts. */
import type { Env } from '../../core/env.js'
import { p95 } from './sample.js'

/** Long enough for a p95 of slow jobs, and soon over a burst. */
const WINDOW_MS = 10_000

interface Report {
  place: number
  atMs: number
  busy: number
  waits: readonly number[]
}

export class Reports {
  private readonly reports: Report[] = []

  constructor(private readonly env: Pick<Env, 'monotonic'>) {}

  add(place: number, { busy, waits }: { busy: number; waits: readonly number[] }): void {
    this.reports.push({ place, atMs: this.env.monotonic(), busy, waits })
    this.forget()
  }

  /** Busy slots, by the newest report of each. One that says nothing is busy with what it last said, for a while. */
  busy(): number {
    this.forget()
    const newest = new Map(this.reports.map(({ place, busy }) => [place, busy]))
    return [...newest.values()].reduce((sum, busy) => sum + busy, 0)
  }

  /** Of the jobs that started in the last ten seconds; null when none has. */
  p95WaitMs(): number | null {
    this.forget()
    return p95(this.reports.flatMap(({ waits }) => waits))
  }

  /** They are in the order of time. */
  private forget(): void {
    const from = this.env.monotonic() - WINDOW_MS
    const first = this.reports.findIndex(({ atMs }) => atMs >= from)
    this.reports.splice(0, first < 0 ? this.reports.length : first)
  }
}
