/** Dead letters, for the tests of what is done to all that match. */
import assert from 'node:assert/strict'
import { type DeadReason, emptyHistory } from '../../src/core/job.js'
import { defineJob } from '../../src/core/kind.js'
import { fateOfOutcome } from '../../src/core/settlement.js'
import { TestWorker } from '../support/jobs.js'
import { inMemory } from './kit.js'

export const kind = defineJob<number>('kind', { queue: 'queue', retry: { attempts: 1 } })
export const other = defineJob<number>('other', { queue: 'elsewhere', retry: { attempts: 1 } })

export type World = ReturnType<typeof inMemory>

/** So many dead letters, each a millisecond younger than the one before. Answers their ids. */
export async function letters(world: World, count: number, message = 'it broke', of = kind): Promise<string[]> {
  const results = await world.time.runUntil(
    world.queue.enqueueMany(Array.from({ length: count }, (_, n) => of.with(n))),
  )
  await die(world, of.queue, message, count)
  return results.map((result) => (result.status === 'created' ? result.id : assert.fail(result.status)))
}

/** All that is ready in the queue dies. */
export async function die(
  { storage, time }: World,
  queue: string,
  message: string,
  most = 1_000,
  passing: () => Promise<void> = () => time.advance(1),
): Promise<void> {
  const worker = await TestWorker.registered(storage)
  for (let left = most; left > 0; ) {
    const claim = { kinds: ['kind', 'other'], limit: Math.min(left, 100), queues: [{ queue, share: 100 }] }
    const { leases, nowMs } = await worker.claim(claim)
    const jobs = leases.flatMap(({ fence, jobs }) => jobs.map((job, ordinal) => ({ fence, ordinal, job })))
    if (jobs.length === 0) break
    for (const { fence, ordinal, job } of jobs) {
      const attempt = { ...job, worker: worker.id, nowMs, random: 0.5 }
      const fate = fateOfOutcome(attempt, { type: 'threw', error: { name: 'Error', message }, ranMs: 1 })
      assert.equal(fate.to, 'dead')
      await storage.settle([{ fence, ordinal, ...(fate as { to: 'dead'; reason: DeadReason; history: never }) }])
      await passing()
    }
    left -= jobs.length
  }
}

export async function dead(count: number) {
  const world = inMemory()
  return { ...world, ids: await letters(world, count) }
}

/** One that may have had its effect. */
export async function lost({ storage, time, queue }: World): Promise<string> {
  const job = await time.runUntil(queue.enqueue(kind, 0))
  const worker = await TestWorker.registered(storage)
  const { leases } = await worker.claim()
  await storage.settle([{ fence: leases[0]!.fence, ordinal: 0, to: 'dead', reason: 'lost', history: emptyHistory() }])
  await time.advance(1)
  return job.id
}
