/** Faults that other queues were reported to have (docs/cases.md): slots that stay free, jobs that are claimed too early, kinds that nobody knows, duties that fail. On virtual time. */
import assert from 'node:assert/strict'
import test from 'node:test'
import type { Storage } from '../../src/storage/storage.js'
import { changed, handler, virtualKit } from '../worker/kit.js'

test('B144: a job that comes within 2 ms of the end of the one before starts within a poll: 1,000 rounds on one slot', async () => {
  const { time, kit } = virtualKit()
  let ended = 0
  const ends: (() => void)[] = []
  const working = handler(async () => {
    await time.sleep(20)
    ended += 1
    ends.shift()?.()
  })
  const worker = kit.worker([working], { concurrency: 1 })
  await worker.start()
  await kit.enqueue()
  for (let round = 0; round < 1_000; round++) {
    const offsetMs = 4 * time.random() - 2
    await time.advance(Math.max(0, 20 + offsetMs))
    await kit.enqueue(1, { spec: { keep: 'none' } })
    while (ended <= round) await time.advance(1)
  }
  await time.runUntil(worker.stop())
  const longestMs = Math.max(...kit.all('job.started').map(({ waitedMs }) => waitedMs))
  // What waits for the slot waits for the running one, and for nothing else.
  assert.ok(longestMs <= 25, `${longestMs} ms`)
})

test('B147: three workers of one slot, jobs of 1 s, a lease of 5 s: none runs twice, none waits at a busy worker while another is free', async () => {
  const { time, kit } = virtualKit()
  const starts = new Map<string, number>()
  const working = handler(async (_, { id }) => {
    starts.set(id, (starts.get(id) ?? 0) + 1)
    await time.sleep(1_000)
  })
  const workers = Array.from({ length: 3 }, () =>
    kit.worker([working], { concurrency: 1, claimBatch: 100, lease: '5s', beat: '1s' }),
  )
  await kit.enqueue(30)
  const beganAt = time.monotonic()
  for (const worker of workers) await worker.start()
  await time.runUntil(kit.next('job.completed', 30))
  assert.deepEqual(new Set(starts.values()), new Set([1]))
  assert.equal(starts.size, 30)
  // Ten seconds of work for each, had they shared it evenly to the job.
  assert.ok(time.monotonic() - beganAt <= 12_000, `${time.monotonic() - beganAt} ms`)
  for (const worker of workers) await time.runUntil(worker.stop())
})

test('B147: of a frozen worker only what it ran is run again, and that by its heirs; what waited is not held by it', async () => {
  let frozen = false
  const { time, kit } = virtualKit()
  const doomed = virtualFrozen(kit.storage, () => frozen)
  const starts = new Map<string, number>()
  const working = handler(async (_, { id }) => {
    starts.set(id, (starts.get(id) ?? 0) + 1)
    await time.sleep(1_000)
  })
  const options = { concurrency: 1, claimBatch: 100, lease: '5s', beat: '1s' } as const
  const other = new (kit.constructor as new (env: typeof time, storage: Storage) => typeof kit)(time, doomed)
  const ids = await kit.enqueue(30)
  const [healthy, cut] = [kit.worker([working], options), other.worker([working], options)]
  await cut.start()
  await healthy.start()
  await time.advance(1_500)
  frozen = true
  await time.advance(60_000)
  const twice = [...starts.values()].filter((count) => count > 1).length
  assert.ok(twice <= 1, `${twice} ran twice`)
  const views = await kit.views(ids)
  assert.deepEqual(new Set(views.map((view) => view?.state)), new Set(['completed']))
  await time.runUntil(healthy.stop())
})

/** A store that one process does not reach from a moment on: what it asks is not answered. */
function virtualFrozen(storage: Storage, isFrozen: () => boolean): Storage {
  const see = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(object, key) {
        const value = Reflect.get(object, key, object) as unknown
        if (key === 'upkeep') return see(value as object)
        if (typeof value !== 'function' || key === 'listen') return value
        return (...args: unknown[]) => (isFrozen() ? new Promise(() => {}) : value.apply(object, args))
      },
    })
  return see(storage)
}

test('B185: of a queue with a hundred jobs that nobody knows and a hundred that all know, these run; those are not touched, and not asked for in a loop', async () => {
  let claims = 0
  const { time, kit } = virtualKit((storage) =>
    changed(storage, {
      claim: (request) => {
        claims += 1
        return storage.claim(request)
      },
    }),
  )
  const unknown = await kit.enqueue(100, { kind: 'unknown' })
  await kit.enqueue(100)
  const worker = kit.worker([handler()])
  await worker.start()
  await time.runUntil(kit.next('job.completed', 100))
  const before = claims
  await time.advance(60_000)
  assert.ok(claims - before <= 120, `${claims - before} claims in a minute`)
  const views = await kit.views(unknown)
  assert.deepEqual(
    views.map((view) => [view?.state, view?.history]),
    unknown.map(() => ['ready', null]),
  )
  const listed = await kit.storage.inspect!.list({ state: 'ready', kind: 'unknown', limit: 1_000 })
  assert.equal(listed.jobs.length, 100)
  await time.runUntil(worker.stop())
})

const DUTIES = ['promote', 'expire', 'prune', 'takeOver'] as const

for (const duty of DUTIES)
  test(`B63: when ${duty} fails as the worker comes up, it is tried again, and no other duty waits for it`, async () => {
    const done = new Map<string, number>()
    let failures = 0
    const counted = <T extends object>(target: T): T =>
      new Proxy(target, {
        get(object, key) {
          const value = Reflect.get(object, key, object) as unknown
          if (key === 'upkeep') return counted(value as object)
          if (typeof value !== 'function') return value
          return async (...args: unknown[]) => {
            if (key === duty && failures === 0) {
              failures += 1
              throw new Error('a query failed')
            }
            const answer = await value.apply(object, args)
            done.set(String(key), (done.get(String(key)) ?? 0) + 1)
            return answer
          }
        },
      })
    const { time, kit } = virtualKit(counted)
    const worker = kit.worker([handler()], { concurrency: 1 })
    await worker.start()
    const delayed = await kit.enqueue(1, { due: { delayMs: 5_000 } })
    await time.advance(120_000)
    assert.equal(failures, 1)
    for (const one of DUTIES) assert.ok((done.get(one) ?? 0) > 0, `${one} was never done`)
    assert.equal((await kit.view(delayed[0]!)).state, 'completed')
    assert.deepEqual(worker.health().failing, [])
    await time.runUntil(worker.stop())
  })
