/** A beat source for tests: beats go to the test's own thread by a BroadcastChannel. Loaded by the heartbeat's thread. */
import { BroadcastChannel } from 'node:worker_threads'
import type { Beat, BeatAnswer } from '../../src/storage/storage.js'

export interface TestBeats {
  channel: string
  /**
   * Counts in [0] how often it was opened; the first thread dies at its beat number [1], if that is above 0; in [2] is
   * the time-out it was told.
   */
  shared: Int32Array
}

export function openBeats(
  { channel, shared }: TestBeats,
  { timeoutMs }: { timeoutMs: number },
): {
  beat(beat: Beat): Promise<BeatAnswer>
  close(): Promise<void>
} {
  Atomics.store(shared, 2, timeoutMs)
  const wire = new BroadcastChannel(channel)
  const opened = Atomics.add(shared, 0, 1)
  let asked = 0
  const waiting = new Map<number, (answer: BeatAnswer) => void>()
  wire.onmessage = (event) => {
    const { answer, id } = (event as { data: { answer?: BeatAnswer; id: number } }).data
    if (answer) waiting.get(id)?.(answer)
  }
  return {
    beat(beat) {
      const dies = shared[1]!
      if (opened === 0 && dies > 0 && beat.n >= dies) process.exit()
      const id = opened * 1_000_000 + ++asked
      return new Promise((resolve) => {
        waiting.set(id, resolve)
        wire.postMessage({ id, beat })
      })
    },
    async close() {
      wire.close()
    },
  }
}
