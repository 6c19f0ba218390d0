/** Changes named jobs and queues from outside: cancel, retry, redrive, discard, pause, drain, purge. Called by the queue. */
import { knownJobId } from '../core/choices.js'
import { assert, QueueError } from '../core/errors.js'
import {
  callback,
  duration,
  flag,
  type Given,
  invalidOption,
  name,
  type OptionTable,
  object,
  oneOf,
  optionReader,
} from '../core/options.js'
import type { Connection } from '../storage/connection.js'
import type {
  CancelAnswer,
  Control,
  DiscardAnswer,
  JobView,
  MovedOn,
  QueueCounts,
  QueueOrder,
  RedriveAnswer,
  RetryAnswer,
} from '../storage/storage.js'
import { type Telling, TOLD_CANCELLED, TOLD_DISCARDED, TOLD_REDRIVEN, TOLD_RETRIED } from './bulk.js'
import type { Inspector } from './inspector.js'
import { type LimitOptions, limitsOf } from './limits.js'
import { need } from './need.js'

/** Ids in one call to the store. */
const IDS_MAX = 1_000
/** Jobs that one call deletes: short statements hold nobody up. */
const PURGE_MAX = 1_000
/** Until the next step of a purge that found all that is left in other hands. */
const PURGE_WAIT_MS_MIN = 20
const PURGE_WAIT_MS_MAX = 1_000
const DRAIN_POLL_MS_MIN = 50
const DRAIN_POLL_MS_MAX = 2_000

const REDRIVE_OPTIONS = {
  /** Also at-most-once jobs that may have run. */
  force: { default: false, check: flag },
} satisfies OptionTable

const DRAIN_OPTIONS = {
  /** How long to wait; 1 hour unless given. */
  timeout: { default: 3_600_000, check: duration() },
  /** Ends the wait; the queue goes on refusing. */
  signal: { check: object<AbortSignal>('an AbortSignal') },
} satisfies OptionTable

/** How far a purge has come. */
export interface PurgeProgress {
  /** Jobs that were deleted. */
  deleted: number
  /** Whether there may be more that wait. */
  more: boolean
}

const PURGE_OPTIONS = {
  /** Ends the purge between two steps; it resolves to what was deleted. */
  signal: { check: object<AbortSignal>('an AbortSignal') },
  /** Called after each step. What it throws ends the purge, and is thrown on. */
  onProgress: { check: callback<(progress: PurgeProgress) => void>() },
} satisfies OptionTable

// Interfaces with a member of their own: see bulk-options.ts.

/** `force`: also at-most-once jobs that may have run. */
export interface RedriveOptions extends Given<typeof REDRIVE_OPTIONS> {
  /** Also at-most-once jobs that may have run. */
  force?: boolean
}
/** How long `drain` waits: `{ timeout, signal }`. */
export interface DrainOptions extends Given<typeof DRAIN_OPTIONS> {
  /** Ends the wait; the queue goes on refusing. */
  signal?: AbortSignal
}
/** How `purge` is watched and ended: `{ signal, onProgress }`. */
export interface PurgeOptions extends Given<typeof PURGE_OPTIONS> {
  /** Ends the purge between two steps; it resolves to what was deleted. */
  signal?: AbortSignal
}

const readRedrive = optionReader(REDRIVE_OPTIONS)
const readDrain = optionReader(DRAIN_OPTIONS)
const readPurge = optionReader(PURGE_OPTIONS)
const orderCheck = oneOf(['ageing', 'strict', 'weighted'])

/** One answer for one id, an array of answers for an array. */
export type PerId<Ids extends string | readonly string[], Answer> = Ids extends string ? Answer : Answer[]

export class Controller {
  constructor(
    private readonly connection: Connection,
    private readonly inspector: Inspector,
  ) {}

  async cancel<Ids extends string | readonly string[]>(ids: Ids): Promise<PerId<Ids, CancelAnswer>> {
    const control = this.facet('cancelling jobs')
    return this.each(ids, (part) => control.cancel(part), TOLD_CANCELLED)
  }

  async retry<Ids extends string | readonly string[]>(ids: Ids): Promise<PerId<Ids, RetryAnswer>> {
    const control = this.facet('retrying jobs')
    return this.each(ids, (part) => control.retry(part), TOLD_RETRIED)
  }

  async redrive<Ids extends string | readonly string[]>(
    ids: Ids,
    options?: RedriveOptions,
  ): Promise<PerId<Ids, RedriveAnswer>> {
    const control = this.facet('redriving jobs')
    const { force } = readRedrive(options)
    return this.each(ids, (part) => control.redrive(part, { force }), TOLD_REDRIVEN)
  }

  async discard<Ids extends string | readonly string[]>(ids: Ids): Promise<PerId<Ids, DiscardAnswer>> {
    const control = this.facet('discarding jobs')
    return this.each(ids, (part) => control.discard(part), TOLD_DISCARDED)
  }

  async pause(queue: string): Promise<void> {
    await this.facet('pausing a queue').pause(name(queue, 'queue'))
    this.connection.events.emit({ type: 'queue.paused', queue })
  }

  async resume(queue: string): Promise<void> {
    await this.facet('resuming a queue').resume(name(queue, 'queue'))
    this.connection.events.emit({ type: 'queue.resumed', queue })
    this.connection.hints.tell(queue)
  }

  async order(queue: string, order: QueueOrder): Promise<void> {
    await this.facet('ordering a queue').order(name(queue, 'queue'), orderCheck(order, 'order'))
  }

  async limit(queue: string, limits: LimitOptions): Promise<void> {
    const control = this.facet('limiting a queue')
    await control.limit(name(queue, 'queue'), limitsOf(limits))
    this.connection.hints.tell(queue)
  }

  async purge(queue: string, options?: PurgeOptions): Promise<number> {
    const control = this.facet('purging a queue')
    name(queue, 'queue')
    const { signal, onProgress } = readPurge(options)
    const so = { deleted: 0, more: true }
    let waitMs = PURGE_WAIT_MS_MIN
    try {
      while (so.more && !signal?.aborted) {
        const step = await control.purge(queue, PURGE_MAX)
        so.deleted += step.deleted
        so.more = step.more
        onProgress?.({ ...so })
        // Somebody holds what is left at this moment.
        waitMs = step.deleted > 0 ? PURGE_WAIT_MS_MIN : Math.min(PURGE_WAIT_MS_MAX, waitMs * 2)
        if (so.more && step.deleted === 0) await this.connection.env.sleep(waitMs, signal)
      }
    } finally {
      // What is gone is gone, also when a later step fails.
      if (so.deleted > 0 || !so.more) this.connection.events.emit({ type: 'queue.purged', queue, deleted: so.deleted })
    }
    return so.deleted
  }

  async drain(queue: string, options?: DrainOptions): Promise<void> {
    const control = this.facet('draining a queue')
    const { timeout, signal } = readDrain(options)
    const { env, events } = this.connection
    const deadline = env.monotonic() + timeout
    signal?.throwIfAborted()
    await control.refuse(name(queue, 'queue'))
    events.emit({ type: 'queue.draining', queue })
    for (let waitMs = DRAIN_POLL_MS_MIN; ; waitMs = Math.min(DRAIN_POLL_MS_MAX, waitMs * 1.5)) {
      const left = unfinished(await this.inspector.counts(queue))
      if (left === 0) return
      const restMs = deadline - env.monotonic()
      if (restMs <= 0)
        throw new QueueError('WAIT_TIMEOUT', `queue "${queue}" still has ${left} jobs; it goes on refusing new ones`)
      await env.sleep(Math.min(waitMs, restMs), signal)
      signal?.throwIfAborted()
    }
  }

  /**
   * Answers in the order of the ids, asked for in parts; events for those answers that have one. The store answers by
   * id: kind and queue are looked up, only when somebody listens, and before, as there may be no record afterwards.
   */
  private async each<Ids extends string | readonly string[], Answer extends string>(
    given: Ids,
    ask: (ids: readonly string[]) => Promise<(Answer | MovedOn)[]>,
    told: Telling<Answer>,
  ): Promise<PerId<Ids, Answer>> {
    const ids = knownIds(given)
    const answers: Answer[] = []
    for (let start = 0; start < ids.length; start += IDS_MAX) {
      const part = ids.slice(start, start + IDS_MAX)
      const views = this.connection.events.active ? await this.inspector.getMany(part).catch(() => []) : undefined
      const said = unconditional(await ask(part))
      answers.push(...said)
      if (views) this.tell(part, said, views, told)
    }
    return (typeof given === 'string' ? answers[0] : answers) as PerId<Ids, Answer>
  }

  private tell<Answer extends string>(
    ids: readonly string[],
    answers: readonly Answer[],
    views: readonly (JobView | null | undefined)[],
    told: Telling<Answer>,
  ): void {
    ids.forEach((jobId, index) => {
      const make = told[answers[index]!]
      const view = views[index]
      if (make) this.connection.events.emit(make({ jobId, kind: view?.kind ?? '', queue: view?.queue ?? '' }))
    })
  }

  private facet(purpose: string): Control {
    return need(this.connection.storage, 'control', purpose)
  }
}

/** Only who says which jobs he means is told that one is none of them. */
function unconditional<Answer extends string>(answers: readonly (Answer | MovedOn)[]): Answer[] {
  return answers.map((answer) => {
    assert(answer !== 'moved on', 'the store looked at a condition that nobody gave')
    return answer as Answer
  })
}

function knownIds(given: string | readonly string[]): string[] {
  if (typeof given === 'string') return [knownJobId(given, 'id')]
  if (!Array.isArray(given)) throw invalidOption('ids', given, 'the id of a job, or an array of ids')
  return given.map((id, index) => knownJobId(id, `ids[${index}]`))
}

function unfinished(counts: QueueCounts): number {
  const { ready, delayed, retrying, blocked, running } = counts
  return ready.count + delayed.count + retrying.count + blocked.count + running.count
}
