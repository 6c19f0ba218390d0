/** Cases of `inspect` and `wake`. */
import { strict as assert } from 'node:assert'
import { JOB_STATES, type JobState } from '../../../core/job.js'
import type { ConformanceCase } from '../case.js'
import { HOUR_MS, type Kit } from '../kit.js'
import { BEAT_MS, cancelled, givenBack, LEASE_MS, rejected, returned, type TestWorker, threw } from '../worker.js'

export const INSPECTION: ConformanceCase[] = [
  {
    name: 'get: a job is seen in each of its places with all there is to know',
    promise: 'What happened to job X can be seen.',
    needs: ['inspect'],
    async run(kit) {
      const id = await kit.enqueueOne({ kind: 'other', priority: 9, payload: [1], due: { delayMs: 1_000 } })
      const worker = await kit.worker()
      const seen = async (): Promise<unknown[]> => {
        const { state, kind, priority, payload, queue, dueAt, worker: holder } = await kit.view(id)
        assert.deepEqual([kind, priority, payload, queue], ['other', 9, [1], 'q'])
        return [state, dueAt !== null, holder]
      }
      assert.deepEqual(await seen(), ['delayed', true, null])
      await kit.advance(1_000 + kit.marginMs)
      await kit.promote()
      assert.deepEqual(await seen(), ['ready', true, null])
      await worker.settle(threw(await worker.takeOne(), 1_000))
      assert.equal((await seen())[0], 'retrying')
      await kit.advance(1_000 + kit.marginMs)
      await kit.promote()
      const held = await worker.takeOne()
      assert.deepEqual(await seen(), ['running', true, worker.id])
      await worker.settle(returned(held))
      assert.deepEqual(await seen(), ['completed', false, worker.id])
      const { history } = await kit.view(id)
      assert.deepEqual(
        history?.entries.map(({ outcome }) => outcome),
        ['failed', 'completed'],
      )
    },
  },
  {
    name: 'get: several at once, in the order asked, with null for what is not known',
    promise: 'One answer per item, in order.',
    needs: ['inspect'],
    async run(kit) {
      const [one, two] = await kit.enqueue({}, { due: { delayMs: HOUR_MS } })
      const views = await kit.inspect.get([two!, kit.job().id, one!, two!])
      assert.deepEqual(
        views.map((view) => view?.id),
        [two, undefined, one, two],
      )
      assert.deepEqual(await kit.inspect.get([]), [])
    },
  },
  {
    name: 'get: a job that moves is never out of sight',
    promise: 'One look over all places: a moving job is seen once.',
    needs: ['inspect'],
    async run(kit) {
      const ids = await kit.enqueueMany(20)
      const worker = await kit.worker(await kit.open())
      let moving = true
      const move = async (): Promise<void> => {
        for (let round = 0; round < 25; round++) {
          const held = await worker.take(20)
          await worker.settle(...held.map((job, i) => (i % 2 === 0 ? givenBack(job) : threw(job, 0))))
          await kit.promote()
        }
        moving = false
      }
      const look = async (): Promise<void> => {
        while (moving) assert(!(await kit.inspect.get(ids)).includes(null), 'a moving job was not seen')
      }
      await Promise.all([move(), look()])
    },
  },
  {
    name: 'get: what a caller does to an answer changes nothing in the store',
    promise: 'Answers are copies.',
    needs: ['inspect'],
    async run(kit) {
      const id = await kit.enqueueOne({ payload: { list: [1] } })
      const worker = await kit.worker()
      const held = await worker.takeOne()
      ;(held.job.payload as { list: number[] }).list.push(2)
      Reflect.set(held.job.spec, 'attempts', 99)
      const settlement = threw(held, HOUR_MS)
      assert(settlement.to === 'delayed')
      await worker.settle(settlement)
      settlement.history.attempts = 99
      const view = await kit.view(id)
      assert.deepEqual([view.payload, view.spec.attempts, view.history?.attempts], [{ list: [1] }, 6, 1])
    },
  },
  ...JOB_STATES.map(
    (state): ConformanceCase => ({
      name: `list: pages through all that are ${state}, once each, in order`,
      promise: 'Next to run, next due, newest end first; a page begins where the last one ended.',
      needs: ['control', 'inspect'],
      async run(kit) {
        const ids = await inState(kit, state, 11)
        await inState(kit, state === 'ready' ? 'running' : 'ready', 3)
        const pages = await allPages(kit, { state, limit: 4 })
        assert.deepEqual(
          pages.map((page) => page.length),
          [4, 4, 3],
        )
        const newestFirst = state === 'completed' || state === 'cancelled' || state === 'dead'
        assert.deepEqual(pages.flat(), newestFirst ? ids.reverse() : ids)
        assert.deepEqual(await allPages(kit, { state, limit: 11 }), [pages.flat()])
      },
    }),
  ),
  {
    name: 'list: by queue and by kind',
    promise: 'People see what they ask for.',
    needs: ['inspect'],
    async run(kit) {
      const sketches = [0, 1, 2, 3, 4, 5, 6, 7].map((i) => ({
        queue: i % 2 ? 'a' : 'b',
        kind: i % 4 > 1 ? 'other' : 'work',
      }))
      const ids = await kit.enqueue(...sketches)
      const listed = async (filter: { queue?: string; kind?: string }): Promise<string[]> =>
        (await allPages(kit, { state: 'ready', limit: 1, ...filter })).flat().sort()
      assert.deepEqual(await listed({ queue: 'a' }), [1, 3, 5, 7].map((i) => ids[i]!).sort())
      assert.deepEqual(await listed({ kind: 'other' }), [2, 3, 6, 7].map((i) => ids[i]!).sort())
      assert.deepEqual(await listed({ queue: 'b', kind: 'work' }), [ids[0], ids[4]].sort())
      assert.deepEqual(await listed({ queue: 'none' }), [])
    },
  },
  {
    name: 'list: what stays is seen once while other jobs come and go',
    promise: 'A change between two pages neither hides nor doubles a job that stays.',
    needs: ['control', 'inspect'],
    async run(kit) {
      const ids = await kit.enqueueMany(12, { priority: 9 })
      const first = await kit.inspect.list({ state: 'ready', limit: 4 })
      assert(first.next !== null)
      // The first page is gone, two of the later ones too, and new ones came in behind and in front.
      await kit.control.cancel([...first.jobs.map(({ id }) => id), ids[6]!, ids[7]!])
      await kit.enqueue({ priority: 9 }, { priority: 15 })
      const seen: string[] = []
      for (let after: string | null = first.next; after !== null; ) {
        const page = await kit.inspect.list({ state: 'ready', limit: 4, after })
        seen.push(...page.jobs.map(({ id }) => id))
        after = page.next
      }
      const stayed = [4, 5, 8, 9, 10, 11].map((i) => ids[i]!)
      assert.deepEqual(
        seen.filter((id) => ids.includes(id)),
        stayed,
      )
      assert.equal(new Set(seen).size, seen.length)
    },
  },
  {
    name: 'list: a page begins behind any job of the page before',
    promise: 'Lists of several stores are shown as one, each job once.',
    needs: ['control', 'inspect'],
    async run(kit) {
      for (const state of JOB_STATES) {
        await inState(kit, state, 4)
        const { jobs, cursors } = await kit.inspect.list({ state, limit: 9 })
        assert.equal(cursors.length, jobs.length)
        for (const [index, after] of cursors.entries()) {
          const rest = await kit.inspect.list({ state, limit: 9, after })
          assert.deepEqual(
            rest.jobs.map(({ id }) => id),
            jobs.slice(index + 1).map(({ id }) => id),
          )
        }
      }
    },
  },
  {
    name: 'counts: each job is counted in its place, in its queue',
    promise: 'What was enqueued is the sum over the places.',
    needs: ['control', 'inspect'],
    async run(kit) {
      for (const [i, state] of JOB_STATES.entries()) await inState(kit, state, i + 1)
      const counts = await kit.inspect.counts('q')
      for (const [i, state] of JOB_STATES.entries()) {
        const { count, exact } = counts[state]
        // One more runs: those that are blocked wait for it.
        const expected = state === 'running' ? i + 2 : i + 1
        assert(exact ? count === expected : count <= expected, `${state}: ${count}`)
      }
      const none = await kit.inspect.counts('elsewhere')
      assert.deepEqual(
        JOB_STATES.map((state) => none[state].count),
        JOB_STATES.map(() => 0),
      )
      assert.deepEqual(
        (await kit.inspect.queues()).map(({ queue }) => queue),
        ['q'],
        'a queue was made by looking',
      )
    },
  },
  {
    name: 'queues: show what was set on them',
    promise: 'Everybody sees a pause, a drain and an order.',
    needs: ['control', 'inspect'],
    async run(kit) {
      await kit.enqueue({ queue: 'a' })
      await kit.control.pause('b')
      await kit.control.refuse('c')
      await kit.control.order('c', 'strict')
      const shown = async (): Promise<unknown[]> =>
        (await kit.inspect.queues())
          .map(({ queue, paused, draining, order }) => [queue, paused, draining, order])
          .sort()
      assert.deepEqual(await shown(), [
        ['a', false, false, 'ageing'],
        ['b', true, false, 'ageing'],
        ['c', false, true, 'strict'],
      ])
      await kit.control.resume('b')
      await kit.control.resume('c')
      assert.deepEqual(
        (await shown()).flat().filter((value) => value === true),
        [],
      )
    },
  },
  {
    name: 'workers: show who they are, what they hold and when they were heard',
    promise: 'Everybody sees who works.',
    needs: ['inspect'],
    async run(kit) {
      await kit.enqueueMany(5)
      const worker = await kit.worker()
      await worker.take(3)
      await worker.take(1)
      await worker.beat({ mainLagMs: 7 })
      await kit.advance(BEAT_MS)
      const [view, ...others] = await kit.inspect.workers()
      assert.deepEqual(others, [])
      assert(view)
      const { name, queues, concurrency, leaseMs, beatMs } = view
      assert.deepEqual([name, queues, concurrency, leaseMs, beatMs], ['host:1', ['q'], 10, LEASE_MS, BEAT_MS])
      assert.deepEqual([view.id, view.leases, view.jobs], [worker.id, 2, 4])
      assert(view.lastBeatAgoMs >= BEAT_MS && view.lastBeatAgoMs <= BEAT_MS + kit.marginMs)
      await kit.store.unregister(worker.id)
    },
  },
  {
    name: 'wake: an idle worker hears of new work in its queues, until it stops listening',
    promise: 'Work begins at once, not with the next poll.',
    needs: ['wake'],
    async run(kit) {
      const worker = await kit.worker()
      const told: string[] = []
      const stop = await kit.wake.listen(['q', 'b'], (queues) => told.push(...queues))
      await worker.claim() // finds nothing: from now on it is idle
      await (await kit.open()).enqueue([kit.job(), kit.job({ queue: 'elsewhere' })])
      await kit.until(() => told.includes('q'), 'the hint')
      assert(!told.includes('elsewhere'))
      await stop()
      await stop()
      const heard = told.length
      await worker.take(9)
      await worker.claim()
      await kit.enqueue({})
      await kit.advance(0)
      assert.equal(told.length, heard)
    },
  },
]

/** So many jobs in a state, in the order in which they came there. */
async function inState(kit: Kit, state: JobState, count: number): Promise<string[]> {
  if (state === 'ready') return inTurn(kit, count, () => kit.enqueueOne())
  if (state === 'delayed') return inTurn(kit, count, () => kit.enqueueOne({ due: { delayMs: HOUR_MS } }))
  const worker = await kit.worker()
  if (state === 'blocked') {
    await kit.enqueueOne(BLOCKED)
    await worker.takeOne({ kinds: [BLOCKED.kind] })
  }
  return inTurn(kit, count, () => endIn(kit, worker, state))
}

/** The first one runs, and holds the key. Of one tenant, so that they are together where jobs are spread over stores. */
const BLOCKED = { kind: 'to-be-blocked', spec: { orderKey: 'of those', tenant: 'of those' } }

/** A kind of its own, so that only the new job is taken. */
async function endIn(kit: Kit, worker: TestWorker, state: JobState): Promise<string> {
  if (state === 'blocked') {
    const id = await kit.enqueueOne(BLOCKED)
    assert.deepEqual(await worker.take(1, { kinds: [BLOCKED.kind] }), [])
    return id
  }
  const id = await kit.enqueueOne({ kind: `to-be-${state}` })
  const held = await worker.takeOne({ kinds: [`to-be-${state}`] })
  if (state === 'retrying') await worker.settle(threw(held, HOUR_MS))
  if (state === 'completed') await worker.settle(returned(held))
  if (state === 'dead') await worker.settle(rejected(held))
  if (state === 'cancelled') await worker.settle(cancelled(held))
  return id
}

/** One after another, each a moment later than the one before. */
async function inTurn(kit: Kit, count: number, make: () => Promise<string>): Promise<string[]> {
  const ids: string[] = []
  for (let i = 0; i < count; i++) {
    ids.push(await make())
    await kit.advance(2)
  }
  return ids
}

async function allPages(kit: Kit, request: Parameters<Kit['inspect']['list']>[0]): Promise<string[][]> {
  const pages: string[][] = []
  let after: string | null = null
  do {
    const page: Awaited<ReturnType<Kit['inspect']['list']>> = await kit.inspect.list({
      ...request,
      ...(after === null ? {} : { after }),
    })
    if (page.jobs.length > 0) pages.push(page.jobs.map(({ id }) => id))
    after = page.next
  } while (after !== null)
  return pages
}
