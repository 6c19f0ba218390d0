/** Stores that are broken where tenants share a queue. */
import type { JobRow } from '../../src/storage/memory/jobs.js'
import type { Broken, Mutant } from './mutant.js'

/** Places are given as if the job were another one. */
function placed(store: Broken, as: (job: JobRow) => Partial<JobRow>): void {
  const { fair } = store.inside.jobs.lanes
  const placeFor = fair.placeFor.bind(fair)
  fair.placeFor = (job) => placeFor({ ...job, ...as(job) })
}

export const MUTANTS_OF_TENANTS: Mutant[] = [
  {
    name: 'a queue with tenants has no fair list',
    caught: [
      'tenants: who floods a queue does not delay the others',
      'tenants: each one gets its turn',
      'tenants: nobody saves anything up',
      'tenants: who has less waiting than it had starts there',
      'tenants: a purged tenant starts afresh',
      'tenants: jobs without one are one together',
      'tenants: they are of one queue',
    ],
    spoil: ({ inside }) => {
      inside.jobs.lanes.fair.mark = () => {}
    },
  },
  {
    name: 'weights are not looked at',
    caught: ['tenants: shares go by weight'],
    spoil: (store) => placed(store, ({ spec: { weight: _, ...spec } }) => ({ spec })),
  },
  {
    name: 'what is being served is never written down',
    caught: ['tenants: nobody saves anything up', 'tenants: who comes in one by one does not keep a backlog waiting'],
    spoil: ({ inside }) => {
      inside.jobs.lanes.fair.serve = () => {}
    },
  },
  {
    name: 'a tenant stands behind all it ever had',
    caught: ['tenants: who has less waiting than it had starts there', 'tenants: a purged tenant starts afresh'],
    spoil({ inside }) {
      const { fair } = inside.jobs.lanes
      const add = fair.add.bind(fair)
      fair.delete = () => {}
      fair.add = (job) => add({ ...job })
    },
  },
  {
    name: 'a delayed job takes its share when it comes in',
    caught: ['tenants: jobs for tomorrow delay nobody today'],
    spoil({ inside }) {
      const { jobs } = inside
      const insert = jobs.insert.bind(jobs)
      jobs.insert = (job, now) => {
        if (job.dueAt > now) {
          const held = { ...job, fairPlace: jobs.lanes.fair.placeFor(job) }
          if (held.fairPlace !== null) jobs.lanes.fair.add(held)
        }
        insert(job, now)
      }
    },
  },
  {
    name: 'what is given back stands behind what waits of its tenant',
    caught: ['tenants: a retry takes its share anew, what is given back does not'],
    spoil({ inside }) {
      const { jobs } = inside
      jobs.toFront = (job, dueAt, nth) => jobs.toBack(job, dueAt, nth)
    },
  },
  {
    name: 'each kind of a tenant stands in a line of its own',
    caught: ['tenants: inside of one it is first come, first served'],
    spoil: (store) => {
      const { fair } = store.inside.jobs.lanes
      const apart = (job: JobRow): JobRow => ({
        ...job,
        spec: { ...job.spec, tenant: `${job.spec.tenant} ${job.kind}` },
      })
      const [placeFor, add] = [fair.placeFor.bind(fair), fair.add.bind(fair)]
      fair.placeFor = (job) => placeFor(apart(job))
      fair.add = (job) => add(apart(job))
      fair.delete = () => {}
    },
  },
  {
    name: 'tenants share above priorities',
    caught: ['tenants: priority stands above shares'],
    spoil({ inside }) {
      const { lanes } = inside.jobs
      const candidates = lanes.candidates.bind(lanes)
      lanes.candidates = (queue, kinds, limit) =>
        candidates(queue, kinds, 1_000)
          .sort((a, b) => (a.job.fairPlace ?? 0) - (b.job.fairPlace ?? 0) || a.priority - b.priority)
          .slice(0, limit)
    },
  },
  {
    name: 'tenants are of all queues together',
    caught: ['tenants: they are of one queue'],
    spoil: (store) => {
      const { fair } = store.inside.jobs.lanes
      const together = (job: JobRow): JobRow => ({ ...job, queue: 'q' })
      const [placeFor, add] = [fair.placeFor.bind(fair), fair.add.bind(fair)]
      fair.mark({ queue: 'q', priority: 4 })
      fair.placeFor = (job) => placeFor(together(job))
      fair.add = (job) => add(together(job))
      fair.delete = () => {}
    },
  },
  {
    name: 'what waits is listed by when it came in',
    caught: ['tenants: what waits is listed in the order of its turns'],
    spoil({ inside }) {
      const state = inside.jobs.inState('ready')
      const items = state.items.bind(state)
      state.items = function* (after) {
        yield* [...items(after)].sort((a, b) => a.position - b.position)
      }
    },
  },
]
