/** Keeps the time of an open loop: says how many of the planned instants have come. Started by open-loop.ts. */
import { parentPort, workerData } from 'node:worker_threads'
import { nowUs } from './clock.js'

const plan = workerData as Float64Array
const never = new Int32Array(new SharedArrayBuffer(4))

parentPort!.once('message', (beganUs: number) => {
  for (let due = 0; due < plan.length; ) {
    const nowMs = (nowUs() - beganUs) / 1_000
    // Nobody wakes it: this is a sleep of less than a millisecond, which timers cannot do.
    if (plan[due]! > nowMs) {
      Atomics.wait(never, 0, 0, plan[due]! - nowMs)
      continue
    }
    while (due < plan.length && plan[due]! <= nowMs) due += 1
    parentPort!.postMessage(due)
  }
})
