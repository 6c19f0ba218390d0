/** Stores that claim, beat, take over or promote wrongly. */
import type { Head } from '../../src/storage/memory/lanes.js'
import type { Claim, Settlement, TakeOver } from '../../src/storage/storage.js'
import type { SimulatedStore } from '../../src/testing/simulator/index.js'
import { eachTime, type Mutant } from './mutant.js'

const FENCE_MAX = 2 ** 40
const FOR_EVER_MS = 10 * 365 * 86_400_000

export const MUTANTS_OF_CLAIM: readonly Mutant[] = [
  {
    name: 'fences fall',
    caughtBy: 'a later claim has a larger fence',
    spoil: ({ store }) => turnFences(store),
  },
  {
    name: 'a claim takes no notice of a pause',
    caughtBy: 'a paused queue begins nothing',
    spoil({ store }) {
      const { queues } = store.inside
      const get = queues.get.bind(queues)
      queues.get = (queue) => ({ ...get(queue), paused: false })
    },
  },
  {
    name: 'a claim takes no notice of a limit',
    caughtBy: 'a queue keeps to its limit',
    spoil({ store }) {
      const { queues } = store.inside
      const get = queues.get.bind(queues)
      queues.get = (queue) => ({ ...get(queue), limits: { ...get(queue).limits, concurrency: null } })
    },
  },
  {
    name: 'tenants stand in one line',
    caughtBy: 'tenants take turns',
    spoil({ store }) {
      store.inside.jobs.lanes.fair.mark = () => {}
    },
  },
  {
    name: 'the newest is claimed first',
    caughtBy: 'first due, first claimed',
    spoil: ({ store }) => ordersCandidates(store, (a, b) => b.dueAt - a.dueAt),
  },
  {
    name: 'the lowest level is claimed first',
    caughtBy: 'no lower level goes first',
    spoil: ({ store }) => ordersCandidates(store, (a, b) => a.priority - b.priority),
  },
  {
    name: 'an ageing queue serves its lowest level first',
    caughtBy: 'only jobs due before its ageing go first',
    spoil: ({ store }) => ordersCandidates(store, (a, b) => a.priority - b.priority),
  },
  {
    name: 'a beat gives back what its worker has not read yet',
    caughtBy: 'no two valid leases',
    spoil({ store }) {
      const beat = store.beat.bind(store)
      store.beat = (one) => beat({ ...one, known: one.known + 1 })
    },
  },
  {
    name: 'a beat keeps nobody alive',
    caughtBy: 'nobody alive is taken over',
    spoil({ store }) {
      const beat = store.beat.bind(store)
      const { workers } = store.inside
      store.beat = async (one) => {
        // Only what others judge by: who seems to have a gap of its own judges nobody.
        const before = workers.get(one.worker)
        const seenAt = before && before.lastBeatAt - before.mainLagMs
        const answer = await beat(one)
        const row = workers.get(one.worker)
        if (row !== undefined && seenAt !== undefined) row.mainLagMs = row.lastBeatAt - seenAt
        return answer
      }
    },
  },
  {
    name: 'what comes back is behind the cursor, and nobody sweeps',
    caughtBy: 'everything ends',
    spoil({ store }) {
      const { jobs } = store.inside
      jobs.toFront = (job) => jobs.toDelayed(job, store.inside.now() + FOR_EVER_MS)
    },
  },
  {
    name: 'promotion does not wait for the due time',
    caughtBy: 'nothing runs early',
    spoil: ({ store }) => promotesEarly(store),
  },
  {
    name: 'promotion forgets a job now and then',
    caughtBy: 'everything ends',
    spoil({ store }) {
      const { jobs } = store.inside
      const forgets = eachTime(7)
      const toBack = jobs.toBack.bind(jobs)
      jobs.toBack = (job, dueAt, nth) => {
        if (job.place === 'delayed' && forgets()) jobs.toDelayed(job, store.inside.now() + FOR_EVER_MS)
        else toBack(job, dueAt, nth)
      }
    },
  },
  {
    name: 'nothing expires',
    caughtBy: 'nothing starts after its expiry',
    spoil({ store }) {
      onClaim(store, (answer) => {
        for (const { jobs } of answer.leases) for (const job of jobs) job.expiresInMs = null
      })
      store.upkeep.expire = async () => []
    },
  },
  {
    name: 'a take-over forgets a job',
    caughtBy: 'what was accepted is known',
    spoil({ store }) {
      const { leases, jobs } = store.inside
      const forgets = eachTime(5)
      const takeOver = store.takeOver.bind(store)
      store.takeOver = async (request) => {
        const answer = await takeOver(request)
        for (const { fence, crashes } of answer.leases)
          for (const slot of leases.get(fence)?.slots ?? [])
            if (slot.open && forgets()) {
              crashes[slot.ordinal] = null
              leases.close(leases.get(fence)!, slot)
              jobs.remove(slot.job)
            }
        return answer
      }
    },
  },
  {
    name: 'who has just come back judges others',
    caughtBy: 'nobody judges right after an outage',
    spoil: ({ store }) => judgesAtOnce(store),
  },
  {
    name: 'half a lease without a beat is death',
    caughtBy: 'nobody alive is taken over',
    spoil({ store }) {
      const takeOver = store.takeOver.bind(store)
      store.takeOver = async (request) => {
        const infos = store.inside.workers.all().filter(({ id }) => id !== request.worker)
        for (const row of infos) row.info = { ...row.info, leaseMs: row.info.leaseMs / 2 }
        const answer = takeOver(request)
        for (const row of infos) row.info = { ...row.info, leaseMs: row.info.leaseMs * 2 }
        return answer
      }
    },
  },
  {
    name: 'a crash costs an attempt, started or not',
    caughtBy: 'an attempt is used by a failure, or a crash after its start',
    spoil({ store }) {
      const settle = store.settle.bind(store)
      store.settle = (settlements) => settle(settlements.map(withOneMore))
    },
  },
  {
    name: 'every job of a crash counts as the one that ran alone',
    caughtBy: 'nobody innocent is quarantined',
    spoil: ({ store }) => tellsOfCrashes(store, (crash) => ({ ...crash, started: true, alone: true })),
  },
  {
    name: 'one crash alone is enough for the quarantine',
    caughtBy: 'quarantine follows two crashes alone',
    spoil({ store }) {
      onTakeOver(store, ({ leases }) => {
        for (const { jobs } of leases)
          for (const job of jobs) if (job.history !== null) job.history = { ...job.history, crashesAlone: 1 }
      })
    },
  },
  {
    name: 'an at-most-once job of a dead worker runs again',
    caughtBy: 'at most once',
    spoil({ store }) {
      onTakeOver(store, ({ leases }) => {
        for (const { jobs } of leases)
          for (const job of jobs) job.spec = { ...job.spec, delivery: 'at-least-once', attempts: 6 }
      })
    },
  },
  {
    name: 'a crash leaves no note',
    caughtBy: 'crashes are what was noted',
    spoil({ store }) {
      const settle = store.settle.bind(store)
      store.settle = (settlements) => settle(settlements.map(withoutCrashes))
    },
  },
]

function onClaim(store: SimulatedStore, change: (answer: Claim) => void): void {
  const claim = store.claim.bind(store)
  store.claim = async (request) => {
    const answer = await claim(request)
    change(answer)
    return answer
  }
}

function onTakeOver(store: SimulatedStore, change: (answer: TakeOver) => void): void {
  const takeOver = store.takeOver.bind(store)
  store.takeOver = async (request) => {
    const answer = await takeOver(request)
    change(answer)
    return answer
  }
}

function turnFences(store: SimulatedStore): void {
  const turned = <One extends { fence: number }>(one: One): One => ({ ...one, fence: FENCE_MAX - one.fence })
  const [claim, settle, beat, takeOver] = [store.claim, store.settle, store.beat, store.takeOver].map((method) =>
    method.bind(store),
  ) as [SimulatedStore['claim'], SimulatedStore['settle'], SimulatedStore['beat'], SimulatedStore['takeOver']]
  store.claim = async (request) => {
    const answer = await claim({ ...request, finished: (request.finished ?? []).map(turned) })
    return { ...answer, leases: answer.leases.map(turned) }
  }
  store.settle = (settlements) => settle(settlements.map(turned))
  store.takeOver = async (request) => {
    const answer = await takeOver(request)
    return { ...answer, leases: answer.leases.map(turned) }
  }
  store.beat = async (one) => {
    const started = one.started.map(([fence, ordinal, ranMs]) => [FENCE_MAX - fence, ordinal, ranMs] as const)
    const leases = one.leases.map((fence) => FENCE_MAX - fence)
    const answer = await beat({ ...one, leases, started: started as typeof one.started })
    return {
      ...answer,
      lost: answer.lost.map((fence) => FENCE_MAX - fence),
      cancel: answer.cancel.map(([fence, ordinal]) => [FENCE_MAX - fence, ordinal] as [number, number]),
    }
  }
}

/** Only the first ones by the wrong order are there to be taken. */
function ordersCandidates(store: SimulatedStore, by: (a: Head, b: Head) => number): void {
  const { lanes } = store.inside.jobs
  const candidates = lanes.candidates.bind(lanes)
  lanes.candidates = (queue, kinds, limit) => candidates(queue, kinds, 1_000).sort(by).slice(0, limit)
}

function promotesEarly(store: SimulatedStore): void {
  const { jobs } = store.inside
  const { upkeep } = store
  const promote = upkeep.promote.bind(upkeep)
  upkeep.promote = async (limit) => {
    for (const job of [...jobs.delayed.items()].slice(0, 1))
      if (job.history === null) jobs.toDelayed(job, store.inside.now())
    return promote(limit)
  }
}

function judgesAtOnce(store: SimulatedStore): void {
  const takeOver = store.takeOver.bind(store)
  store.takeOver = async (request) => {
    const row = store.inside.workers.get(request.worker)
    if (row !== undefined) row.steadySince = Number.NEGATIVE_INFINITY
    return takeOver(request)
  }
}

type Told = NonNullable<Awaited<ReturnType<SimulatedStore['takeOver']>>['leases'][number]['crashes'][number]>

function tellsOfCrashes(store: SimulatedStore, change: (crash: Told) => Told): void {
  onTakeOver(store, ({ leases }) => {
    for (const lease of leases) lease.crashes = lease.crashes.map((crash) => (crash === null ? null : change(crash)))
  })
}

/** Of those who take over: a job that is ready again, and whose last entry tells of a crash. */
function withOneMore(one: Settlement): Settlement {
  if (one.to !== 'ready' || one.history?.entries.at(-1)?.outcome !== 'crashed') return one
  return { ...one, history: { ...one.history, attempts: one.history.attempts + 1 } }
}

function withoutCrashes(one: Settlement): Settlement {
  return 'history' in one && one.history !== null && one.history !== undefined
    ? ({ ...one, history: { ...one.history, crashes: 0, crashesAlone: 0 } } as Settlement)
    : one
}
