/** Reads any iterable, synchronous or not, without making the reader wait for a slow one. Called by batches. */
import type { Env } from '../core/env.js'
import { invalidOption } from '../core/options.js'

export type AnyIterable<T> = Iterable<T> | AsyncIterable<T>

type Steps<T> = Iterator<T> | AsyncIterator<T>
type Step<T> = IteratorResult<T, unknown>

/** The source has nothing yet. */
export const LATER = Symbol('later')
/** The source has ended, or failed: see `fault`. */
export const END = Symbol('end')

export class Source<T> {
  /** What the source threw, once it did. It ends then. */
  fault: { error: unknown } | undefined
  private readonly steps: Steps<T>
  private pending: Promise<Step<T>> | undefined
  private ended = false

  constructor(
    private readonly env: Env,
    items: AnyIterable<T>,
  ) {
    this.steps = stepsOf(items)
  }

  /** The next item. With `patience` (what `patience()` gave) it answers LATER when that is over first. */
  async next(patience: Promise<typeof LATER> | undefined): Promise<T | typeof LATER | typeof END> {
    try {
      this.pending ??= this.ended ? undefined : (this.steps.next() as Promise<Step<T>>)
      const step = patience === undefined ? await this.pending : await Promise.race([this.pending, patience])
      if (step === LATER) return LATER
      return this.taken(step)
    } catch (error) {
      return this.failed(error)
    }
  }

  /** As `next`, without a promise, where the source is synchronous; undefined where it is not. */
  nextNow(): { item: T | typeof END } | undefined {
    if (this.ended) return { item: END }
    if (this.pending !== undefined) return undefined
    try {
      const step = this.steps.next()
      if (!('then' in step)) return { item: this.taken(step) }
      this.pending = step
      return undefined
    } catch (error) {
      return { item: this.failed(error) }
    }
  }

  /** A promise of LATER after `ms`, and the function that forgets it. */
  patience(ms: number): { over: Promise<typeof LATER>; forget: () => void } {
    let forget = (): void => {}
    const over = new Promise<typeof LATER>((resolve) => {
      const timer = this.env.timer(ms, () => resolve(LATER))
      forget = () => timer.cancel()
    })
    return { over, forget }
  }

  /** Nobody reads on: the source may clean up. */
  async stop(): Promise<void> {
    if (this.ended) return
    this.ended = true
    // A source that is busy with its next item cleans up after it; nobody waits for that.
    const cleaned = Promise.resolve(this.steps.return?.()).catch(() => {})
    if (this.pending === undefined) await cleaned
  }

  private taken(step: Step<T> | undefined): T | typeof END {
    this.pending = undefined
    if (step !== undefined && !step.done) return step.value
    this.ended = true
    return END
  }

  private failed(error: unknown): typeof END {
    this.pending = undefined
    this.ended = true
    this.fault = { error }
    return END
  }
}

function stepsOf<T>(items: AnyIterable<T>): Steps<T> {
  const candidate = items as Partial<AsyncIterable<T> & Iterable<T>> | null | undefined
  if (typeof candidate?.[Symbol.asyncIterator] === 'function') return candidate[Symbol.asyncIterator]!()
  if (typeof candidate?.[Symbol.iterator] === 'function' && typeof items !== 'string')
    return candidate[Symbol.iterator]!()
  throw invalidOption('items', items, 'an iterable or async iterable of what kind.with(payload) makes')
}
