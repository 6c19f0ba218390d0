/** The jobs of a simulation as an application would define them, and what their handlers do. Used by producers and workers. */
import { type BoundHandler, dead, type HandlerContext, retryAfter, snooze } from '../../core/handler.js'
import { defineJob, type JobItem, type JobKind } from '../../core/kind.js'
import { SORTS, type Sort } from './configuration.js'
import type { PlannedJob } from './plan.js'
import type { Process } from './process.js'
import type { Witnessing } from './witnessing.js'

interface Payload {
  n: number
}

const SNOOZE_MS = 2_000
const RETRY_AFTER_MS = 1_500
/** A job that may expire is not started so long after its enqueue. */
export const EXPIRES_MS = 8_000
export const BACKOFF = { base: 500, cap: 8_000 } as const

export const KINDS = Object.fromEntries(SORTS.map((sort) => [sort, kindOf(sort)])) as {
  [sort in Sort]: JobKind<Payload, Payload, unknown>
}

function kindOf(sort: Sort): JobKind<Payload, Payload, unknown> {
  const name = `sim.${sort}`
  if (sort === 'once') return defineJob<Payload>(name, { delivery: 'at-most-once' })
  const retry = { retry: { backoff: { ...BACKOFF } } }
  if (sort === 'unkept') return defineJob<Payload>(name, { ...retry, keep: 'none' })
  return defineJob<Payload>(name, sort === 'expiring' ? { ...retry, expiresIn: EXPIRES_MS } : retry)
}

/** `storeNowMs`: the store's clock, for those that are due at an instant. `id`: for those whose id the caller chooses. */
export function itemOf(planned: PlannedJob, storeNowMs: number, id: () => string): JobItem {
  const { n, sort, queue, priority, tenant, delayMs, key, timeoutMs, attempts } = planned
  const due = n % 2 === 0 ? { delay: delayMs } : { runAt: Math.ceil(storeNowMs + delayMs) }
  return KINDS[sort].with(
    { n },
    {
      queue,
      priority,
      timeout: timeoutMs,
      ...(tenant === undefined ? {} : { tenant: tenant.name, weight: tenant.weight }),
      ...(sort === 'once' ? {} : { retry: { attempts } }),
      ...(delayMs === 0 ? {} : due),
      ...(key === undefined ? {} : { idempotencyKey: key }),
      ...(sort === 'chosen' ? { id: id() } : {}),
    },
  )
}

export interface HandlerParts {
  readonly process: Process
  readonly record: Witnessing
  readonly sorts: readonly Sort[]
  readonly plan: (n: number) => PlannedJob
}

export function handlersOf(parts: HandlerParts): BoundHandler[] {
  return parts.sorts.map((sort) =>
    KINDS[sort].handle(({ n }, context) => new Attempt(parts, parts.plan(n), context).run()),
  )
}

type Finish = 'failed' | 'snoozed' | 'postponed' | 'aborted'

class Attempt {
  private over = false

  constructor(
    private readonly parts: HandlerParts,
    private readonly planned: PlannedJob,
    private readonly context: HandlerContext,
  ) {}

  /** Not async: a job without work starts and ends in one turn, as the quickest handlers do. */
  run(): unknown {
    const { parts, planned, context } = this
    const { id, attempt, fence } = context
    parts.record.write(parts.process, { what: 'started', n: planned.n, id, attempt, fence })
    if (planned.sort === 'poison') {
      parts.process.die('by a poison job')
      return new Promise(() => {})
    }
    if (planned.sort === 'overtime' && attempt <= planned.failures) return this.runOver()
    const waitMs = planned.sort === 'snoozed' ? 0 : planned.workMs
    return waitMs === 0 ? this.end() : this.endAfter(waitMs)
  }

  private async endAfter(waitMs: number): Promise<unknown> {
    const { signal } = this.context
    await this.parts.process.rest(waitMs, signal)
    if (!signal.aborted) return this.end()
    this.finish('aborted')
    throw signal.reason
  }

  /** Beyond its time; some take no notice of the signal for a while. What they do then is no run any more. */
  private async runOver(): Promise<unknown> {
    const { signal } = this.context
    await this.parts.process.rest(2 * this.planned.timeoutMs, signal)
    this.finish('aborted')
    await this.parts.process.rest(this.planned.deafMs)
    throw signal.reason ?? new Error('the time-out did not come')
  }

  private end(): unknown {
    const { planned, context } = this
    const storeNowMs = this.parts.process.now() - this.parts.process.skewMs
    if (planned.sort === 'snoozed' && storeNowMs < context.enqueuedAt.getTime() + planned.workMs) {
      this.finish('snoozed')
      return snooze(SNOOZE_MS)
    }
    if (planned.sort === 'rejected') {
      this.finish('failed')
      return dead('it is told to be dead')
    }
    // A crash uses an attempt up as well, so these may fail less often than they were planned to.
    if (context.attempt <= planned.failures) {
      this.finish(planned.sort === 'postponed' ? 'postponed' : 'failed')
      if (planned.sort === 'postponed') return retryAfter(RETRY_AFTER_MS)
      throw new Error(`attempt ${context.attempt} fails, as planned`)
    }
    const { id, fence } = context
    this.parts.record.write(this.parts.process, { what: 'effect', n: planned.n, id, fence })
    return planned.n % 3 === 0 ? { n: planned.n } : undefined
  }

  private finish(as: Finish): void {
    if (this.over) return
    this.over = true
    const { id, fence } = this.context
    this.parts.record.write(this.parts.process, { what: 'finished', n: this.planned.n, id, fence, as })
  }
}
