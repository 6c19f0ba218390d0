/** Faults that other queues were reported to have (docs/cases.md): beats that meet the ends of jobs. On a real store. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SPEC_DEFAULTS } from '../../src/core/job.js'
import type { Beat, BeatAnswer } from '../../src/storage/storage.js'
import { handler } from '../worker/kit.js'
import { inlineBeats, kitOn, staged, until } from './kit.js'

test('B15: twenty thousand jobs of 0 to 3 ms under beats each millisecond that take 100 ms: none lost, nothing left', async (t) => {
  const { store } = await staged(t)
  const unhandled: unknown[] = []
  const listener = (error: unknown): void => void unhandled.push(error)
  process.on('unhandledRejection', listener)
  let inFlight = 0
  let beats = 0
  const slow = async (beat: Beat): Promise<BeatAnswer> => {
    inFlight += 1
    beats += 1
    await new Promise((resolve) => setTimeout(resolve, 100))
    return store.storage.beat(beat).finally(() => {
      inFlight -= 1
    })
  }
  const kit = kitOn(inlineBeats(store.storage, slow))
  await kit.enqueue(20_000, { spec: { ...SPEC_DEFAULTS, keep: 'none' } })
  const timed = (_: unknown, { id }: { id: string }): Promise<void> | undefined => {
    const ms = Number.parseInt(id.at(-1)!, 16) % 4
    return ms === 0 ? undefined : new Promise((resolve) => setTimeout(resolve, ms))
  }
  const running = kit.worker([handler(timed)], { beat: '1ms', lease: '20s', concurrency: 100 })
  await running.runUntilEmpty()
  process.off('unhandledRejection', listener)
  assert.equal(running.stats().completed, 20_000)
  assert.ok(beats > 10)
  assert.deepEqual([kit.all('job.lost').length, kit.all('worker.leases lost').length], [0, 0])
  assert.deepEqual(unhandled, [])
  // Beats that were under way at the end are answered to nobody; no further one is sent.
  await until(async () => inFlight === 0)
  const before = beats
  await new Promise((resolve) => setTimeout(resolve, 200))
  assert.equal(beats, before)
})
