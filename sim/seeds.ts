/** Many seeds on several threads: each takes a handful, and another one when it is through. Called by main.ts. */
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import type { RuleCount } from '../src/testing/checker/check.js'
import type { Violation } from '../src/testing/simulator/index.js'

/** A seed that broke a rule. */
export interface Failure {
  seed: number
  violations: Violation[]
}

/** What a thread did with its handful. */
export interface HandfulDone {
  seeds: number
  workerHours: number
  failures: Failure[]
  /** By rule, how much it has judged over all seeds: one that has judged nothing has proven nothing. */
  judged: Record<string, number>
}

export interface Handful {
  from: number
  count: number
}

export interface SeedsDone extends HandfulDone {
  seconds: number
}

const HANDFUL = 10

export interface SeedsOptions extends Handful {
  threads?: number
  onProgress: (done: SeedsDone) => void
}

export async function runSeeds({ from, count, threads, onProgress }: SeedsOptions): Promise<SeedsDone> {
  const startedAt = performance.now()
  const done: SeedsDone = { seeds: 0, workerHours: 0, failures: [], judged: {}, seconds: 0 }
  let next = from
  const handful = (): Handful | undefined => {
    if (next >= from + count) return undefined
    const taken = { from: next, count: Math.min(HANDFUL, from + count - next) }
    next += taken.count
    return taken
  }
  const add = (part: HandfulDone): void => {
    done.seeds += part.seeds
    done.workerHours += part.workerHours
    done.failures.push(...part.failures)
    for (const [rule, judged] of Object.entries(part.judged)) addJudged(done.judged, [{ rule, judged }])
    done.seconds = (performance.now() - startedAt) / 1_000
    onProgress(done)
  }
  const size = Math.min(threads ?? availableParallelism(), Math.ceil(count / HANDFUL))
  await Promise.all(Array.from({ length: size }, () => thread(handful, add)))
  done.failures.sort((a, b) => a.seed - b.seed)
  return done
}

/** Adds what was judged to the sums. */
export function addJudged(sums: Record<string, number>, rules: readonly Pick<RuleCount, 'rule' | 'judged'>[]): void {
  for (const { rule, judged } of rules) sums[rule] = (sums[rule] ?? 0) + judged
}

function thread(handful: () => Handful | undefined, add: (part: HandfulDone) => void): Promise<void> {
  const worker = new Worker(new URL('./thread.js', import.meta.url), {
    // What a seed leaves behind is garbage at once: with little room for the young it would be copied about.
    resourceLimits: { maxYoungGenerationSizeMb: 128 },
  })
  const feed = (): void => worker.postMessage(handful() ?? null)
  return new Promise((resolve, reject) => {
    worker.on('message', (part: HandfulDone) => {
      add(part)
      feed()
    })
    worker.on('error', reject)
    worker.on('exit', () => resolve())
    feed()
  })
}
