/** Answers that come after they were given up: nothing starts too late by them, and nothing stays open. */
import assert from 'node:assert/strict'
import test from 'node:test'
import type { Storage, Wake } from '../../src/storage/storage.js'
import { CALL_MS_MAX } from '../../src/worker/store-calls.js'
import { changed, handler, virtualKit } from './kit.js'

test('a job whose claim is answered when its time is over does not start', async () => {
  let lost = 0
  const { time, kit } = virtualKit((storage: Storage) =>
    changed(storage, {
      claim: async (request) => {
        const claim = await storage.claim(request)
        // Done, and the first answer that brings something never comes.
        return claim.leases.length > 0 && lost++ === 0 ? new Promise<never>(() => {}) : claim
      },
    }),
  )
  let runs = 0
  const worker = kit.worker([handler(() => void runs++)])
  const [id] = await kit.enqueue(1, { spec: { expiresInMs: 2_000 } })
  await worker.start()
  await time.runUntil(kit.next('job.dead'), 4 * CALL_MS_MAX)
  assert.ok(time.monotonic() >= CALL_MS_MAX, 'the claim was asked again')
  assert.equal(runs, 0)
  assert.equal((await kit.view(id!)).reason, 'expired')
  await time.runUntil(worker.stop({ grace: 0 }))
})

test('a listener that is answered after it was given up is ended, and the next one stays', async () => {
  const ended: number[] = []
  let calls = 0
  const wake: Wake = {
    listen: () => {
      const number = ++calls
      const end = async (): Promise<void> => void ended.push(number)
      return number > 1 ? Promise.resolve(end) : time.sleep(CALL_MS_MAX + 5_000).then(() => end)
    },
  }
  const { time, kit } = virtualKit((storage: Storage) => changed(storage, { wake }))
  const worker = kit.worker([handler()])
  await worker.start()
  await time.advance(CALL_MS_MAX + 10_000)
  assert.equal(calls, 2)
  assert.deepEqual(ended, [1])
  await time.runUntil(worker.stop({ grace: 0 }))
  assert.deepEqual(ended, [1, 2])
})

test('a listener that is answered after the worker has stopped is ended', async () => {
  const ended: string[] = []
  const wake: Wake = {
    listen: () => time.sleep(20_000).then(() => async () => void ended.push('late')),
  }
  const { time, kit } = virtualKit((storage: Storage) => changed(storage, { wake }))
  const worker = kit.worker([handler()])
  await worker.start()
  await time.advance(1_000)
  await time.runUntil(worker.stop({ grace: 0 }))
  assert.deepEqual(ended, [])
  await time.advance(30_000)
  assert.deepEqual(ended, ['late'])
})
