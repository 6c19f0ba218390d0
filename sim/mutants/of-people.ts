/** Stores that lie to those who enqueue, and to those who steer. */
import { eachTime, type Mutant } from './mutant.js'
import { onSettle } from './of-settlement.js'

export const MUTANTS_OF_PEOPLE: readonly Mutant[] = [
  {
    name: 'the key of a job is not looked at',
    caughtBy: 'one job for one key',
    spoil({ store }) {
      const enqueue = store.enqueue.bind(store)
      store.enqueue = (jobs, options) =>
        enqueue(
          jobs.map(({ idempotency: _, ...job }) => job),
          options,
        )
    },
  },
  {
    name: 'a key is free as soon as its job has ended',
    caughtBy: 'one job for one key',
    spoil({ store }) {
      const { jobs, keys } = store.inside
      const toEnded = jobs.toEnded.bind(jobs)
      jobs.toEnded = (job, state, now, result) => {
        toEnded(job, state, now, result)
        const key = job.spec.idempotencyKey
        const row = key === undefined ? undefined : keys.get(job.kind, key)
        if (row !== undefined) keys.delete(row)
      }
    },
  },
  {
    name: 'the last job of a batch is created and not there',
    caughtBy: 'what was accepted is known',
    spoil({ store }) {
      const enqueue = store.enqueue.bind(store)
      store.enqueue = async (jobs, options) => {
        const answers = await enqueue(jobs.slice(0, jobs.length > 1 ? -1 : 1), options)
        return jobs.length > 1 ? [...answers, { status: 'created' }] : answers
      }
    },
  },
  {
    name: 'a duplicate is told an id that nobody has',
    caughtBy: 'what was accepted is known',
    spoil({ store }) {
      const enqueue = store.enqueue.bind(store)
      store.enqueue = async (jobs, options) => {
        const answers = await enqueue(jobs, options)
        return answers.map((answer, i) =>
          answer.status === 'duplicate' && answer.id !== jobs[i]!.id ? { ...answer, id: jobs[i]!.id } : answer,
        )
      }
    },
  },
  {
    name: 'a queue that is drained takes jobs',
    caughtBy: 'a draining queue takes nothing',
    spoil({ store }) {
      const { queues } = store.inside
      const get = queues.get.bind(queues)
      queues.get = (queue) => ({ ...get(queue), draining: false })
    },
  },
  {
    name: 'a job that waits is told to be cancelled, and waits on',
    caughtBy: 'nothing runs after its cancel',
    spoil({ store }) {
      const cancel = store.control.cancel.bind(store.control)
      store.control.cancel = async (ids, only) => {
        const answers: Awaited<ReturnType<typeof cancel>> = []
        for (const id of ids) {
          const waits = ['ready', 'delayed'].includes(store.inside.jobs.get(id)?.place ?? '')
          answers.push(waits ? 'cancelled' : (await cancel([id], only))[0]!)
        }
        return answers
      }
    },
  },
  {
    name: 'the wish to cancel is forgotten when the job is settled',
    caughtBy: 'nothing runs after its cancel',
    spoil({ store }) {
      const { leases } = store.inside
      onSettle(store, (settle) => (settlements) => {
        for (const { fence, ordinal } of settlements) {
          const slot = leases.get(fence)?.slots[ordinal]
          if (slot) slot.job.cancelling = false
        }
        return settle(settlements)
      })
      const beat = store.beat.bind(store)
      store.beat = async (one) => ({ ...(await beat(one)), cancel: [] })
    },
  },
  {
    name: 'a discarded letter stays',
    caughtBy: 'a discarded job is gone',
    spoil({ store }) {
      store.control.discard = async (ids) =>
        ids.map((id) => {
          const place = store.inside.jobs.get(id)?.place
          return place === undefined ? 'unknown' : place === 'dead' ? 'discarded' : 'not dead'
        })
    },
  },
  {
    name: 'a letter that is redriven stays where it is',
    caughtBy: 'a redriven job lives again',
    spoil({ store }) {
      store.control.redrive = async (ids) =>
        ids.map((id) => {
          const place = store.inside.jobs.get(id)?.place
          return place === undefined ? 'unknown' : place === 'dead' ? 'ok' : 'not dead'
        })
    },
  },
  {
    name: 'a letter that is redriven is gone',
    caughtBy: 'what was accepted is known',
    spoil({ store }) {
      const { jobs } = store.inside
      const drops = eachTime(2)
      const redrive = store.control.redrive.bind(store.control)
      store.control.redrive = async (ids, options) => {
        const answers = await redrive(ids, options)
        answers.forEach((answer, i) => {
          if (answer === 'ok' && drops()) jobs.remove(jobs.get(ids[i]!)!)
        })
        return answers
      }
    },
  },
]
