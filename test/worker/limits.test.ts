/** Workers of a queue that has limits: when they ask again, and when there is nothing left for them. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { handler, virtualKit } from './kit.js'

test('jobs of a queue with a rate start as fast as it says, one by one too', async () => {
  for (const rate of [
    { limit: 100, perMs: 1_000, burst: 1 },
    { limit: 50, perMs: 1_000, burst: 50 },
  ]) {
    const { time, kit } = virtualKit()
    await kit.storage.control!.limit('queue', { rate })
    await kit.enqueue(300)
    const startedAt = time.monotonic()
    await time.runUntil(kit.worker([handler()]).runUntilEmpty())
    const tookMs = time.monotonic() - startedAt
    const leastMs = ((300 - rate.burst) * rate.perMs) / rate.limit
    assert.equal(kit.all('job.completed').length, 300)
    assert.ok(tookMs >= leastMs - 1 && tookMs < leastMs * 1.5, `${tookMs} ms, and ${leastMs} ms are the least`)
  }
})

test('a worker that a limit keeps from jobs has not emptied the queue', async () => {
  const { time, kit } = virtualKit()
  await kit.storage.control!.limit('queue', { concurrency: 1 })
  await kit.enqueue(40)
  const workers = [1, 2, 3].map(() => kit.worker([handler(() => time.sleep(50))]))
  await time.runUntil(Promise.all(workers.map((worker) => worker.runUntilEmpty())))
  assert.equal(kit.all('job.completed').length, 40)
})

test('a worker with many slots asks a full queue no more often than there is news', async () => {
  const { time, kit } = virtualKit()
  await kit.storage.control!.limit('queue', { concurrency: 3 })
  await kit.enqueue(30)
  const claims = { count: 0 }
  const { storage } = kit
  const claim = storage.claim.bind(storage)
  storage.claim = (request) => {
    claims.count += 1
    return claim(request)
  }
  await time.runUntil(kit.worker([handler(() => time.sleep(1_000))], { concurrency: 50 }).runUntilEmpty())
  assert.equal(kit.all('job.completed').length, 30)
  // Three end at a time, ten times; and the polls between.
  assert.ok(claims.count < 80, `${claims.count} claims`)
})
