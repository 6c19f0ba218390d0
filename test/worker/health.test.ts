/** What `health()` says of a worker, and of its claim loop above all; and what it does when hints end. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { QueueError } from '../../src/core/errors.js'
import type { Storage } from '../../src/storage/storage.js'
import { changed, Gate, handler, virtualKit } from './kit.js'

/** A kit whose store answers claims while `on`. */
function muteKit() {
  const state = { on: true, claims: 0 }
  const { time, kit } = virtualKit((storage) =>
    changed(storage, {
      claim: (request) => {
        state.claims += 1
        return state.on ? storage.claim(request) : new Promise(() => {})
      },
    }),
  )
  return { time, kit, state }
}

for (const [poll, silence] of [
  ['5s', 9_000],
  ['1s', 4_200],
] as const)
  test(`polls of ${poll}: it is degraded once no claim was answered for ${silence} ms, while beats go on`, async () => {
    const { time, kit, state } = muteKit()
    const worker = kit.worker([handler()], { poll })
    assert.deepEqual([worker.health().status, worker.health().why], ['stopped', []])
    await worker.start()
    assert.deepEqual(worker.health().why, ['unregistered'])
    await time.advance(20_000)
    assert.deepEqual([worker.health().status, worker.health().why], ['ok', []])
    state.on = false
    await kit.enqueue(1)
    await time.advance(1_000)
    const before = worker.health().noClaimAnsweredForMs
    await time.advance(silence - before - 10)
    assert.equal(worker.health().status, 'ok')
    await time.advance(20)
    const { status, why, failing, lastBeatAgoMs, noClaimAnsweredForMs } = worker.health()
    assert.deepEqual([status, why, failing], ['degraded', ['no claim answered'], []])
    assert.ok(lastBeatAgoMs! <= 3_100 && noClaimAnsweredForMs > silence)
    await time.advance(15_000)
    assert.deepEqual(worker.health().why, ['no claim answered', 'store failing'])
    assert.deepEqual(worker.health().failing, ['claim'])
    state.on = true
    await time.advance(20_000)
    assert.equal(worker.health().status, 'ok')
    await time.runUntil(worker.stop())
  })

test('a worker with all slots busy for long is well: it has no reason to ask', async () => {
  const { time, kit, state } = muteKit()
  const gate = new Gate()
  await kit.enqueue(4)
  const worker = kit.worker([handler(() => gate.passed)], { concurrency: 2, prefetchWindow: 0 })
  await worker.start()
  await time.advance(60_000)
  const { why, running, noClaimAnsweredForMs, lastClaimAgoMs } = worker.health()
  assert.deepEqual([why, running, noClaimAnsweredForMs], [[], 2, 0])
  assert.ok(lastClaimAgoMs! > 50_000)
  // From the moment on at which a slot is free the store owes an answer.
  state.on = false
  gate.open()
  await time.advance(8_000)
  assert.deepEqual(worker.health().why, [])
  await time.advance(1_500)
  assert.deepEqual(worker.health().why, ['no claim answered'])
  state.on = true
  await time.runUntil(worker.stop())
})

test('outcomes that the store does not take are no excuse for claims that are not made', async () => {
  const { time, kit } = virtualKit((storage) =>
    changed(storage, {
      settle: () => new Promise(() => {}),
      claim: (request) => storage.claim({ ...request, finished: [] }).then((claim) => ({ ...claim, settled: [] })),
    }),
  )
  await kit.enqueue(7_000, { spec: { keep: 'none' } })
  const worker = kit.worker([handler()])
  await worker.start()
  await time.advance(9_700)
  assert.ok(worker.health().unconfirmed >= 5_000)
  assert.deepEqual(worker.health().why, ['no claim answered'])
  await time.runUntil(worker.stop({ grace: 0 }))
})

test('each reason is told: what drains, what the store fails, leases in doubt', async () => {
  let failing: keyof Storage | undefined
  const fail = async (): Promise<never> => {
    throw new QueueError('STORE_UNAVAILABLE', 'away')
  }
  const { time, kit } = virtualKit((storage) =>
    changed(storage, {
      beat: (beat) => (failing === 'beat' ? fail() : storage.beat(beat)),
      takeOver: (request) => (failing === 'takeOver' ? fail() : storage.takeOver(request)),
    }),
  )
  const gate = new Gate()
  await kit.enqueue(1)
  const worker = kit.worker([handler(() => gate.passed)])
  await worker.start()
  await time.advance(5_000)
  failing = 'takeOver'
  await time.advance(5_000)
  assert.deepEqual([worker.health().why, worker.health().failing], [['store failing'], ['take over']])
  failing = 'beat'
  // A lease without beats, and then the silence of the claims that are not made.
  await time.advance(20_500)
  assert.deepEqual(worker.health().failing, ['beat'])
  assert.deepEqual(worker.health().why.slice(0, 2), ['leases doubtful', 'no claim answered'])
  failing = undefined
  await time.advance(5_000)
  assert.deepEqual(worker.health().why, [])
  const stopping = worker.stop()
  assert.deepEqual([worker.health().status, worker.health().why], ['degraded', ['draining']])
  gate.open()
  await time.runUntil(stopping)
  assert.deepEqual([worker.health().status, worker.health().why], ['stopped', []])
})

test('when hints end, polls come each second again, and one at once for what may have been missed', async () => {
  let deafen: () => void = () => {}
  let claims = 0
  const { time, kit } = virtualKit((storage) =>
    changed(storage, {
      wake: {
        listen: (queues, listener, deaf) => {
          deafen = deaf!
          listener([...queues])
          return storage.wake!.listen(queues, () => {})
        },
      },
      claim: (request) => {
        claims += 1
        return storage.claim(request)
      },
    }),
  )
  const worker = kit.worker([handler()])
  await worker.start()
  await time.advance(60_000)
  const counted = async (ms: number): Promise<number> => {
    const before = claims
    await time.advance(ms)
    return claims - before
  }
  // Jittered: three or four polls of five seconds.
  assert.ok((await counted(18_000)) <= 4)
  deafen()
  assert.equal(await counted(1), 1)
  await time.advance(5_000)
  const polls = await counted(18_000)
  assert.ok(polls >= 14 && polls <= 23, `${polls} polls`)
  await time.runUntil(worker.stop())
})

test('a duty that fails while the store is found well again is tried again within seconds', async () => {
  let down = false
  let hung: Gate | undefined
  let prunes = 0
  const { time, kit } = virtualKit((storage) =>
    changed(storage, {
      beat: (beat) => (down ? Promise.reject(new Error('away')) : storage.beat(beat)),
      upkeep: changed(
        storage.upkeep as never,
        {
          prune: async (options: never) => {
            prunes += 1
            if (down) {
              hung = new Gate()
              await hung.passed
            }
            return storage.upkeep.prune(options)
          },
        } as never,
      ) as never,
    }),
  )
  const worker = kit.worker([handler()])
  await worker.start()
  await time.advance(5_000)
  down = true
  while (!hung) await time.advance(1_000)
  down = false
  await time.advance(5_000)
  assert.deepEqual(worker.health().failing, [])
  // What was sent before the outage fails after it.
  hung.fail(new Error('broken'))
  await time.advance(1)
  assert.deepEqual(worker.health().failing, ['prune'])
  const before = prunes
  await time.advance(2_500)
  assert.equal(prunes, before + 1)
  assert.equal(worker.health().status, 'ok')
  await time.runUntil(worker.stop())
})
