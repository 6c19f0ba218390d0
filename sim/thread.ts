/** A thread of the runner: simulates the seeds that it is given. Started by seeds.ts. */
import { parentPort } from 'node:worker_threads'
import { simulate } from '../src/testing/simulator/index.js'
import { addJudged, type Failure, type Handful, type HandfulDone } from './seeds.js'

// Thousands of faults are thrown, and nobody reads where.
Error.stackTraceLimit = 0

parentPort!.on('message', (handful: Handful | null) => {
  if (handful === null) parentPort!.close()
  else void done(handful).then((part) => parentPort!.postMessage(part))
})

async function done({ from, count }: Handful): Promise<HandfulDone> {
  const failures: Failure[] = []
  const judged: Record<string, number> = {}
  let workerHours = 0
  for (let seed = from; seed < from + count; seed++) {
    const simulated = await simulate(seed)
    workerHours += simulated.workerHours
    addJudged(judged, simulated.verdict.rules)
    if (simulated.violations.length > 0) failures.push({ seed, violations: simulated.violations })
  }
  return { seeds: count, workerHours, failures, judged }
}
