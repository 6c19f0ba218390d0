/**
 * Random worlds in which each verdict of `explain` is compared with what the next claim does. On the memory store:
 * test/core/explain-worlds.test.ts; on PostgreSQL: test/postgres/explain-worlds.test.ts.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { explain } from '../../src/core/explain.js'
import type { ClauseCode, Explanation } from '../../src/core/explanation.js'
import { emptyHistory } from '../../src/core/job.js'
import type { JobFacts } from '../../src/core/job-facts.js'
import { ableWorkers, roomOf, takenBy } from '../../src/core/standing.js'
import type { QueueOrder, Settlement } from '../../src/storage/storage.js'
import { BEAT_MS, givenBack, type Held, heldIn, idsOf, LEASE_MS, threw } from '../../src/testing/conformance/worker.js'
import { Kit, type StoreFactory, TestWorker } from '../../src/testing/index.js'

const KINDS = ['a', 'b', 'c'] as const
const QUEUES = ['q', 'q', 'q', 'other'] as const
const HOUR_MS = 3_600_000

const queue = fc.constantFrom(...QUEUES)
const kinds = fc.subarray([...KINDS], { minLength: 1 })
const few = fc.integer({ min: 1, max: 4 })

const act = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      act: fc.constant('enqueue' as const),
      queue,
      jobs: fc.array(sketch(), { minLength: 1, maxLength: 6 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ act: fc.constant('pass' as const), ms: fc.constantFrom(1, 700, 20_000, 59_000, 90_000) }),
  },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('promote' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      act: fc.constant('order' as const),
      order: fc.constantFrom<QueueOrder>('ageing', 'strict', 'weighted'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('pause' as const), queue, on: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('limit' as const), limits: limits() }) },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('work' as const), queue, kinds }) },
  {
    weight: 6,
    arbitrary: fc.record({
      act: fc.constant('claim' as const),
      queue,
      kinds,
      limit: few,
      suspects: fc.boolean(),
      outcome: fc.constantFrom(
        'hold' as const,
        'give back' as const,
        'suspect' as const,
        'delayed suspect' as const,
        'fail' as const,
      ),
    }),
  },
)

function sketch() {
  return fc.record({
    kind: fc.constantFrom(...KINDS),
    priority: fc.constantFrom(0, 4, 4, 5, 12, 15),
    delayMs: fc.constantFrom(0, 0, 0, 500, 30_000, HOUR_MS),
  })
}

/** Rates are slow, so that no token comes between a verdict and the claim. */
function limits() {
  return fc.record({
    concurrency: fc.constantFrom(null, null, 1, 3, 8),
    rate: fc.constantFrom(null, null, { limit: 1, perMs: HOUR_MS, burst: 1 }, { limit: 4, perMs: HOUR_MS, burst: 6 }),
  })
}

type Act = typeof act extends fc.Arbitrary<infer A> ? A : never

/** A random history, and the claim that follows it. */
const worlds = fc.record({
  acts: fc.array(act, { minLength: 1, maxLength: 25, size: 'max' }),
  claim: fc.record({ kinds, limit: fc.integer({ min: 1, max: 20 }), turn: fc.nat(40), suspects: fc.boolean() }),
})

/** How often each clause was the decisive one, and how often a job in line was taken and was not. */
export type Seen = Record<ClauseCode | 'taken' | 'passed over', number>

/** The worlds are the same in each run: what they are said to have met is not left to chance. */
const SEED = 2

/** Fails where a verdict and the next claim differ. */
export async function compareWithClaims(factory: StoreFactory, numRuns: number): Promise<Partial<Seen>> {
  const seen: Partial<Seen> = {}
  const count = (what: keyof Seen): void => {
    seen[what] = (seen[what] ?? 0) + 1
  }
  await fc.assert(
    fc.asyncProperty(worlds, async ({ acts, claim }) => {
      const kit = await Kit.over(factory)
      try {
        const ids = new Set<string>()
        for (const one of acts) await play(kit, one, ids)
        await judge(kit, ids, claim, count)
      } finally {
        await kit.close()
      }
    }),
    { numRuns, seed: SEED, endOnFailure: true },
  )
  return seen
}

async function play(kit: Kit, one: Act, ids: Set<string>): Promise<void> {
  switch (one.act) {
    case 'enqueue': {
      const jobs = one.jobs.map(({ delayMs, ...job }) => ({ ...job, queue: one.queue, due: { delayMs } }))
      for (const id of await kit.enqueue(...jobs)) ids.add(id)
      return
    }
    case 'pass':
      return kit.advance(one.ms)
    case 'promote':
      return void (await kit.promote())
    case 'order':
      return kit.control.order('q', one.order)
    case 'pause':
      return one.on ? kit.control.pause(one.queue) : kit.control.resume(one.queue)
    case 'limit':
      return kit.control.limit('q', one.limits)
    case 'work':
      return void (await registered(kit, one))
    case 'claim': {
      const worker = await registered(kit, one)
      const { kinds, limit, suspects } = one
      const held = await worker.take(limit, { queues: [{ queue: one.queue, share: limit }], kinds, suspects })
      await worker.settle(...held.flatMap((job) => settlementOf(job, one.outcome)))
      // One of them runs alone from now on.
      if (one.outcome === 'suspect' && suspects)
        await worker.take(1, { queues: [{ queue: one.queue, share: 1 }], kinds, suspects })
      await worker.beat({ info: infoOf(one) })
    }
  }
}

function settlementOf(
  held: Held,
  outcome: 'hold' | 'give back' | 'suspect' | 'delayed suspect' | 'fail',
): Settlement[] {
  const { fence, ordinal } = held
  const history = { ...emptyHistory(), crashes: 2 }
  switch (outcome) {
    case 'hold':
      return []
    case 'give back':
      return [givenBack(held)]
    case 'fail':
      return [threw(held, 10_000)]
    case 'suspect':
      return [{ fence, ordinal, to: 'ready', suspect: true, history }]
    case 'delayed suspect':
      return [{ fence, ordinal, to: 'delayed', delayMs: 500, suspect: true, history }]
  }
}

function infoOf(worker: { queue: string; kinds: string[]; concurrency?: number }) {
  const { queue, kinds, concurrency = 10 } = worker
  return { name: 'host:1', queues: [queue], kinds, concurrency, leaseMs: LEASE_MS, beatMs: BEAT_MS }
}

async function registered(kit: Kit, worker: Parameters<typeof infoOf>[0]): Promise<TestWorker> {
  const made = new TestWorker(kit.store, kit.job().id)
  await made.beat({ info: infoOf(worker) })
  return made
}

interface NextClaim {
  kinds: string[]
  limit: number
  turn: number
  suspects: boolean
}

/** All jobs are explained before the claim; then the claim decides who was right. */
async function judge(kit: Kit, ids: Set<string>, claim: NextClaim, count: (what: keyof Seen) => void): Promise<void> {
  const { kinds, limit, turn, suspects } = claim
  const worker = await registered(kit, { queue: 'q', kinds, concurrency: limit })
  const all = await Promise.all([...ids].map((id) => kit.inspect.facts(id)))
  assert.equal(all.includes(null), false, 'a job is not known')
  const told = all.filter((facts) => facts !== null).filter(({ job }) => job.queue === 'q')
  const answer = heldIn(await worker.claim({ kinds, limit, suspects, queues: [{ queue: 'q', share: limit, turn }] }))
  const taken = new Set(idsOf(answer))
  // Who asks for no suspect gets none, and a suspect comes alone: of the others such a claim says nothing.
  const alone = answer.some((held) => held.alone)
  for (const facts of told.filter(({ job }) => (job.suspect ? suspects : !alone)))
    compare(facts, explain(facts), { ...claim, taken: taken.has(facts.job.id), worker: worker.id }, count)
}

function compare(
  facts: JobFacts,
  told: Explanation,
  { taken, worker, ...claim }: NextClaim & { taken: boolean; worker: string },
  count: (what: keyof Seen) => void,
): void {
  const [first] = told.clauses
  const about = `${told.verdict} (${told.clauses.map(({ sentence }) => sentence).join('; ')})`
  count(first.code)
  if (first.code !== 'its turn') {
    assert.equal(taken, false, `taken, though ${about}`)
    return
  }
  count(taken ? 'taken' : 'passed over')
  assert.equal(takenBy(facts, claim), taken, `${taken ? 'taken' : 'not taken'}: ${about}`)
  const able = ableWorkers(facts)
  if (able.length !== 1 || able[0]!.id !== worker) return
  if (first.next) assert(taken, `not taken, though ${about}`)
  // From turn 0 on nothing is reserved before the sixteenth start.
  const inOrder = facts.queue.order === 'strict' || (claim.turn === 0 && claim.limit < 16)
  if (inOrder && first.exact && !facts.job.suspect)
    assert.equal(first.rank <= Math.min(claim.limit, roomOf(facts.queue)), taken, `rank: ${about}`)
}
