/** Cases of `beat` and `unregister`. */
import { strict as assert } from 'node:assert'
import type { ConformanceCase } from '../case.js'
import { HOUR_MS } from '../kit.js'
import { afterCrash, BEAT_MS, givenBack, idsOf, LEASE_MS, returned, TestWorker } from '../worker.js'

export const BEATS: ConformanceCase[] = [
  {
    name: 'beat: the first one registers, a later one of a stranger does not',
    promise: 'Each start of a process has its own identity, and one that was forgotten hears of it.',
    needs: [],
    async run(kit) {
      const [registered, stranger] = [await kit.worker(), new TestWorker(kit.store, kit.job().id)]
      assert.deepEqual(await registered.beat(), { status: 'ok', lost: [], cancel: [], paused: [] })
      assert.equal((await stranger.beat({ n: 2 })).status, 'gone')
      assert.equal((await stranger.claim()).status, 'gone')
    },
  },
  {
    name: 'beat: sent twice it takes nothing away the second time',
    promise: 'A beat whose answer is lost may be sent again.',
    needs: [],
    async run(kit) {
      await kit.enqueueMany(3)
      const worker = await kit.worker()
      assert.notEqual((await worker.beat({ n: 1 })).status, 'gone')
      const held = await worker.take(2)
      await worker.beat()
      // Nothing that it says of leases counts any more.
      const late = await worker.take(1)
      await worker.beat({ n: worker.n, known: 9, leases: [] })
      assert.equal(late.length, 1)
      held.push(...late)
      assert.deepEqual(await worker.settle(...held.map((job) => returned(job))), ['ok', 'ok', 'ok'])
    },
  },
  {
    name: 'beat: one that is sent again is a sign of life',
    promise: 'Answers that are lost cost no lease while the beats arrive.',
    needs: [],
    async run(kit) {
      await kit.enqueue({})
      const [worker, other] = [await kit.worker(), await kit.worker()]
      const held = await worker.takeOne()
      for (let times = 0; times < 6; times++) {
        await kit.pass(BEAT_MS, other)
        assert.equal((await worker.beat({ n: 1 })).status, 'ok')
      }
      assert.deepEqual(await other.takeOver(), [])
      assert.deepEqual(await worker.settle(returned(held)), ['ok'])
    },
  },
  {
    name: 'beat: one that is sent again counts for patience too, and for the main loop',
    promise: 'Who reaches the store without a gap may take over, and one that hangs is found out.',
    needs: [],
    async run(kit) {
      await kit.enqueue({})
      const [dead, heir] = [await kit.worker(), await kit.worker()]
      await dead.takeOne()
      for (let left = LEASE_MS; left > 0; left -= BEAT_MS) {
        await kit.advance(BEAT_MS)
        await heir.beat({ n: 1 })
        await dead.beat({ n: 1, mainLagMs: LEASE_MS - left + BEAT_MS })
      }
      await kit.advance(2 * kit.marginMs)
      assert.equal((await heir.takeOver()).length, 1)
    },
  },
  {
    name: 'beat: an older one is stale and changes nothing',
    promise: 'Beats that overtake each other do no harm.',
    needs: [],
    async run(kit) {
      await kit.enqueue({})
      const worker = await kit.worker()
      const held = await worker.takeOne()
      await worker.beat()
      await worker.beat()
      const stale = await worker.beat({ n: worker.n - 1, leases: [], known: 9 })
      assert.deepEqual([stale.status, stale.lost], ['stale', []])
      assert.deepEqual(await worker.settle(returned(held)), ['ok'])
    },
  },
  {
    name: 'beat: a late one does not keep a silent worker alive',
    promise: 'A beat that changes nothing does not lengthen a lease either.',
    needs: [],
    async run(kit) {
      await kit.enqueue({})
      const [silent, heir] = [await kit.worker(), await kit.worker()]
      await silent.takeOne()
      await silent.beat()
      await kit.pass(LEASE_MS, heir)
      await silent.beat({ n: 1 })
      await kit.pass(kit.marginMs, heir)
      assert.equal((await heir.takeOver()).length, 1)
    },
  },
  {
    name: 'beat: keeps the leases it names, for as long as it comes',
    promise: 'A job may run for much longer than a lease.',
    needs: [],
    async run(kit) {
      await kit.enqueueMany(2)
      const [worker, other] = [await kit.worker(), await kit.worker()]
      const held = await worker.take(2)
      for (let leases = 0; leases < 5; leases++) {
        await kit.pass(LEASE_MS, worker, other)
        assert.deepEqual(await other.takeOver(), [])
      }
      assert.deepEqual((await worker.beat()).lost, [])
      assert.deepEqual(await worker.settle(...held.map((job) => returned(job))), ['ok', 'ok'])
    },
  },
  {
    name: 'beat: gives back what a known request took and nobody holds',
    promise: 'A claim whose answer never arrived costs no attempt and no place in the line.',
    needs: [],
    async run(kit) {
      const lost = await kit.enqueueMany(2)
      const worker = await kit.worker()
      const [held] = await worker.take(2)
      worker.holding = []
      await kit.advance(kit.marginMs)
      await kit.enqueueMany(20)
      await worker.beat()
      assert.deepEqual(await worker.settle(returned(held!)), ['lost'])
      assert.deepEqual((await worker.beat({ leases: [held!.fence] })).lost, [held!.fence])
      const again = await (await kit.worker()).take(2)
      assert.deepEqual(idsOf(again), lost)
      assert.equal(again[0]!.job.history, null)
      assert(again[0]!.fence > held!.fence)
    },
  },
  {
    name: 'beat: leaves alone what a request took that is not known yet',
    promise: 'A beat that overtakes the answer of a claim takes nothing away.',
    needs: [],
    async run(kit) {
      await kit.enqueueMany(4)
      const worker = await kit.worker()
      const known = await worker.take(1)
      const fresh = await worker.take(1)
      await worker.beat({ known: worker.request - 1, leases: known.map(({ fence }) => fence) })
      assert.deepEqual(await worker.settle(returned(fresh[0]!), returned(known[0]!)), ['ok', 'ok'])
    },
  },
  {
    name: 'beat: a lease that it names no longer goes back',
    promise: 'What a worker has forgotten is not held for it.',
    needs: [],
    async run(kit) {
      const id = await kit.enqueueOne()
      const worker = await kit.worker()
      const held = await worker.takeOne()
      await worker.beat()
      worker.holding = []
      await worker.beat()
      assert.deepEqual(idsOf(await worker.take(1)), [id])
      assert.deepEqual(await worker.settle(returned(held)), ['lost'])
    },
  },
  {
    name: 'beat: an at-most-once job that started is lost when its lease is named no longer, and never goes back',
    promise: 'At most once means never twice, whatever the worker forgets.',
    needs: ['inspect'],
    async run(kit) {
      const spec = { delivery: 'at-most-once' } as const
      const [started, waiting] = await kit.enqueue({ spec }, { spec })
      for (const bye of [false, true]) {
        const worker = await kit.worker()
        const held = await worker.take(2)
        if (!bye) await worker.settle({ fence: held[0]!.fence, ordinal: held[0]!.ordinal, to: 'started' })
        worker.holding = []
        if (bye) await kit.store.unregister(worker.id)
        else await worker.beat()
        const view = await kit.view(started!)
        assert.deepEqual([view.state, view.reason, view.history?.entries.at(-1)?.outcome], ['dead', 'lost', 'lost'])
        assert.equal((await kit.view(waiting!)).state, 'ready')
      }
    },
  },
  {
    name: 'beat: of a lease that is partly settled only the rest goes back',
    promise: 'What was settled is settled.',
    needs: ['inspect'],
    async run(kit) {
      const ids = await kit.enqueueMany(3)
      const worker = await kit.worker()
      const held = await worker.take(3)
      await worker.settle(returned(held[1]!))
      worker.holding = []
      await worker.beat()
      assert.deepEqual(idsOf(await worker.take(9)), [ids[0], ids[2]])
      assert.equal((await kit.view(ids[1]!)).state, 'completed')
    },
  },
  {
    name: 'beat: never gives back what was taken over',
    promise: 'The crash of a worker is not forgotten, whatever its heir says.',
    needs: [],
    async run(kit) {
      await kit.enqueue({})
      const [dead, heir] = [await kit.worker(), await kit.worker()]
      await dead.takeOne()
      await kit.pass(LEASE_MS + kit.marginMs, heir)
      const [held] = await heir.takeOver()
      await heir.take(1)
      await heir.beat({ leases: [] })
      await heir.beat({ leases: [] })
      assert.deepEqual(await heir.settle(afterCrash(held!)), ['ok'])
      assert.equal((await heir.takeOne()).job.history?.crashes, 1)
    },
  },
  {
    name: 'beat: a worker that was written off hears that it is gone and what it lost',
    promise: 'Who lost its leases learns of it with its next beat.',
    needs: [],
    async run(kit) {
      await kit.enqueueMany(2)
      const [zombie, heir] = [await kit.worker(), await kit.worker()]
      await zombie.take(1)
      await zombie.take(1)
      await kit.pass(LEASE_MS + kit.marginMs, heir)
      await heir.takeOver()
      const { status, lost } = await zombie.beat()
      assert.equal(status, 'gone')
      // `gone` says it all; a store may name the leases besides.
      assert(lost.every((fence) => zombie.holding.includes(fence)))
      assert.equal((await zombie.claim()).status, 'gone')
    },
  },
  {
    name: 'beat: a process that was written off comes back under a new identity',
    promise: 'A worker that was frozen for a while goes on.',
    needs: [],
    async run(kit) {
      await kit.enqueueMany(2)
      const [zombie, heir] = [await kit.worker(), await kit.worker()]
      await zombie.take(1)
      await kit.pass(LEASE_MS + kit.marginMs, heir)
      await heir.takeOver()
      const anew = await kit.worker()
      assert.equal((await anew.take(5)).length, 1)
    },
  },
  {
    name: 'beat: a lease whose jobs are all settled is not lost',
    promise: 'No false alarm when a beat and the end of a job cross.',
    needs: [],
    async run(kit) {
      await kit.enqueue({})
      const worker = await kit.worker()
      await worker.settle(returned(await worker.takeOne()))
      const { status, lost } = await worker.beat()
      assert.deepEqual([status, lost], ['ok', []])
    },
  },
  {
    name: 'beat: says which jobs somebody wants cancelled, until they are settled',
    promise: 'The signal of a running handler fires on any worker.',
    needs: ['control'],
    async run(kit) {
      await kit.enqueueMany(3)
      const [worker, other] = [await kit.worker(), await kit.worker(await kit.open())]
      const held = await worker.take(3)
      await kit.control.cancel([held[2]!.job.id, held[0]!.job.id])
      for (let times = 0; times < 2; times++) {
        const { cancel } = await worker.beat()
        assert.deepEqual(cancel.sort(), [
          [held[0]!.fence, 0],
          [held[2]!.fence, 2],
        ])
      }
      assert.deepEqual((await other.beat()).cancel, [])
      await worker.settle(returned(held[0]!))
      assert.deepEqual((await worker.beat()).cancel, [[held[2]!.fence, 2]])
    },
  },
  {
    name: 'beat: what it gives back does not run again when somebody wants it cancelled',
    promise: 'A cancelled job does not come back.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const [cancelled, other] = await kit.enqueueMany(2)
      const worker = await kit.worker()
      await worker.take(2)
      await kit.control.cancel([cancelled!])
      worker.holding = []
      await worker.beat()
      assert.deepEqual(idsOf(await worker.take(9)), [other])
      assert.equal((await kit.view(cancelled!)).state, 'cancelled')
    },
  },
  {
    name: 'beat: names the paused ones of the queues of its worker',
    promise: 'Prefetched jobs of a paused queue go back soon.',
    needs: ['control'],
    async run(kit) {
      const worker = await kit.worker()
      await kit.control.pause('elsewhere')
      assert.deepEqual((await worker.beat()).paused, [])
      await kit.control.pause('q')
      assert.deepEqual((await worker.beat()).paused, ['q'])
      await kit.control.resume('q')
      assert.deepEqual((await worker.beat()).paused, [])
    },
  },
  {
    name: 'unregister: the worker is gone, at once and for good',
    promise: 'After a good bye nothing is handed to that identity.',
    needs: [],
    async run(kit) {
      await kit.enqueue({})
      const worker = await kit.worker()
      await kit.store.unregister(worker.id)
      await kit.store.unregister(worker.id)
      assert.equal((await worker.claim()).status, 'gone')
      assert.equal((await worker.beat()).status, 'gone')
      assert.equal((await (await kit.worker()).take(9)).length, 1)
    },
  },
  {
    name: 'unregister: what was left behind is not lost',
    promise: 'Every claimed job is settled, given back or taken over.',
    needs: [],
    async run(kit) {
      const ids = await kit.enqueueMany(2)
      const [worker, heir] = [await kit.worker(), await kit.worker()]
      const [held] = await worker.take(1)
      await kit.pass(HOUR_MS / 12, worker, heir)
      await kit.store.unregister(worker.id)
      await kit.pass(LEASE_MS + BEAT_MS, heir)
      for (const taken of await heir.takeOver()) await heir.settle(afterCrash(taken))
      assert.deepEqual(idsOf(await heir.take(9)), ids)
      assert.deepEqual(await worker.settle(givenBack(held!)), ['lost'])
    },
  },
  {
    name: 'beat: to a worker that was written off all is lost that it names',
    promise: 'A worker hears of each lease that is not its own any more.',
    needs: [],
    async run(kit) {
      await kit.enqueueMany(2)
      const { dead, heir } = await kit.death(2)
      await heir.takeOver()
      const { status, lost } = await dead.beat()
      assert.deepEqual({ status, lost }, { status: 'gone', lost: dead.holding })
    },
  },
]
