/** Faults that other queues were reported to have (docs/cases.md): a slow leak. Rounds of jobs that fail, time out and are cancelled, and what is left after each. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { dead } from '../../src/index.js'
import { handler, virtualKit } from '../worker/kit.js'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

function heapBytes(): number {
  collect()
  return process.memoryUsage().heapUsed
}

/** Of the kinds that a worker could leave behind. What the runner of tests holds (pipes, immediates) comes and goes. */
function resources(): string[] {
  return process.getActiveResourcesInfo().filter((kind) => ['Timeout', 'TCPSocketWrap', 'MessagePort'].includes(kind))
}

const JOBS = 1_500
const ROUNDS = 6

test('B164: rounds of jobs of which a third fail, some time out and some are cancelled leave no heap, timer or resource behind', async () => {
  const { time, kit } = virtualKit()
  const working = handler((payload, { signal }) => {
    const { n } = payload as { n: number }
    if (n % 20 === 3) return new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    if (n % 20 === 5) return dead('enough')
    if (n % 3 === 0) throw new Error(`failure ${n}`)
  })
  const worker = kit.worker([working], { concurrency: 200 })
  await worker.start()
  await time.advance(1_000)
  const before = resources()
  const heaps: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const ids = await kit.enqueue(JOBS, { spec: { keep: 'none', attempts: 2, timeoutMs: 1_000 } })
    await kit.storage.control!.cancel(ids.filter((_, n) => n % 20 === 7))
    await time.advance(60_000)
    const views = (await kit.views(ids)).flatMap((view) => view ?? [])
    assert.ok(views.every(({ state }) => state === 'dead'))
    await kit.storage.control!.discard(views.map(({ id }) => id))
    kit.events.length = 0
    heaps.push(heapBytes())
  }
  assert.deepEqual(resources(), before)
  // The first rounds warm up: code is compiled, buffers grow to their size. After that a job that left 100 bytes shows.
  const grownBytes = heaps.at(-1)! - heaps[1]!
  assert.ok(grownBytes < 100 * JOBS * (ROUNDS - 2), `${grownBytes} bytes more, of ${heaps.join(', ')}`)
  await time.runUntil(worker.stop())
})
