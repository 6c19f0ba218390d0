/** Large payloads: what claims and take-over do with many of them. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, test } from 'node:test'
import { connect, defineJob, type Queue, worker } from '../../src/index.js'
import { newJob, TestWorker } from '../support/jobs.js'
import { type Scratch, scratch } from '../support/postgres.js'

let store: Scratch
let queue: Queue
beforeEach(async () => {
  store = await scratch()
  queue = await connect(store.url, { schema: store.schema })
})
afterEach(async () => {
  await queue.close()
  await store.drop()
})

const big = defineJob<{ text: string }>('big', { queue: 'queue', keep: 'none' })

async function drained(count: number, limitMs: number, text: () => string): Promise<void> {
  for (let n = 0; n < count; n += 20)
    await queue.enqueueMany(Array.from({ length: Math.min(20, count - n) }, () => big.with({ text: text() })))
  let done = 0
  const ran = (): void => {
    done += 1
  }
  const running = worker(queue, [big.handle(ran)], { signals: false })
  const began = Date.now()
  await running.start()
  while (done < count && Date.now() - began < limitMs) await new Promise((resolve) => setTimeout(resolve, 20))
  const reached = done
  await running.stop({ grace: 0 })
  assert.equal(reached, count, `within ${limitMs} ms`)
}

test('a backlog of 100 jobs of 1 MB is drained in seconds: a claim rewrites no jobs that it does not hand out', async () => {
  await drained(100, 60_000, () => randomBytes(390_000).toString('hex'))
})

test('payloads that compress well are bounded in a claim by what they come to, not by what they take on disk', async () => {
  await drained(1_000, 120_000, () => 'a'.repeat(1_000_000))
})

test('take-over of more than half a gigabyte goes on in steps, and no sweeper dies of it (invariant 13)', async () => {
  const text = JSON.stringify('a'.repeat(1_000_000))
  for (let n = 0; n < 600; n += 20)
    await store.storage.enqueue(Array.from({ length: 20 }, () => newJob({ payload: text })))
  // 60 workers of 10 slots each, gone at once.
  for (let n = 0; n < 60; n++) {
    const one = await TestWorker.registered(store.storage)
    await one.claim({ limit: 10 })
  }
  await store.advance(60_000)
  const sweeper = await TestWorker.registered(store.storage)
  for (let n = 0; n < 5; n++) {
    await store.advance(3_000)
    await sweeper.beat()
  }
  const taken = await store.storage.takeOver({ worker: sweeper.id, limit: 1_000 }).catch((error: Error) => error)
  assert.ok(!(taken instanceof Error), String(taken))
  assert.ok(taken.leases.length > 0)
})
