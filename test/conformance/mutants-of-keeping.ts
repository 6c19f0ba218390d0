/** Stores that are broken in what they keep: enqueue, keys, payloads, upkeep, control, inspect. */
import type { JobHistory } from '../../src/core/job.js'
import type { Broken, Mutant } from './mutant.js'

const DAY_MS = 86_400_000

export const MUTANTS_OF_KEEPING: Mutant[] = [
  {
    name: 'promotion is a millisecond early',
    caught: [
      'promote: no job before its time, every job after it',
      'settle: a job that waits for its next attempt is not run before',
    ],
    spoil(store) {
      const { upkeep } = store
      const promote = upkeep.promote.bind(upkeep)
      upkeep.promote = async (limit) => {
        const { jobs } = store.inside
        for (const job of jobs.delayed.take(limit, ({ dueAt }) => dueAt <= store.inside.now() + 1))
          jobs.toBack(job, store.inside.now())
        return promote(limit)
      }
    },
  },
  {
    name: 'expiry ends what has started',
    caught: ['expire: what has started once, or runs, goes on'],
    spoil(store) {
      const { upkeep } = store
      const expire = upkeep.expire.bind(upkeep)
      upkeep.expire = async (limit) => {
        const { jobs } = store.inside
        const late = jobs.delayed.take(limit, ({ expiresAt }) => expiresAt !== null && expiresAt <= store.inside.now())
        for (const job of late) jobs.toDead(job, 'expired', store.inside.now())
        return expire(limit)
      }
    },
  },
  {
    name: 'dead letters are kept no longer than others',
    caught: ['prune: records go when their retention is over, dead letters later, and nothing else'],
    spoil(store) {
      const { upkeep } = store
      const prune = upkeep.prune.bind(upkeep)
      upkeep.prune = async (options) => prune({ ...options, deadMs: options.completedMs })
    },
  },
  {
    name: 'one record too many is kept by count',
    caught: [
      'prune: of each queue the newest so many records stay, completed, cancelled and dead apart',
      'prune: by count no more goes than is over it, also of records that ended at one instant',
    ],
    spoil(store) {
      const { upkeep } = store
      const prune = upkeep.prune.bind(upkeep)
      const more = (max: number | undefined): number | undefined => (max === undefined ? undefined : max + 1)
      upkeep.prune = async (options) =>
        prune({ ...options, completedMax: more(options.completedMax), deadMax: more(options.deadMax) })
    },
  },
  {
    name: 'ages are rounded up to a day',
    caught: ['prune: an age below a day is kept to, not to the day'],
    spoil(store) {
      const { upkeep } = store
      const prune = upkeep.prune.bind(upkeep)
      upkeep.prune = async (options) => prune({ ...options, completedMs: Math.max(DAY_MS, options.completedMs) })
    },
  },
  {
    name: 'keys are free when their retention is over, whatever their job does',
    caught: ['keys: one of a job that has not ended is held beyond its retention'],
    spoil(store) {
      const enqueue = store.enqueue.bind(store)
      store.enqueue = async (jobs, options) => {
        for (const key of [...store.inside.keys.over(store.inside.now())]) store.inside.keys.delete(key)
        return enqueue(jobs, options)
      }
    },
  },
  {
    name: 'the key of a dead letter is free when its retention is over',
    caught: ['keys: a dead letter holds its key as long as it is there, and after a redrive'],
    spoil(store) {
      const { keys, jobs } = store.inside
      const get = keys.get.bind(keys)
      keys.get = (kind, key) => {
        const row = get(kind, key)
        if (row === undefined || row.until > store.inside.now() || jobs.get(row.id)?.place !== 'dead') return row
        keys.delete(row)
        return undefined
      }
    },
  },
  {
    name: 'a redriven job expires as before',
    caught: ['redrive: what was redriven never expires, also after it was given back'],
    spoil(store) {
      const { control } = store
      const redrive = control.redrive.bind(control)
      control.redrive = async (ids, options) => {
        const rows = ids.map((id) => store.inside.jobs.get(id)!)
        const before = rows.map(({ expiresAt }) => expiresAt)
        const answers = await redrive(ids, options)
        for (const [i, row] of rows.entries()) row.expiresAt = before[i]!
        return answers
      }
    },
  },
  {
    name: 'how long an attempt ran is forgotten',
    caught: ['settle: a record tells how long its last attempt ran'],
    spoil(store) {
      const settle = store.settle.bind(store)
      store.settle = async (settlements) =>
        settle(settlements.map((one) => ('ranMs' in one ? { ...one, ranMs: 0 } : one)))
    },
  },
  {
    name: 'keys of all kinds are one',
    caught: ['keys: a key belongs to its kind'],
    spoil(store) {
      const { keys } = store.inside
      const get = keys.get.bind(keys)
      keys.get = (_kind, key) => get('work', key) ?? get('other', key)
    },
  },
  {
    name: 'a mismatch is called a duplicate',
    caught: ['keys: another payload under a known key is a mismatch and stores nothing'],
    spoil(store) {
      const enqueue = store.enqueue.bind(store)
      store.enqueue = async (jobs, options) =>
        (await enqueue(jobs, options)).map((outcome) =>
          outcome.status === 'mismatch' ? { status: 'duplicate', id: outcome.id } : outcome,
        )
    },
  },
  {
    name: 'the id is looked at before the key',
    caught: ['keys: a call sent twice stores its job once, whatever became of it meanwhile'],
    spoil(store) {
      const enqueue = store.enqueue.bind(store)
      store.enqueue = async (jobs, options) => {
        const known = jobs.map(({ id }) => store.inside.jobs.get(id) !== undefined)
        const outcomes = await enqueue(jobs, options)
        return outcomes.map((outcome, i) =>
          known[i] ? { status: 'refused', code: 'DUPLICATE_ID', cause: null } : outcome,
        )
      }
    },
  },
  {
    name: 'one bad item sinks the batch',
    caught: ['enqueue: of five thousand the two bad ones are refused and named'],
    spoil(store) {
      const enqueue = store.enqueue.bind(store)
      store.enqueue = async (jobs, options) => {
        const outcomes = await enqueue(jobs, options)
        const bad = outcomes.find(({ status }) => status === 'refused')
        return bad === undefined ? outcomes : outcomes.map(() => bad)
      }
    },
  },
  {
    name: 'NUL characters are dropped',
    caught: ['payload: a NUL character', 'payload: odd texts are seen by people as by workers'],
    spoil(store) {
      const enqueue = store.enqueue.bind(store)
      store.enqueue = async (jobs, options) =>
        enqueue(
          jobs.map((job) => ({ ...job, payload: job.payload.replaceAll('\\u0000', '') })),
          options,
        )
    },
  },
  {
    name: 'histories are cut to ten entries',
    caught: ['payload: a history comes back as it was written'],
    spoil(store) {
      const settle = store.settle.bind(store)
      const cut = (history: JobHistory): JobHistory => ({ ...history, entries: history.entries.slice(-10) })
      store.settle = async (settlements) =>
        settle(settlements.map((one) => (one.to === 'delayed' ? { ...one, history: cut(one.history) } : one)))
    },
  },
  {
    name: 'a pause does not hold claims back',
    caught: [
      'claim: a paused queue gives nothing and is named, others go on',
      'pause: what runs goes on and can be settled',
    ],
    spoil(store) {
      store.control.pause = async () => {}
    },
  },
  {
    name: 'a drained queue takes jobs',
    caught: [
      'enqueue: a queue that is drained takes nothing new and gives what it has',
      'keys: a refused job takes no key',
    ],
    spoil(store) {
      store.control.refuse = async () => {}
    },
  },
  {
    name: 'running jobs are not told that they are cancelled',
    caught: ['beat: says which jobs somebody wants cancelled, until they are settled'],
    spoil(store) {
      const beat = store.beat.bind(store)
      store.beat = async (request) => ({ ...(await beat(request)), cancel: [] })
    },
  },
  {
    name: 'a redriven job keeps its attempts',
    caught: ['redrive: a dead letter is pending again with fresh attempts and all it was'],
    spoil(store) {
      spoilRedriven(store, (before, after) => ({ ...after, attempts: before.attempts }))
    },
  },
  {
    name: 'a redriven job keeps its age',
    caught: ['redrive: the age of its first life does not count, nor its crashes'],
    spoil(store) {
      spoilRedriven(store, (before, after) => ({ ...after, firstStartedAt: before.firstStartedAt ?? 0 }))
    },
  },
  {
    name: 'force is never needed',
    caught: ['redrive: a lost one needs force'],
    spoil(store) {
      const { control } = store
      const redrive = control.redrive.bind(control)
      control.redrive = async (ids) => redrive(ids, { force: true })
    },
  },
  {
    name: 'purged jobs keep their keys',
    caught: ['purge: deletes what waits, frees its keys, and leaves what runs, ended or is elsewhere'],
    spoil(store) {
      const { control } = store
      const purge = control.purge.bind(control)
      control.purge = async (queue, limit) => {
        const { keys } = store.inside
        const remove = keys.delete.bind(keys)
        keys.delete = () => {}
        const answer = await purge(queue, limit)
        keys.delete = remove
        return answer
      }
    },
  },
  {
    name: 'pages are counted from the start',
    caught: ['list: what stays is seen once while other jobs come and go'],
    spoil(store) {
      const { inspect } = store
      const list = inspect.list.bind(inspect)
      inspect.list = async ({ after = '0', limit, ...request }) => {
        const all = (await list({ ...request, limit: 10_000 })).jobs
        const end = Number(after) + limit
        const jobs = all.slice(Number(after), end)
        const cursors = jobs.map((_, index) => String(Number(after) + index + 1))
        return { jobs, cursors, next: end < all.length ? String(end) : null }
      }
    },
  },
  {
    name: 'each job of a page has the cursor of its end',
    caught: ['list: a page begins behind any job of the page before'],
    spoil(store) {
      const { inspect } = store
      const list = inspect.list.bind(inspect)
      inspect.list = async (request) => {
        const page = await list(request)
        return { ...page, cursors: page.cursors.map(() => page.cursors.at(-1)!) }
      }
    },
  },
  {
    name: 'answers share their objects with the store',
    caught: ['get: what a caller does to an answer changes nothing in the store'],
    spoil(store) {
      const claim = store.claim.bind(store)
      store.claim = async (request) => {
        const answer = await claim(request)
        for (const { fence, jobs } of answer.leases)
          for (const { ordinal, job } of store.inside.leases.get(fence)!.slots) jobs[ordinal]!.spec = job.spec
        return answer
      }
    },
  },
  {
    name: 'dead ones are counted as completed too',
    caught: [
      'counts: each job is counted in its place, in its queue',
      'walk: nothing is lost or doubled in 150 random steps, seed 1',
    ],
    spoil(store) {
      const { inspect } = store
      const counts = inspect.counts.bind(inspect)
      inspect.counts = async (queue) => {
        const counted = await counts(queue)
        return { ...counted, completed: { count: counted.completed.count + counted.dead.count, exact: true } }
      }
    },
  },
  {
    name: 'every tenth job that is given back vanishes',
    caught: [
      'walk: nothing is lost or doubled in 150 random steps, seed 1',
      'walk: nothing is lost or doubled in 150 random steps, seed 2',
    ],
    spoil(store) {
      const { jobs } = store.inside
      const toFront = jobs.toFront.bind(jobs)
      let times = 0
      jobs.toFront = (job, dueAt) => {
        times += 1
        if (times % 10 === 0) jobs.remove(job)
        else toFront(job, dueAt)
      }
    },
  },
  {
    name: 'nobody is woken',
    caught: ['wake: an idle worker hears of new work in its queues, until it stops listening'],
    spoil(store) {
      store.inside.hints.tell = () => {}
    },
  },
  {
    name: 'what is refused for its id takes its key along',
    caught: ['keys: what is refused for its id takes no key along'],
    spoil(store) {
      const enqueue = store.enqueue.bind(store)
      store.enqueue = async (jobs, options) => {
        const outcomes = await enqueue(jobs, options)
        for (const [at, job] of jobs.entries()) {
          const { idempotency } = job
          if (idempotency !== undefined && outcomes[at]!.status === 'refused')
            store.inside.keys.add(job, idempotency, store.inside.now())
        }
        return outcomes
      }
    },
  },
]

function spoilRedriven(store: Broken, spoil: (before: JobHistory, after: JobHistory) => JobHistory): void {
  const { control } = store
  const redrive = control.redrive.bind(control)
  control.redrive = async (ids, options) => {
    const rows = ids.map((id) => store.inside.jobs.get(id))
    const before = rows.map((row) => row?.history)
    const answers = await redrive(ids, options)
    for (const [i, row] of rows.entries()) if (before[i] && row?.history) row.history = spoil(before[i], row.history)
    return answers
  }
}
