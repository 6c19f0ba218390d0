/** Several stores as one, for tests; and one that hands out the work of all of them, as the sessions of a worker take it. */
import { realEnv } from '../../src/core/env.js'
import type { PartitionKey } from '../../src/core/rendezvous.js'
import { Member, PartitionedStorage } from '../../src/storage/partitioned/index.js'
import type {
  BeatAnswer,
  Claim,
  ClaimRequest,
  RecoveredLease,
  Settlement,
  Storage,
  TakeOver,
} from '../../src/storage/storage.js'

export interface Sketch {
  name: string
  storage: Storage
  draining?: boolean
  open?: () => Promise<void>
}

export function partitioned(sketches: readonly Sketch[], by: PartitionKey, env = realEnv): PartitionedStorage {
  const members = sketches.map(
    ({ draining = false, open = async () => {}, ...rest }) => new Member({ draining, open, env, ...rest }),
  )
  return new PartitionedStorage(members, by)
}

/**
 * The whole port over several stores, for the conformance suite, which has one worker where a real one has a session for
 * each store. A fence of the store n is told as fence × stores + n.
 */
export function wholePort(store: PartitionedStorage): Storage {
  const stores = store.partitions.all.map(({ storage }) => storage)
  const count = stores.length
  const told = (fence: number, index: number): number => fence * count + index
  const own = (fence: number): number => Math.floor(fence / count)
  const of = <T extends { fence: number }>(items: readonly T[], index: number): T[] =>
    items.filter(({ fence }) => fence % count === index).map((item) => ({ ...item, fence: own(item.fence) }))
  const settle = async (settlements: readonly Settlement[]) => {
    const answers = await Promise.all(stores.map((one, index) => one.settle(of(settlements, index))))
    return settlements.map(({ fence }) => answers[fence % count]!.shift()!)
  }
  const claim = async ({ finished = [], ...request }: ClaimRequest): Promise<Claim> => {
    const settled = await settle(finished)
    const claims: Claim[] = []
    let limit = request.limit
    for (const [index, one] of stores.entries()) {
      const answer = await one.claim({ ...request, limit })
      for (const lease of answer.leases) lease.fence = told(lease.fence, index)
      claims.push(answer)
      limit -= answer.leases.reduce((jobs, lease) => jobs + lease.jobs.length, 0)
      if (limit === 0) break
    }
    return together(claims, settled)
  }
  const beat: Storage['beat'] = async ({ leases, started, ...rest }) => {
    const answers = await Promise.all(
      stores.map((one, index) =>
        one.beat({
          ...rest,
          leases: leases.filter((fence) => fence % count === index).map(own),
          started: started.flatMap(([fence, ...more]) =>
            fence % count === index ? [[own(fence), ...more] as const] : [],
          ),
        }),
      ),
    )
    return {
      status: worst(answers),
      lost: answers.flatMap(({ lost }, index) => lost.map((fence) => told(fence, index))),
      cancel: answers.flatMap(({ cancel }, index) =>
        cancel.map(([fence, ordinal]): [number, number] => [told(fence, index), ordinal]),
      ),
      paused: [...new Set(answers.flatMap(({ paused }) => paused))],
    }
  }
  const takeOver = async (request: { worker: string; limit: number }): Promise<TakeOver> => {
    const leases: RecoveredLease[] = []
    let nowMs = 0
    for (const [index, one] of stores.entries()) {
      const answer = await one.takeOver(request)
      leases.push(...answer.leases.map((lease) => ({ ...lease, fence: told(lease.fence, index) })))
      nowMs = answer.nowMs
    }
    return { leases, nowMs }
  }
  const overrides: Partial<Storage> = {
    claim,
    beat,
    settle,
    takeOver,
    unregister: async (worker) => void (await Promise.all(stores.map((one) => one.unregister(worker)))),
    upkeep: {
      promote: async (limit) => {
        const all = await Promise.all(stores.map((one) => one.upkeep.promote(limit)))
        const dues = all.flatMap(({ nextDueMs }) => (nextDueMs === null ? [] : [nextDueMs]))
        return { moved: all.flatMap(({ moved }) => moved), nextDueMs: dues.length === 0 ? null : Math.min(...dues) }
      },
      expire: async (limit) => (await Promise.all(stores.map((one) => one.upkeep.expire(limit)))).flat(),
      prune: async (options) => {
        const all = await Promise.all(stores.map((one) => one.upkeep.prune(options)))
        return { deleted: all.reduce((sum, { deleted }) => sum + deleted, 0), more: all.some(({ more }) => more) }
      },
    },
  }
  return Object.assign(Object.create(store) as Storage, overrides)
}

function worst(answers: readonly { status: BeatAnswer['status'] }[]): BeatAnswer['status'] {
  return answers.map(({ status }) => status).find((status) => status !== 'ok') ?? 'ok'
}

function together(claims: readonly Claim[], settled: Claim['settled']): Claim {
  const least = (all: (number | null)[]): number | null => {
    const known = all.filter((one) => one !== null)
    return known.length === 0 ? null : Math.min(...known)
  }
  const names = (of: (claim: Claim) => string[]): string[] => [...new Set(claims.flatMap(of))]
  return {
    status: claims.some(({ status }) => status === 'gone') ? 'gone' : 'ok',
    leases: claims.flatMap(({ leases }) => leases),
    settled,
    more: claims.some(({ more }) => more),
    nextDueMs: least(claims.map(({ nextDueMs }) => nextDueMs)),
    paused: names(({ paused }) => paused),
    limited: names(({ limited }) => limited),
    nextTokenMs: least(claims.map(({ nextTokenMs }) => nextTokenMs)),
    nowMs: claims[0]!.nowMs,
  }
}
