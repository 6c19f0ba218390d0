/** Cases about suspects: jobs that were held by two workers that died. */
import { strict as assert } from 'node:assert'
import { emptyHistory } from '../../../core/job.js'
import type { Settlement } from '../../../storage/storage.js'
import type { ConformanceCase } from '../case.js'
import { HOUR_MS, type JobSketch, type Kit } from '../kit.js'
import { afterCrash, givenBack, type Held, heldIn, idsOf, LEASE_MS, returned, started, threw } from '../worker.js'

const SUSPECTS = { suspects: true } as const

export const SUSPECT_CASES: ConformanceCase[] = [
  {
    name: 'suspect: after its second crash a job is not handed out among others',
    promise: 'A job that may kill its worker does not get another one with its neighbours in it.',
    needs: [],
    async run(kit) {
      const [id] = await kit.enqueue({})
      for (let crashes = 0; crashes < 2; crashes++) {
        const [dead, heir] = [await kit.worker(), await kit.worker()]
        await dead.settle(started(await dead.takeOne()))
        await kit.pass(LEASE_MS + kit.marginMs, heir)
        await heir.settle(...(await heir.takeOver()).map(afterCrash))
        await kit.store.unregister(heir.id)
      }
      const worker = await kit.worker()
      await kit.pass(HOUR_MS, worker)
      await kit.promote()
      assert.deepEqual(await worker.take(9), [])
      const [held] = await worker.take(9, SUSPECTS)
      assert.deepEqual([held?.job.id, held?.alone, held?.job.history?.crashes], [id, true, 2])
    },
  },
  {
    name: 'suspect: it is handed out alone, and nothing with it',
    promise: 'A suspect runs alone in its worker.',
    needs: [],
    async run(kit) {
      const [suspect] = await suspects(kit, 'q')
      const ids = await kit.enqueueMany(5, { priority: 15 })
      const worker = await kit.worker()
      assert.deepEqual(idsOf(await worker.take(2)), ids.slice(0, 2))
      const claim = await worker.claim({ ...SUSPECTS, apart: ['other'] })
      assert.deepEqual(
        claim.leases.map(({ alone, jobs }) => [alone, jobs.map(({ id }) => id)]),
        [[true, [suspect]]],
      )
      assert.deepEqual(idsOf(await worker.take(9)), ids.slice(2))
    },
  },
  {
    name: 'suspect: asked again it is the same one',
    promise: 'A claim whose answer is lost is asked for again.',
    needs: [],
    async run(kit) {
      await suspects(kit, 'q', 'q')
      const worker = await kit.worker()
      const first = await worker.claim(SUSPECTS)
      const again = await worker.claim({ ...SUSPECTS, request: worker.request })
      assert.deepEqual(
        again.leases.map(({ fence }) => fence),
        first.leases.map(({ fence }) => fence),
      )
      assert.equal(first.leases.length, 1)
    },
  },
  {
    name: 'suspect: one at a time in a queue, and the next when it is settled',
    promise: 'Poison takes one worker of a queue at a time.',
    needs: [],
    async run(kit) {
      const ids = await suspects(kit, 'q', 'q')
      const [one, two] = [await kit.worker(), await kit.worker(await kit.open())]
      const first = await one.takeOne(SUSPECTS)
      assert.deepEqual(await two.take(9, SUSPECTS), [])
      assert.deepEqual(await one.take(9, SUSPECTS), [])
      await one.settle(returned(first))
      const second = await two.takeOne(SUSPECTS)
      assert.deepEqual(idsOf([first, second]).sort(), ids.sort())
    },
  },
  {
    name: 'suspect: two queues do not wait for each other',
    promise: 'One queue’s poison never stops another queue.',
    needs: [],
    async run(kit) {
      const ids = await suspects(kit, 'q', 'b')
      const queues = { queues: ['q', 'b'].map((queue) => ({ queue, share: 5 })) }
      const [one, two] = [await kit.worker(), await kit.worker()]
      const taken = [
        ...(await one.take(9, { ...SUSPECTS, ...queues })),
        ...(await two.take(9, { ...SUSPECTS, ...queues })),
      ]
      assert.deepEqual(idsOf(taken).sort(), ids.sort())
    },
  },
  {
    name: 'suspect: while one runs, others of its queue go on elsewhere',
    promise: 'A suspect holds up its own worker and no other.',
    needs: [],
    async run(kit) {
      await suspects(kit, 'q')
      const ids = await kit.enqueueMany(2)
      const [one, two] = [await kit.worker(), await kit.worker()]
      await one.takeOne(SUSPECTS)
      assert.deepEqual(idsOf(await two.take(9, SUSPECTS)), ids)
    },
  },
  {
    name: 'suspect: with none there a claim is like any other',
    promise: 'To be ready for a suspect costs nothing.',
    needs: [],
    async run(kit) {
      const ids = await kit.enqueueMany(3)
      const held = await (await kit.worker()).take(9, SUSPECTS)
      assert.deepEqual(idsOf(held), ids)
      assert(held.every(({ alone }) => !alone))
    },
  },
  {
    name: 'suspect: given back or failed it stays one',
    promise: 'Only its end clears a suspect.',
    needs: [],
    async run(kit) {
      await suspects(kit, 'q')
      const worker = await kit.worker()
      await worker.settle(givenBack(await worker.takeOne(SUSPECTS)))
      assert.deepEqual(await worker.take(9), [])
      await worker.settle(threw(await worker.takeOne(SUSPECTS), 0))
      await kit.promote()
      assert.deepEqual(await worker.take(9), [])
      await worker.takeOne(SUSPECTS)
      worker.holding = []
      await worker.beat()
      assert.deepEqual(await worker.take(9), [])
      assert.equal((await worker.take(9, SUSPECTS)).length, 1)
    },
  },
  {
    name: 'suspect: nobody else gets one of the queue while the crash of the last is not settled',
    promise: 'Poison takes one worker of a queue at a time.',
    needs: [],
    async run(kit) {
      await suspects(kit, 'q', 'q')
      const [dead, heir] = [await kit.worker(), await kit.worker()]
      await dead.settle(started(await dead.takeOne(SUSPECTS)))
      await kit.pass(LEASE_MS + kit.marginMs, heir)
      assert.deepEqual(await heir.take(9, SUSPECTS), [])
      const [held] = await heir.takeOver()
      assert.deepEqual([held?.alone, held?.crash?.alone, held?.crash?.started], [true, true, true])
      assert.deepEqual(await heir.take(9, SUSPECTS), [])
      await heir.settle(afterCrash(held!))
      assert.equal((await heir.take(9, SUSPECTS)).length, 1)
    },
  },
  {
    name: 'suspect: two crashes while alone quarantine it, its neighbours never are',
    promise: 'Poison ends after a bounded number of workers; who only stood beside it goes on.',
    needs: ['inspect'],
    async run(kit) {
      const [poison] = await kit.enqueue({ spec: { attempts: 99 } }, {}, {})
      let deaths = 0
      for (; deaths < 20 && (await kit.view(poison!)).state !== 'dead'; deaths++) await die(kit, poison!)
      const view = await kit.view(poison!)
      assert.deepEqual([view.state, view.reason], ['dead', 'poison'])
      assert.equal(deaths, 4, 'two among others, two alone')
      const worker = await kit.worker()
      await kit.pass(HOUR_MS, worker)
      await kit.promote()
      for (let left = 2; left > 0; left--) await worker.settle(returned(await worker.takeOne(SUSPECTS)))
      assert.equal((await kit.inspect.counts('q')).completed.count, 2)
    },
  },
  {
    name: 'suspect: of a paused queue, or of a kind that the worker cannot run, it stays',
    promise: 'After a pause resolved no claim of the queue begins.',
    needs: ['control'],
    async run(kit) {
      const [id] = await suspects(kit, 'q')
      const worker = await kit.worker()
      assert.deepEqual(await worker.take(9, { ...SUSPECTS, kinds: ['other'] }), [])
      await kit.control.pause('q')
      assert.deepEqual(await worker.take(9, SUSPECTS), [])
      await kit.control.resume('q')
      assert.deepEqual(idsOf(await worker.take(9, SUSPECTS)), [id])
    },
  },
  {
    name: 'suspect: it is seen, counted, cancelled and purged like any other',
    promise: 'No place of a job is hidden.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const ids = await suspects(kit, 'q', 'q')
      assert.equal((await kit.view(ids[0]!)).state, 'ready')
      assert.equal((await kit.inspect.counts('q')).ready.count, 2)
      assert.equal((await kit.inspect.list({ state: 'ready', limit: 9 })).jobs.length, 2)
      assert.deepEqual(await kit.control.cancel([ids[0]!]), ['cancelled'])
      assert.deepEqual(await kit.control.purge('q', 9), { deleted: 1, more: false })
      assert.deepEqual(await (await kit.worker()).take(9, SUSPECTS), [])
    },
  },
]

/** A job in each of the queues that is ready and a suspect, without the crashes that make one. */
async function suspects(kit: Kit, ...queues: string[]): Promise<string[]> {
  const ids = await kit.enqueue(...queues.map((queue): JobSketch => ({ queue })))
  const worker = await kit.worker()
  const held = heldIn(await worker.claim({ queues: [...new Set(queues)].map((queue) => ({ queue, share: 9 })) }))
  assert.equal(held.length, queues.length)
  await worker.settle(...held.map(underSuspicion))
  await kit.store.unregister(worker.id)
  return ids
}

function underSuspicion({ fence, ordinal }: Held): Settlement {
  return { fence, ordinal, to: 'ready', suspect: true, history: { ...emptyHistory(), crashes: 2 } }
}

/** A worker takes what it can and dies of one job, if it got that; its heir settles what it held. */
async function die(kit: Kit, poison: string): Promise<void> {
  const [victim, heir] = [await kit.worker(), await kit.worker()]
  await kit.promote()
  let held = await victim.take(9)
  if (!idsOf(held).includes(poison)) {
    await victim.settle(...held.map(givenBack))
    held = await victim.take(9, SUSPECTS)
    while (!idsOf(held).includes(poison)) {
      assert(held.length > 0, 'the suspect is never handed out')
      await victim.settle(...held.map((job) => threw(job, HOUR_MS)))
      held = await victim.take(9, SUSPECTS)
    }
  }
  await victim.settle(...held.filter(({ job }) => job.id === poison).map(started))
  await kit.pass(LEASE_MS + kit.marginMs, heir)
  await heir.settle(...(await heir.takeOver()).map(afterCrash))
  await kit.pass(HOUR_MS, heir)
  await kit.store.unregister(heir.id)
}
