/** Cases of `control`: cancel, retry, redrive, purge. */
import { strict as assert } from 'node:assert'
import type { ConformanceCase } from '../case.js'
import { DAY_MS, HOUR_MS, type Kit } from '../kit.js'
import {
  afterCrash,
  givenBack,
  type Held,
  idsOf,
  LEASE_MS,
  rejected,
  returned,
  started,
  type TestWorker,
  threw,
} from '../worker.js'

export const CONTROL: ConformanceCase[] = [
  {
    name: 'cancel: ends what waits, signals what runs, and leaves what ended',
    promise: 'Pending and running jobs can be cancelled.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const places = await everywhere(kit)
      const ids = Object.values(places)
      const unknown = kit.job().id
      const answers = await kit.control.cancel([...ids, unknown])
      assert.deepEqual(answers, ['cancelled', 'cancelled', 'cancelled', 'signalled', 'ended', 'ended', 'unknown'])
      const states = (await kit.inspect.get(ids)).map((view) => view?.state)
      assert.deepEqual(states, ['cancelled', 'cancelled', 'cancelled', 'running', 'completed', 'dead'])
      assert.equal((await kit.view(places.running)).cancelling, true)
      await kit.advance(DAY_MS)
      assert.deepEqual(await kit.promote(), [])
      assert.deepEqual(await (await kit.worker()).take(9), [])
    },
  },
  {
    name: 'cancel: sent twice it says the same of what runs, and that the others ended',
    promise: 'A cancel whose answer is lost may be sent again.',
    needs: ['control'],
    async run(kit) {
      const { ready, running } = await everywhere(kit)
      assert.deepEqual(await kit.control.cancel([ready, running]), ['cancelled', 'signalled'])
      assert.deepEqual(await kit.control.cancel([ready, running]), ['ended', 'signalled'])
    },
  },
  {
    name: 'cancel: a waiting job whose kind keeps no records leaves none',
    promise: 'A kind that keeps no records leaves nothing behind.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const ids = await kit.enqueue({ spec: { keep: 'none' } }, { spec: { keep: 'failures' } })
      assert.deepEqual(await kit.control.cancel(ids), ['cancelled', 'cancelled'])
      assert.deepEqual(
        (await kit.inspect.get(ids)).map((view) => view?.state),
        [undefined, 'cancelled'],
      )
    },
  },
  {
    name: 'cancel: its record tells of it',
    promise: 'What happened to a job can be seen.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const id = await kit.enqueueOne()
      await kit.control.cancel([id])
      const { history, endedAt, dueAt } = await kit.view(id)
      assert.deepEqual(
        history?.entries.map(({ outcome }) => outcome),
        ['cancelled'],
      )
      assert(endedAt !== null && dueAt === null)
    },
  },
  {
    name: 'retry: only what is delayed can be hurried, and it says what it met',
    promise: 'A delayed or retrying job becomes ready at once.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const { ready, delayed, retrying, running, completed, dead } = await everywhere(kit)
      const ids = [ready, delayed, retrying, running, completed, dead, kit.job().id]
      assert.deepEqual(await kit.control.retry(ids), ['ready', 'ok', 'ok', 'running', 'ended', 'ended', 'unknown'])
      assert.deepEqual(await kit.control.retry([delayed]), ['ready'])
      const taken = await (await kit.worker()).take(9)
      assert.deepEqual(idsOf(taken).sort(), [ready, delayed, retrying].sort())
      const byId = new Map(taken.map(({ job }) => [job.id, job.history]))
      assert.deepEqual([byId.get(delayed)?.attempts ?? 0, byId.get(retrying)?.attempts], [0, 1])
    },
  },
  {
    name: 'retry: goes ahead of the backlog that came in after the job',
    promise: 'What an operator hurries does not start again at the end of the line.',
    needs: ['control'],
    async run(kit) {
      const worker = await kit.worker()
      await kit.enqueue({})
      const held = await worker.takeOne()
      await worker.settle(threw(held, HOUR_MS))
      await kit.advance(kit.marginMs)
      await kit.enqueueMany(500)
      assert.deepEqual(await kit.control.retry([held.job.id]), ['ok'])
      const again = await worker.takeOne()
      assert.deepEqual([again.job.id, again.job.history?.attempts], [held.job.id, 1])
    },
  },
  {
    name: 'retry: the history tells of it',
    promise: 'What an operator did to a job can be seen.',
    needs: ['control'],
    async run(kit) {
      const id = await kit.enqueueOne({ due: { delayMs: HOUR_MS } })
      await kit.control.retry([id])
      const { history } = (await (await kit.worker()).takeOne()).job
      assert.deepEqual(
        history?.entries.map(({ outcome }) => outcome),
        ['retried'],
      )
    },
  },
  {
    name: 'redrive: a dead letter is pending again with fresh attempts and all it was',
    promise: 'Same id, key, payload, priority and history; attempts begin anew.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const id = await kit.enqueueOne({ key: 'k', payload: { a: 1 }, priority: 9, spec: { attempts: 2 } })
      const worker = await kit.worker()
      for (let attempt = 0; attempt < 2; attempt++) {
        await worker.settle(threw(await worker.takeOne(), 0))
        await kit.promote()
      }
      assert.equal((await kit.view(id)).state, 'dead')
      assert.deepEqual(await kit.control.redrive([id], { force: false }), ['ok'])
      const { job } = await worker.takeOne()
      assert.deepEqual([job.id, job.payload, job.priority, job.spec.idempotencyKey], [id, { a: 1 }, 9, 'k'])
      const { history } = job
      assert.deepEqual([history?.attempts, history?.crashes, history?.redrives], [0, 0, 1])
      assert.deepEqual(
        history?.entries.map(({ outcome }) => outcome),
        ['failed', 'failed', 'redriven'],
      )
      assert.equal(history?.entries[0]?.error?.message, 'it broke')
    },
  },
  {
    name: 'redrive: only the dead, and it says what it met',
    promise: 'Sent twice it redrives once.',
    needs: ['control'],
    async run(kit) {
      const { ready, delayed, running, completed, dead } = await everywhere(kit)
      const ids = [ready, delayed, running, completed, dead, kit.job().id, dead]
      const answers = await kit.control.redrive(ids, { force: true })
      assert.deepEqual(answers.slice(0, 6), ['not dead', 'not dead', 'not dead', 'not dead', 'ok', 'unknown'])
      assert.deepEqual(await kit.control.redrive([dead], { force: true }), ['not dead'])
      assert.deepEqual(idsOf(await (await kit.worker()).take(9)).sort(), [ready, dead].sort())
    },
  },
  {
    name: 'redrive: a lost one needs force',
    promise: 'An at-most-once job that may have run is run again only when somebody insists.',
    needs: ['control'],
    async run(kit) {
      const id = await kit.enqueueOne({ spec: { delivery: 'at-most-once' } })
      const [dead, heir] = [await kit.worker(), await kit.worker()]
      await dead.settle(started(await dead.takeOne()))
      await kit.pass(LEASE_MS + kit.marginMs, heir)
      await heir.settle(...(await heir.takeOver()).map(afterCrash))
      assert.deepEqual(await kit.control.redrive([id], { force: false }), ['needs force'])
      assert.deepEqual(await heir.take(9), [])
      assert.deepEqual(await kit.control.redrive([id], { force: true }), ['ok'])
      assert.deepEqual(idsOf(await heir.take(9)), [id])
    },
  },
  {
    name: 'redrive: what expired does not expire again',
    promise: 'A redriven job is run.',
    needs: ['control'],
    async run(kit) {
      const id = await kit.enqueueOne({ spec: { expiresInMs: 1_000 } })
      await kit.advance(HOUR_MS)
      await kit.store.upkeep.expire(9)
      assert.deepEqual(await kit.control.redrive([id], { force: false }), ['ok'])
      assert.deepEqual(await kit.store.upkeep.expire(9), [])
      const { job } = await (await kit.worker()).takeOne()
      assert(job.expiresInMs === null || job.expiresInMs > 0, `left: ${job.expiresInMs} ms`)
    },
  },
  {
    name: 'redrive: what was redriven never expires, also after it was given back',
    promise: 'A redriven job is run, whenever somebody comes to it.',
    needs: ['control'],
    async run(kit) {
      const id = await kit.enqueueOne({ spec: { expiresInMs: HOUR_MS } })
      const worker = await kit.worker()
      await worker.settle(rejected(await worker.takeOne()))
      assert.deepEqual(await kit.control.redrive([id], { force: false }), ['ok'])
      await kit.advance(2 * HOUR_MS)
      assert.deepEqual(await kit.store.upkeep.expire(9), [])
      const second = await kit.worker()
      const held = await second.takeOne()
      assert.equal(held.job.expiresInMs, null)
      await second.settle(givenBack(held))
      await kit.advance(HOUR_MS)
      assert.deepEqual(await kit.store.upkeep.expire(9), [])
      assert.deepEqual(idsOf(await (await kit.worker()).take(9)), [id])
    },
  },
  {
    name: 'redrive: the age of its first life does not count, nor its crashes',
    promise: 'A redriven job has fresh attempts, also against crashes.',
    needs: ['control'],
    async run(kit) {
      const id = await kit.enqueueOne({ spec: { attempts: 1 } })
      const first = await kit.worker()
      await first.settle(threw(await first.takeOne()))
      await kit.advance(2 * DAY_MS)
      await kit.control.redrive([id], { force: false })
      const [dead, heir] = [await kit.worker(), await kit.worker()]
      await dead.takeOne()
      await kit.pass(LEASE_MS + kit.marginMs, heir)
      await heir.settle(...(await heir.takeOver()).map(afterCrash))
      assert.deepEqual(idsOf(await heir.take(9)), [id])
    },
  },
  {
    name: 'redrive: goes by due time, behind what waits',
    promise: 'A mass redrive does not push aside what came in meanwhile.',
    needs: ['control'],
    async run(kit) {
      const dead = await deadOne(kit)
      const waiting = await kit.enqueueMany(2)
      await kit.advance(kit.marginMs)
      await kit.control.redrive([dead], { force: false })
      assert.deepEqual(idsOf(await (await kit.worker()).take(9)), [...waiting, dead])
    },
  },
  {
    name: 'redrive: quarantine is over, as somebody said so',
    promise: 'A redriven job is handed out like any other.',
    needs: ['control'],
    async run(kit) {
      const id = await kit.enqueueOne()
      const worker = await kit.worker()
      const settlement = rejected(await worker.takeOne())
      assert(settlement.to === 'dead')
      const history = { ...settlement.history, crashes: 4, crashesAlone: 2 }
      await worker.settle({ ...settlement, reason: 'poison', history })
      await kit.control.redrive([id], { force: false })
      assert.deepEqual(idsOf(await worker.take(9)), [id])
    },
  },
  {
    name: 'control: an odd history stops nobody',
    promise: 'One bad record never stops a batch.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const ids = await kit.enqueueMany(4)
      const worker = await kit.worker()
      const held = await worker.take(4)
      await worker.settle(...held.map((job, i) => oddly(i === 0 ? rejected(job) : threw(job, HOUR_MS))))
      assert.deepEqual(await kit.control.redrive([ids[0]!], { force: false }), ['ok'])
      assert.deepEqual(await kit.control.cancel([ids[1]!]), ['cancelled'])
      assert.deepEqual(await kit.control.retry([ids[2]!]), ['ok'])
      const states = (await kit.inspect.get(ids)).map((view) => view?.state)
      assert.deepEqual(states, ['ready', 'cancelled', 'ready', 'retrying'])
      const [view] = await kit.inspect.get(ids)
      assert.equal(view?.history?.entries[0]?.error?.message, ODD)
    },
  },
  {
    name: 'purge: deletes what waits, frees its keys, and leaves what runs, ended or is elsewhere',
    promise: 'Purge is about what waits.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const places = await everywhere(kit)
      const [keyed, elsewhere] = await kit.enqueue({ key: 'k' }, { queue: 'b' })
      assert.deepEqual(await kit.control.purge('q', 100), { deleted: 4, more: false })
      const ids = [...Object.values(places), keyed!, elsewhere!]
      const states = (await kit.inspect.get(ids)).map((view) => view?.state)
      assert.deepEqual(states, [undefined, undefined, undefined, 'running', 'completed', 'dead', undefined, 'ready'])
      await kit.enqueue({ key: 'k' })
      assert.deepEqual(await kit.control.purge('q', 100), { deleted: 1, more: false })
    },
  },
  {
    name: 'purge: so many at a time, until nothing waits',
    promise: 'Upkeep and control go in small bounded steps.',
    needs: ['control', 'inspect'],
    async run(kit) {
      await kit.enqueueMany(7)
      await kit.enqueueMany(5, { due: { delayMs: HOUR_MS } })
      let deleted = 0
      for (let steps = 0; steps < 10; steps++) {
        const step = await kit.control.purge('q', 4)
        assert(step.deleted <= 4)
        deleted += step.deleted
        if (!step.more) break
      }
      assert.equal(deleted, 12)
      const { ready, delayed } = await kit.inspect.counts('q')
      assert.deepEqual([ready.count, delayed.count], [0, 0])
    },
  },
  {
    name: 'purge: what ran meanwhile comes back and runs',
    promise: 'Purge is about what waits.',
    needs: ['control'],
    async run(kit) {
      const id = await kit.enqueueOne({ key: 'k' })
      const worker = await kit.worker()
      const held = await worker.takeOne()
      await kit.control.purge('q', 100)
      await worker.settle(givenBack(held))
      assert.deepEqual(idsOf(await worker.take(9)), [id])
      assert.equal((await kit.store.enqueue([kit.job({ key: 'k' })]))[0]?.status, 'duplicate')
    },
  },
  {
    name: 'pause: what runs goes on and can be settled',
    promise: 'A pause stops claims, not work.',
    needs: ['control'],
    async run(kit) {
      await kit.enqueueMany(3)
      const worker = await kit.worker()
      const held = await worker.take(2)
      await kit.control.pause('q')
      await kit.control.pause('q')
      assert.deepEqual(await worker.settle(returned(held[0]!), givenBack(held[1]!)), ['ok', 'ok'])
      assert.deepEqual(await worker.take(9), [])
      assert.equal((await kit.store.enqueue([kit.job()]))[0]?.status, 'created')
      await kit.control.resume('q')
      assert.equal((await worker.take(9)).length, 3)
    },
  },
  {
    name: 'cancel: the history of one that ran says so, whether it comes back by a retry or is given back',
    promise: 'A cancelled job tells that somebody wanted it.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const ids = await kit.enqueueMany(2)
      const worker = await kit.worker()
      const [failing] = await worker.take(1)
      await worker.take(1)
      await kit.control.cancel(ids)
      assert.deepEqual(await worker.settle(threw(failing!, 1_000)), ['cancelled'])
      await worker.beat({ leases: [] })
      for (const id of ids) assert.equal((await kit.view(id)).history?.entries.at(-1)?.outcome, 'cancelled')
    },
  },
]

const ODD = 'NUL \u0000, half a pair \ud800, "quotes" and \\'

function oddly(settlement: ReturnType<typeof threw>): ReturnType<typeof threw> {
  if (settlement.to === 'started' || settlement.history === null) return settlement
  const [entry] = settlement.history.entries
  return {
    ...settlement,
    history: { ...settlement.history, entries: [{ ...entry!, error: { name: 'Odd', message: ODD } }] },
  }
}

type Place = 'ready' | 'delayed' | 'retrying' | 'running' | 'completed' | 'dead'

/** One job in each place. */
export async function everywhere(kit: Kit): Promise<Record<Place, string>> {
  const worker: TestWorker = await kit.worker()
  await kit.enqueueMany(4)
  const held: Held[] = await worker.take(4)
  await worker.settle(threw(held[0]!, HOUR_MS), returned(held[2]!), rejected(held[3]!))
  const [ready, delayed] = await kit.enqueue({}, { due: { delayMs: HOUR_MS } })
  const [retrying, running, completed, dead] = idsOf(held)
  return {
    ready: ready!,
    delayed: delayed!,
    retrying: retrying!,
    running: running!,
    completed: completed!,
    dead: dead!,
  }
}

async function deadOne(kit: Kit): Promise<string> {
  const worker = await kit.worker()
  const id = await kit.enqueueOne()
  await worker.settle(rejected(await worker.takeOne()))
  return id
}
