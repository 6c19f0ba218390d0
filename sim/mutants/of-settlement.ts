/** Stores that settle wrongly: under dead fences, too often, or not at all. */
import type { JobRow } from '../../src/storage/memory/jobs.js'
import type { Settlement } from '../../src/storage/storage.js'
import type { SimulatedStore } from '../../src/testing/simulator/index.js'
import { eachTime, type Mutant } from './mutant.js'

export const MUTANTS_OF_SETTLEMENT: readonly Mutant[] = [
  {
    name: 'a settlement goes by the state of the job, not by the fence',
    caughtBy: 'one end is told',
    spoil: ({ store }) => settlesWhatRuns(store, () => true),
  },
  {
    name: 'a settlement goes by the attempt, not by the fence',
    caughtBy: 'one end is told',
    spoil: ({ store }) => settlesWhatRuns(store, (job, attempts) => (job.history?.attempts ?? 0) === attempts),
  },
  {
    name: 'now and then a settlement is answered and not done',
    caughtBy: 'one end is told',
    spoil({ store }) {
      const drops = eachTime(20)
      onSettle(store, (settle) => async (settlements) => {
        const dropped = settlements.map(({ to }) => to === 'completed' && drops())
        const answers = await settle(settlements.filter((_, i) => !dropped[i]))
        return dropped.map((isDropped) => (isDropped ? 'ok' : answers.shift()!))
      })
    },
  },
  {
    name: 'what has completed is ready once more',
    caughtBy: 'an effect is repeated only for a reason',
    spoil({ store }) {
      const again = eachTime(20)
      onSettle(
        store,
        (settle) => (settlements) =>
          settle(settlements.map((one) => (one.to === 'completed' && again() ? ready(one) : one))),
      )
    },
  },
  {
    name: 'a retry forgets its delay',
    caughtBy: 'a wait is kept',
    spoil({ store }) {
      onSettle(
        store,
        (settle) => (settlements) => settle(settlements.map((one) => (one.to === 'delayed' ? ready(one) : one))),
      )
    },
  },
  {
    name: 'a dead letter is not written',
    caughtBy: 'what was accepted is known',
    spoil({ store }) {
      const { jobs } = store.inside
      const toDead = jobs.toDead.bind(jobs)
      jobs.toDead = (job, reason, now) => {
        toDead(job, reason, now)
        if (reason === 'failed') jobs.remove(job)
      }
    },
  },
  {
    name: 'a job that fails for the last time is tried again',
    caughtBy: 'no attempt beyond the last',
    spoil({ store }) {
      const retries = eachTime(2)
      const retry = (one: Settlement): Settlement =>
        one.to === 'dead' && one.reason === 'failed' && retries()
          ? { ...one, to: 'delayed', delayMs: 500, suspect: false }
          : one
      onSettle(store, (settle) => (settlements) => settle(settlements.map(retry)))
    },
  },
]

type Settle = SimulatedStore['settle']

/** Also for those that ride on a claim. */
export function onSettle(store: SimulatedStore, make: (was: Settle) => Settle): void {
  const settle = make(store.settle.bind(store))
  const claim = store.claim.bind(store)
  store.settle = settle
  store.claim = async ({ finished = [], ...request }) => {
    const settled = await settle(finished)
    return { ...(await claim(request)), settled }
  }
}

function ready(one: Settlement & { to: 'completed' | 'delayed' }): Settlement {
  const { fence, ordinal, history } = one
  return { fence, ordinal, to: 'ready', suspect: false, history }
}

/** Whoever held the job once may settle it, while it runs at somebody else's. */
function settlesWhatRuns(store: SimulatedStore, passes: (job: JobRow, attempts: number) => boolean): void {
  const known = new Map<string, { job: JobRow; attempts: number }>()
  const claim = store.claim.bind(store)
  const settle = store.settle.bind(store)
  const { leases } = store.inside
  const translated = <One extends Settlement>(one: One): One => {
    const found = known.get(`${one.fence} ${one.ordinal}`)
    const holding = found && leases.holding(found.job)
    if (!holding || !passes(found.job, found.attempts)) return one
    return { ...one, fence: holding.lease.fence, ordinal: holding.ordinal }
  }
  store.settle = (settlements) => settle(settlements.map(translated))
  store.claim = async ({ finished = [], ...request }) => {
    const answer = await claim({ ...request, finished: finished.map(translated) })
    for (const { fence } of answer.leases)
      for (const { ordinal, job, history } of leases.get(fence)?.slots ?? [])
        known.set(`${fence} ${ordinal}`, { job, attempts: history?.attempts ?? 0 })
    return answer
  }
}
