/** Changes all jobs that match a filter: redrive and discard dead letters, cancel and retry what waits. Called by the queue. */
import type { JobFacts, QueueEvent } from '../observe/events.js'
import type { Connection } from '../storage/connection.js'
import type {
  CancelAnswer,
  DiscardAnswer,
  MatchedJob,
  RedriveAnswer,
  RetryAnswer,
  Storage,
} from '../storage/storage.js'
import {
  type BulkAnswer,
  type BulkOptions,
  type BulkResult,
  type HeldBulk,
  type RedriveAllOptions,
  readBulk,
  readRedriveAll,
} from './bulk-options.js'
import { BulkRun, type BulkSite, type BulkWork } from './bulk-run.js'
import {
  type CancelFilter,
  cancelWish,
  type DeadFilter,
  deadWish,
  type RetryFilter,
  retryWish,
  type Wish,
} from './filters.js'
import { need } from './need.js'

/** What each answer that changed a job is told as. */
export type Telling<Answer extends string> = Partial<Record<Answer, (facts: JobFacts) => QueueEvent>>

export const TOLD_REDRIVEN: Telling<RedriveAnswer> = { ok: (facts) => ({ type: 'job.redriven', ...facts }) }
export const TOLD_DISCARDED: Telling<DiscardAnswer> = { discarded: (facts) => ({ type: 'job.discarded', ...facts }) }
export const TOLD_RETRIED: Telling<RetryAnswer> = {
  ok: (facts) => ({ type: 'job.retried', ...facts, by: 'operator' }),
}
export const TOLD_CANCELLED: Telling<CancelAnswer> = {
  cancelled: (facts) => ({ type: 'job.cancelled', ...facts }),
  signalled: (facts) => ({ type: 'job.cancel requested', ...facts }),
}

/** A job of which a cancel says so waits and runs no more. */
const ENDED: ReadonlySet<BulkAnswer> = new Set<BulkAnswer<CancelAnswer>>(['cancelled', 'ended', 'unknown'])

/** What dies again during a run is younger than the run, and does not match. */
const never = (): boolean => false

export class Bulk {
  constructor(private readonly connection: Connection) {}

  async redriveAll(filter: DeadFilter, options?: RedriveAllOptions): Promise<BulkResult<RedriveAnswer>> {
    need(this.connection.storage, 'control', 'redriving jobs')
    const { force, ...held } = readRedriveAll(options)
    return this.run(deadWish(filter), held, {
      ask: (control, ids, endedBefore) => control.redrive(ids, { force, endedBefore }),
      trace: 'redriven',
      foreseen: ({ reason }) => (reason === 'lost' && !force ? 'needs force' : 'ok'),
      comesAgain: never,
      told: TOLD_REDRIVEN,
    })
  }

  async discardAll(filter: DeadFilter, options?: BulkOptions): Promise<BulkResult<DiscardAnswer>> {
    need(this.connection.storage, 'control', 'discarding jobs')
    return this.run(deadWish(filter), readBulk(options), {
      ask: (control, ids, endedBefore) => control.discard(ids, { endedBefore }),
      // No record is left to tell of it.
      trace: undefined,
      foreseen: () => 'discarded',
      comesAgain: never,
      told: TOLD_DISCARDED,
    })
  }

  async cancelAll(filter: CancelFilter, options?: BulkOptions): Promise<BulkResult<CancelAnswer>> {
    need(this.connection.storage, 'control', 'cancelling jobs')
    const wish = cancelWish(filter)
    const held = readBulk(options)
    return this.run(wish, held, {
      ask: (control, ids) => control.cancel(ids, { states: wish.states }),
      trace: 'cancelled',
      foreseen: (_, state) => (state === 'running' ? 'signalled' : 'cancelled'),
      comesAgain: (answer) => held.dryRun || !ENDED.has(answer),
      told: TOLD_CANCELLED,
    })
  }

  async retryAll(filter: RetryFilter, options?: BulkOptions): Promise<BulkResult<RetryAnswer>> {
    need(this.connection.storage, 'control', 'retrying jobs')
    const wish = retryWish(filter)
    return this.run(wish, readBulk(options), {
      ask: (control, ids) => control.retry(ids, { states: wish.states }),
      trace: 'retried',
      foreseen: () => 'ok',
      comesAgain: () => true,
      told: TOLD_RETRIED,
    })
  }

  /** An answer that is told as an event is one that changed the job. */
  private run<Answer extends string>(
    wish: Wish,
    options: HeldBulk,
    { told, ...how }: Pick<BulkWork<Answer>, 'ask' | 'foreseen' | 'trace' | 'comesAgain'> & { told: Telling<Answer> },
  ): Promise<BulkResult<Answer>> {
    const { events } = this.connection
    const telling = (answer: BulkAnswer<Answer>): ((facts: JobFacts) => QueueEvent) | undefined =>
      (told as Telling<BulkAnswer>)[answer]
    const tell = ({ id, kind, queue }: MatchedJob, answer: BulkAnswer<Answer>): void => {
      const make = telling(answer)
      if (make) events.emit(make({ jobId: id, kind, queue }))
    }
    const work: BulkWork<Answer> = { ...how, isDone: (answer) => telling(answer) !== undefined, tell }
    return new BulkRun(this.connection, this.sites(), wish, options, work).run()
  }

  /** Those that are away come last, and are waited for when all else is done. */
  private sites(): [BulkSite, ...BulkSite[]] {
    const { storage } = this.connection
    const all = [...(storage.partitions?.all ?? [])]
    const stores = all.sort((a, b) => Number(a.trouble !== undefined) - Number(b.trouble !== undefined))
    const [first = storage, ...rest] = stores.map((one) => one.storage)
    return [siteOf(first), ...rest.map(siteOf)]
  }
}

function siteOf(storage: Storage): BulkSite {
  return {
    inspect: need(storage, 'inspect', 'finding jobs'),
    control: need(storage, 'control', 'changing jobs'),
  }
}
