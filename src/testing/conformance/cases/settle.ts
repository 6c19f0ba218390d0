/** Cases of `settle`. */
import { strict as assert } from 'node:assert'
import type { Settlement } from '../../../storage/storage.js'
import type { ConformanceCase } from '../case.js'
import { HOUR_MS, type Kit } from '../kit.js'
import {
  after,
  afterCrash,
  cancelled,
  FATES,
  givenBack,
  type Held,
  idsOf,
  LEASE_MS,
  rejected,
  returned,
  snoozed,
  started,
  type TestWorker,
  threw,
} from '../worker.js'

export const SETTLEMENTS: ConformanceCase[] = [
  {
    name: 'settle: a completed job leaves the record that its kind keeps',
    promise: 'Results can be looked up, and kinds without records leave nothing.',
    needs: ['inspect'],
    async run(kit) {
      const [kept, gone] = await kit.enqueue({}, { spec: { keep: 'none' } })
      const worker = await kit.worker()
      const held = await worker.take(2)
      await worker.settle(returned(held[0]!, '{"sum":3}'), returned(held[1]!))
      const view = await kit.view(kept!)
      assert.deepEqual([view.state, view.result, view.worker, view.dueAt], ['completed', { sum: 3 }, worker.id, null])
      assert.deepEqual(await kit.inspect.get([gone!]), [null])
    },
  },
  {
    name: 'settle: a record tells when the job came, started and ended',
    promise: 'What happened to a job can be seen, by one clock.',
    needs: ['inspect'],
    async run(kit) {
      const worker = await kit.worker()
      await kit.enqueue({})
      await kit.advance(10_000)
      const held = await worker.takeOne()
      await kit.advance(10_000)
      const settlement = returned(held)
      assert(settlement.to === 'completed')
      await worker.settle({ ...settlement, startedAfterMs: 2_000, ranMs: 8_000 })
      const { enqueuedAt, startedAt, endedAt } = await kit.view(held.job.id)
      for (const [value, expected] of [
        [startedAt, 12_000],
        [endedAt, 20_000],
      ] as const) {
        const off = (value ?? 0) - enqueuedAt - expected
        assert(off >= -1 && off <= kit.marginMs, `off by ${off}`)
      }
    },
  },
  {
    name: 'settle: a record tells how long its last attempt ran',
    promise: 'What happened to a job can be seen.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const ids = await kit.enqueueMany(5)
      const worker = await kit.worker()
      const held = await worker.take(3)
      const ran = <T extends Settlement>(settlement: T): T => ({ ...settlement, startedAfterMs: 0, ranMs: 1_234 })
      await worker.settle(ran(returned(held[0]!)), ran(rejected(held[1]!)), ran(threw(held[2]!, HOUR_MS)))
      await kit.control.cancel([ids[3]!])
      const seen = async (): Promise<unknown[]> => (await kit.inspect.get(ids)).map((view) => view?.ranMs)
      assert.deepEqual((await seen()).slice(0, 2), [1_234, 1_234])
      assert.deepEqual((await seen()).slice(3), [null, null])
      await kit.control.redrive([ids[1]!], { force: false })
      assert.equal((await seen())[1], null)
    },
  },
  ...Object.entries(FATES).map(
    ([fate, settlementOf]): ConformanceCase => ({
      name: `settle: ${fate} is done once, however often it is sent`,
      promise: 'A settlement whose answer is lost is sent again; a repeat changes nothing.',
      needs: ['inspect'],
      async run(kit) {
        await kit.enqueueMany(2)
        const worker = await kit.worker()
        const [held] = await worker.take(2)
        const settlement = settlementOf(held!)
        assert.deepEqual(await worker.settle(settlement, settlement), ['ok', 'already'])
        const first = await kit.view(held!.job.id)
        await kit.advance(5_000)
        assert.deepEqual(await worker.settle(settlement), ['already'])
        // Another word for the same job is a repeat too: the first one counts.
        for (const other of Object.values(FATES)) assert.deepEqual(await worker.settle(other(held!)), ['already'])
        assert.deepEqual(await kit.view(held!.job.id), first)
        assert.equal(await living(kit), fate === 'ready' || fate === 'delayed' ? 2 : 1)
      },
    }),
  ),
  ...Object.entries(FATES).map(
    ([fate, settlementOf]): ConformanceCase => ({
      name: `settle: ${fate} under a dead fence changes nothing`,
      promise: 'A worker that lost its lease cannot undo what its heir did.',
      needs: ['inspect'],
      async run(kit) {
        await kit.enqueue({})
        const [zombie, heir] = [await kit.worker(), await kit.worker()]
        const stale = await zombie.takeOne()
        await kit.pass(LEASE_MS + kit.marginMs, heir)
        const [held] = await heir.takeOver()
        assert.deepEqual(await zombie.settle(settlementOf(stale)), ['lost'])
        const claim = await zombie.claim({ finished: [settlementOf(stale)] })
        assert.deepEqual(claim.settled, ['lost'])
        assert.equal((await kit.view(stale.job.id)).state, 'running')
        assert.deepEqual(await heir.settle(returned(held!)), ['ok'])
        assert.deepEqual(await zombie.settle(settlementOf(stale)), ['lost'])
        assert.equal((await kit.view(stale.job.id)).state, 'completed')
      },
    }),
  ),
  {
    name: 'settle: a fence of an earlier run is no fence of the next one',
    promise: 'A late settlement cannot hit a later run of the same job, whatever its attempt is called.',
    needs: [],
    async run(kit) {
      const id = await kit.enqueueOne()
      const worker = await kit.worker()
      const first = await worker.takeOne()
      await worker.settle(givenBack(first))
      const second = await worker.takeOne()
      assert.equal(second.job.id, id)
      for (const settlementOf of Object.values(FATES))
        assert.deepEqual(await worker.settle(settlementOf(first)), ['already'])
      assert.deepEqual(await worker.settle(returned(second)), ['ok'])
    },
  },
  ...(['given back', 'taken over'] as const).map(
    (end): ConformanceCase => ({
      name: `settle: a repeat of what was done is known as one after the rest of its lease was ${end}`,
      promise: 'A worker hears `lost` only of what it did not settle.',
      needs: ['inspect'],
      async run(kit) {
        const [done, waits] = await kit.enqueueMany(3)
        const [worker, heir] = [await kit.worker(), await kit.worker()]
        const held = await worker.take(3)
        const settlements = [returned(held[0]!), threw(held[1]!, HOUR_MS)]
        assert.deepEqual(await worker.settle(...settlements), ['ok', 'ok'])
        const rest = returned(held[2]!)
        const expected = ['already', 'already', 'lost']
        if (end === 'given back') {
          worker.holding = []
          await worker.beat()
        } else {
          await kit.pass(LEASE_MS + kit.marginMs, heir)
          const [adopted] = await heir.takeOver()
          assert.deepEqual(await heir.settle(...[0, 1].map((ordinal) => ({ ...afterCrash(adopted!), ordinal }))), [
            'already',
            'already',
          ])
          assert.deepEqual(await heir.settle(afterCrash(adopted!)), ['ok'])
        }
        assert.deepEqual(await worker.settle(...settlements, rest), expected)
        // Also while somebody else holds the rest.
        assert.equal((await heir.take(9)).length, 1)
        assert.deepEqual((await heir.claim({ limit: 0, finished: [...settlements, rest] })).settled, expected)
        const states = (await kit.inspect.get([done!, waits!])).map((view) => view?.state)
        assert.deepEqual(states, ['completed', 'retrying'])
      },
    }),
  ),
  {
    name: 'settle: one answer for each, in order, and what cannot be harms no other',
    promise: 'A refused settlement never sinks the batch it is in.',
    needs: ['inspect'],
    async run(kit) {
      const ids = await kit.enqueueMany(5)
      const worker = await kit.worker()
      const held = await worker.take(5)
      const [first] = held
      const answers = await worker.settle(
        returned(held[4]!),
        { ...returned(first!), fence: first!.fence + 1_000_000 },
        rejected(held[0]!),
        { ...returned(first!), ordinal: 77 },
        threw(held[2]!, HOUR_MS),
        returned(held[4]!),
        cancelled(held[1]!),
      )
      assert.deepEqual(
        [0, 2, 4, 5, 6].map((i) => answers[i]),
        ['ok', 'ok', 'ok', 'already', 'ok'],
      )
      for (const i of [1, 3]) assert.notEqual(answers[i], 'ok')
      const states = (await kit.inspect.get(ids)).map((view) => view?.state)
      assert.deepEqual(states, ['dead', 'cancelled', 'retrying', 'running', 'completed'])
      assert.deepEqual(await worker.settle(returned(held[3]!)), ['ok'])
    },
  },
  {
    name: 'settle: a start is written down, once or twice, and settles nothing',
    promise: 'A crash after a start that was written down is known to be one.',
    needs: ['inspect'],
    async run(kit) {
      await kit.enqueue({})
      const worker = await kit.worker()
      const held = await worker.takeOne()
      assert.deepEqual(await worker.settle(started(held)), ['ok'])
      assert.deepEqual(await worker.settle(started(held), started(held)), ['ok', 'ok'])
      assert.equal((await kit.view(held.job.id)).state, 'running')
      assert.deepEqual(await worker.settle(returned(held)), ['ok'])
      assert.deepEqual(await worker.settle(started(held)), ['already'])
    },
  },
  {
    name: 'settle: a start under a dead fence is refused',
    promise: 'An at-most-once handler starts only behind a living fence.',
    needs: [],
    async run(kit) {
      await kit.enqueue({})
      const [zombie, heir] = [await kit.worker(), await kit.worker()]
      const stale = await zombie.takeOne()
      await kit.pass(LEASE_MS + kit.marginMs, heir)
      const [held] = await heir.takeOver()
      assert.deepEqual(await zombie.settle(started(stale)), ['lost'])
      assert.equal(held!.crash?.started, false)
    },
  },
  {
    name: 'settle: a job that waits for its next attempt is not run before',
    promise: 'Nothing runs early.',
    needs: [],
    async run(kit) {
      await kit.enqueue({})
      const worker = await kit.worker()
      await worker.settle(snoozed(await worker.takeOne(), 60_000))
      await kit.pass(60_000 - kit.marginMs, worker)
      assert.deepEqual([await kit.promote(), await worker.take(1)], [[], []])
      await kit.pass(kit.marginMs, worker)
      assert.equal((await kit.promote()).length, 1)
      const { job } = await worker.takeOne()
      assert.deepEqual([job.history?.snoozes, job.history?.attempts], [1, 0])
    },
  },
  {
    name: 'settle: a dead job is kept with its reason and its story',
    promise: 'Dead letters keep payload, key, priority and every attempt.',
    needs: ['inspect'],
    async run(kit) {
      const id = await kit.enqueueOne({ key: 'k', priority: 9, payload: { a: 1 }, spec: { keep: 'none' } })
      const worker = await kit.worker()
      const settlement = rejected(await worker.takeOne())
      await worker.settle(settlement)
      const { state, reason, history, payload, priority, spec } = await kit.view(id)
      assert.deepEqual([state, reason, payload, priority], ['dead', 'rejected', { a: 1 }, 9])
      assert.equal(spec.idempotencyKey, 'k')
      assert(settlement.to === 'dead')
      assert.deepEqual(history, settlement.history)
    },
  },
  {
    name: 'settle: every reason of death is kept',
    promise: 'Why a job is dead can be seen.',
    needs: ['inspect'],
    async run(kit) {
      await kit.enqueueMany(5)
      const worker = await kit.worker()
      for (const reason of ['failed', 'poison', 'expired', 'rejected', 'lost'] as const) {
        const held = await worker.takeOne()
        const settlement = rejected(held)
        assert(settlement.to === 'dead')
        await worker.settle({ ...settlement, reason })
        assert.equal((await kit.view(held.job.id)).reason, reason)
      }
    },
  },
  {
    name: 'settle: a cancelled job leaves a record unless its kind keeps none',
    promise: 'What was cancelled can be seen.',
    needs: ['inspect'],
    async run(kit) {
      const ids = await kit.enqueue({}, { spec: { keep: 'failures' } }, { spec: { keep: 'none' } })
      const worker = await kit.worker()
      await worker.settle(...(await worker.take(3)).map(cancelled))
      const states = (await kit.inspect.get(ids)).map((view) => view?.state)
      assert.deepEqual(states, ['cancelled', 'cancelled', undefined])
    },
  },
  {
    name: 'settle: what somebody wants cancelled does not run again, and ends as it ended otherwise',
    promise: 'A cancelled job does not come back; one that was faster is what it is.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const ids = await kit.enqueueMany(4)
      const worker = await kit.worker()
      const held = await worker.take(4)
      assert.deepEqual(await kit.control.cancel(ids), Array(4).fill('signalled'))
      const settlements = [threw(held[0]!, 0), givenBack(held[1]!), returned(held[2]!), rejected(held[3]!)]
      assert.deepEqual(await worker.settle(...settlements), ['cancelled', 'cancelled', 'ok', 'ok'])
      assert.deepEqual(await worker.settle(...settlements), Array(4).fill('already'))
      const states = (await kit.inspect.get(ids)).map((view) => view?.state)
      assert.deepEqual(states, ['cancelled', 'cancelled', 'completed', 'dead'])
      await kit.advance(HOUR_MS)
      assert.deepEqual(await kit.promote(), [])
      const [view] = await kit.inspect.get(ids)
      assert.equal(view?.history?.attempts, 1, 'the attempt it made is told')
    },
  },
  {
    name: 'settle: a job that always fails is dead after exactly its attempts',
    promise: 'Bounded attempts; each one is in the history.',
    needs: ['inspect'],
    async run(kit) {
      const id = await kit.enqueueOne({ spec: { attempts: 6 } })
      const worker = await kit.worker()
      let runs = 0
      for (; runs < 20; runs++) {
        const [held] = await worker.take(1)
        if (held === undefined) break
        await worker.settle(threw(held))
        await kit.pass(120_000, worker)
        await kit.promote()
      }
      assert.equal(runs, 6)
      const { state, reason, history } = await kit.view(id)
      assert.deepEqual([state, reason, history?.attempts], ['dead', 'failed', 6])
      assert.deepEqual(
        history?.entries.map(({ attempt }) => attempt),
        [1, 2, 3, 4, 5, 6],
      )
    },
  },
  {
    name: 'settle: a batch of a thousand, over many leases',
    promise: 'Batches in, one answer per item out.',
    needs: ['inspect'],
    async run(kit) {
      await kit.enqueueMany(1_000)
      const worker = await kit.worker()
      const held = await worker.take(1_000)
      const settlements = held.map((job, i) => (i % 7 === 0 ? threw(job, HOUR_MS) : returned(job)))
      assert.deepEqual(new Set(await worker.settle(...settlements)), new Set(['ok']))
      const counts = await kit.inspect.counts('q')
      const retrying = Math.ceil(1_000 / 7)
      assert.deepEqual([counts.retrying.count, counts.completed.count], [retrying, 1_000 - retrying])
    },
  },
  {
    name: 'settle: two that settle the same job at once: one of them does',
    promise: 'Only the one that clears the open mark moves the job.',
    needs: ['inspect'],
    async run(kit) {
      await kit.enqueueMany(20)
      const worker = await kit.worker()
      const other = await kit.open()
      for (const held of await worker.take(20)) {
        const answers = await Promise.all([kit.store.settle([threw(held, 0)]), other.settle([returned(held)])])
        assert.deepEqual(answers.flat().sort(), ['already', 'ok'])
      }
      const counts = await kit.inspect.counts('q')
      assert.equal(
        Object.values(counts).reduce((sum, { count }) => sum + count, 0),
        20,
      )
    },
  },
  {
    name: 'settle: a late settlement after the heir gave the job back changes nothing',
    promise: 'A worker that lost its lease cannot undo what its heir did.',
    needs: [],
    async run(kit) {
      const [zombie, heir, stale] = await takenOver(kit)
      const third = await heir.takeOne()
      assert.equal(third.job.id, stale.job.id)
      assert.deepEqual(await zombie.settle(returned(stale)), ['lost'])
      assert.deepEqual(await heir.settle(returned(third)), ['ok'])
      assert.deepEqual(idsOf(await heir.take(5)), [])
    },
  },
  {
    name: 'settle: what never started has no start in its record',
    promise: 'A record tells what was, and nothing that was not.',
    needs: ['inspect'],
    async run(kit) {
      await kit.enqueueMany(2)
      const worker = await kit.worker()
      const [late, lost] = await worker.take(2)
      await worker.settle(after(late!, { type: 'expired' }), after(lost!, { type: 'cancelled' }))
      for (const { job } of [late!, lost!]) {
        const { startedAt, ranMs } = await kit.view(job.id)
        assert.deepEqual({ startedAt, ranMs }, { startedAt: null, ranMs: null })
      }
    },
  },
  {
    name: 'settle: who was taken over is told by the record, and not who judged',
    promise: 'A record names the worker that held the job.',
    needs: ['inspect'],
    async run(kit) {
      const id = await kit.enqueueOne({ spec: { attempts: 1 } })
      const { dead, heir } = await kit.death(1, 'started')
      for (const held of await heir.takeOver()) await heir.settle(afterCrash(held))
      assert.equal((await kit.view(id)).worker, dead.id)
    },
  },
]

/** A worker that died with a job, an heir that gave the job back, and the job as the dead one knows it. */
async function takenOver(kit: Kit): Promise<[TestWorker, TestWorker, Held]> {
  await kit.enqueue({})
  const [zombie, heir] = [await kit.worker(), await kit.worker()]
  const stale = await zombie.takeOne()
  await kit.pass(LEASE_MS + kit.marginMs, heir)
  for (const held of await heir.takeOver()) await heir.settle(afterCrash(held))
  return [zombie, heir, stale]
}

/** Jobs that wait, are delayed or run. */
async function living(kit: Kit): Promise<number> {
  const { ready, delayed, retrying, running } = await kit.inspect.counts('q')
  return ready.count + delayed.count + retrying.count + running.count
}
