/** Claimed jobs that wait for a slot, first come first served. Kept by the fetcher. */
import type { HeldJob } from './holdings.js'

/** Shifting a long array copies it each time; a head index copies it once in so many. */
const COMPACT_AT = 1_024

export class Buffer {
  private jobs: HeldJob[] = []
  private head = 0

  get size(): number {
    return this.jobs.length - this.head
  }

  push(jobs: readonly HeldJob[]): void {
    for (const held of jobs) this.jobs.push(held)
  }

  first(): HeldJob | undefined {
    return this.jobs[this.head]
  }

  shift(): HeldJob | undefined {
    const held = this.jobs[this.head]
    if (held === undefined) return undefined
    this.head += 1
    if (this.head >= COMPACT_AT || this.head === this.jobs.length) {
      this.jobs = this.jobs.slice(this.head)
      this.head = 0
    }
    return held
  }

  /** Takes out all that match. */
  remove(matches: (held: HeldJob) => boolean): HeldJob[] {
    const removed: HeldJob[] = []
    const kept: HeldJob[] = []
    for (const held of this.jobs.slice(this.head)) (matches(held) ? removed : kept).push(held)
    this.jobs = kept
    this.head = 0
    return removed
  }
}
