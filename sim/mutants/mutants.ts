/** Every mutant on several threads, one after the other each. Called by ../main.ts and by tests. */
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import type { Hunt } from './hunt.js'
import { MUTANTS } from './index.js'

export interface HuntOptions {
  /** Of the first seed. */
  from: number
  /** A mutant that so many seeds do not show is missed. */
  seedsMax: number
  threads?: number
  onHunt: (hunt: Hunt) => void
}

/** In the order of the table. */
export async function huntAll({ from, seedsMax, threads, onHunt }: HuntOptions): Promise<Hunt[]> {
  const hunts = new Array<Hunt>(MUTANTS.length)
  let next = 0
  const hunter = (): Promise<void> => {
    const worker = new Worker(new URL('./thread.js', import.meta.url), { workerData: { from, seedsMax } })
    const feed = (): void => worker.postMessage(next < MUTANTS.length ? next++ : null)
    return new Promise((resolve, reject) => {
      worker.on('message', ({ index, hunt }: { index: number; hunt: Hunt }) => {
        hunts[index] = hunt
        onHunt(hunt)
        feed()
      })
      worker.on('error', reject)
      worker.on('exit', () => resolve())
      feed()
    })
  }
  await Promise.all(Array.from({ length: Math.min(threads ?? availableParallelism(), MUTANTS.length) }, hunter))
  return hunts
}
