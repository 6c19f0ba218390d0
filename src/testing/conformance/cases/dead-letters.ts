/** Cases of dead letters: grouped by what they died of, redriven through many rounds, discarded. */
import { strict as assert } from 'node:assert'
import { HISTORY_ENTRIES_MAX, type JobHistory } from '../../../core/job.js'
import type { DeadGroup, JobView, Settlement } from '../../../storage/storage.js'
import type { ConformanceCase } from '../case.js'
import { HOUR_MS, type JobSketch, type Kit } from '../kit.js'
import { after, type Held, type TestWorker } from '../worker.js'

const ROUNDS = 30

export const DEAD_LETTERS: ConformanceCase[] = [
  {
    name: 'deadGroups: what differs only in what varies is one group, the newest first, with its count and a sample',
    promise: 'Dead letters are grouped by what they died of.',
    needs: ['inspect'],
    async run(kit) {
      const worker = await kit.worker()
      const first = await letter(kit, worker, 'user 17 was not found')
      await letter(kit, worker, 'the disk is full')
      await letter(kit, worker, 'user 0198f1f2-7a53-7c3e-9f2e-2d2f5d2b7c11 was not found')
      await kit.advance(kit.marginMs)
      const last = await letter(kit, worker, 'user "ada" was not found')
      const { groups, complete } = await kit.inspect.deadGroups({ limit: 10 })
      assert.deepEqual([told(groups), complete], [[shape('failed', 3), shape('failed', 1)], true])
      const [users, disk] = groups as [DeadGroup, DeadGroup]
      assert.deepEqual(users.sample, { id: last, error: { name: 'Error', message: 'user "ada" was not found' } })
      assert(users.fingerprint !== null && users.fingerprint !== disk.fingerprint)
      const [oldest, newest] = [await kit.view(first), await kit.view(last)]
      assert(isNear(users.oldestAt, oldest.endedAt) && isNear(users.newestAt, newest.endedAt))
      assert(users.newestAt - users.oldestAt >= kit.marginMs - 1)
    },
  },
  {
    name: 'deadGroups: queues, kinds and reasons are apart; who died of no error has no fingerprint',
    promise: 'A group is of one queue, kind and reason.',
    needs: ['inspect'],
    async run(kit) {
      const worker = await kit.worker()
      await letter(kit, worker, 'same', { spec: { attempts: 1 } })
      await letter(kit, worker, 'same', { kind: 'other' })
      await letter(kit, worker, 'same', { queue: 'b' })
      await kit.enqueue({ spec: { expiresInMs: 1_000 } })
      await kit.advance(HOUR_MS)
      await kit.store.upkeep.expire(9)
      await worker.settle(after(await refreshed(kit, {}), { type: 'rejected', error: ERROR('same'), ranMs: 5 }))
      const { groups } = await kit.inspect.deadGroups({ limit: 10 })
      const keys = groups.map(({ queue, kind, reason, fingerprint }) => [queue, kind, reason, fingerprint !== null])
      assert.deepEqual(keys.sort(), [
        ['b', 'work', 'failed', true],
        ['q', 'other', 'failed', true],
        ['q', 'work', 'expired', false],
        ['q', 'work', 'failed', true],
        ['q', 'work', 'rejected', true],
      ])
      assert.equal(new Set(groups.map(({ fingerprint }) => fingerprint)).size, 2)
      const expired = groups.find(({ reason }) => reason === 'expired')
      assert.equal(expired?.sample.error, null)
    },
  },
  {
    name: 'deadGroups: by queue and kind, no more than asked for, and it says where there are more',
    promise: 'People see what they ask for, and are told what they do not see.',
    needs: ['inspect'],
    async run(kit) {
      const worker = await kit.worker()
      for (const [n, message] of ['one', 'two', 'three', 'four'].entries()) {
        await letter(kit, worker, message, { queue: n % 2 ? 'b' : 'q', kind: n < 2 ? 'work' : 'other' })
        await kit.advance(2)
      }
      const messages = async (ask: { queue?: string; kind?: string; limit?: number }): Promise<unknown[]> => {
        const { groups, complete } = await kit.inspect.deadGroups({ limit: 10, ...ask })
        return [...groups.map(({ sample }) => sample.error?.message), complete]
      }
      assert.deepEqual(await messages({}), ['four', 'three', 'two', 'one', true])
      assert.deepEqual(await messages({ limit: 3 }), ['four', 'three', 'two', false])
      assert.deepEqual(await messages({ queue: 'b' }), ['four', 'two', true])
      assert.deepEqual(await messages({ queue: 'q', kind: 'other' }), ['three', true])
      assert.deepEqual(await messages({ queue: 'nobody' }), [true])
    },
  },
  {
    name: 'deadGroups: what was redriven or discarded has left its group, and dies into the group of its last failure',
    promise: 'A group holds what is dead now.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const worker = await kit.worker()
      const ids: string[] = []
      for (let n = 0; n < 3; n++) ids.push(await letter(kit, worker, 'first fault'))
      assert.deepEqual(await kit.control.redrive([ids[0]!], { force: false }), ['ok'])
      assert.deepEqual(await kit.control.discard([ids[1]!]), ['discarded'])
      const groups = async (): Promise<unknown[]> => {
        const found = (await kit.inspect.deadGroups({ limit: 10 })).groups
        return found.map(({ count, sample }) => [count.count, sample.error?.message]).sort()
      }
      assert.deepEqual(await groups(), [[1, 'first fault']])
      await worker.settle(died(await worker.takeOne(), 'second fault'))
      assert.deepEqual(await groups(), [
        [1, 'first fault'],
        [1, 'second fault'],
      ])
    },
  },
  {
    name: 'list: dead letters by reason, by fingerprint and by when they ended',
    promise: 'People see what they ask for.',
    needs: ['inspect'],
    async run(kit) {
      const worker = await kit.worker()
      const first = await letter(kit, worker, 'one')
      await kit.advance(HOUR_MS)
      const second = await letter(kit, worker, 'two')
      const third = await rejectedOne(kit, worker, 'two')
      await kit.enqueue({ spec: { expiresInMs: 1 } })
      await kit.advance(HOUR_MS)
      const [fourth] = (await kit.store.upkeep.expire(9)).map(({ id }) => id)
      const endedAt = (await kit.view(second)).endedAt!
      const print = (await kit.view(second)).history!.entries.at(-1)!.fingerprint!
      type Ask = Partial<Parameters<Kit['inspect']['list']>[0]>
      const listed = async (ask: Ask): Promise<string[]> => {
        const page = await kit.inspect.list({ state: 'dead', limit: 10, ...ask })
        return page.jobs.map(({ id }) => id)
      }
      assert.deepEqual(await listed({ fingerprint: print }), [third, second])
      assert.deepEqual(await listed({ fingerprint: print, queue: 'q', reason: 'failed' }), [second])
      assert.deepEqual(await listed({ fingerprint: null }), [fourth])
      assert.deepEqual(await listed({ fingerprint: print, kind: 'other' }), [])
      assert.deepEqual(await listed({ reason: 'rejected' }), [third])
      assert.deepEqual(await listed({ endedBefore: endedAt - 1 }), [first])
      assert.deepEqual(await listed({ endedAfter: endedAt - 1 }), [fourth, third, second])
      assert.deepEqual(await listed({ endedAfter: endedAt - 1, endedBefore: endedAt + HOUR_MS / 2 }), [third, second])
      const page = await kit.inspect.list({ state: 'dead', limit: 1, fingerprint: print })
      assert.deepEqual(await listed({ fingerprint: print, after: page.next! }), [second])
    },
  },
  {
    name: 'redrive: through thirty rounds id, key, payload, priority and history stay, and the rounds are counted',
    promise: 'A dead letter is the same job after any number of rounds.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const payload = { order: 7, text: 'as it was' }
      const id = await kit.enqueueOne({ key: 'k', priority: 9, payload, spec: { attempts: 2 } })
      const { enqueuedAt } = await kit.view(id)
      const worker = await kit.worker()
      for (let round = 1; round <= ROUNDS; round++) {
        await dieTwice(kit, worker, `fault ${round}`)
        checkRound(await kit.view(id), round)
        assert.deepEqual(await kit.control.redrive([id], { force: false }), ['ok'])
        await kit.advance(1_000)
      }
      const view = await kit.view(id)
      assert.deepEqual([view.state, view.payload, view.priority], ['ready', payload, 9])
      assert.deepEqual([view.spec.idempotencyKey, view.spec.attempts], ['k', 2])
      assert.deepEqual([view.history?.redrives, view.history?.attempts], [ROUNDS, 0])
      assert(isNear(view.enqueuedAt, enqueuedAt), 'it was enqueued once')
      const again = (await kit.store.enqueue([kit.job({ key: 'k', payload })]))[0]
      assert.deepEqual(again, { status: 'duplicate', id })
    },
  },
  {
    name: 'discard: nothing is left of a dead letter, its key is free, and it says what it met',
    promise: 'What is discarded is gone; nothing else can be discarded.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const worker = await kit.worker()
      const dead = await letter(kit, worker, 'broken', { key: 'k' })
      const kept = await letter(kit, worker, 'broken', { key: 'kept' })
      const [ready, delayed] = await kit.enqueue({ key: 'r' }, { due: { delayMs: HOUR_MS } })
      const ids = [ready!, dead, kit.job().id, delayed!]
      assert.deepEqual(await kit.control.discard(ids), ['not dead', 'discarded', 'unknown', 'not dead'])
      assert.deepEqual(await kit.control.discard([dead]), ['unknown'])
      assert.equal((await kit.inspect.get([dead]))[0], null)
      const outcomes = await kit.store.enqueue(['k', 'kept', 'r'].map((key) => kit.job({ key })))
      assert.deepEqual(outcomes, [
        { status: 'created' },
        { status: 'duplicate', id: kept },
        { status: 'duplicate', id: ready },
      ])
      assert.deepEqual(await kit.control.redrive([dead], { force: true }), ['unknown'])
    },
  },
  {
    name: 'discard: an odd history stops nobody, and a key that others use by now stays theirs',
    promise: 'One bad record never stops a batch.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const worker = await kit.worker()
      const odd = await letter(kit, worker, 'NUL \u0000, half a pair \ud800, "quotes" and \\', { key: 'odd' })
      const plain = await letter(kit, worker, 'plain')
      const { groups } = await kit.inspect.deadGroups({ limit: 9 })
      assert.equal(groups.length, 2)
      assert(groups.some(({ sample }) => sample.error?.message.includes('\u0000, half a pair \ud800')))
      assert.deepEqual(await kit.control.discard([odd, plain]), ['discarded', 'discarded'])
      const next = await kit.enqueueOne({ key: 'odd' })
      assert.deepEqual(await kit.control.discard([odd]), ['unknown'])
      const again = (await kit.store.enqueue([kit.job({ key: 'odd' })]))[0]
      assert.deepEqual(again, { status: 'duplicate', id: next })
    },
  },
]

const ERROR = (message: string): { name: string; message: string } => ({ name: 'Error', message })

function died(held: Held, message: string): Settlement {
  const failure = after(held, { type: 'threw', error: ERROR(message), ranMs: 5 })
  assert.equal(failure.to, 'dead', 'the case has to let it have one attempt')
  return failure
}

/** A job that dies of its first failure. */
async function letter(kit: Kit, worker: TestWorker, message: string, sketch: JobSketch = {}): Promise<string> {
  const id = await kit.enqueueOne({ ...sketch, spec: { attempts: 1, ...sketch.spec } })
  const queue = sketch.queue ?? 'q'
  const [held] = await worker.take(1, { queues: [{ queue, share: 1 }], kinds: [sketch.kind ?? 'work'] })
  assert.equal(held?.job.id, id)
  await worker.settle(died(held, message))
  return id
}

async function rejectedOne(kit: Kit, worker: TestWorker, message: string): Promise<string> {
  const id = await kit.enqueueOne()
  const held = await worker.takeOne()
  assert.equal(held.job.id, id)
  await worker.settle(after(held, { type: 'rejected', error: ERROR(message), ranMs: 5 }))
  return id
}

/** A job in the hands of a worker that lives; the first one's lease is long over by now. */
async function refreshed(kit: Kit, sketch: JobSketch): Promise<Held> {
  await kit.enqueueOne(sketch)
  return (await kit.worker()).takeOne()
}

async function dieTwice(kit: Kit, worker: TestWorker, message: string): Promise<void> {
  for (let attempt = 0; attempt < 2; attempt++) {
    const held = await worker.takeOne()
    await worker.settle(after(held, { type: 'threw', error: ERROR(message), ranMs: 5, delayMs: 0 }))
    await kit.promote()
  }
}

/** Of the round that has just ended. Two failures and a redrive are three entries, and only the newest are kept. */
function checkRound({ state, reason, history }: JobView, round: number): void {
  assert.deepEqual([state, reason], ['dead', 'failed'])
  const { attempts, redrives, entries } = history as JobHistory
  assert.deepEqual([attempts, redrives], [2, round - 1])
  assert.equal(entries.length, Math.min(HISTORY_ENTRIES_MAX, 3 * round - 1))
  const last = entries.slice(-3).map(({ outcome, attempt }) => `${outcome} ${attempt}`)
  assert.deepEqual(last, round === 1 ? ['failed 1', 'failed 2'] : ['redriven 1', 'failed 1', 'failed 2'])
  assert.equal(entries.at(-1)?.error?.message, `fault ${round}`)
}

function told(groups: readonly DeadGroup[]): unknown[] {
  return groups.map(({ queue, kind, reason, count }) => ({ queue, kind, reason, count }))
}

function shape(reason: string, count: number): unknown {
  return { queue: 'q', kind: 'work', reason, count: { count, exact: true } }
}

/** A store may keep fractions of a millisecond that a look at a job leaves out. */
function isNear(at: number, other: number | null): boolean {
  return Math.abs(at - (other ?? Number.NaN)) <= 1
}
