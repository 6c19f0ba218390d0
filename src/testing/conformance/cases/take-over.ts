/** Cases of `takeOver`. */
import { strict as assert } from 'node:assert'
import type { ConformanceCase } from '../case.js'
import { HOUR_MS } from '../kit.js'
import { afterCrash, BEAT_MS, type Held, idsOf, LEASE_MS, returned, TestWorker } from '../worker.js'

export const TAKE_OVERS: ConformanceCase[] = [
  {
    name: 'take over: what a dead worker held comes under a new fence, with the facts of the crash',
    promise: 'A lost worker’s jobs run again after its lease.',
    needs: [],
    async run(kit) {
      const ids = await kit.enqueueMany(2, { payload: { a: 1 }, priority: 7 })
      const { dead, heir, stale } = await kit.death(2)
      const held = await heir.takeOver()
      assert.deepEqual(idsOf(held), ids)
      for (const { job, fence, crash } of held) {
        assert(fence > stale[0]!.fence)
        assert.deepEqual(crash, { worker: dead.id, started: false, alone: false, cancelled: false })
        assert.deepEqual([job.payload, job.priority, job.kind, job.queue], [{ a: 1 }, 7, 'work', 'q'])
      }
    },
  },
  {
    name: 'take over: not before the lease is over',
    promise: 'A worker whose last beat is younger than its lease is alive.',
    needs: [],
    async run(kit) {
      await kit.enqueue({})
      const [silent, heir] = [await kit.worker(), await kit.worker()]
      await silent.takeOne()
      await kit.pass(LEASE_MS, heir)
      await silent.beat()
      await kit.pass(LEASE_MS - kit.marginMs, heir)
      assert.deepEqual(await heir.takeOver(), [])
      await kit.pass(2 * kit.marginMs, heir)
      assert.equal((await heir.takeOver()).length, 1)
    },
  },
  {
    name: 'take over: each worker is judged by its own lease',
    promise: 'A worker with a long lease is left alone for as long.',
    needs: [],
    async run(kit) {
      await kit.enqueue({})
      const [patient, heir] = [new TestWorker(kit.store, kit.job().id), await kit.worker()]
      const info = { name: 'slow', queues: ['q'], concurrency: 1, leaseMs: 10 * LEASE_MS, beatMs: BEAT_MS }
      await patient.beat({ info })
      await patient.takeOne()
      await kit.pass(9 * LEASE_MS, heir)
      assert.deepEqual(await heir.takeOver(), [])
      await kit.pass(LEASE_MS + kit.marginMs, heir)
      assert.equal((await heir.takeOver()).length, 1)
    },
  },
  {
    name: 'take over: nothing by a worker that has just come',
    promise: 'Nobody judges others before it has been steady for a whole lease itself.',
    needs: [],
    async run(kit) {
      await kit.enqueue({})
      const silent = await kit.worker()
      await silent.takeOne()
      await kit.advance(LEASE_MS + kit.marginMs)
      const heir = await kit.worker()
      assert.deepEqual(await heir.takeOver(), [])
      await kit.pass(LEASE_MS - kit.marginMs, heir)
      assert.deepEqual(await heir.takeOver(), [])
      await kit.pass(kit.marginMs, heir)
      assert.equal((await heir.takeOver()).length, 1)
    },
  },
  {
    name: 'take over: after an outage nobody takes over from anybody',
    promise: 'An outage of the store does not make everybody take over everybody.',
    needs: [],
    async run(kit) {
      await kit.enqueueMany(3)
      const workers = [await kit.worker(), await kit.worker(), await kit.worker()]
      for (const worker of workers) await worker.take(1)
      await kit.pass(LEASE_MS, ...workers)
      await kit.advance(10 * LEASE_MS)
      for (const worker of workers) assert.deepEqual(await worker.takeOver(), [], 'before the first beat')
      assert.equal((await workers[0]!.beat()).status, 'ok')
      assert.deepEqual(await workers[0]!.takeOver(), [], 'after the first beat')
      for (const worker of workers) assert.equal((await worker.beat()).status, 'ok')
      await kit.pass(LEASE_MS, ...workers)
      for (const worker of workers) assert.deepEqual(await worker.takeOver(), [])
    },
  },
  {
    name: 'take over: a gap of two beats sets the patience back, a shorter one does not',
    promise: 'Steady is a worker whose beats come without a gap.',
    needs: [],
    async run(kit) {
      await kit.enqueue({})
      const [silent, heir] = [await kit.worker(), await kit.worker()]
      await silent.takeOne()
      await kit.pass(LEASE_MS, heir)
      await kit.advance(2 * BEAT_MS + kit.marginMs)
      await heir.beat()
      await kit.pass(LEASE_MS - kit.marginMs, heir)
      assert.deepEqual(await heir.takeOver(), [])
      await kit.advance(2 * BEAT_MS - kit.marginMs)
      await heir.beat()
      assert.equal((await heir.takeOver()).length, 1)
    },
  },
  {
    name: 'take over: nothing by a stranger',
    promise: 'No job is handed to an identity that the store does not know.',
    needs: [],
    async run(kit) {
      await kit.enqueue({})
      const { heir } = await kit.death(1)
      assert.deepEqual((await kit.store.takeOver({ worker: kit.job().id, limit: 9 })).leases, [])
      assert.equal((await heir.takeOver()).length, 1)
    },
  },
  {
    name: 'take over: asked again it gives the same leases',
    promise: 'A take-over whose answer is lost is asked for again.',
    needs: [],
    async run(kit) {
      await kit.enqueueMany(3)
      const { heir } = await kit.death(3)
      const first = await heir.takeOver()
      assert.equal(first.length, 3)
      assert.deepEqual(facts(await heir.takeOver()), facts(first))
      await heir.settle(afterCrash(first[0]!))
      assert.deepEqual(facts(await heir.takeOver()), facts(first.slice(1)))
      await heir.settle(...first.slice(1).map(afterCrash))
      assert.deepEqual(await heir.takeOver(), [])
    },
  },
  {
    name: 'take over: of several that ask, one gets each lease',
    promise: 'Any number of workers may take over at once; nothing is taken over twice.',
    needs: [],
    async run(kit) {
      const ids = await kit.enqueueMany(12)
      const dead = [await kit.worker(), await kit.worker(), await kit.worker()]
      for (const worker of dead) await worker.take(4, { apart: ['work'] })
      const heirs = [await kit.worker(), await kit.worker(await kit.open()), await kit.worker(await kit.open())]
      await kit.pass(LEASE_MS + kit.marginMs, ...heirs)
      const taken: Held[] = []
      for (let round = 0; round < 4; round++) {
        const held = (await Promise.all(heirs.map((heir) => heir.takeOver(3)))).flat()
        taken.push(...held)
        await heirs[0]!.settle(...held.map(afterCrash))
      }
      assert.deepEqual(idsOf(taken).sort(), ids.sort())
      assert.equal(new Set(taken.map(({ fence }) => fence)).size, 12)
    },
  },
  {
    name: 'take over: at most so many jobs, in whole leases',
    promise: 'Upkeep goes in small bounded steps.',
    needs: [],
    async run(kit) {
      await kit.enqueueMany(9)
      const [dead, heir] = [await kit.worker(), await kit.worker()]
      for (let leases = 0; leases < 3; leases++) await dead.take(3)
      await kit.pass(LEASE_MS + kit.marginMs, heir)
      const first = await heir.takeOver(1)
      assert.equal(first.length, 3)
      assert.equal((await heir.takeOver(1)).length, 3, 'as long as it has something to settle it gets no more')
      await heir.settle(...first.map(afterCrash))
      const rest = await heir.takeOver(4)
      assert.equal(rest.length, 6)
      assert.equal(new Set(idsOf([...first, ...rest])).size, 9)
    },
  },
  {
    name: 'take over: a main loop that hangs ends its leases, although its thread still beats',
    promise: 'A hung process is found, not only a dead one.',
    needs: [],
    async run(kit) {
      await kit.enqueue({})
      const [hung, heir] = [await kit.worker(), await kit.worker()]
      await hung.takeOne()
      await kit.pass(LEASE_MS, hung, heir)
      for (let lagMs = 0; lagMs < LEASE_MS - BEAT_MS; lagMs += BEAT_MS) {
        await hung.beat({ mainLagMs: lagMs })
        await kit.pass(BEAT_MS, heir)
        assert.deepEqual(await heir.takeOver(), [], `lag ${lagMs}`)
      }
      await hung.beat({ mainLagMs: LEASE_MS + kit.marginMs })
      assert.equal((await heir.takeOver()).length, 1)
      assert.equal((await hung.beat()).status, 'gone')
    },
  },
  {
    name: 'take over: a main loop that comes back in time is forgiven',
    promise: 'A pause shorter than the lease costs nothing.',
    needs: [],
    async run(kit) {
      await kit.enqueue({})
      const [slow, heir] = [await kit.worker(), await kit.worker()]
      const held = await slow.takeOne()
      await kit.pass(LEASE_MS - BEAT_MS, heir, slow)
      await slow.beat({ mainLagMs: BEAT_MS })
      await kit.pass(BEAT_MS, heir)
      await slow.beat({ mainLagMs: 0 })
      await kit.pass(LEASE_MS - kit.marginMs, heir)
      assert.deepEqual(await heir.takeOver(), [])
      assert.deepEqual(await slow.settle(returned(held)), ['ok'])
    },
  },
  {
    name: 'take over: a worker that died without a job is simply gone',
    promise: 'Dead workers do not pile up.',
    needs: ['inspect'],
    async run(kit) {
      const [dead, heir] = [await kit.worker(), await kit.worker()]
      assert.equal((await kit.inspect.workers()).length, 2)
      await kit.pass(LEASE_MS + kit.marginMs, heir)
      assert.deepEqual(await heir.takeOver(), [])
      assert.deepEqual(
        (await kit.inspect.workers()).map(({ id }) => id),
        [heir.id],
      )
      assert.equal((await dead.beat()).status, 'gone')
    },
  },
  {
    name: 'take over: takes nothing from the living',
    promise: 'A worker that beats keeps what it holds.',
    needs: [],
    async run(kit) {
      await kit.enqueueMany(3)
      const [one, two, dead] = [await kit.worker(), await kit.worker(), await kit.worker()]
      const held = [...(await one.take(1)), ...(await two.take(1))]
      await dead.take(1)
      await kit.pass(LEASE_MS + kit.marginMs, one, two)
      const taken = [...(await one.takeOver()), ...(await two.takeOver())]
      assert.equal(taken.length, 1)
      assert.equal(taken[0]!.crash?.worker, dead.id)
      assert.deepEqual(await kit.store.settle(held.map((job) => returned(job))), ['ok', 'ok'])
    },
  },
  {
    name: 'take over: a late claim of the dead takes nothing',
    promise: 'No job is handed to an identity that the store holds to be dead.',
    needs: [],
    async run(kit) {
      const [id] = await kit.enqueue({})
      const { dead, heir } = await kit.death(1)
      await heir.settle(...(await heir.takeOver()).map(afterCrash))
      for (const request of [dead.request, dead.request + 1]) {
        const late = await dead.claim({ request })
        assert.deepEqual([late.status, late.leases], ['gone', []])
      }
      await kit.advance(HOUR_MS / 2)
      assert.deepEqual(idsOf(await (await kit.worker()).take(9)), [id])
    },
  },
  {
    name: 'take over: what an heir adopted goes to the next one as soon as it says good bye',
    promise: 'No job waits for a worker that has left.',
    needs: [],
    async run(kit) {
      const id = await kit.enqueueOne()
      const { dead, heir } = await kit.death(1, 'started')
      const next = await kit.worker()
      await kit.pass(LEASE_MS + kit.marginMs, heir, next)
      assert.deepEqual(idsOf(await heir.takeOver()), [id])
      await heir.store.unregister(heir.id)
      assert.equal((await heir.beat()).status, 'gone')
      assert.deepEqual(await heir.takeOver(), [], 'it has left them')
      const [held] = await next.takeOver()
      assert.deepEqual(held?.crash, { worker: dead.id, started: true, alone: false, cancelled: false })
    },
  },
]

/** All that tells one handed-out job from another. */
function facts(held: readonly Held[]): unknown[] {
  return held.map(({ fence, ordinal, job, crash }) => [fence, ordinal, job.id, crash])
}
