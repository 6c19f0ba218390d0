/** Cases of `claim`: what it gives and how it is asked again. Order is in order.ts. */
import { strict as assert } from 'node:assert'
import type { ConformanceCase } from '../case.js'
import { HOUR_MS } from '../kit.js'
import { givenBack, type Held, heldIn, idsOf, LEASE_MS, returned, threw } from '../worker.js'

export const CLAIMS: ConformanceCase[] = [
  {
    name: 'claim: never more than its limit, and nothing twice',
    promise: 'A claim gives a job to one worker only.',
    needs: [],
    async run(kit) {
      const ids = await kit.enqueueMany(23)
      const [one, two] = [await kit.worker(), await kit.worker(await kit.open())]
      const taken: Held[] = []
      for (const limit of [0, 1, 7, 3, 9, 2, 4]) {
        const got = await (taken.length % 2 === 0 ? one : two).take(limit)
        assert(got.length <= limit)
        taken.push(...got)
      }
      assert.deepEqual(idsOf(taken), ids)
      assert.deepEqual(await one.take(10), [])
    },
  },
  {
    name: 'claim: workers that ask at the same time share the jobs out',
    promise: 'A claim gives a job to one worker only.',
    needs: [],
    async run(kit) {
      const ids = await kit.enqueueMany(200)
      const handles = [kit.store, await kit.open(), await kit.open()]
      const workers = await Promise.all(Array.from({ length: 12 }, (_, i) => kit.worker(handles[i % 3])))
      const taken: Held[] = []
      for (let round = 0; round < 10; round++)
        taken.push(...(await Promise.all(workers.map((worker) => worker.take(5)))).flat())
      assert.equal(taken.length, 200)
      assert.deepEqual(idsOf(taken).sort(), ids.sort())
    },
  },
  {
    name: 'claim: each lease has a fence larger than all before',
    promise: 'Fences rise over all workers, so that a later holder of a job has the larger one.',
    needs: [],
    async run(kit) {
      await kit.enqueueMany(40)
      const workers = [await kit.worker(), await kit.worker(await kit.open()), await kit.worker()]
      const fences: number[] = []
      for (let round = 0; round < 12; round++) {
        const [held] = await workers[round % 3]!.take(1)
        fences.push(held!.fence)
        if (round % 2 === 0) await workers[round % 3]!.settle(givenBack(held!))
      }
      for (const [i, fence] of fences.entries()) {
        assert(Number.isSafeInteger(fence) && fence > (fences[i - 1] ?? 0), `fences ${fences}`)
      }
    },
  },
  {
    name: 'claim: asked again it gives the same batch and nothing else',
    promise: 'A claim whose answer is lost is asked for again.',
    needs: [],
    async run(kit) {
      await kit.enqueueMany(10)
      const worker = await kit.worker()
      const first = await worker.claim({ limit: 3, apart: ['work'] })
      await kit.enqueue({ priority: 15 })
      for (let times = 0; times < 2; times++) {
        const again = await worker.claim({ limit: 3, apart: ['work'], request: worker.request })
        assert.equal(again.status, 'ok')
        assert.deepEqual(fencesAndIds(again), fencesAndIds(first))
      }
      assert.equal((await worker.take(20)).length, 8)
    },
  },
  {
    name: 'claim: sent twice at once it takes one batch',
    promise: 'A claim that is done twice is done once.',
    needs: [],
    async run(kit) {
      const ids = await kit.enqueueMany(20)
      const worker = await kit.worker()
      const other = await kit.open()
      worker.request += 1
      const request = worker.claimRequest({ limit: 4 })
      const answers = await Promise.all([kit.store.claim(request), other.claim(request), kit.store.claim(request)])
      for (const answer of answers) assert.deepEqual(idsOf(heldIn(answer)), ids.slice(0, 4))
      assert.equal(new Set(answers.flatMap(({ leases }) => leases.map(({ fence }) => fence))).size, 1)
      assert.equal((await worker.take(20)).length, 16)
    },
  },
  {
    name: 'claim: asked again after some were settled it brings nothing new',
    promise: 'What was settled is not handed out again, and a repeat never takes a second batch.',
    needs: [],
    async run(kit) {
      await kit.enqueueMany(9)
      const worker = await kit.worker()
      const held = await worker.take(3)
      await worker.settle(returned(held[0]!), threw(held[2]!, HOUR_MS))
      const again = await worker.claim({ limit: 3, request: worker.request })
      // Something of it was settled, so it has reached the worker: a store need not give it again.
      assert(again.leases.every(({ jobs }) => jobs.every(({ id }) => id === held[1]!.job.id)))
      assert.deepEqual(await worker.settle(returned(held[1]!)), ['ok'])
      assert.deepEqual((await worker.claim({ limit: 3, request: worker.request })).leases, [])
    },
  },
  {
    name: 'claim: an older request asked again gives its own batch',
    promise: 'Answers never get mixed up, however late they are asked for.',
    needs: [],
    async run(kit) {
      const ids = await kit.enqueueMany(9)
      const worker = await kit.worker()
      await worker.take(2)
      await worker.take(2)
      const older = await worker.claim({ limit: 2, request: worker.request - 1 })
      assert.deepEqual(idsOf(heldIn(older)), ids.slice(0, 2))
      const newer = await worker.claim({ limit: 2, request: worker.request })
      assert.deepEqual(idsOf(heldIn(newer)), ids.slice(2, 4))
    },
  },
  {
    name: 'claim: one that arrives after it was given up keeps nothing',
    promise: 'A claim done after its caller gave up leaves no job behind.',
    needs: [],
    async run(kit) {
      const ids = await kit.enqueueMany(3)
      const worker = await kit.worker()
      worker.request = 5 // four claims were sent, and nobody waits for them any more
      await worker.beat()
      await kit.store.claim(worker.claimRequest({ request: 4, limit: 3 }))
      await kit.store.claim(worker.claimRequest({ request: 5, limit: 3 }))
      await worker.beat()
      assert.deepEqual(idsOf(await worker.take(10)), ids)
    },
  },
  {
    name: 'claim: a worker that never registered gets nothing, and its settlements are heard',
    promise: 'No job is handed to an identity that the store does not know.',
    needs: [],
    async run(kit) {
      await kit.enqueueMany(2)
      const worker = await kit.worker()
      const [held] = await worker.take(1)
      const claim = await kit.store.claim({
        ...worker.claimRequest({ request: 1 }),
        worker: held!.job.id,
        finished: [returned(held!)],
      })
      assert.deepEqual([claim.status, claim.leases, claim.settled], ['gone', [], ['ok']])
      assert.equal((await worker.take(10)).length, 1)
    },
  },
  {
    name: 'claim: a worker that was written off gets nothing',
    promise: 'No job is handed to an identity that the store holds to be dead.',
    needs: [],
    async run(kit) {
      await kit.enqueueMany(2)
      const [zombie, heir] = [await kit.worker(), await kit.worker()]
      await zombie.take(1)
      await kit.pass(LEASE_MS + kit.marginMs, heir)
      assert.equal((await heir.takeOver()).length, 1)
      const claim = await zombie.claim()
      assert.deepEqual([claim.status, claim.leases], ['gone', []])
      assert.equal((await heir.take(10)).length, 1)
    },
  },
  {
    name: 'claim: settles what it brings along before it takes',
    promise: 'One round trip ends a batch and begins the next.',
    needs: [],
    async run(kit) {
      const [first, second] = await kit.enqueueMany(2)
      const worker = await kit.worker()
      const held = await worker.take(2)
      const finished = [returned(held[0]!), givenBack(held[1]!)]
      const claim = await worker.claim({ finished })
      assert.deepEqual(claim.settled, ['ok', 'ok'])
      assert.deepEqual(idsOf(heldIn(claim)), [second])
      const again = await worker.claim({ finished, request: worker.request })
      assert.deepEqual(again.settled, ['already', 'already'])
      assert.deepEqual(fencesAndIds(again), fencesAndIds(claim))
      assert.notEqual(first, second)
    },
  },
  {
    name: 'claim: each queue gives up to its share, then what others left',
    promise: 'Queues of one worker are weighed against each other, and no slot stays empty for it.',
    needs: [],
    async run(kit) {
      await kit.enqueueMany(10, { queue: 'a' })
      await kit.enqueueMany(2, { queue: 'b' })
      await kit.enqueueMany(10, { queue: 'c' })
      const worker = await kit.worker()
      const shares = { queues: ['a', 'b', 'c', 'none'].map((queue) => ({ queue, share: 3 })) }
      assert.deepEqual(byQueue(await worker.take(9, shares)), { a: 4, b: 2, c: 3 })
      assert.deepEqual(byQueue(await worker.take(5, shares)), { a: 3, c: 2 })
      assert.deepEqual(byQueue(await worker.take(9, { queues: [{ queue: 'c', share: 0 }] })), { c: 5 })
      assert.deepEqual(byQueue(await worker.take(2, { queues: [{ queue: 'a', share: 9 }] })), { a: 2 })
    },
  },
  {
    name: 'claim: takes from the queues it names and no other',
    promise: 'A worker gets the work of its queues.',
    needs: [],
    async run(kit) {
      const [mine] = await kit.enqueue({ queue: 'q' }, { queue: 'q2' }, { queue: 'Q' })
      assert.deepEqual(idsOf(await (await kit.worker()).take(10)), [mine])
    },
  },
  {
    name: 'claim: kinds that a worker cannot run are passed over and stay',
    promise: 'An old worker never fails a job that it does not know, and is not held up by it.',
    needs: [],
    async run(kit) {
      const unknown = await kit.enqueueMany(500, { kind: 'new' })
      const known = await kit.enqueueMany(3)
      const worker = await kit.worker()
      assert.deepEqual(idsOf(await worker.take(2)), known.slice(0, 2))
      assert.deepEqual(idsOf(await worker.take(2)), known.slice(2))
      assert.deepEqual(idsOf(await worker.take(10, { kinds: ['new'] })), unknown.slice(0, 10))
      assert.deepEqual(await worker.take(10, { kinds: [] }), [])
    },
  },
  {
    name: 'claim: kinds named apart get leases of their own, others share them',
    promise: 'A slow job never holds the end of others up.',
    needs: [],
    async run(kit) {
      await kit.enqueue({}, { kind: 'other' }, {}, { kind: 'other' }, {})
      const { leases } = await (await kit.worker()).claim({ apart: ['other'] })
      const kinds = leases.map(({ jobs }) => jobs.map(({ kind }) => kind).join('+'))
      assert.deepEqual(kinds.sort(), ['other', 'other', 'work+work+work'])
      assert(leases.every(({ alone }) => !alone))
    },
  },
  {
    name: 'claim: a lease holds at most a hundred jobs',
    promise: 'What a take-over moves at once is bounded.',
    needs: [],
    async run(kit) {
      const ids = await kit.enqueueMany(250)
      const claim = await (await kit.worker()).claim({ limit: 250, queues: [{ queue: 'q', share: 250 }] })
      assert.deepEqual(idsOf(heldIn(claim)), ids)
      assert(claim.leases.length >= 3 && claim.leases.every(({ jobs }) => jobs.length <= 100))
    },
  },
  {
    name: 'claim: says when the next delayed job is due',
    promise: 'A worker may sleep until there is something to do.',
    needs: [],
    async run(kit) {
      const worker = await kit.worker()
      assert.equal((await worker.claim()).nextDueMs, null)
      await kit.enqueue({ due: { delayMs: 3 * HOUR_MS } }, { due: { delayMs: 2 * HOUR_MS } })
      const { nextDueMs } = await worker.claim()
      assert(nextDueMs !== null && nextDueMs <= 2 * HOUR_MS && nextDueMs >= 2 * HOUR_MS - kit.marginMs)
      await kit.pass(HOUR_MS, worker)
      const later = await worker.claim()
      assert(later.nextDueMs !== null && later.nextDueMs <= HOUR_MS)
    },
  },
  {
    name: 'claim: tells the time by its own clock, and how long a job was due',
    promise: 'Waiting times are measured by one clock.',
    needs: [],
    async run(kit) {
      const worker = await kit.worker()
      const { nowMs } = await worker.claim()
      await kit.enqueue({}, { due: { delayMs: 10 * 60_000 } })
      await kit.pass(15 * 60_000, worker)
      await kit.promote()
      const claim = await worker.claim()
      const passed = claim.nowMs - nowMs
      assert(passed >= 15 * 60_000 && passed <= 15 * 60_000 + kit.marginMs)
      const waited = heldIn(claim).map(({ job }) => job.waitedMs)
      assert(waited[0]! >= 15 * 60_000 && waited[0]! <= 15 * 60_000 + kit.marginMs)
    },
  },
  {
    name: 'claim: says how long a job may still be started, until it first was',
    promise: 'A job that came too late is not run, and one that started in time may go on.',
    needs: [],
    async run(kit) {
      const worker = await kit.worker()
      const ids = await kit.enqueue({ spec: { expiresInMs: HOUR_MS } }, { spec: { expiresInMs: 60_000 } }, {})
      await kit.pass(120_000, worker)
      const held = new Map((await worker.take(3)).map((one) => [one.job.id, one]))
      const left = ids.map((id) => held.get(id)!.job.expiresInMs)
      assert(left[0]! > 0 && left[0]! <= HOUR_MS - 120_000, `${left}`)
      assert(left[1]! <= -60_000, `${left}`)
      assert.equal(left[2], null)
      await worker.settle(threw(held.get(ids[0]!)!, 0))
      await kit.promote()
      assert.equal((await worker.takeOne()).job.expiresInMs, null)
    },
  },
  {
    name: 'claim: a paused queue gives nothing and is named, others go on',
    promise: 'After a pause resolved no claim of the queue begins.',
    needs: ['control'],
    async run(kit) {
      const [held] = await kit.enqueue({ queue: 'a' })
      const [other] = await kit.enqueue({ queue: 'b' })
      await kit.control.pause('a')
      const worker = await kit.worker(await kit.open())
      const queues = ['a', 'b'].map((queue) => ({ queue, share: 5 }))
      const claim = await worker.claim({ queues })
      assert.deepEqual([claim.paused, idsOf(heldIn(claim))], [['a'], [other]])
      await kit.control.resume('a')
      const after = await worker.claim({ queues })
      assert.deepEqual([after.paused, idsOf(heldIn(after))], [[], [held]])
    },
  },
  {
    name: 'claim: asked again during a pause it still gives what it gave',
    promise: 'A pause loses no batch whose answer was lost.',
    needs: ['control'],
    async run(kit) {
      await kit.enqueueMany(5)
      const worker = await kit.worker()
      const first = await worker.claim({ limit: 2 })
      await kit.control.pause('q')
      const again = await worker.claim({ limit: 2, request: worker.request })
      assert.deepEqual(fencesAndIds(again), fencesAndIds(first))
    },
  },
  {
    name: 'claim: one that took all there was of several priorities says that there is no more',
    promise: 'A worker asks again at once only where there may be something.',
    needs: [],
    async run(kit) {
      await kit.enqueue({ priority: 4 }, { priority: 8 }, { priority: 0 })
      const worker = await kit.worker()
      const { leases, more } = await worker.claim({ limit: 10 })
      assert.deepEqual([leases.flatMap(({ jobs }) => jobs).length, more], [3, false])
    },
  },
]

function fencesAndIds({ leases }: Parameters<typeof heldIn>[0]): [number, string[]][] {
  return leases.map(({ fence, jobs }): [number, string[]] => [fence, jobs.map(({ id }) => id)])
}

function byQueue(held: readonly Held[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { job } of held) counts[job.queue] = (counts[job.queue] ?? 0) + 1
  return counts
}
