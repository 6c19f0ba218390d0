/** Cases of `takeOver`: what is known of a crash, and what becomes of the jobs. */
import { strict as assert } from 'node:assert'
import type { ConformanceCase } from '../case.js'
import { afterCrash, idsOf, LEASE_MS, recoveredIn, returned, started, threw } from '../worker.js'

export const CRASHES: ConformanceCase[] = [
  {
    name: 'take over: knows which handlers had started, from beats and from settlements',
    promise: 'A crash costs an attempt only where the start was reported.',
    needs: [],
    async run(kit) {
      const ids = await kit.enqueueMany(4)
      const [dead, heir] = [await kit.worker(), await kit.worker()]
      const held = await dead.take(4)
      await dead.settle(started(held[0]!))
      await dead.beat({ started: [[held[2]!.fence, 2]] })
      await kit.pass(LEASE_MS + kit.marginMs, heir)
      const taken = await heir.takeOver()
      assert.deepEqual(
        taken.map(({ crash }) => crash?.started),
        [true, false, true, false],
      )
      await heir.settle(...taken.map(afterCrash))
      const again = await heir.take(4)
      assert.deepEqual(idsOf(again), ids)
      assert.deepEqual(
        again.map(({ job }) => job.history?.attempts),
        [1, 0, 1, 0],
      )
      assert.deepEqual(
        again.map(({ job }) => job.history?.crashes),
        [1, 1, 1, 1],
      )
    },
  },
  {
    name: 'take over: a start that one beat told is not forgotten by the next',
    promise: 'What is known to have started stays known.',
    needs: [],
    async run(kit) {
      await kit.enqueueMany(2)
      const [dead, heir] = [await kit.worker(), await kit.worker()]
      const held = await dead.take(2)
      const start = [held[0]!.fence, 0] as const
      await dead.beat({ started: [start] })
      await dead.beat({ started: [start, [held[1]!.fence, 1]] })
      await kit.pass(LEASE_MS + kit.marginMs, heir)
      assert.deepEqual(
        (await heir.takeOver()).map(({ crash }) => crash?.started),
        [true, true],
      )
    },
  },
  {
    name: 'take over: when the heir dies too, the same crash comes again and no second one',
    promise: 'A crash is noted once for each worker that held the job to run it.',
    needs: [],
    async run(kit) {
      const id = await kit.enqueueOne()
      const { dead, heir, stale } = await kit.death(1, 'started')
      const [first] = await heir.takeOver()
      const third = await kit.worker()
      await kit.pass(LEASE_MS + kit.marginMs, third)
      const [second] = await third.takeOver()
      assert(second!.fence > first!.fence && first!.fence > stale[0]!.fence)
      assert.deepEqual(second!.crash, { worker: dead.id, started: true, alone: false, cancelled: false })
      assert.deepEqual(await heir.settle(afterCrash(first!)), ['lost'])
      assert.deepEqual(await third.settle(afterCrash(second!)), ['ok'])
      const { job } = await third.takeOne()
      assert.deepEqual([job.id, job.history?.crashes, job.history?.attempts], [id, 1, 1])
    },
  },
  {
    name: 'take over: what was settled before the crash stays settled',
    promise: 'A crash runs nothing again that was done.',
    needs: ['inspect'],
    async run(kit) {
      const ids = await kit.enqueueMany(3)
      const [dead, heir] = [await kit.worker(), await kit.worker()]
      const held = await dead.take(3)
      await dead.settle(returned(held[1]!))
      await kit.pass(LEASE_MS + kit.marginMs, heir)
      const answer = await kit.store.takeOver({ worker: heir.id, limit: 9 })
      assert.deepEqual(
        answer.leases[0]!.crashes.map((crash) => crash === null),
        [false, true, false],
      )
      const taken = recoveredIn(answer)
      assert.deepEqual(
        taken.map(({ ordinal, job }) => [ordinal, job.id]),
        [
          [0, ids[0]],
          [2, ids[2]],
        ],
      )
      assert.deepEqual(await heir.settle({ ...afterCrash(taken[0]!), ordinal: 1 }), ['already'])
      assert.equal((await kit.view(ids[1]!)).state, 'completed')
      assert.deepEqual(await dead.settle(threw(held[1]!)), ['already'])
    },
  },
  {
    name: 'take over: knows which jobs somebody wanted cancelled, before the crash or after',
    promise: 'A cancelled job does not come back.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const ids = await kit.enqueueMany(3)
      const [dead, heir] = [await kit.worker(), await kit.worker()]
      await dead.take(3)
      await kit.control.cancel([ids[0]!])
      await kit.pass(LEASE_MS + kit.marginMs, heir)
      const held = await heir.takeOver()
      assert.deepEqual(
        held.map(({ crash }) => crash?.cancelled),
        [true, false, false],
      )
      await kit.control.cancel([ids[1]!])
      const settlements = held.map(afterCrash)
      assert.deepEqual(await heir.settle(...settlements), ['ok', 'cancelled', 'ok'])
      assert.deepEqual(idsOf(await heir.take(9)), [ids[2]])
      const states = (await kit.inspect.get(ids)).map((view) => view?.state)
      assert.deepEqual(states, ['cancelled', 'cancelled', 'running'])
    },
  },
  {
    name: 'take over: an at-most-once job that had started is lost, one that had not is given back',
    promise: 'At most once means that, also in a crash.',
    needs: ['inspect'],
    async run(kit) {
      const ids = await kit.enqueueMany(2, { spec: { delivery: 'at-most-once' } })
      const [dead, heir] = [await kit.worker(), await kit.worker()]
      const held = await dead.take(2)
      await dead.settle(started(held[0]!))
      await kit.pass(LEASE_MS + kit.marginMs, heir)
      await heir.settle(...(await heir.takeOver()).map(afterCrash))
      const view = await kit.view(ids[0]!)
      assert.deepEqual([view.state, view.reason], ['dead', 'lost'])
      assert.deepEqual(idsOf(await heir.take(9)), [ids[1]])
    },
  },
  {
    name: 'take over: a job on its last attempt is dead, not in limbo',
    promise: 'Recovery goes by one rule for all jobs.',
    needs: ['inspect'],
    async run(kit) {
      const id = await kit.enqueueOne({ spec: { attempts: 1 } })
      const { heir } = await kit.death(1, 'started')
      await heir.settle(...(await heir.takeOver()).map(afterCrash))
      const view = await kit.view(id)
      assert.deepEqual([view.state, view.reason], ['dead', 'failed'])
    },
  },
  {
    name: 'take over: what comes back goes ahead of the backlog that grew meanwhile',
    promise: 'A crash costs a job no place in the line.',
    needs: [],
    async run(kit) {
      const id = await kit.enqueueOne()
      const [dead, heir] = [await kit.worker(), await kit.worker()]
      await dead.takeOne()
      await kit.advance(kit.marginMs)
      await kit.enqueueMany(500)
      await kit.pass(LEASE_MS + kit.marginMs, heir)
      await heir.settle(...(await heir.takeOver()).map(afterCrash))
      assert.equal((await heir.takeOne()).job.id, id)
    },
  },
]
