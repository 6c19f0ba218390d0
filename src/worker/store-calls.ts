/**
 * Calls to the store: each bounded in time, repeated with backoff for ever where the caller wants that, and their
 * failures told as events. One per session; called by every part of a worker.
 */
import type { Env } from '../core/env.js'
import { type ErrorCode, QueueError } from '../core/errors.js'
import { describeFailure } from '../core/failure.js'
import { storeRetryMs } from '../core/polling.js'
import type { EventBus } from '../observe/events.js'

/**
 * A call that was not answered for so long is made again: every call bears that. Half-open connections are found out by
 * it: with it and a new connection, work has to be back within 15 s of the end of what swallowed it.
 */
export const CALL_MS_MAX = 10_000

/** Asking again would give the same answer. */
const FINAL: ReadonlySet<ErrorCode> = new Set(['STORE_REJECTED', 'QUEUE_CLOSED', 'CAPABILITY_MISSING'])

export class StoreCalls {
  /** Since when each operation fails, by the local clock. */
  private readonly failing = new Map<string, { since: number; failures: number }>()

  /** `ended` fires when nothing may be tried any more; `onRecovered` is called when an operation works again. */
  constructor(
    private readonly env: Env,
    private readonly events: EventBus,
    private readonly ended: AbortSignal,
    private readonly onRecovered: () => void,
  ) {}

  /** The session has ended: nothing is tried any more. */
  get over(): boolean {
    return this.ended.aborted
  }

  /** For how long the operation that fails longest has failed; 0 when none does. */
  get failingForMs(): number {
    let since = Number.POSITIVE_INFINITY
    for (const one of this.failing.values()) since = Math.min(since, one.since)
    return since === Number.POSITIVE_INFINITY ? 0 : this.env.monotonic() - since
  }

  /** The operations whose last try failed. */
  get failingOperations(): string[] {
    return [...this.failing.keys()]
  }

  /** One try, in bounded time. What the store does after that is unknown. */
  async once<T>(call: () => Promise<T>, maxMs = CALL_MS_MAX): Promise<T> {
    let end: () => void = () => {}
    const late = new Promise<never>((_, reject) => {
      const fail = (code: ErrorCode, message: string): void => reject(new QueueError(code, message))
      const timer = this.env.timer(maxMs, () => fail('OUTCOME_UNKNOWN', `the store did not answer within ${maxMs} ms`))
      const stop = (): void => fail('WORKER_STOPPED', 'the worker was stopped before the store answered')
      this.ended.addEventListener('abort', stop, { once: true })
      if (this.ended.aborted) stop()
      end = () => {
        timer.cancel()
        this.ended.removeEventListener('abort', stop)
      }
    })
    try {
      return await Promise.race([call(), late])
    } finally {
      end()
    }
  }

  /**
   * Tries until the store answers, with backoff; for calls that may be repeated. Rejects when the store refuses the
   * call itself, or when `until` (by default: the session) ends first.
   */
  async repeated<T>(operation: string, call: () => Promise<T>, until?: AbortSignal): Promise<T> {
    for (;;) {
      try {
        const answer = await this.once(call)
        this.succeeded(operation)
        return answer
      } catch (error) {
        if (isFinal(error)) throw error
        await this.pause(operation, error, until)
      }
    }
  }

  /** Tells the failure, then waits before the next try. Rejects with the error when there shall be none. */
  async pause(operation: string, error: unknown, until = this.ended): Promise<void> {
    await this.env.sleep(this.failed(operation, error), until)
    if (until.aborted) throw error
  }

  /** Notes and tells a failure; answers how long to wait before the next try, unless the caller knows. */
  failed(operation: string, error: unknown, knownRetryMs?: number): number {
    const one = this.failing.get(operation) ?? { since: this.env.monotonic(), failures: 0 }
    one.failures += 1
    this.failing.set(operation, one)
    const retryInMs = knownRetryMs ?? storeRetryMs(one.failures, this.env.random())
    if (this.events.active && !this.ended.aborted)
      this.events.emit({ type: 'store.unavailable', operation, error: describeFailure(error), retryInMs })
    return retryInMs
  }

  succeeded(operation: string): void {
    const one = this.failing.get(operation)
    if (!one) return
    this.failing.delete(operation)
    if (this.events.active)
      this.events.emit({ type: 'store.recovered', operation, afterMs: this.env.monotonic() - one.since })
    this.onRecovered()
  }
}

export function isFinal(error: unknown): boolean {
  return error instanceof QueueError && FINAL.has(error.code)
}

/** The store refused what it was given, rather than failing to take it. */
export function isRefusal(error: unknown): boolean {
  return error instanceof QueueError && error.code === 'STORE_REJECTED'
}
