/** A thread of the runner: hunts the mutants that it is given, by their place in the table. Started by mutants.ts. */
import { parentPort, workerData } from 'node:worker_threads'
import { hunt } from './hunt.js'
import { MUTANTS } from './index.js'

// Thousands of faults are thrown, and nobody reads where.
Error.stackTraceLimit = 0

const { from, seedsMax } = workerData as { from: number; seedsMax: number }

parentPort!.on('message', (index: number | null) => {
  if (index === null) parentPort!.close()
  else void hunt(MUTANTS[index]!, from, seedsMax).then((found) => parentPort!.postMessage({ index, hunt: found }))
})
