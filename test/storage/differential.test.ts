/**
 * The differential test has to be able to fail, and to be the same each time: it compares the memory store with itself,
 * and with memory stores that are broken in one subtle way each. On real stores: test/postgres/differential.test.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { differential } from '../../sim/differential/differential.js'
import type { GlassStorage } from '../../sim/differential/memory-side.js'

/** A mutant that is not noticed in so many sequences is not noticed. */
const SEQUENCES_MAX = 60

interface Mutant {
  name: string
  spoil(store: GlassStorage): void
}

const MUTANTS: Mutant[] = [
  {
    name: 'of two that became ready the later one goes first',
    spoil({ inside: { jobs } }) {
      const { lanes } = jobs
      const candidates = lanes.candidates.bind(lanes)
      lanes.candidates = (queue, kinds, limit) => candidates(queue, kinds, limit + 1).slice(1)
    },
  },
  {
    name: 'what is given back goes behind the backlog',
    spoil({ inside: { jobs } }) {
      jobs.toFront = (job, dueAt, nth) => jobs.toBack(job, dueAt, nth)
    },
  },
  {
    name: 'two suspects of a queue run at the same time',
    spoil({ inside: { leases } }) {
      leases.runsAlone = () => false
    },
  },
  {
    name: 'a start that a beat told of is forgotten when its worker dies',
    spoil(store) {
      const beat = store.beat.bind(store)
      store.beat = async (request) => beat({ ...request, started: [] })
    },
  },
  {
    name: 'an older beat is a sign of life, too',
    spoil(store) {
      const beat = store.beat.bind(store)
      store.beat = async (request) => {
        const row = store.inside.workers.get(request.worker)
        if (row !== undefined && request.n < row.n) row.lastBeatAt = store.inside.now()
        return beat(request)
      }
    },
  },
  {
    name: 'a dead fence is answered as settled',
    spoil({ inside: { leases } }) {
      leases.diedOpen = () => false
    },
  },
  {
    name: 'a job under a dead fence counts as open although it was settled',
    spoil({ inside: { leases } }) {
      leases.diedOpen = (fence) => leases.isDead(fence)
    },
  },
  {
    name: 'a wish to cancel is lost by a take-over',
    spoil({ inside: { jobs } }) {
      const toHeir = jobs.toHeir.bind(jobs)
      jobs.toHeir = (job, worker) => {
        job.cancelling = false
        toHeir(job, worker)
      }
    },
  },
  {
    name: 'what comes back from the dead keeps its old due time',
    spoil({ inside: { jobs } }) {
      const toBack = jobs.toBack.bind(jobs)
      jobs.toBack = (job) => toBack(job)
    },
  },
  {
    name: 'the retention of a key begins at its enqueue',
    spoil(store) {
      const { keys } = store.inside
      const add = keys.add.bind(keys)
      keys.add = (job, idempotency) => add(job, idempotency, store.inside.now())
    },
  },
  {
    name: 'promotion takes no more than asked for, and one less',
    spoil({ upkeep }) {
      const promote = upkeep.promote.bind(upkeep)
      upkeep.promote = async (limit) => promote(limit - 1)
    },
  },
  {
    name: 'a worker whose beats had a gap takes over',
    spoil(store) {
      const { workers } = store.inside
      const takeOver = store.takeOver.bind(store)
      store.takeOver = async (request) => {
        const row = workers.get(request.worker)
        if (row !== undefined) row.steadySince = 0
        return takeOver(request)
      }
    },
  },
]

for (const { name, spoil } of MUTANTS) {
  test(`a difference is found: ${name}`, async () => {
    const result = await differential({
      sequences: SEQUENCES_MAX,
      store: 'memory',
      seed: 1,
      spoil,
      first: true,
      shrinkMs: 0,
    })
    assert.equal(result.differences, 1)
  })
}

test('a store never differs from itself', async () => {
  const result = await differential({ sequences: 15, store: 'memory', seed: 1, first: true })
  assert.deepEqual({ ...result, found: [] }, { sequences: 15, differences: 0, operations: 200, found: [] })
})

test('what shows a difference is made as small as it gets, and the same for the same seed', async () => {
  const spoil = ({ inside: { leases } }: GlassStorage): void => {
    leases.diedOpen = () => false
  }
  const run = () => differential({ sequences: SEQUENCES_MAX, store: 'memory', seed: 1, spoil, first: true })
  const [first, second] = [await run(), await run()]
  assert.deepEqual(first, second)
  // Something is enqueued, claimed, taken away and settled.
  assert(first.found[0]!.commands.length <= 5, JSON.stringify(first.found[0]!.commands))
})
