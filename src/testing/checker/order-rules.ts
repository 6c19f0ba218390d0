/**
 * Rules about who goes first. A job is overtaken when a claim takes another one of its queue that the order puts behind it.
 * They judge only what the promise is exact about:
 *
 * - Jobs at their first claim, due at once, in no transaction, and stored within `LATE_COMMIT_MS`: what re-enters has a
 *   range of its own, and what commits later than that lies behind the cursors of claims until one sweeps.
 * - Claims that ran beside no other one: two at once take what the other one has locked out of each other's sight.
 * - No claim without an answer was about, nor one that was sent more than once: it may have had the job in its hands, and let
 *   it go to the front. Of a repeated one that is over when a beat has named it as answered.
 * - Claims of workers that could run the job's kind.
 *
 * Within these the bounds are exact. In a level the earlier due goes first, always. In a strict queue no lower level goes
 * first, in a weighted one none of the same tier. In an ageing queue a job is overtaken (by due time less a minute for each
 * level) only by the starts that are reserved for the levels passed over: of each worker one in sixteen of what it took of
 * the queue meanwhile, and one more where the sixteenth fell into the first of its claims. Where tenants share a queue, who is
 * due first goes first among those of one tenant, and by age nothing is judged: their turns are, in tenant-rules.ts. Read by
 * the checker.
 */
import { ageingKey, PASSED_OVER_INTERVAL, type QueueOrder, tierOf } from '../../core/priority.js'
import { type Contest, contestsOf, type Entrant, type Taken } from './contests.js'
import { Heights } from './heights.js'
import type { SceneFault, SceneRule } from './rule.js'
import type { Scene, Story } from './story.js'

/** Instants of claims and waits are told in milliseconds. */
const ROUNDING_MS = 1

interface Order {
  /** Among which jobs of a queue it holds: those of which this is the same. */
  group: (job: Taken) => string | number
  /** The smaller goes first; by more than `step`, as equals may go in any order. */
  rank: (job: Taken) => number
  step: number
  /** How many may go first of `taken` jobs that one worker took one after another. */
  allowed: (taken: number) => number
}

const NONE = (): number => 0

/** Of a level that tenants share, it holds for those of one tenant. */
const FIRST_DUE: Order = {
  group: ({ priority, tenant }) => (tenant === undefined ? priority : `${priority} ${tenant}`),
  rank: ({ dueAt }) => dueAt,
  step: ROUNDING_MS,
  allowed: NONE,
}
const STRICT: Order = { group: () => 0, rank: ({ priority }) => -priority, step: 0, allowed: NONE }
const IN_TIER: Order = { ...STRICT, group: ({ priority }) => tierOf(priority) }
const AGEING: Order = {
  group: () => 0,
  rank: ageingKey,
  step: ROUNDING_MS,
  allowed: (taken) => Math.floor(taken / PASSED_OVER_INTERVAL) + 1,
}

export const ORDER_RULES: readonly SceneRule[] = [
  orderRule('first due, first claimed', {
    promise:
      'Of jobs of one level of a queue, and of one tenant where it has some, the one that is due first is claimed first.',
    orders: { ageing: FIRST_DUE, strict: FIRST_DUE, weighted: FIRST_DUE },
  }),
  orderRule('no lower level goes first', {
    promise: 'In a strict queue the higher level is claimed first, and in a weighted one the higher level of a tier.',
    orders: { strict: STRICT, weighted: IN_TIER },
  }),
  orderRule('only jobs due before its ageing go first', {
    promise:
      'In an ageing queue a job is overtaken only by jobs due before its due time and a minute for each level, and by one start in sixteen.',
    orders: { ageing: AGEING },
  }),
]

interface OrderRule {
  promise: string
  orders: Partial<Record<QueueOrder, Order>>
}

function orderRule(name: string, { promise, orders }: OrderRule): SceneRule {
  const own = (scene: Scene, stories: readonly Story[]): [Contest, Order][] =>
    contestsOf(scene, stories).flatMap((contest) => {
      const order = orders[contest.order]
      // Tenants that take turns let nobody pass who was due before them: what waits behind them is not by its own age.
      const isJudged = order !== undefined && !(order === AGEING && contest.shared)
      return isJudged ? [[contest, order]] : []
    })
  return {
    name,
    promise,
    breach: 'otherFaults',
    reads: 'the calls of claims and what they brought, with kinds, priorities and waits, by one clock',
    faults: (scene, _, stories) => own(scene, stories).flatMap(([contest, order]) => overtaken(contest, order)),
    judged: (scene, _, stories) => own(scene, stories).reduce((sum, [{ entrants }]) => sum + entrants.length, 0),
  }
}

function overtaken(contest: Contest, order: Order): SceneFault[] {
  const worst = worstRanks(contest, order)
  return contest.entrants.flatMap((job) => {
    const heights = worst.get(order.group(job))
    const why = heights && excess(job, contest, { order, heights })
    return why === undefined ? [] : [{ weight: 1, ids: [job.id], why: `${why}, in queue ${contest.queue}` }]
  })
}

/** Of each group, the highest rank that each claim has taken. */
function worstRanks({ claims }: Contest, order: Order): Map<string | number, Heights> {
  const byGroup = new Map<string | number, number[]>()
  for (const [i, { taken }] of claims.entries())
    for (const job of taken) {
      const group = order.group(job)
      const ranks = byGroup.get(group) ?? new Array<number>(claims.length).fill(Number.NEGATIVE_INFINITY)
      byGroup.set(group, ranks)
      ranks[i] = Math.max(ranks[i]!, order.rank(job))
    }
  return new Map([...byGroup].map(([group, ranks]) => [group, new Heights(ranks)]))
}

/**
 * How it was overtaken by more than is allowed: by one worker, in any part of the time that it waited. Most were overtaken by
 * nobody, which the heights know at once.
 */
function excess(
  job: Entrant,
  { claims }: Contest,
  { order, heights }: { order: Order; heights: Heights },
): string | undefined {
  const group = order.group(job)
  const limit = order.rank(job) + order.step
  const byWorker = new Map<string, { ahead: number; from: number; first: Taken }>()
  for (const i of heights.above(limit, job.from, job.to)) {
    const { worker, kinds, taken, turns } = claims[i]!
    if (!kinds.has(job.kind)) continue
    const ahead = taken.filter((one) => order.group(one) === group && order.rank(one) > limit)
    const known = byWorker.get(worker) ?? { ahead: 0, from: turns.from, first: ahead[0]! }
    byWorker.set(worker, known)
    known.ahead += ahead.length
    if (known.ahead > order.allowed(turns.to - known.from)) return overtakenWords(job, worker, known)
  }
  return undefined
}

function overtakenWords(job: Entrant, worker: string, { ahead, first }: { ahead: number; first: Taken }): string {
  const laterMs = Math.round(first.dueAt - job.dueAt)
  return `${worker} claimed ${ahead} jobs (${first.id} of level ${first.priority} first, due ${laterMs} ms later) before ${job.id} of level ${job.priority}`
}
