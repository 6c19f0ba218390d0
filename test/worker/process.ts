/** Workers in processes that die without a word, on virtual time, and what they leave behind. */
import assert from 'node:assert/strict'
import type { Storage } from '../../src/storage/storage.js'
import type { VirtualTime } from '../../src/testing/virtual-time.js'
import type { WorkerOptions } from '../../src/worker/options.js'
import { handler, Kit } from './kit.js'

export const QUICK: WorkerOptions = { lease: '1s', beat: '300ms' }

/** A store seen from a process that can die: after that nothing it sends arrives, and nothing it asks is answered. */
export class Process {
  alive = true

  see(storage: Storage): Storage {
    return new Proxy(storage, {
      get: (target, key) => {
        const value = Reflect.get(target, key, target) as unknown
        if (key === 'upkeep') return this.see(value as Storage)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => (this.alive ? value.apply(target, args) : new Promise(() => {}))
      },
    })
  }
}

export function processOn(kit: Kit): { process: Process; kit: Kit } {
  const process = new Process()
  return { process, kit: new Kit(kit.env, process.see(kit.storage)) }
}

/** A job that two workers died holding, before its start was reported: two notes, no attempts, and a long backoff. */
export async function makeSuspect(kit: Kit, time: VirtualTime, backoffMs: number): Promise<string> {
  const spec = { backoff: { type: 'fixed', baseMs: backoffMs, jitter: 0 } } as const
  const [id] = await kit.enqueue(1, { kind: 'suspect', spec })
  for (let crash = 0; crash < 2; crash++) {
    const a = processOn(kit)
    const dying = a.kit.worker([handler(() => new Promise(() => {}), { kind: 'suspect' })], QUICK)
    await dying.start()
    await time.advance(20)
    a.process.alive = false
    const sweeper = kit.worker([handler(() => {}, { kind: 'nothing' })], QUICK)
    await sweeper.start()
    await time.advance(6_000)
    await time.runUntil(Promise.all([sweeper.stop(), dying.stop({ grace: 0 })]))
  }
  const { history } = await kit.view(id!)
  assert.deepEqual([history!.crashes, history!.attempts], [2, 0])
  return id!
}
