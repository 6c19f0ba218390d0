/**
 * The end of a session (W4): no new claims, running jobs finish while beats go on, then they are aborted, then given
 * back. Every step has an end, also with a store that does not answer. Begun by worker.ts, wired by session.ts.
 */
import type { Session } from './session.js'

/** For handlers to end after their signal has fired; taken from the end of the grace, half of it at most. */
const ABORT_MS_MAX = 1_000
/** Even without any grace those that heed the signal get a moment. */
const ABORT_MS_MIN = 50
/** After the grace, for what has to reach the store: outcomes and give-backs. */
const FLUSH_MS_MAX = 700
/** For the good bye and for connections to close. Together with the flush less than a second. */
const TAKE_DOWN_MS = 250

export class Shutdown {
  /** Resolves when all is down. */
  readonly done: Promise<void>
  private finish!: () => void
  /** By the local clock: when signals fire, and when what still runs is given back. */
  private abortAt = Number.POSITIVE_INFINITY
  private deadline = Number.POSITIVE_INFINITY
  private wake: () => void = () => {}

  /** `end` makes every call to the store that still waits give up. */
  constructor(
    private readonly session: Session,
    private readonly end: () => void,
  ) {
    this.done = new Promise((resolve) => {
      this.finish = resolve
    })
  }

  get begun(): boolean {
    return this.deadline !== Number.POSITIVE_INFINITY
  }

  /** Stops the session. Called again it can only shorten the grace. */
  begin(graceMs: number, reason: string): Promise<void> {
    const { session, begun } = this
    const { env, events } = session.connection
    const deadline = env.monotonic() + graceMs
    this.deadline = Math.min(this.deadline, deadline)
    this.abortAt = Math.min(this.abortAt, deadline - Math.min(ABORT_MS_MAX, graceMs / 2))
    this.wake()
    if (begun) return this.done
    const running = session.executor.undecided
    events.emit({ type: 'worker.draining', worker: session.identity.worker, reason, running })
    void this.run()
    return this.done
  }

  /** Something ended; it may be what a step waits for. */
  changed(): void {
    this.wake()
  }

  private async run(): Promise<void> {
    const { executor, fetcher, settler, connection } = this.session
    const landed = fetcher.stop()
    const quiet = (): boolean => executor.undecided === 0
    await this.until(quiet, () => this.abortAt)
    const abortedAt = connection.env.monotonic()
    executor.stopAll('SHUTDOWN')
    await this.until(quiet, () => Math.max(this.deadline, abortedAt + ABORT_MS_MIN))
    executor.abandonAll('shutdown')
    await this.step(
      landed.then(() => settler.flush()),
      () => this.deadline + FLUSH_MS_MAX,
    )
    await this.takeDown()
  }

  private async takeDown(): Promise<void> {
    const { session } = this
    const { env, events, storage } = session.connection
    const { worker } = session.identity
    const parts = [session.heartbeat.stop(), session.upkeep.stop(), session.hearing.stop()]
    // A good bye gives back what is left. Of what started and could not be settled nobody may think that it never ran:
    // that is left to the end of its lease. Without an answer to any beat too, as the first one may have arrived.
    if (session.holdings.named(env.monotonic()).started.length === 0)
      parts.push(session.calls.once(() => storage.unregister(worker)).catch(() => {}))
    const all = Promise.all(parts)
    const until = env.monotonic() + TAKE_DOWN_MS
    await this.step(all, () => Math.max(until, this.deadline))
    this.end()
    await all
    session.settler.stop()
    session.executor.stop()
    session.watch.stop()
    events.emit({ type: 'worker.stopped', worker, givenBack: session.stats.givenBack })
    this.finish()
  }

  /** Waits for it, but not beyond a moment of the local clock, which may come nearer meanwhile. */
  private async step(promise: Promise<unknown>, at: () => number): Promise<void> {
    let over = false
    const settled = (): void => {
      over = true
      this.wake()
    }
    promise.then(settled, settled)
    await this.until(() => over, at)
  }

  private async until(holds: () => boolean, at: () => number): Promise<void> {
    const { env } = this.session.connection
    for (;;) {
      const waitMs = at() - env.monotonic()
      if (holds() || waitMs <= 0) return
      await new Promise<void>((resolve) => {
        const timer = env.timer(waitMs, resolve)
        this.wake = () => {
          timer.cancel()
          resolve()
        }
      })
    }
  }
}
