/** Each verdict of `explain` against what the next claim does, in random worlds of the memory store. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClauseCode } from '../../src/core/explanation.js'
import { MemoryStorage, memoryFactory } from '../../src/testing/index.js'
import { compareWithClaims, type Seen } from '../support/explained.js'

/** All that a job which has not ended can meet in these worlds: a worker serves its queue, as it claims. */
const MET: readonly (ClauseCode | 'taken' | 'passed over')[] = [
  'running',
  'not due',
  'not promoted',
  'paused',
  'concurrency',
  'rate',
  'suspect running',
  'no able worker',
  'its turn',
  'taken',
  'passed over',
]

test('what is told as held is not taken by the next claim, and what is told as next is', async () => {
  const seen: Partial<Seen> = await compareWithClaims(memoryFactory(), 400)
  for (const what of MET) assert((seen[what] ?? 0) > 0, `no world had one that is "${what}": ${JSON.stringify(seen)}`)
})

/** A store whose claims go by other rules than it tells. */
function broken(spoil: (store: Spoilt) => void): typeof MemoryStorage {
  return class extends Spoilt {
    constructor(options: ConstructorParameters<typeof MemoryStorage>[0]) {
      super(options)
      spoil(this)
    }
  }
}

class Spoilt extends MemoryStorage {
  get inside() {
    return this.state
  }
}

const DIFFERENT: Record<string, (store: Spoilt) => void> = {
  'hands out what is paused': (store) => {
    const { queues } = store.inside
    const claim = store.claim.bind(store)
    store.claim = async (request) => {
      const was = request.queues.map(({ queue }) => [queue, queues.get(queue).paused] as const)
      for (const [queue] of was) queues.ensure(queue).paused = false
      const answer = await claim(request)
      for (const [queue, paused] of was) queues.ensure(queue).paused = paused
      return answer
    }
  },
  'takes the second of a list first': (store) => {
    const { lanes } = store.inside.jobs
    const candidates = lanes.candidates.bind(lanes)
    lanes.candidates = (queue, kinds, limit) => candidates(queue, kinds, limit + 1).slice(1)
  },
  'lets two suspects run at once': (store) => {
    const claim = store.claim.bind(store)
    store.claim = async (request) => {
      const { leases } = store.inside
      const runsAlone = leases.runsAlone.bind(leases)
      leases.runsAlone = () => false
      const answer = await claim(request)
      leases.runsAlone = runsAlone
      return answer
    }
  },
  'takes what is due without having promoted it': (store) => {
    const claim = store.claim.bind(store)
    store.claim = async (request) => {
      await store.upkeep.promote(1_000)
      return claim(request)
    }
  },
}

for (const [name, spoil] of Object.entries(DIFFERENT))
  test(`a difference is found: a store that ${name}`, async () => {
    await assert.rejects(compareWithClaims(memoryFactory(broken(spoil)), 400), /Property failed/)
  })
