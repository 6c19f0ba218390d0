/** The handlers of a run: what they do is a line in the log of their process. Used by the worker processes. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type BoundHandler, type HandlerContext, retryAfter, snooze } from '../src/index.js'
import type { Sort } from '../src/testing/chaos/plan.js'
import type { LogFile } from '../src/testing/checker/log-file.js'
import { KINDS, type Work } from './kinds.js'

/**
 * `slow`: each cheap job takes a while, so that the backlog stands. `brisk`: throughput is measured, and decided by how
 * many slots are at work, not by the machine. `fast`: they take no time, and batches are as large as they get.
 */
export type Pace = 'slow' | 'brisk' | 'fast'

const BACKLOG_MS: Record<Pace, number> = { slow: 400, brisk: 40, fast: 0 }
const SNOOZE_MS = 700
const RETRY_AFTER_MS = 300

export interface Backlog {
  pace: Pace
  /** So many were done in this process. */
  done: number
}

export interface HandlerParts {
  log: LogFile
  backlog: Backlog
  /** The store's clock, epoch milliseconds. */
  storeNow: () => number
}

export function handlersOf(parts: HandlerParts): BoundHandler[] {
  return (Object.keys(KINDS) as Sort[]).map((sort) =>
    KINDS[sort].handle((work, context) => new Attempt(parts, sort, work, context).run()),
  )
}

class Attempt {
  constructor(
    private readonly parts: HandlerParts,
    private readonly sort: Sort,
    private readonly work: Work,
    private readonly context: HandlerContext,
  ) {}

  /** Not async: a job without work starts and ends in one turn, as the quickest handlers do. */
  run(): unknown {
    const { parts, work, context } = this
    const { id, attempt, fence } = context
    parts.log.write({ what: 'started', n: work.n, id, attempt, fence })
    const waitMs = this.waitMs()
    return waitMs === 0 ? this.end() : this.endAfter(waitMs)
  }

  private waitMs(): number {
    if (this.sort === 'backlog') return BACKLOG_MS[this.parts.backlog.pace]
    return this.sort === 'snoozed' ? 0 : this.work.workMs
  }

  private async endAfter(waitMs: number): Promise<unknown> {
    const { signal } = this.context
    // What may start only once does not let itself be broken off: a throw would be its end, as a failure.
    if (this.sort === 'once') {
      await sleep(waitMs)
      return this.end()
    }
    await sleep(waitMs, undefined, { signal }).catch(() => {})
    if (!signal.aborted) return this.end()
    this.finished('aborted')
    throw signal.reason
  }

  private end(): unknown {
    const { parts, sort, work, context } = this
    if (sort === 'snoozed' && parts.storeNow() < context.enqueuedAt.getTime() + work.workMs) {
      this.finished('snoozed')
      return snooze(SNOOZE_MS)
    }
    // A crash uses an attempt up as well, so these may fail less often than they were planned to.
    if (context.attempt <= work.failures) {
      this.finished(sort === 'postponed' ? 'postponed' : 'failed')
      if (sort === 'postponed') return retryAfter(RETRY_AFTER_MS)
      throw new Error(`attempt ${context.attempt} fails, as planned`)
    }
    parts.log.write({ what: 'effect', n: work.n, id: context.id, fence: context.fence })
    if (sort === 'backlog') parts.backlog.done += 1
    return undefined
  }

  private finished(as: 'failed' | 'snoozed' | 'postponed' | 'aborted'): void {
    const { id, fence } = this.context
    this.parts.log.write({ what: 'finished', n: this.work.n, id, fence, as })
  }
}
