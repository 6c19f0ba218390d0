/** What a handler sees of its job. Made by the executor for each attempt; everything costly is made when first asked for. */
import type { HandlerContext, StopReason } from '../core/handler.js'
import { attemptNumber, type Json } from '../core/job.js'
import { encodeJson, PROGRESS } from '../core/json.js'
import type { EventBus } from '../observe/events.js'
import type { HeldJob } from './holdings.js'
import { factsOf } from './telling.js'

const STOP_MESSAGES: Record<StopReason, string> = {
  TIMEOUT: 'the attempt ran longer than its timeout',
  CANCELLED: 'the job was cancelled',
  LEASE_LOST: 'the worker lost the lease of the job, which may run elsewhere now',
  SHUTDOWN: 'the worker is shutting down',
}

/** The reason of a handler's signal. */
export class StopError extends Error {
  override readonly name = 'StopError'

  constructor(readonly code: StopReason) {
    super(STOP_MESSAGES[code])
  }
}

/** Fires the signal of a running job. The first reason stays. */
export function stopHandler(held: HeldJob, reason: StopReason): void {
  if (held.stop !== undefined) return
  held.stop = reason
  held.controller?.abort(new StopError(reason))
}

export class JobContext implements HandlerContext {
  readonly #held: HeldJob
  readonly #events: EventBus

  constructor(held: HeldJob, events: EventBus) {
    this.#held = held
    this.#events = events
  }

  get id(): string {
    return this.#held.job.id
  }

  get kind(): string {
    return this.#held.job.kind
  }

  get queue(): string {
    return this.#held.job.queue
  }

  get priority(): number {
    return this.#held.job.priority
  }

  get attempt(): number {
    return attemptNumber(this.#held.job.history)
  }

  get lastAttempt(): boolean {
    const { spec } = this.#held.job
    return spec.delivery === 'at-most-once' || this.attempt >= spec.attempts
  }

  get fence(): number {
    return this.#held.lease.fence
  }

  get idempotencyKey(): string | undefined {
    return this.#held.job.spec.idempotencyKey
  }

  get enqueuedAt(): Date {
    return new Date(this.#held.job.enqueuedAt)
  }

  get signal(): AbortSignal {
    const held = this.#held
    if (!held.controller) {
      held.controller = new AbortController()
      if (held.stop !== undefined) held.controller.abort(new StopError(held.stop))
    }
    return held.controller.signal
  }

  // Functions and not methods, so that a handler may take them out of its context.
  get log(): HandlerContext['log'] {
    return (message, fields) => this.#log(message, fields)
  }

  get progress(): HandlerContext['progress'] {
    return (value) => this.#progress(value)
  }

  #log(message: string, fields: Record<string, unknown> | undefined): void {
    if (!this.#events.active) return
    const more = fields === undefined ? {} : { fields }
    this.#events.emit({ type: 'job.log', ...factsOf(this.#held), level: 'info', message, ...more })
  }

  #progress(value: Json): void {
    // A copy: what the handler changes later was not checked, and is not what the event told.
    const progress = JSON.parse(encodeJson(value, PROGRESS)) as Json
    if (this.#held.state !== 'ended') this.#held.progress = progress
    if (this.#events.active) this.#events.emit({ type: 'job.progressed', ...factsOf(this.#held), progress })
  }
}
