/** Cases of `match`: which jobs a filter means, page by page. */
import { strict as assert } from 'node:assert'
import type { MatchRequest, MatchState } from '../../../storage/storage.js'
import type { ConformanceCase } from '../case.js'
import { HOUR_MS, type JobSketch, type Kit } from '../kit.js'
import { after, LEASE_MS, rejected, type TestWorker, threw } from '../worker.js'

export const MATCHES: ConformanceCase[] = [
  {
    name: 'match: dead letters by all that a filter says, the oldest end first',
    promise: 'Operators change what they name, and nothing else.',
    needs: ['inspect'],
    async run(kit) {
      const worker = await kit.worker()
      const one = await dead(kit, worker)
      const two = await dead(kit, worker, { kind: 'other' })
      const three = await dead(kit, worker, { queue: 'b' })
      const four = await dead(kit, worker, {}, 'another fault')
      await kit.enqueueMany(3)
      const print = async (id: string): Promise<string> => (await kit.view(id)).history!.entries.at(-1)!.fingerprint!
      const all = await kit.inspect.match({ state: 'dead', limit: 9 })
      assert.deepEqual(all.jobs, [
        { id: one, kind: 'work', queue: 'q', reason: 'rejected' },
        { id: two, kind: 'other', queue: 'q', reason: 'rejected' },
        { id: three, kind: 'work', queue: 'b', reason: 'rejected' },
        { id: four, kind: 'work', queue: 'q', reason: 'rejected' },
      ])
      assert.deepEqual(await matching(kit, { state: 'dead', queue: 'q' }), [one, two, four])
      assert.deepEqual(await matching(kit, { state: 'dead', kind: 'work' }), [one, three, four])
      assert.deepEqual(await matching(kit, { state: 'dead', fingerprint: await print(one) }), [one, two, three])
      const narrow = { fingerprint: await print(one), queue: 'q', kind: 'work', reason: 'rejected' } as const
      assert.deepEqual(await matching(kit, { state: 'dead', ...narrow }), [one])
      assert.deepEqual(await matching(kit, { state: 'dead', ...narrow, reason: 'failed' }), [])
      assert.deepEqual(await matching(kit, { state: 'dead', reason: 'poison' }), [])
      assert.deepEqual(await matching(kit, { state: 'dead', fingerprint: null }), [])
      assert.deepEqual(await matching(kit, { state: 'dead', queue: 'nobody' }), [])
    },
  },
  {
    name: 'match: what waits and what runs, by state, queue and kind',
    promise: 'Operators change what they name, and nothing else.',
    needs: ['inspect'],
    async run(kit) {
      const worker = await kit.worker()
      const ids: Record<string, string> = {}
      for (const queue of ['q', 'b'])
        for (const kind of ['work', 'other'])
          for (const state of ['ready', 'delayed', 'retrying', 'running'] as const)
            ids[`${state} ${queue} ${kind}`] = await inState(kit, worker, state, { queue, kind })
      for (const state of ['ready', 'delayed', 'retrying', 'running'] as const) {
        const of = (part: string): string[] =>
          Object.keys(ids).flatMap((name) => (name.startsWith(state) && name.includes(part) ? [ids[name]!] : []))
        const found = async (more: Partial<MatchRequest>): Promise<string[]> =>
          (await matching(kit, { state, ...more })).sort()
        assert.deepEqual(await found({}), of('').sort(), state)
        assert.deepEqual(await found({ queue: 'b' }), of(' b ').sort(), state)
        assert.deepEqual(await found({ kind: 'other' }), of('other').sort(), state)
        assert.deepEqual(await found({ queue: 'q', kind: 'work' }), of(' q work'), state)
      }
    },
  },
  {
    name: 'match: by age, of dead letters since their end and of all others since their enqueue',
    promise: 'Ages are measured by the clock of the store.',
    needs: ['inspect'],
    async run(kit) {
      const worker = await kit.worker()
      const old = await kit.enqueueOne({ kind: 'other' })
      await kit.advance(kit.marginMs)
      const early = (await kit.inspect.match({ state: 'ready', limit: 1 })).nowMs
      await kit.advance(kit.marginMs)
      const young = await kit.enqueueOne({ kind: 'other' })
      assert.deepEqual(await matching(kit, { state: 'ready', before: early }), [old])
      assert.deepEqual(await matching(kit, { state: 'ready', since: early }), [young])
      assert.deepEqual(await matching(kit, { state: 'ready', since: early, before: early }), [])
      const held = await worker.take(2)
      await worker.settle(rejected(held[1]!))
      await kit.advance(kit.marginMs)
      const late = (await kit.inspect.match({ state: 'dead', limit: 1 })).nowMs
      assert(late > early)
      await kit.advance(kit.marginMs)
      await worker.settle(rejected(held[0]!))
      // The older one died later.
      assert.deepEqual(await matching(kit, { state: 'dead', before: late }), [young])
      assert.deepEqual(await matching(kit, { state: 'dead', since: late }), [old])
      assert.deepEqual(await matching(kit, { state: 'dead', since: early }), [young, old])
    },
  },
  {
    name: 'match: what leaves the state between two pages neither hides nor doubles another one',
    promise: 'Who works through all that matches misses none of it.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const worker = await kit.worker()
      const letters: string[] = []
      for (let n = 0; n < 12; n++) letters.push(await dead(kit, worker))
      const waiting = [...(await kit.enqueueMany(12)), ...(await kit.enqueueMany(12, { due: { delayMs: HOUR_MS } }))]
      const redriven: string[] = []
      for await (const ids of pages(kit, { state: 'dead', limit: 5 })) {
        redriven.push(...ids)
        assert(new Set(await kit.control.redrive(ids, { force: false })).size === 1)
      }
      assert.deepEqual(redriven, letters)
      const cancelled: string[] = []
      for (const state of ['delayed', 'ready'] as const)
        for await (const ids of pages(kit, { state, limit: 5 })) {
          cancelled.push(...ids)
          assert.deepEqual(new Set(await kit.control.cancel(ids)), new Set(['cancelled']))
        }
      assert.deepEqual(cancelled.sort(), [...waiting, ...letters].sort())
    },
  },
  {
    name: 'match: a rare one is found among thousands of others, in pages that may be empty',
    promise: 'A filter that hardly anything matches is many short looks, and an end.',
    needs: ['inspect'],
    async run(kit) {
      await kit.enqueueMany(1_500)
      const [rare] = await kit.enqueue({ kind: 'rare' })
      await kit.enqueueMany(1_500)
      const [last] = await kit.enqueue({ kind: 'rare' })
      assert.deepEqual(await matching(kit, { state: 'ready', kind: 'rare' }), [rare, last])
      assert.deepEqual(await matching(kit, { state: 'ready', kind: 'nothing' }), [])
    },
  },
  {
    name: 'get: when the attempt that runs has started is known as soon as a beat told of it',
    promise: 'What happens to job X can be seen.',
    needs: ['inspect'],
    async run(kit) {
      const id = await kit.enqueueOne()
      const worker = await kit.worker()
      const { fence } = await worker.takeOne()
      const { nowMs: claimedMs } = await kit.inspect.match({ state: 'running', limit: 1 })
      assert.equal((await kit.view(id)).startedAt, null)
      await kit.advance(LEASE_MS / 2)
      await worker.beat({ started: [[fence, 0, LEASE_MS / 4]] })
      const startedAt = (await kit.view(id)).startedAt
      assert(startedAt !== null, 'it is not known')
      const afterMs = startedAt - claimedMs
      assert(afterMs >= LEASE_MS / 4 - 1 && afterMs <= LEASE_MS / 4 + kit.marginMs, `${afterMs} ms after the claim`)
      assert.equal((await kit.inspect.list({ state: 'running', limit: 1 })).jobs[0]?.startedAt !== null, true)
      // A worker whose clock runs wild cannot have started it before it had it.
      await worker.beat({ started: [[fence, 0, HOUR_MS]] })
      assert((await kit.view(id)).startedAt! >= claimedMs - kit.marginMs)
    },
  },
]

/** Each a moment after the one before. */
async function dead(kit: Kit, worker: TestWorker, sketch: JobSketch = {}, message = 'it is 7'): Promise<string> {
  const id = await inState(kit, worker, 'running', sketch, message)
  await kit.advance(2)
  return id
}

/** A job in the state; with a message it runs and dies of it. */
async function inState(
  kit: Kit,
  worker: TestWorker,
  state: MatchState,
  sketch: JobSketch,
  message?: string,
): Promise<string> {
  if (state === 'delayed') return kit.enqueueOne({ ...sketch, due: { delayMs: HOUR_MS } })
  if (state === 'ready') return kit.enqueueOne({ ...sketch, priority: 0 })
  // Above those that are to stay ready.
  const id = await kit.enqueueOne({ ...sketch, priority: 15 })
  const { queue = 'q', kind = 'work' } = sketch
  const [held] = await worker.take(1, { queues: [{ queue, share: 1 }], kinds: [kind] })
  assert.equal(held?.job.id, id)
  if (state === 'retrying') await worker.settle(threw(held, HOUR_MS))
  if (message !== undefined)
    await worker.settle(after(held, { type: 'rejected', error: { name: 'Error', message }, ranMs: 5 }))
  return id
}

/** All that match, over all pages. */
async function matching(kit: Kit, request: Omit<MatchRequest, 'limit'>): Promise<string[]> {
  const all: string[] = []
  for await (const ids of pages(kit, { limit: 2, ...request })) all.push(...ids)
  assert.equal(new Set(all).size, all.length, 'a job matched twice')
  return all
}

async function* pages(kit: Kit, request: MatchRequest): AsyncGenerator<string[]> {
  let next: string | null | undefined
  while (next !== null) {
    const page = await kit.inspect.match({ ...request, ...(next === undefined ? {} : { after: next }) })
    assert(page.jobs.length <= request.limit)
    if (page.jobs.length > 0) yield page.jobs.map(({ id }) => id)
    next = page.next
  }
}
