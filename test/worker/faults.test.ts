/** A store that fails: calls cut at four points, refused settlements, outages. Nothing is lost and nothing runs twice. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { QueueError } from '../../src/core/errors.js'
import type { Settlement, Storage } from '../../src/storage/storage.js'
import type { VirtualTime } from '../../src/testing/virtual-time.js'
import { changed, Gate, handler, virtualKit } from './kit.js'

type Cut = 'not sent' | 'reply lost' | 'twice' | 'after the caller gave up'

function lostConnection(): QueueError {
  return new QueueError('OUTCOME_UNKNOWN', 'the connection broke')
}

/** Does the call, or not, as the cut says. */
async function cutCall<T>(time: VirtualTime, cut: Cut, call: () => Promise<T>): Promise<T> {
  switch (cut) {
    case 'not sent':
      throw lostConnection()
    case 'reply lost':
      await call()
      throw lostConnection()
    case 'twice':
      await call()
      return call()
    case 'after the caller gave up':
      time.timer(20_000, () => void call())
      return new Promise(() => {})
  }
}

const CUTS: Cut[] = ['not sent', 'reply lost', 'twice', 'after the caller gave up']

for (const operation of ['claim', 'settle', 'beat'] as const) {
  for (const cut of CUTS) {
    test(`every third ${operation} is cut (${cut}): each job still runs once and is settled once`, async () => {
      let time: VirtualTime | undefined
      let calls = 0
      const wrap = (storage: Storage): Storage =>
        changed(storage, {
          [operation]: (argument: never) => {
            const call = (): Promise<unknown> => storage[operation](argument)
            calls += 1
            return calls % 3 === 2 ? cutCall(time!, cut, call) : call()
          },
        })
      const made = virtualKit(wrap)
      time = made.time
      const { kit } = made
      const ids = await kit.enqueue(300)
      const runs = new Map<string, number>()
      // At-most-once ones settle by calls of their own, so that there are enough of both.
      const once = await kit.enqueue(20, { kind: 'once', spec: { delivery: 'at-most-once' } })
      const run = async (_: unknown, { id }: { id: string }): Promise<void> => {
        runs.set(id, (runs.get(id) ?? 0) + 1)
        await time!.sleep(500 * time!.random())
      }
      const worker = kit.worker([handler(run), handler(run, { kind: 'once', delivery: 'at-most-once' })])
      await time.runUntil(worker.runUntilEmpty())
      const all = [...ids, ...once]
      assert.ok(calls >= 3, `only ${calls} calls`)
      assert.deepEqual(
        (await kit.views(all)).filter((view) => view!.state !== 'completed'),
        [],
      )
      assert.ok(all.every((id) => runs.get(id) === 1))
      assert.equal(kit.all('job.completed').length, all.length)
      assert.equal(kit.all('job.lost').length, 0)
    })
  }
}

test('a settlement that the store refuses does not sink its batch; its job fails with a safe error', async () => {
  const holds = (settlement: Settlement): boolean => 'result' in settlement && settlement.result === '"poison"'
  let refusals = 0
  const refusing = (storage: Storage): Storage => {
    const check = (settlements: readonly Settlement[]): void => {
      if (!settlements.some(holds)) return
      refusals += 1
      throw new QueueError('STORE_REJECTED', 'the store cannot hold this')
    }
    return changed(storage, {
      settle: async (settlements) => {
        check(settlements)
        return storage.settle(settlements)
      },
      claim: async (request) => {
        check(request.finished ?? [])
        return storage.claim(request)
      },
    })
  }
  const { time, kit } = virtualKit(refusing)
  const good = await kit.enqueue(100)
  const [bad] = await kit.enqueue(1, { payload: '"poison"' })
  const more = await kit.enqueue(100)
  await time.runUntil(kit.worker([handler((payload) => (payload === 'poison' ? payload : 'fine'))]).runUntilEmpty())
  assert.ok((await kit.views([...good, ...more])).every((view) => view!.state === 'completed'))
  const view = await kit.view(bad!)
  assert.equal(view.state, 'retrying')
  assert.equal(view.history!.entries[0]!.error!.name, 'SettlementRefused')
  assert.ok(refusals < 40, `${refusals} refusals`)
  assert.equal(kit.all('job.failed').length, 1)
})

test('a store that refuses everything for a while is an outage: no outcome is replaced', async () => {
  let readOnly = false
  const refuse = async (): Promise<never> => {
    throw new QueueError('STORE_REJECTED', 'cannot execute in a read-only transaction')
  }
  const { time, kit } = virtualKit((storage) =>
    changed(storage, {
      settle: (settlements) => (readOnly ? refuse() : storage.settle(settlements)),
      claim: (request) => (readOnly ? refuse() : storage.claim(request)),
    }),
  )
  const ids = await kit.enqueue(50)
  const worker = kit.worker([handler(() => time.sleep(1_000))], { concurrency: 50 })
  await worker.start()
  await time.advance(500)
  readOnly = true
  await time.advance(20_000)
  readOnly = false
  await time.advance(10_000)
  assert.deepEqual(
    (await kit.views(ids)).map((view) => [view!.state, view!.history]),
    ids.map(() => ['completed', null]),
  )
  await time.runUntil(worker.stop())
})

/** Refuses any batch with a settlement of one of these jobs in it, whatever it says. */
function refusingJobs(storage: Storage, refused: ReadonlySet<string>): Storage {
  const places = new Set<string>()
  const check = (settlements: readonly Settlement[]): void => {
    if (settlements.some(({ fence, ordinal }) => places.has(`${fence} ${ordinal}`)))
      throw new QueueError('STORE_REJECTED', 'the store cannot hold this')
  }
  return changed(storage, {
    settle: async (settlements) => {
      check(settlements)
      return storage.settle(settlements)
    },
    claim: async (request) => {
      check(request.finished ?? [])
      const claim = await storage.claim(request)
      for (const { fence, jobs } of claim.leases)
        for (const [ordinal, { id }] of jobs.entries()) if (refused.has(id)) places.add(`${fence} ${ordinal}`)
      return claim
    },
  })
}

for (const place of ['first', 'middle', 'last'] as const)
  test(`a settlement that can never be stored holds up nobody, the ${place} of its batch`, async () => {
    const refused = new Set<string>()
    const { time, kit } = virtualKit((storage) => refusingJobs(storage, refused))
    const ids = await kit.enqueue(50)
    const bad = ids[{ first: 0, middle: 25, last: 49 }[place]]!
    refused.add(bad)
    const worker = kit.worker([handler(() => time.sleep(1_000))], { concurrency: 50 })
    await worker.start()
    await time.advance(1_500)
    assert.equal(kit.all('job.completed').length, 49)
    // The last of a batch has nobody after it that would show the store to be well: the next outcome does.
    const [next] = await kit.enqueue(1)
    await time.advance(8_000)
    assert.equal((await kit.view(next!)).state, 'completed')
    assert.deepEqual(
      [...new Set(kit.all('job.lost').map(({ jobId, during }) => `${jobId} ${during}`))],
      [`${bad} settle`],
    )
    await time.runUntil(worker.stop({ grace: 0 }))
    assert.notEqual((await kit.view(bad)).state, 'completed')
  })

test('several settlements that can never be stored, among others', async () => {
  const refused = new Set<string>()
  const { time, kit } = virtualKit((storage) => refusingJobs(storage, refused))
  const ids = await kit.enqueue(60)
  for (const at of [0, 1, 30, 59]) refused.add(ids[at]!)
  const worker = kit.worker([handler(() => time.sleep(1_000))], { concurrency: 60 })
  await worker.start()
  await time.advance(20_000)
  assert.equal(kit.all('job.completed').length, 56)
  assert.equal(worker.health().unconfirmed < 4, true)
  await time.runUntil(worker.stop({ grace: 0 }))
})

test('the start of an at-most-once job that cannot be written down is no start', async () => {
  const refused = new Set<string>()
  const { time, kit } = virtualKit((storage) => refusingJobs(storage, refused))
  const spec = { delivery: 'at-most-once' } as const
  const [bad] = await kit.enqueue(1, { spec })
  refused.add(bad!)
  const good = await kit.enqueue(20, { spec })
  const ran: string[] = []
  const once = handler((_, { id }) => void ran.push(id), { delivery: 'at-most-once' })
  const worker = kit.worker([once], { concurrency: 30 })
  await worker.start()
  await time.advance(5_000)
  assert.deepEqual(ran.sort(), good.sort())
  await time.runUntil(worker.stop({ grace: 0 }))
})

test('what stands for a refused settlement says nothing of the progress that may be the reason', async () => {
  const { time, kit } = virtualKit((storage) => {
    const check = (settlements: readonly Settlement[]): void => {
      if (JSON.stringify(settlements).includes('unstorable'))
        throw new QueueError('STORE_REJECTED', 'it cannot be held')
    }
    return changed(storage, {
      settle: async (settlements) => {
        check(settlements)
        return storage.settle(settlements)
      },
      claim: async (request) => {
        check(request.finished ?? [])
        return storage.claim(request)
      },
    })
  })
  const [id] = await kit.enqueue(1)
  const worker = kit.worker([handler((_, context) => context.progress('unstorable'))])
  await worker.start()
  await time.advance(500)
  const { state, history } = await kit.view(id!)
  assert.deepEqual([state, history!.entries[0]!.error!.name], ['retrying', 'SettlementRefused'])
  assert.equal(history!.progress, undefined)
  await time.runUntil(worker.stop({ grace: 0 }))
})

test('a prune that takes half a minute is no outage', async () => {
  const { time, kit } = virtualKit((storage) => {
    const prune: Storage['upkeep']['prune'] = async (options) => {
      await time.sleep(30_000)
      return storage.upkeep.prune(options)
    }
    return changed(storage, { upkeep: { ...storage.upkeep, prune } })
  })
  const worker = kit.worker([handler()])
  await worker.start()
  for (let seconds = 0; seconds < 180; seconds++) {
    await time.advance(1_000)
    assert.equal(worker.health().status, 'ok')
  }
  assert.equal(kit.all('store.unavailable').length, 0)
  await time.runUntil(worker.stop())
})

test('a claim says how long the worker may wait for its next one', async () => {
  const polls = new Set<number>()
  const { time, kit } = virtualKit((storage) =>
    changed(storage, {
      claim: (request) => {
        polls.add(request.pollMs)
        return storage.claim(request)
      },
    }),
  )
  const worker = kit.worker([handler()], { poll: '7s' })
  await worker.start()
  await time.advance(20_000)
  assert.deepEqual([...polls], [7_000])
  await time.runUntil(worker.stop())
})

test('B36: a store that fails at once is asked less than a hundred times a minute, and told of as often', async () => {
  let failing = false
  let calls = 0
  const failingOn = (storage: Storage): Storage =>
    new Proxy(storage, {
      get(target, key) {
        const value = Reflect.get(target, key, target) as unknown
        if (key === 'upkeep') return failingOn(value as Storage)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          if (!failing) return value.apply(target, args)
          calls += 1
          return Promise.reject(new QueueError('STORE_UNAVAILABLE', 'out of memory'))
        }
      },
    })
  const { time, kit } = virtualKit(failingOn)
  const worker = kit.worker([handler()])
  await worker.start()
  await time.advance(5_000)
  failing = true
  await time.advance(60_000)
  assert.ok(calls < 100, `${calls} calls`)
  assert.ok(kit.all('store.unavailable').length <= calls)
  assert.equal(worker.health().status, 'degraded')
  failing = false
  await kit.enqueue(3)
  await time.advance(6_000)
  assert.equal(kit.all('job.completed').length, 3)
  assert.ok(kit.all('store.recovered').length > 0)
  assert.equal(worker.health().status, 'ok')
  await time.runUntil(worker.stop())
})

test('B31: after an outage of ten minutes work goes on by itself within seconds', async () => {
  let down = false
  const { time, kit } = virtualKit((storage) =>
    changed(storage, {
      claim: (request) => (down ? new Promise(() => {}) : storage.claim(request)),
      beat: (beat) => (down ? Promise.reject(new Error('unreachable')) : storage.beat(beat)),
      settle: (settlements) => (down ? Promise.reject(new Error('unreachable')) : storage.settle(settlements)),
    }),
  )
  const worker = kit.worker([handler()])
  await worker.start()
  await time.advance(1_000)
  down = true
  await time.advance(600_000)
  await kit.enqueue(10)
  down = false
  await time.advance(30_000)
  assert.equal(kit.all('job.completed').length, 10)
  await time.runUntil(worker.stop())
})

test('a store that cannot take outcomes slows the worker: no more start than the buffer holds', async () => {
  const gate = new Gate()
  let holding = true
  const { time, kit } = virtualKit((storage) =>
    changed(storage, {
      settle: async (settlements) => {
        if (holding) await gate.passed
        return storage.settle(settlements)
      },
      claim: (request) => storage.claim({ ...request, finished: [] }).then((claim) => ({ ...claim, settled: [] })),
    }),
  )
  await kit.enqueue(20_000, { spec: { keep: 'none' } })
  const worker = kit.worker([handler()])
  await worker.start()
  await time.advance(3_000)
  assert.ok(worker.health().unconfirmed <= 5_000)
  assert.ok(worker.stats().started <= 5_000)
  holding = false
  gate.open()
  await time.advance(60_000)
  assert.equal(worker.stats().completed, 20_000)
  await time.runUntil(worker.stop())
})

test('a connection that was closed under a running worker stops it, and run() says why', async () => {
  let closed = false
  const { time, kit } = virtualKit((storage) =>
    changed(storage, {
      claim: (request) =>
        closed ? Promise.reject(new QueueError('QUEUE_CLOSED', 'the connection was closed')) : storage.claim(request),
    }),
  )
  const worker = kit.worker([handler()])
  const rejected = assert.rejects(worker.run(), { code: 'WORKER_STOPPED' })
  await time.advance(1_000)
  closed = true
  await time.runUntil(rejected)
  assert.equal(time.pending, 0)
})

for (const count of [90, 350])
  test(`after a store refused everything for a while, ${count} outcomes are all stored`, async () => {
    let refuses = false
    const refuse = async (): Promise<never> => {
      throw new QueueError('STORE_REJECTED', 'cannot execute in a read-only transaction')
    }
    const { time, kit } = virtualKit((storage) =>
      changed(storage, {
        settle: (settlements: readonly Settlement[]) => (refuses ? refuse() : storage.settle(settlements)),
        claim: (request: Parameters<Storage['claim']>[0]) => (refuses ? refuse() : storage.claim(request)),
      }),
    )
    const ids = await kit.enqueue(count)
    const worker = kit.worker([handler(() => time.sleep(1_000))], { concurrency: count })
    await worker.start()
    await time.advance(500)
    refuses = true
    await time.advance(20_000)
    refuses = false
    await time.advance(600_000)
    assert.deepEqual(new Set((await kit.views(ids)).map((view) => view?.state)), new Set(['completed']))
    await Promise.all([worker.stop(), time.advance(60_000)])
  })
