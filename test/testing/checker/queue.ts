/** A queue whose claims are told one by one. Used by the tests of the rules of order. */
import type { QueueOrder } from '../../../src/core/priority.js'
import type { Verdict } from '../../../src/testing/checker/check.js'
import type { Expectation } from '../../../src/testing/checker/expectation.js'
import type { History } from '../../../src/testing/checker/history.js'
import { type CallTold, type JobTold, Told } from './told.js'

export const FIRST_DUE = 'first due, first claimed'
export const NO_LOWER = 'no lower level goes first'
export const AGEING = 'only jobs due before its ageing go first'

export const TURNS = 'tenants take turns'

export const MINUTE_MS = 60_000
const PLAIN: Expectation = { sort: 'plain', delayMs: 0, queue: 'one' }

/** A job by its number: its level, and when it is enqueued, which is when it is due. */
export type Job = readonly [priority: number, dueAt: number]

export class Queue {
  readonly told: Told
  private readonly plan = new Map<number, Expectation>()

  constructor(
    private readonly jobs: readonly Job[],
    private readonly order: QueueOrder = 'ageing',
  ) {
    this.told = new Told(this.plan)
    for (const worker of ['a', 'b']) this.told.add(worker, { at: 0, what: 'worker', worker, is: 'up', kinds: ['kind'] })
    for (const [n, [, dueAt]] of jobs.entries()) {
      this.plan.set(n, PLAIN)
      this.told.enqueued(n, dueAt)
    }
  }

  expect(n: number, more: Partial<Expectation>): this {
    this.plan.set(n, { ...PLAIN, ...more })
    return this
  }

  /** A claim of these numbers, in this order. */
  claim(
    worker: string,
    at: number,
    numbers: readonly number[],
    more: CallTold & { job?: Partial<JobTold> } = {},
  ): this {
    const jobs = numbers.map((n, i) => {
      const [priority, dueAt] = this.jobs[n]!
      return { id: `id-${n}`, priority, fence: at * 100 + i, claimedAt: at, waitedMs: at - dueAt, ...more.job }
    })
    this.told.claimed(worker, at, jobs, more)
    return this
  }

  verdict(more: Partial<History> = {}): Verdict {
    return this.told.checked({ records: [], orders: { one: this.order }, ...more })
  }

  broken(more: Partial<History> = {}): string[] {
    const { findings } = this.verdict(more)
    return [...new Set(findings.map(({ rule }) => rule))].filter((rule) => [FIRST_DUE, NO_LOWER, AGEING].includes(rule))
  }

  judged(rule: string): number {
    const { rules } = this.verdict()
    return rules.find((one) => one.rule === rule)!.judged
  }
}

/** Jobs of one level, due one after another, whose they are. */
export function shared(shares: readonly Pick<Expectation, 'tenant' | 'weight'>[]): Queue {
  const queue = new Queue(shares.map((_, n) => [4, 1_000 + 10 * n]))
  for (const [n, share] of shares.entries()) queue.expect(n, { priority: 4, ...share })
  return queue
}

/** One of level 4 waits while so many of level 5 that are due too late for it go first. */
export function overtakenBy(count: number, dueAt = 1_000 + MINUTE_MS + 10): Queue {
  const later = Array.from({ length: count }, (): Job => [5, dueAt])
  const queue = new Queue([[4, 1_000], ...later])
  for (let i = 1; i <= count; i++) queue.claim('a', dueAt + 100 * i, [i])
  return queue.claim('a', dueAt + 100 * (count + 1), [0])
}
