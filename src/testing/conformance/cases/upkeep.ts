/** Cases of `upkeep`: promotion and expiry. */
import { strict as assert } from 'node:assert'
import { realEnv } from '../../../core/env.js'
import type { ConformanceCase } from '../case.js'
import { HOUR_MS } from '../kit.js'
import { afterCrash, givenBack, idsOf, returned, snoozed, started, threw } from '../worker.js'

export const UPKEEP: ConformanceCase[] = [
  {
    name: 'promote: no job before its time, every job after it',
    promise: 'Nothing runs early; what is due is ready with the next sweep.',
    needs: [],
    async run(kit) {
      const worker = await kit.worker()
      const id = await kit.enqueueOne({ due: { delayMs: 60_000 } })
      await kit.pass(60_000 - kit.marginMs, worker)
      const before = await kit.store.upkeep.promote(9)
      assert.deepEqual(before.moved, [])
      assert(before.nextDueMs !== null && before.nextDueMs > 0 && before.nextDueMs <= kit.marginMs)
      assert.deepEqual(await worker.take(9), [])
      await kit.pass(kit.marginMs, worker)
      const after = await kit.store.upkeep.promote(9)
      assert.deepEqual(after, { moved: [{ id, kind: 'work', queue: 'q' }], nextDueMs: null })
      assert.deepEqual(idsOf(await worker.take(9)), [id])
    },
  },
  {
    name: 'promote: the earliest first, so many at a time, in every queue',
    promise: 'Upkeep goes in small bounded steps.',
    needs: [],
    async run(kit) {
      const queues = ['a', 'b', 'c']
      const ids = await kit.enqueue(
        ...[5, 3, 9, 1, 7].map((s, i) => ({ queue: queues[i % 3]!, priority: i, due: { delayMs: s * 1_000 } })),
      )
      await kit.advance(20_000)
      const moved: string[] = []
      for (const expected of [2, 2, 1, 0]) {
        const step = await kit.store.upkeep.promote(2)
        assert.equal(step.moved.length, expected)
        moved.push(...step.moved.map(({ id }) => id))
      }
      assert.deepEqual(moved.slice(0, 4).sort(), [ids[3], ids[1], ids[0], ids[4]].sort())
      assert.equal(moved[4], ids[2])
    },
  },
  {
    name: 'promote: of those due at one instant the smaller id comes first, whatever its queue',
    promise: 'What is due at one instant becomes ready in one order, however small the steps.',
    needs: [],
    async run(kit) {
      const ids = [1, 2, 3, 4].map(() => realEnv.id())
      const due = { atMs: (await (await kit.worker()).claim()).nowMs + 60_000 }
      for (const at of [2, 0, 3, 1]) await kit.enqueue({ id: ids[at]!, queue: `q${at % 3}`, priority: at, due })
      await kit.advance(60_000 + kit.marginMs)
      const moved: string[] = []
      for (let step = 0; step < 4; step++) moved.push(...(await kit.store.upkeep.promote(1)).moved.map(({ id }) => id))
      assert.deepEqual(moved, ids.toSorted())
    },
  },
  {
    name: 'promote: done by several at once it moves each job once',
    promise: 'Any worker does upkeep, in any number of processes at once.',
    needs: ['inspect'],
    async run(kit) {
      const ids = await kit.enqueueMany(60, { due: { delayMs: 1_000 } })
      await kit.advance(2_000)
      const handles = [kit.store, await kit.open(), await kit.open()]
      const moved: string[] = []
      for (let round = 0; round < 3; round++) {
        const steps = await Promise.all(handles.map(({ upkeep }) => upkeep.promote(10)))
        moved.push(...steps.flatMap((step) => step.moved.map(({ id }) => id)))
      }
      moved.push(...(await kit.promote()))
      assert.deepEqual(moved.sort(), ids.sort())
      assert.equal((await kit.inspect.counts('q')).ready.count, 60)
    },
  },
  {
    name: 'promote: retries and snoozes come back by it, with all they had',
    promise: 'A job keeps what it is on all its ways.',
    needs: [],
    async run(kit) {
      const worker = await kit.worker()
      await kit.enqueue({ payload: { a: 1 }, priority: 9, key: 'k' })
      const held = await worker.takeOne()
      await worker.settle(snoozed(held, 5_000))
      await kit.advance(5_000 + kit.marginMs)
      await kit.promote()
      const { job } = await worker.takeOne()
      const { history, waitedMs, ...rest } = job
      const { history: _, waitedMs: __, ...before } = held.job
      assert.deepEqual(rest, before)
      assert.equal(history?.snoozes, 1)
    },
  },
  {
    name: 'expire: what was not started in time is dead, wherever it waits',
    promise: 'A job that comes too late is never run, and is not lost from sight.',
    needs: ['inspect'],
    async run(kit) {
      const spec = { expiresInMs: 60_000 }
      const [ready, delayed, patient] = await kit.enqueue({ spec }, { spec, due: { delayMs: HOUR_MS } }, {})
      await kit.advance(60_000 - kit.marginMs)
      assert.deepEqual(await kit.store.upkeep.expire(9), [])
      await kit.advance(2 * kit.marginMs)
      const moved = await kit.store.upkeep.expire(9)
      assert.deepEqual(moved.map(({ id }) => id).sort(), [ready, delayed].sort())
      assert.deepEqual(moved[0], { id: moved[0]!.id, kind: 'work', queue: 'q' })
      assert.deepEqual(await kit.store.upkeep.expire(9), [])
      const view = await kit.view(ready!)
      assert.deepEqual([view.state, view.reason, view.history?.attempts], ['dead', 'expired', 0])
      assert.deepEqual(
        view.history?.entries.map(({ outcome }) => outcome),
        ['expired'],
      )
      assert.deepEqual(idsOf(await (await kit.worker()).take(9)), [patient])
    },
  },
  {
    name: 'expire: so many at a time',
    promise: 'Upkeep goes in small bounded steps.',
    needs: [],
    async run(kit) {
      await kit.enqueueMany(5, { spec: { expiresInMs: 1_000 } })
      await kit.advance(1_000 + kit.marginMs)
      const steps = []
      for (let step = 0; step < 4; step++) steps.push((await kit.store.upkeep.expire(2)).length)
      assert.deepEqual(steps, [2, 2, 1, 0])
    },
  },
  {
    name: 'expire: what has started once, or runs, goes on',
    promise: 'Expiry is about the start.',
    needs: ['inspect'],
    async run(kit) {
      const spec = { expiresInMs: 60_000 }
      const [retrying, running] = await kit.enqueue({ spec }, { spec })
      const worker = await kit.worker()
      const held = await worker.take(2)
      await worker.settle(threw(held[0]!, 5 * 60_000), started(held[1]!))
      await kit.pass(120_000, worker)
      assert.deepEqual(await kit.store.upkeep.expire(9), [])
      assert.deepEqual([(await kit.view(retrying!)).state, (await kit.view(running!)).state], ['retrying', 'running'])
      assert.deepEqual(await worker.settle(returned(held[1]!)), ['ok'])
    },
  },
  {
    name: 'expire: what was held but never started expires when it is given back',
    promise: 'A job that comes too late is never run, and does not wait for ever.',
    needs: [],
    async run(kit) {
      const id = await kit.enqueueOne({ spec: { expiresInMs: 60_000 } })
      const worker = await kit.worker()
      const held = await worker.takeOne()
      await kit.pass(120_000, worker)
      assert.deepEqual(await kit.store.upkeep.expire(9), [])
      await worker.settle(givenBack(held))
      assert.deepEqual(
        (await kit.store.upkeep.expire(9)).map((moved) => moved.id),
        [id],
      )
    },
  },
  {
    name: 'expire: an odd history beside it does not stop the sweep',
    promise: 'One bad record never stops a sweep.',
    needs: [],
    async run(kit) {
      const spec = { expiresInMs: 60_000 }
      const [odd, late] = await kit.enqueue({ spec, priority: 15 }, { spec })
      const worker = await kit.worker()
      const settlement = threw(await worker.takeOne(), HOUR_MS)
      assert(settlement.to === 'delayed')
      const message = 'NUL \u0000, half a pair \ud800, "quotes" and \\'
      settlement.history.entries[0]!.error = { name: 'Odd', message }
      await worker.settle(settlement)
      await kit.pass(120_000, worker)
      assert.deepEqual(
        (await kit.store.upkeep.expire(9)).map(({ id }) => id),
        [late],
      )
      await kit.pass(HOUR_MS, worker)
      assert.deepEqual(await kit.promote(), [odd])
      assert.equal((await worker.takeOne()).job.history?.entries[0]?.error?.message, message)
    },
  },
  {
    name: 'expire: an earlier job of the same id ends no later one',
    promise: 'A job expires by its own time and by no other.',
    needs: ['control'],
    async run(kit) {
      const sketch = { id: realEnv.id(), chosen: true as const }
      await kit.enqueue({ ...sketch, spec: { expiresInMs: 60_000 } })
      await kit.control.purge('q', 10)
      await kit.enqueue(sketch)
      await kit.advance(60_000 + kit.marginMs)
      assert.deepEqual(await kit.store.upkeep.expire(9), [])
      assert.deepEqual(idsOf(await (await kit.worker()).take(9)), [sketch.id])
    },
  },
  {
    name: 'expire: a suspect that never started and waits for its turn expires, too',
    promise: 'A job that was not started in time is dead, wherever it waited.',
    needs: [],
    async run(kit) {
      const id = await kit.enqueueOne({ spec: { expiresInMs: 100_000 } })
      for (let crash = 0; crash < 2; crash++) {
        const { heir } = await kit.death(1)
        const adopted = await heir.takeOver()
        assert.deepEqual(await kit.store.upkeep.expire(9), [], 'what somebody holds does not expire')
        for (const held of adopted) await heir.settle(afterCrash(held))
      }
      assert.deepEqual(
        (await kit.store.upkeep.expire(9)).map((moved) => moved.id),
        [id],
      )
    },
  },
]
