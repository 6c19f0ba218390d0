/**
 * Producers that are slowed instead of refused: they wait a little before they send as the queue fills, and a refusal is tried
 * again. Called by producer and batches.
 */
import { QueueError } from '../core/errors.js'
import {
  badRelation,
  type Check,
  duration,
  flag,
  type Given,
  type Held,
  type OptionTable,
  optionReader,
} from '../core/options.js'
import type { Connection } from '../storage/connection.js'
import type { NewJob } from '../storage/storage.js'
import { announce } from './announce.js'
import type { Capacities } from './capacities.js'
import { retryDelayMs, type Sent } from './outcome.js'
import { CLOSED, type Sender } from './sender.js'
import { Signals } from './signals.js'

const ADAPTIVE_OPTIONS = {
  /** For how long it goes on in all before it is refused after all; 30 seconds unless given. */
  upTo: { default: 30_000, check: duration({ minMs: 1, maxMs: 86_400_000 }) },
  /** The wait before each send to a queue that is all but full; 1 second unless given. */
  slowest: { default: 1_000, check: duration({ minMs: 1, maxMs: 60_000 }) },
} satisfies OptionTable

const readAdaptive = optionReader(ADAPTIVE_OPTIONS)

export type AdaptiveChoice = boolean | Given<typeof ADAPTIVE_OPTIONS>
export type Adaptive = Held<typeof ADAPTIVE_OPTIONS>

export const adaptive: Check<AdaptiveChoice, Adaptive | undefined> = (value, field) => {
  if (typeof value === 'object') return readAdaptive(value, `${field}.`)
  return flag(value, field) ? readAdaptive(undefined) : undefined
}

/** A wait inside of a transaction would hold its locks, and keep others from what they are slowed by. */
export function checkAdaptive(call: { adaptive?: unknown; tx?: unknown }): void {
  if (call.adaptive !== undefined && call.tx !== undefined)
    throw badRelation('adaptive', 'it waits, and would hold your transaction open meanwhile; leave out tx or adaptive')
}

/** Up to here nobody is slowed. */
const EASY = 0.5

/** How long to wait before a send to a queue of which so much is taken: nothing up to a half, then more and more. */
export function slowDelayMs(fullness: number, slowestMs: number): number {
  return Math.round(slowestMs * Math.min(1, Math.max(0, (fullness - EASY) / (1 - EASY))))
}

export interface AdaptiveCall {
  readonly adaptive: Adaptive
  /** Ends the waits; what was not sent by then never is. */
  readonly signal: AbortSignal | undefined
}

export class Pacer {
  private readonly signals = new Signals()
  private readonly pauses = new Set<AbortController>()
  private closed = false

  constructor(
    private readonly connection: Connection,
    private readonly capacities: Capacities,
    private readonly sender: Sender,
  ) {}

  /** Who waits does so no longer; what was not sent is refused. */
  close(): void {
    this.closed = true
    for (const pause of this.pauses) pause.abort()
  }

  /**
   * Waits by how full the fullest of the queues is, and sends; what is refused for now is sent again as its refusal says, in
   * order, until nothing is or the time is over. An outcome for each job. Never rejects.
   */
  async send(
    jobs: readonly NewJob[],
    { adaptive: { upTo, slowest }, signal }: AdaptiveCall,
    attempt: (jobs: readonly NewJob[]) => Promise<Sent[]>,
  ): Promise<Sent[]> {
    const { env } = this.connection
    const until = env.monotonic() + upTo
    for (const job of jobs) this.sender.patient.add(job)
    await this.pause(Math.min(upTo, slowDelayMs(await this.fullest(jobs), slowest)), signal)
    if (this.closed || signal?.aborted) return jobs.map(() => (this.closed ? CLOSED : STOPPED))
    const sent = await attempt(jobs)
    for (;;) {
      const open = jobs.flatMap((_, index) => (retryDelayMs(sent[index]!) === undefined ? [] : [index]))
      if (open.length === 0) return sent
      const leftMs = until - env.monotonic()
      const waits = open.map((index) => retryDelayMs(sent[index]!)!)
      // Many that were refused together do not come back together.
      if (leftMs > 0) await this.pause(Math.min(leftMs, Math.min(...waits) * (1 + env.random() / 4)), signal)
      if (leftMs <= 0 || this.closed || signal?.aborted) return this.refused(jobs, sent, open)
      const answers = await attempt(open.map((index) => jobs[index]!))
      open.forEach((index, at) => {
        sent[index] = answers[at]!
      })
    }
  }

  /** Nobody was told of these while they might still go. */
  private refused(jobs: readonly NewJob[], sent: Sent[], open: readonly number[]): Sent[] {
    announce(
      this.connection,
      open.map((index) => jobs[index]!),
      open.map((index) => sent[index]!),
    )
    return sent
  }

  private async fullest(jobs: readonly NewJob[]): Promise<number> {
    const places = new Map(jobs.map((job) => [this.capacities.placeOf(job), job]))
    return Math.max(0, ...(await Promise.all([...places.values()].map((job) => this.capacities.fullness(job)))))
  }

  private async pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    if (ms <= 0 || this.closed || signal?.aborted) return
    const pause = new AbortController()
    const forget = signal && this.signals.on(signal, () => pause.abort())
    this.pauses.add(pause)
    await this.connection.env.sleep(ms, pause.signal)
    this.pauses.delete(pause)
    forget?.()
  }
}

export const STOPPED: Sent = Object.freeze({
  status: 'failed',
  cause: new QueueError('ENQUEUE_STOPPED', 'the job was not sent: the signal fired while it waited for room'),
})
