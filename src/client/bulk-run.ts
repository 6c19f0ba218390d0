/**
 * One bulk call: page by page of what matches, batch by batch of what is asked of the store, at a rate. It keeps
 * nothing of its own in the store: what was done has left the state that the filter names, so the same call made again
 * goes on with the rest, however the one before ended. Made by bulk.ts.
 */
import type { Env } from '../core/env.js'
import { QueueError } from '../core/errors.js'
import type { HistoryEntry } from '../core/job.js'
import type { Connection } from '../storage/connection.js'
import type { Control, Inspect, JobView, MatchedJob, MatchPage, MatchRequest, MovedOn } from '../storage/storage.js'
import { type BulkAnswer, type BulkResult, type HeldBulk, UNCONFIRMED } from './bulk-options.js'
import type { Wish } from './filters.js'

/** Ids are small, and a dry run asks for nothing else. */
const DRY_PAGE = 1_000
const DRY_RUN_MAX = 100_000
const SAMPLE_MAX = 10
/** Jobs that one look takes, where an answer was lost: each comes with its payload. */
const LOOK_MAX = 50
/** At a rate, batches are what is due in so long: many small ones, not a burst each ten seconds. */
const BATCH_MS = 250
/**
 * Ids that one run keeps in mind, tens of megabytes: of jobs that it has changed or passed by, and that may match again.
 * The run ends there as it does at a limit; the same call made again goes on.
 */
export const KNOWN_MAX = 500_000
/** So long a store that is away is waited for. */
const PATIENCE_MS = 60_000
const RETRY_MS_MIN = 100
const RETRY_MS_MAX = 5_000

/** A store in which jobs are found and changed. Each has its own clock. */
export interface BulkSite {
  readonly inspect: Inspect
  readonly control: Control
}

/** What is done to the jobs. */
export interface BulkWork<Answer extends string> {
  /** `before`: the end of the ages that were asked for, by the store's clock. */
  ask(control: Control, ids: readonly string[], before: number): Promise<(Answer | MovedOn)[]>
  /** The answer that is to be expected of a job that matches. */
  foreseen(job: MatchedJob, state: MatchRequest['state']): Answer
  isDone(answer: BulkAnswer<Answer>): boolean
  /** A job of which this was answered may match once more during the run: it runs on, or waits anew after a failure. */
  comesAgain(answer: BulkAnswer<Answer>): boolean
  /** What the history of a job tells of the change; undefined where no history is left to tell. */
  readonly trace: HistoryEntry['outcome'] | undefined
  /** Emits what has happened to the job. */
  tell(job: MatchedJob, answer: BulkAnswer<Answer>): void
}

/** A job that the store is asked to change. */
interface Taken<Answer extends string> {
  job: MatchedJob
  /** What is said of it if it is changed. */
  foreseen: Answer
  /** The store's time when it was seen to match. */
  seenMs: number
}

/** The signal has fired. */
const STOPPED = Symbol('stopped')

export class BulkRun<Answer extends string> {
  private readonly result: BulkResult<Answer>
  private readonly pace: Pace
  private readonly limit: number
  /** Jobs that the store was asked to change, or would be. */
  private asked = 0
  /** What ended at this instant or later was not meant; known once the store has told its time. */
  private before = Number.NEGATIVE_INFINITY
  /** Ids of jobs that were come to and may come again. */
  private readonly known = new Set<string>()

  /** The store that is gone through now. */
  private site: BulkSite

  /** One store after the other is gone through. */
  constructor(
    private readonly connection: Connection,
    private readonly sites: readonly [BulkSite, ...BulkSite[]],
    private readonly wish: Wish,
    private readonly options: HeldBulk,
    private readonly work: BulkWork<Answer>,
  ) {
    const { rate, batch, dryRun, limit = dryRun ? DRY_RUN_MAX : Number.POSITIVE_INFINITY } = options
    this.result = {
      matched: 0,
      done: 0,
      ...(dryRun ? { expected: 0 } : {}),
      answers: {},
      ended: 'all',
      dryRun,
      sample: [],
    }
    this.site = sites[0]
    this.pace = new Pace(connection.env, rate, batch)
    this.limit = limit
  }

  async run(): Promise<BulkResult<Answer>> {
    for (const site of this.sites) {
      this.site = site
      const bounds = await this.bounds()
      if (bounds === STOPPED) return this.ended('stopped')
      this.before = bounds.before
      for (const request of this.wish.requests) {
        const ended = await this.all({ ...request, ...bounds })
        if (ended !== 'all') return this.ended(ended)
      }
    }
    return this.ended('all')
  }

  /**
   * What comes into the state after the begin is not taken: a job that is redriven and dies again, as its fault is still
   * there, would go round for ever. By the store's clock, as are all ages.
   */
  private async bounds(): Promise<{ since?: number; before: number } | typeof STOPPED> {
    const { olderThanMs, newerThanMs, requests } = this.wish
    const probe = await this.patiently(() => this.site.inspect.match({ ...requests[0]!, limit: 1 }))
    if (probe === STOPPED) return STOPPED
    const before = probe.nowMs - olderThanMs
    return newerThanMs === undefined ? { before } : { since: probe.nowMs - newerThanMs, before }
  }

  private async all(request: Omit<MatchRequest, 'limit'>): Promise<BulkResult<Answer>['ended']> {
    const { dryRun } = this.options
    for (let next: string | null | undefined; next !== null; ) {
      // No page is longer than what is asked for at once: its jobs would have moved on by their turn.
      const limit = Math.min(dryRun ? DRY_PAGE : this.pace.batch, this.limit - this.asked, KNOWN_MAX - this.known.size)
      if (limit <= 0) return 'limit'
      const after = next === undefined ? {} : { after: next }
      const page: MatchPage | typeof STOPPED = await this.patiently(() =>
        this.site.inspect.match({ ...request, ...after, limit }),
      )
      if (page === STOPPED || !(await this.page(page, request.state))) return 'stopped'
      next = page.next
    }
    return 'all'
  }

  /** False: it was stopped. */
  private async page({ jobs, nowMs }: MatchPage, state: MatchRequest['state']): Promise<boolean> {
    this.result.sample.push(...jobs.slice(0, SAMPLE_MAX - this.result.sample.length).map(named))
    const open: Taken<Answer>[] = []
    for (const job of jobs) {
      // A job that was retried and failed again has a new place ahead of us; once a run is enough.
      if (this.known.has(job.id)) continue
      const answer = this.work.foreseen(job, state)
      if (this.options.dryRun || !this.work.isDone(answer)) this.count(job, answer)
      else open.push({ job, foreseen: answer, seenMs: nowMs })
      if (this.work.isDone(answer)) this.asked += 1
    }
    if (open.length < jobs.length) this.progress()
    for (let start = 0; start < open.length; start += this.pace.batch)
      if (!(await this.batch(open.slice(start, start + this.pace.batch)))) return false
    return true
  }

  /** False: it was stopped. */
  private async batch(taken: readonly Taken<Answer>[]): Promise<boolean> {
    await this.pace.turn(taken.length, this.options.signal)
    const ids = taken.map(({ job }) => job.id)
    let inDoubt = false
    const ask = async (): Promise<(Answer | MovedOn)[]> => {
      try {
        return await this.work.ask(this.site.control, ids, this.before)
      } catch (error) {
        inDoubt ||= mayPass(error)
        throw error
      }
    }
    let answers: (Answer | MovedOn)[] | typeof STOPPED
    try {
      answers = await this.patiently(ask)
    } catch (error) {
      if (inDoubt) this.told(taken, unconfirmed(taken))
      throw error
    }
    // Told once, whatever listens and throws.
    if (answers === STOPPED) {
      if (inDoubt) this.told(taken, unconfirmed(taken))
      return false
    }
    if (inDoubt) await this.toldAfterDoubt(taken, answers)
    else this.told(taken, answers)
    return true
  }

  /**
   * Asked again after an answer was lost, the store says of a job what the earlier try has left: that it is not dead,
   * or has ended. What the job itself shows decides. Where a look is refused, only those that it asked for stay in doubt.
   */
  private async toldAfterDoubt(taken: readonly Taken<Answer>[], answers: readonly (Answer | MovedOn)[]): Promise<void> {
    const open = taken.filter((_, at) => !this.work.isDone(answers[at]!)).map(({ job }) => job.id)
    const { views, failure } = await this.looked(open)
    this.told(
      taken,
      taken.map((one, at) => this.confirmed(one, answers[at]!, views.get(one.job.id))),
    )
    if (failure !== undefined) throw failure
  }

  /** Jobs as they are now; of those whose look failed, and those that were not come to, nothing. */
  private async looked(ids: readonly string[]): Promise<{ views: Map<string, JobView | null>; failure?: unknown }> {
    const views = new Map<string, JobView | null>()
    let failure: unknown
    for (let start = 0; start < ids.length; start += LOOK_MAX) {
      const some = ids.slice(start, start + LOOK_MAX)
      try {
        const found = await this.patiently(() => this.site.inspect.get(some))
        if (found === STOPPED) break
        for (const [at, id] of some.entries()) views.set(id, found[at]!)
      } catch (error) {
        failure ??= error
        // A store that is away has been waited for already.
        if (mayPass(error)) break
      }
    }
    return { views, failure }
  }

  /**
   * Where the history shows the change, made since the job was seen to match, the change is what was asked for. Where no
   * record is left, nobody can tell who removed it.
   */
  private confirmed(
    { foreseen, seenMs }: Taken<Answer>,
    answer: Answer | MovedOn,
    view: JobView | null | undefined,
  ): BulkAnswer<Answer> {
    if (this.work.isDone(answer)) return answer
    if (!view) return UNCONFIRMED
    return hasTrace(view, this.work.trace, seenMs) ? foreseen : answer
  }

  private told(taken: readonly Taken<Answer>[], answers: readonly BulkAnswer<Answer>[]): void {
    const listens = this.connection.events.active
    taken.forEach(({ job }, at) => {
      const answer = answers[at]!
      this.count(job, answer)
      if (listens) this.work.tell(job, answer)
    })
    this.progress()
  }

  private count({ id }: MatchedJob, answer: BulkAnswer<Answer>): void {
    const { result } = this
    if (this.work.comesAgain(answer)) this.known.add(id)
    result.matched += 1
    result.answers[answer] = (result.answers[answer] ?? 0) + 1
    if (!this.work.isDone(answer)) return
    if (result.expected === undefined) result.done += 1
    else result.expected += 1
  }

  private progress(): void {
    const { matched, done, expected, answers } = this.result
    const more = expected === undefined ? {} : { expected }
    this.options.onProgress?.({ matched, done, ...more, answers: { ...answers } })
  }

  /** Every call may be sent twice; a run of hours outlasts a failover. */
  private async patiently<T>(call: () => Promise<T>): Promise<T | typeof STOPPED> {
    const { env } = this.connection
    const { signal } = this.options
    const until = env.monotonic() + PATIENCE_MS
    for (let waitMs = RETRY_MS_MIN; ; waitMs = Math.min(RETRY_MS_MAX, waitMs * 2)) {
      if (signal?.aborted) return STOPPED
      try {
        return await call()
      } catch (error) {
        if (!mayPass(error) || env.monotonic() + waitMs > until) throw error
        await env.sleep(waitMs, signal)
      }
    }
  }

  private ended(how: BulkResult<Answer>['ended']): BulkResult<Answer> {
    return { ...this.result, ended: how }
  }
}

function unconfirmed(taken: readonly unknown[]): (typeof UNCONFIRMED)[] {
  return taken.map(() => UNCONFIRMED)
}

function mayPass(error: unknown): boolean {
  return error instanceof QueueError && error.code === 'STORE_UNAVAILABLE'
}

/** Histories keep whole milliseconds. */
function hasTrace({ history }: JobView, trace: HistoryEntry['outcome'] | undefined, seenMs: number): boolean {
  return history?.entries.some(({ outcome, at }) => outcome === trace && at >= Math.floor(seenMs)) ?? false
}

function named({ id, kind, queue }: MatchedJob): BulkResult['sample'][number] {
  return { id, kind, queue }
}

/** Holds a rate, evenly: who was slow may not catch up in a burst. */
class Pace {
  /** Jobs in one call. */
  readonly batch: number
  private next = Number.NEGATIVE_INFINITY

  constructor(
    private readonly env: Env,
    private readonly rate: number | undefined,
    batchMax: number,
  ) {
    this.batch = rate === undefined ? batchMax : Math.min(batchMax, Math.max(1, Math.floor((rate * BATCH_MS) / 1_000)))
  }

  /** Resolves when so many more may go, or at once when the signal fires. */
  async turn(jobs: number, signal: AbortSignal | undefined): Promise<void> {
    if (this.rate === undefined) return
    const now = this.env.monotonic()
    const at = Math.max(this.next, now)
    this.next = at + (jobs / this.rate) * 1_000
    if (at > now) await this.env.sleep(at - now, signal)
  }
}
