/** Cases about order keys and limit keys. The rules are in core/keys.ts. */
import { strict as assert } from 'node:assert'
import type { JobSpec } from '../../../core/job.js'
import type { ConformanceCase } from '../case.js'
import { HOUR_MS, type JobSketch, type Kit } from '../kit.js'
import { afterCrash, givenBack, type Held, idsOf, rejected, returned, type TestWorker, threw } from '../worker.js'

function inOrder(orderKey: string, more: Partial<JobSpec> = {}): JobSketch {
  return { spec: { orderKey, ...more } }
}

function limited(limitKey: string): JobSketch {
  return { spec: { limitKey } }
}

/** What a worker gets that asks until nothing more comes. */
async function all(worker: TestWorker, limit = 20): Promise<Held[]> {
  const held: Held[] = []
  for (let rounds = 0; rounds < 100; rounds++) {
    const claim = await worker.claim({ limit })
    const jobs = claim.leases.flatMap(({ fence, alone, jobs }) =>
      jobs.map((job, ordinal) => ({ fence, ordinal, alone, job, crash: null, nowMs: claim.nowMs })),
    )
    held.push(...jobs)
    if (!claim.more && jobs.length === 0) return held
  }
  assert.fail('it never came to an end: each claim said that there is more')
}

async function allIds(worker: TestWorker): Promise<string[]> {
  return idsOf(await all(worker))
}

async function stateOf(kit: Kit, id: string): Promise<string> {
  return (await kit.view(id)).state
}

export const JOB_KEY_CASES: ConformanceCase[] = [
  {
    name: 'job keys: of an order key one job runs at a time, in order',
    promise: 'Jobs of one order key run one after another, in the order of their enqueues; others run beside them.',
    needs: [],
    async run(kit) {
      const first = await kit.enqueue(inOrder('a'), inOrder('b'), inOrder('a'), {})
      const last = await kit.enqueueOne(inOrder('a'))
      const [one, two] = [await kit.worker(), await kit.worker(await kit.open())]
      const held = await all(one)
      assert.deepEqual(idsOf(held), [first[0], first[1], first[3]])
      assert.deepEqual(await allIds(two), [])
      await one.settle(returned(held[0]!))
      const [next, ...more] = await all(two)
      assert.deepEqual([next?.job.id, more], [first[2], []])
      await two.settle(returned(next!))
      assert.deepEqual(await allIds(one), [last])
    },
  },
  {
    name: 'job keys: a job of an order key keeps its turn while it waits for its next attempt',
    promise: 'Strict order also across retries: nothing of the key runs until the failed job has had its next attempt.',
    needs: [],
    async run(kit) {
      const [a, b] = await kit.enqueue(inOrder('a'), inOrder('a'))
      const worker = await kit.worker()
      const [held] = await all(worker)
      await worker.settle(threw(held!, HOUR_MS))
      assert.deepEqual(await allIds(worker), [])
      await kit.pass(HOUR_MS + kit.marginMs, worker)
      await kit.promote()
      const [again, ...more] = await all(worker)
      assert.deepEqual([again?.job.id, more], [a, []])
      await worker.settle(returned(again!))
      assert.deepEqual(await allIds(worker), [b])
    },
  },
  {
    name: 'job keys: what is given back of an order key keeps its turn',
    promise: 'A job that goes back unstarted is the next one of its order key.',
    needs: [],
    async run(kit) {
      const [a, b] = await kit.enqueue(inOrder('a'), inOrder('a'))
      const worker = await kit.worker()
      const [held] = await all(worker)
      await worker.settle(givenBack(held!))
      const [again] = await all(worker)
      assert.equal(again?.job.id, a)
      // The beat does not name the lease: its answer was lost, and the store gives it back.
      worker.holding = []
      await worker.beat()
      const [third, ...more] = await all(worker)
      assert.deepEqual([third?.job.id, more], [a, []])
      await worker.settle(returned(third!))
      assert.deepEqual(await allIds(worker), [b])
    },
  },
  {
    name: 'job keys: a crash changes no order',
    promise: 'What a dead worker held of an order key holds up the key until it has ended.',
    needs: [],
    async run(kit) {
      const [a, b] = await kit.enqueue(inOrder('a'), inOrder('a'))
      const { heir } = await kit.death(5, 'started')
      assert.deepEqual(await allIds(heir), [])
      const adopted = await heir.takeOver()
      assert.deepEqual(idsOf(adopted), [a])
      assert.deepEqual(await allIds(heir), [])
      await heir.settle(...adopted.map(afterCrash))
      const [again, ...more] = await all(heir)
      assert.deepEqual([again?.job.id, more], [a, []])
      await heir.settle(returned(again!))
      assert.deepEqual(await allIds(heir), [b])
    },
  },
  {
    name: 'job keys: behind a dead job an order key goes on, unless it says otherwise',
    promise: 'A dead letter frees its order key.',
    needs: [],
    async run(kit) {
      const [, b] = await kit.enqueue(inOrder('a'), inOrder('a'))
      const worker = await kit.worker()
      const [held] = await all(worker)
      await worker.settle(rejected(held!))
      assert.deepEqual(await allIds(worker), [b])
    },
  },
  {
    name: 'job keys: a dead job may block those behind it until it is redriven or discarded',
    promise: 'With afterDead "block" nothing of the order key runs behind a dead letter; redriven it runs first.',
    needs: ['control'],
    async run(kit) {
      const ids = await kit.enqueueMany(3, inOrder('a', { afterDead: 'block' }))
      const worker = await kit.worker()
      const [held] = await all(worker)
      await worker.settle(rejected(held!))
      assert.deepEqual(await allIds(worker), [])
      await kit.control.redrive([ids[0]!], { force: false })
      const [again, ...more] = await all(worker)
      assert.deepEqual([again?.job.id, more], [ids[0], []])
      await worker.settle(rejected(again!))
      assert.deepEqual(await allIds(worker), [])
      await kit.control.discard([ids[0]!])
      assert.deepEqual(await allIds(worker), [ids[1]])
    },
  },
  {
    name: 'job keys: of a limit key as many run at once as the queue allows',
    promise: 'A limit for each value of a limit key, over all workers, and single values with limits of their own.',
    needs: ['control'],
    async run(kit) {
      await kit.control.limit('q', { perKey: { limit: 2, keys: { acme: 3 } } })
      const small = await kit.enqueueMany(4, limited('small'))
      const acme = await kit.enqueueMany(5, limited('acme'))
      const [one, two] = [await kit.worker(), await kit.worker(await kit.open())]
      const held = await all(one, 3)
      assert.deepEqual(idsOf(held), [...small.slice(0, 2), ...acme.slice(0, 3)])
      assert.deepEqual(await allIds(two), [])
      await one.settle(returned(held[0]!), returned(held[3]!))
      assert.deepEqual((await allIds(two)).sort(), [small[2], acme[3]].sort())
    },
  },
  {
    name: 'job keys: whatever ends a lease of a job frees its permit of a limit key',
    promise: 'A permit of a key never leaks: completed, failed, given back or written off, the next job may start.',
    needs: ['control'],
    async run(kit) {
      await kit.control.limit('q', { perKey: { limit: 1, keys: {} } })
      await kit.enqueueMany(6, limited('a'))
      const worker = await kit.worker()
      const next = async (): Promise<Held> => {
        const [held, ...more] = await all(worker)
        assert(held && more.length === 0, `one at a time, and one was free: ${1 + more.length}`)
        return held
      }
      await worker.settle(returned(await next()))
      await worker.settle(threw(await next(), HOUR_MS))
      await worker.settle(givenBack(await next()))
      await next()
      worker.holding = []
      await worker.beat()
      const claim = await worker.claim({ finished: [returned(await next())], limit: 9 })
      assert.equal(claim.leases.flatMap(({ jobs }) => jobs).length, 1)
    },
  },
  {
    name: 'job keys: what a dead worker held of a limit key counts until it is settled',
    promise: 'A crash does not let one more run than the limit of a key says, and loses no permit.',
    needs: ['control'],
    async run(kit) {
      await kit.control.limit('q', { perKey: { limit: 2, keys: {} } })
      await kit.enqueueMany(5, limited('a'))
      const { heir } = await kit.death(5, 'started')
      assert.deepEqual(await allIds(heir), [])
      const adopted = await heir.takeOver()
      assert.equal(adopted.length, 2)
      assert.deepEqual(await allIds(heir), [])
      await heir.settle(...adopted.map((one) => returned(one)))
      assert.equal((await all(heir)).length, 2)
    },
  },
  {
    name: 'job keys: a changed limit of keys holds from the next claim on',
    promise: 'Limits of keys are changed while the queue runs; what is held beyond a lower one goes on.',
    needs: ['control'],
    async run(kit) {
      const perKey = (limit: number) => kit.control.limit('q', { perKey: { limit, keys: {} } })
      await perKey(1)
      await kit.enqueueMany(9, limited('a'))
      const worker = await kit.worker()
      assert.equal((await all(worker)).length, 1)
      await perKey(3)
      const held = await all(worker)
      assert.equal(held.length, 2)
      await perKey(2)
      await worker.settle(returned(held[0]!))
      assert.deepEqual(await allIds(worker), [])
      await worker.settle(returned(held[1]!))
      assert.equal((await all(worker)).length, 1)
      await kit.control.limit('q', { perKey: null })
      assert.equal((await all(worker)).length, 5)
    },
  },
  {
    name: 'job keys: a full key keeps nobody else waiting',
    promise: 'Whatever waits of a key that is full, the jobs behind it start; what is blocked is not looked at again.',
    needs: ['control', 'inspect'],
    async run(kit) {
      await kit.control.limit('q', { perKey: { limit: 1, keys: {} } })
      const full = await kit.enqueueMany(60, limited('full'))
      const free = await kit.enqueueMany(5)
      const worker = await kit.worker()
      assert.deepEqual(await allIds(worker), [full[0], ...free])
      const { blocked, ready } = await kit.inspect.counts('q')
      assert.deepEqual([blocked.count, ready.count], [59, 0])
      // Everything is told of them as of other jobs that wait.
      assert.equal(await stateOf(kit, full[7]!), 'blocked')
      const { jobs } = await kit.inspect.list({ state: 'blocked', limit: 2 })
      assert.deepEqual(
        jobs.map(({ id }) => id),
        full.slice(1, 3),
      )
      assert.deepEqual(await kit.control.retry([full[3]!]), ['blocked'])
    },
  },
  {
    name: 'job keys: what is blocked expires, and counts among what waits of its tenant',
    promise: 'A job that waits for its key is one that waits: for its expiry, and for the depth of its tenant.',
    needs: ['control', 'inspect'],
    async run(kit) {
      await kit.control.limit('q', { depth: { limit: 10, perTenant: 1, kinds: {} } })
      const [, late] = await kit.enqueue(inOrder('a'), inOrder('a', { tenant: 't', expiresInMs: HOUR_MS }))
      const worker = await kit.worker()
      assert.equal((await all(worker)).length, 1)
      assert.equal(await stateOf(kit, late!), 'blocked')
      const refused = await kit.store.enqueue([kit.job({ spec: { tenant: 't' } })])
      assert.deepEqual(
        refused.map(({ status }) => status),
        ['full'],
      )
      await kit.pass(HOUR_MS + kit.marginMs, worker)
      assert.deepEqual(
        (await kit.store.upkeep.expire(9)).map(({ id }) => id),
        [late],
      )
      assert.equal(await stateOf(kit, late!), 'dead')
    },
  },
  {
    name: 'job keys: who leaves the line of a key lets the next one go',
    promise: 'Cancelled, expired or purged, a job that waits holds up nobody behind it.',
    needs: ['control'],
    async run(kit) {
      const late = inOrder('a', { expiresInMs: HOUR_MS })
      const ids = await kit.enqueue(inOrder('a'), late, inOrder('a'), late, inOrder('a'))
      const worker = await kit.worker()
      const [held] = await all(worker)
      await worker.settle(threw(held!, 3 * HOUR_MS))
      // The head waits for its next attempt, and is cancelled.
      await kit.control.cancel([ids[0]!])
      const [second] = await all(worker)
      assert.equal(second?.job.id, ids[1])
      await worker.settle(givenBack(second!))
      await kit.pass(HOUR_MS + kit.marginMs, worker)
      // The one that is ready again, and the one that is blocked.
      const expired = await kit.store.upkeep.expire(10)
      assert.deepEqual(expired.map(({ id }) => id).sort(), [ids[1], ids[3]])
      assert.deepEqual(await allIds(worker), [ids[2]])
      await kit.control.purge('q', 10)
      const after = await kit.enqueueOne(inOrder('b'))
      assert.deepEqual(await allIds(worker), [after])
    },
  },
  {
    name: 'job keys: order is kept whatever the priority',
    promise: 'A job of an order key does not pass one that came before it, whatever their priorities.',
    needs: [],
    async run(kit) {
      const low = await kit.enqueueOne({ ...inOrder('a'), priority: 0 })
      const high = await kit.enqueueOne({ ...inOrder('a'), priority: 12 })
      const worker = await kit.worker()
      const [held, ...more] = await all(worker, 1)
      assert.deepEqual([held?.job.id, more], [low, []])
      await worker.settle(returned(held!))
      assert.deepEqual(await allIds(worker), [high])
    },
  },
]
