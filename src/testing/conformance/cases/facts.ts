/** Cases of `inspect.facts`: what a store tells of one job, by which it is explained why it does not run. */
import { strict as assert } from 'node:assert'
import { explain } from '../../../core/explain.js'
import type { ClauseCode, Explanation } from '../../../core/explanation.js'
import { emptyHistory } from '../../../core/job.js'
import type { JobFacts } from '../../../core/job-facts.js'
import type { ConformanceCase } from '../case.js'
import { HOUR_MS, type Kit } from '../kit.js'
import { BEAT_MS, givenBack, LEASE_MS, rejected, returned, started, TestWorker, threw } from '../worker.js'

/** More than a look at a list reads. */
const MANY = 1_100

export const FACTS: ConformanceCase[] = [
  {
    name: 'facts: a job is explained in each of its places',
    promise: 'Why a job does not run, or where it is, can be asked of any job.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const worker = await kit.worker()
      assert.equal(await kit.inspect.facts(kit.job().id), null)
      const id = await kit.enqueueOne({ due: { delayMs: 30_000 } })
      assert.deepEqual(await codes(kit, id), ['not due'])
      await kit.pass(30_000 + kit.marginMs, worker)
      assert.deepEqual(await codes(kit, id), ['not promoted'])
      await kit.promote()
      assert.deepEqual(await codes(kit, id), ['its turn'])
      const held = await worker.takeOne()
      assert.deepEqual(await codes(kit, id), ['running'])
      await worker.settle(threw(held, 30_000))
      assert.deepEqual(await codes(kit, id), ['not due'])
      assert.deepEqual(await kit.control.retry([id]), ['ok'])
      await worker.settle(rejected(await worker.takeOne()))
      const dead = await explained(kit, id)
      assert(dead.clauses[0].code === 'dead')
      assert.deepEqual([dead.verdict, dead.clauses[0].reason], ['ended', 'rejected'])
      const other = await kit.enqueueOne()
      await worker.settle(returned(await worker.takeOne()))
      assert.deepEqual(await codes(kit, other), ['ended'])
    },
  },
  {
    name: 'facts: all that holds a job is told, what decides first',
    promise: 'A pause, a time that has not come and a missing worker are told together.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const id = await kit.enqueueOne({ due: { delayMs: HOUR_MS } })
      await kit.control.pause('q')
      assert.deepEqual(await codes(kit, id), ['not due', 'paused', 'no worker'])
      await kit.control.retry([id])
      assert.deepEqual(await codes(kit, id), ['paused', 'no worker', 'its turn'])
      await kit.control.refuse('q')
      const { verdict, notes } = await explained(kit, id)
      assert.deepEqual([verdict, notes.map(({ code }) => code)], ['held', ['draining']])
      await kit.control.resume('q')
      await kit.worker()
      assert.deepEqual(await codes(kit, id), ['its turn'])
    },
  },
  {
    name: 'facts: only workers that are alive, serve the queue and have the kind count as able',
    promise: 'A job that nobody can run says so.',
    needs: ['inspect'],
    async run(kit) {
      const id = await kit.enqueueOne({ kind: 'rare' })
      const told = async (): Promise<unknown[]> => {
        const { workers, workersElsewhere } = await factsOf(kit, id)
        return [...(await codes(kit, id)), workers.map(({ kinds }) => kinds?.join() ?? 'any'), workersElsewhere]
      }
      await registered(kit, ['elsewhere'], ['rare'])
      assert.deepEqual(await told(), ['no worker', 'its turn', [], 1])
      await registered(kit, ['q'], ['work', 'other'])
      assert.deepEqual(await told(), ['no able worker', 'its turn', ['work,other'], 1])
      // Of what it can run it says nothing: it may be able.
      await kit.advance(LEASE_MS / 2)
      await kit.worker()
      assert.deepEqual(await told(), ['its turn', ['work,other', 'any'], 1])
      await kit.advance(LEASE_MS / 2 + kit.marginMs)
      assert.deepEqual(await told(), ['its turn', ['any'], 0])
    },
  },
  {
    name: 'facts: a worker whose main loop has been silent for a lease is not alive',
    promise: 'Whoever cannot claim is not counted as able.',
    needs: ['inspect'],
    async run(kit) {
      const id = await kit.enqueueOne()
      const worker = await kit.worker()
      await worker.beat({ mainLagMs: LEASE_MS + kit.marginMs })
      assert.deepEqual(await codes(kit, id), ['no worker', 'its turn'])
    },
  },
  {
    name: 'facts: the rank is the place in which claims come to a job',
    promise: 'Who goes before a job is told by the rules that claims go by.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const worker = await registered(kit, ['q'], ['work'])
      const low = await kit.enqueue({ priority: 3 }, { priority: 3, kind: 'other' }, { priority: 3 })
      const high = await kit.enqueueMany(9, { priority: 9 })
      const [back] = await worker.take(1)
      await kit.advance(20)
      await kit.enqueue({ priority: 9 })
      await worker.settle(givenBack(back!))
      for (const order of ['strict', 'ageing', 'weighted'] as const) {
        await kit.control.order('q', order)
        const ranks = await Promise.all([high[0]!, high[1]!, low[0]!, low[2]!].map((id) => rank(kit, id)))
        // Of fifteen turns of the tiers the eighth is that of the lowest.
        assert.deepEqual(ranks, order === 'weighted' ? [1, 2, 8, 12] : [1, 2, 11, 12], order)
      }
      const { inLevel } = await turn(kit, low[2]!)
      assert.deepEqual(inLevel, { rank: 2, exact: true }, 'kinds that no able worker has do not count')
    },
  },
  {
    name: 'facts: a job that goes with the next claim is told so, and goes with it',
    promise: 'What is told as next is taken by the next claim.',
    needs: ['inspect'],
    async run(kit) {
      const ids = await kit.enqueueMany(12)
      const worker = await registered(kit, ['q'], ['work'])
      const next: string[] = []
      for (const id of ids) if ((await explained(kit, id)).verdict === 'next') next.push(id)
      assert.deepEqual(next, ids.slice(0, 10))
      const held = await worker.take(10)
      assert.deepEqual(
        held.map(({ job }) => job.id),
        next,
      )
      assert.equal((await explained(kit, ids[11]!)).verdict, 'in line')
      assert.equal((await turn(kit, ids[11]!)).freeSlots, 0)
    },
  },
  {
    name: 'facts: far back in a long list a job is at least so far back',
    promise: 'Explaining costs no more where millions wait.',
    needs: ['inspect'],
    async run(kit) {
      const ids = await kit.enqueueMany(MANY)
      assert.deepEqual(await rank(kit, ids[999]!), 1_000)
      const { rank: at, exact } = await turn(kit, ids.at(-1)!)
      assert.deepEqual([at, exact], [1_001, false])
      const [list, ...others] = (await factsOf(kit, ids.at(-1)!)).lists
      assert.deepEqual([list!.entries.length, list!.cut, list!.own, others], [1_001, true, undefined, []])
    },
  },
  {
    name: 'facts: who runs a job is told, since when, and whether its lease is over',
    promise: 'Who holds a job can be seen, and that it was lost.',
    needs: ['inspect'],
    async run(kit) {
      const id = await kit.enqueueOne()
      const worker = await kit.worker()
      const held = await worker.takeOne()
      await kit.advance(5_000)
      await worker.settle(started(held))
      await worker.beat({ started: [[held.fence, held.ordinal, 1_000]], mainLagMs: 700 })
      const run = await running(kit, id)
      assert.deepEqual([run.holder, run.worker, run.name, run.attempt], ['alive', worker.id, 'host:1', 1])
      assert(run.startedAt !== null && run.startedAt > run.claimedAt)
      assert.deepEqual([run.mainLagMs, run.lastBeatAgoMs! <= kit.marginMs], [700, true])
      await kit.advance(LEASE_MS)
      assert.equal((await running(kit, id)).holder, 'silent')
      const heir = await kit.worker()
      await kit.pass(LEASE_MS + kit.marginMs, heir)
      await heir.takeOver()
      const adopted = await running(kit, id)
      assert.deepEqual([adopted.holder, adopted.worker], ['adopted', heir.id])
    },
  },
  {
    name: 'facts: a limit that is used up is told, with who uses it and until when',
    promise: 'A job that a limit holds says which one, and what it waits for.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const ids = await kit.enqueueMany(5)
      const worker = await kit.worker()
      await kit.control.limit('q', { concurrency: 2 })
      const [first] = await worker.take(5)
      const [full] = (await explained(kit, ids[4]!)).clauses
      assert(full.code === 'concurrency', full.code)
      assert.deepEqual([full.limit, full.held], [2, 2])
      assert.deepEqual(
        full.holders,
        ids.slice(0, 2).map((id) => ({ id, worker: worker.id })),
      )
      await worker.settle(returned(first!))
      assert.deepEqual(await codes(kit, ids[4]!), ['its turn'])
      assert.deepEqual(
        [(await explained(kit, ids[2]!)).verdict, (await explained(kit, ids[3]!)).verdict],
        ['next', 'in line'],
      )
      await kit.control.limit('q', { concurrency: null, rate: { limit: 1, perMs: HOUR_MS, burst: 2 } })
      await (await kit.worker()).takeOne()
      assert.deepEqual(
        [(await explained(kit, ids[3]!)).verdict, (await explained(kit, ids[4]!)).verdict],
        ['next', 'in line'],
      )
      await (await kit.worker()).takeOne()
      const { clauses, nowMs } = await explained(kit, ids[4]!)
      assert(clauses[0].code === 'rate', clauses[0].code)
      const leftMs = clauses[0].nextAt - nowMs
      assert(leftMs > 0 && leftMs <= HOUR_MS, `${leftMs}`)
      await kit.pass(leftMs, worker)
      assert.deepEqual(await codes(kit, ids[4]!), ['its turn'])
    },
  },
  {
    name: 'facts: a suspect waits for the one of its queue that runs',
    promise: 'What has to run alone says for whom it waits.',
    needs: ['inspect'],
    async run(kit) {
      const [worker, other] = [await kit.worker(), await kit.worker()]
      const ids = await kit.enqueue({ priority: 2 }, { priority: 9 })
      const history = { ...emptyHistory(), crashes: 2 }
      for (const { fence, ordinal } of await worker.take(2))
        await worker.settle({ fence, ordinal, to: 'ready', suspect: true, history })
      const plain = await kit.enqueueOne()
      assert.deepEqual([await rank(kit, ids[1]!), await rank(kit, ids[0]!)], [1, 2])
      assert.equal(await rank(kit, plain), 1)
      const held = await other.takeOne({ suspects: true })
      assert.equal(held.job.id, ids[1])
      const { clauses, notes } = await explained(kit, ids[0]!)
      assert(clauses[0].code === 'suspect running')
      assert.deepEqual([clauses[0].id, clauses[0].worker], [ids[1], other.id])
      assert.deepEqual(
        notes.map(({ code }) => code),
        ['runs alone'],
      )
      assert.deepEqual(await codes(kit, plain), ['its turn'])
    },
  },
]

const INFO = { name: 'host:1', queues: ['q'], concurrency: 10, leaseMs: LEASE_MS, beatMs: BEAT_MS }

async function registered(kit: Kit, queues: string[], kinds: string[]): Promise<TestWorker> {
  const worker = new TestWorker(kit.store, kit.job().id)
  await worker.beat({ info: { ...INFO, queues, kinds } })
  return worker
}

async function factsOf(kit: Kit, id: string): Promise<JobFacts> {
  const facts = await kit.inspect.facts(id)
  assert(facts, `job ${id} is not known`)
  return facts
}

async function explained(kit: Kit, id: string): Promise<Explanation> {
  return explain(await factsOf(kit, id))
}

async function codes(kit: Kit, id: string): Promise<ClauseCode[]> {
  return (await explained(kit, id)).clauses.map(({ code }) => code)
}

async function turn(kit: Kit, id: string) {
  const clause = (await explained(kit, id)).clauses.at(-1)!
  assert(clause.code === 'its turn', clause.code)
  return clause
}

async function running(kit: Kit, id: string) {
  const [clause] = (await explained(kit, id)).clauses
  assert(clause.code === 'running', clause.code)
  return clause
}

/** It has to be exact. */
async function rank(kit: Kit, id: string): Promise<number> {
  const { rank, exact } = await turn(kit, id)
  assert(exact)
  return rank
}
