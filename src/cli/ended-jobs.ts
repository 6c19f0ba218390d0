/**
 * Jobs that have ended, each once and none left out, read again and again. What commits late lies behind what was read
 * already: so each round begins a little back, and passes over what it has told. Called by `tail`.
 */
import type { Env } from '../core/env.js'
import type { Ending } from '../storage/storage.js'

interface Request {
  after?: string
  backMs: number
  limit: number
}

export type EndedJobsReader = (request: Request) => Promise<{ endings: Ending[]; next: string | null }>

/** A transaction that needs longer from the end of its job to its commit is passed over. */
export const LATE_MS_MAX = 5_000
const PAGE = 500

export class EndedJobs {
  /** What was told of the last seconds, by cursor, with its time. */
  private readonly told = new Map<string, number>()
  private newest: Ending | undefined
  private readonly startedAt: number

  constructor(
    private readonly read: EndedJobsReader,
    private readonly env: Env,
    /** How far back it begins, and which instant that is by the clock of the store. */
    private readonly begin: { sinceMs: number; fromMs: number },
  ) {
    this.startedAt = env.monotonic()
  }

  /** Everything that is there and was not told. A round that fails is gone on with by the next. */
  async round(tell: (ending: Ending) => void, asked: AbortSignal): Promise<void> {
    let request: Request = this.first()
    while (!asked.aborted) {
      const { endings, next } = await this.read(request)
      for (const one of endings) if (this.isNew(one)) this.tellOne(one, tell)
      if (next === null) break
      request = { after: next, backMs: 0, limit: PAGE }
    }
    this.forget()
  }

  private first(): Request {
    if (this.newest !== undefined) return { after: this.newest.cursor, backMs: LATE_MS_MAX, limit: PAGE }
    // A little more than has passed: the request takes its time to get there, and `fromMs` is the begin.
    const passedMs = this.env.monotonic() - this.startedAt
    return { backMs: this.begin.sinceMs + passedMs + LATE_MS_MAX, limit: PAGE }
  }

  /** Going back a little may lead before the begin. */
  private isNew({ cursor, endedAt }: Ending): boolean {
    return endedAt >= this.begin.fromMs && !this.told.has(cursor)
  }

  private tellOne(ending: Ending, tell: (ending: Ending) => void): void {
    this.told.set(ending.cursor, ending.endedAt)
    if (this.newest === undefined || ending.endedAt >= this.newest.endedAt) this.newest = ending
    tell(ending)
  }

  /** What the next round cannot meet again; with a second to spare, as times are rounded. */
  private forget(): void {
    if (this.newest === undefined) return
    const from = this.newest.endedAt - LATE_MS_MAX - 1_000
    for (const [cursor, endedAt] of this.told) if (endedAt < from) this.told.delete(cursor)
  }
}
