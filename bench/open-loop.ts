/**
 * Offered load in an open loop: when each job arrives is fixed before the first one is sent, and its latency counts from
 * that planned instant. A producer or store that falls behind makes the latencies longer, not the load smaller: nothing
 * is omitted because something before it was slow. Called by offered-run.ts.
 */
import { on, once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { nowUs } from './clock.js'
import { type Figures, hundredths, latencies, percentile, perSecond } from './figures.js'

export interface Load {
  perSecond: number
  seconds: number
  seed: number
}

const PACER = new URL('./pacer-thread.js', import.meta.url)
/** The thread has the plan before the first instant of it. */
const HEAD_START_US = 10_000

/** Milliseconds of each arrival from the start: as many as the load says, at independent instants (Poisson). */
export function arrivals({ perSecond: rate, seconds, seed }: Load): Float64Array {
  const random = chance(seed)
  // So many instants drawn evenly, in order, are a Poisson process of which the number is known.
  return Float64Array.from({ length: Math.round(rate * seconds) }, () => random() * seconds * 1_000).sort()
}

/** The same numbers from 0 to 1 for the same seed: so that two runs have the same plan (mulberry32). */
export function chance(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

export interface Offering {
  /** By the clock that processes share, microseconds; the plan counts from here. */
  beganUs: number
  /** How late each job was handed to enqueue: the producer's own part of the latency. */
  lateMs: Float64Array
}

/**
 * Hands each job over when its instant has come, and waits for none. A thread keeps the time: timers of Node come a
 * millisecond late, and looking at the clock all the time would take the CPU from what is measured. Rejects when an
 * enqueue was refused.
 */
export async function offer(plan: Float64Array, send: (n: number) => Promise<unknown>): Promise<Offering> {
  const lateMs = new Float64Array(plan.length)
  const sent: Promise<unknown>[] = []
  const pacer = new Worker(PACER, { workerData: plan })
  try {
    await once(pacer, 'online')
    const beganUs = nowUs() + HEAD_START_US
    pacer.postMessage(beganUs)
    for await (const [due] of on(pacer, 'message') as AsyncIterable<[number]>) {
      for (let n = sent.length; n < due; n++) {
        lateMs[n] = Math.max(0, (nowUs() - beganUs) / 1_000 - plan[n]!)
        const sending = send(n)
        sending.catch(() => {}) // it is awaited below
        sent.push(sending)
      }
      if (due === plan.length) break
    }
    await Promise.all(sent)
    return { beganUs, lateMs }
  } finally {
    await pacer.terminate()
  }
}

/** Milliseconds from each planned arrival to the first start of its handler. `starts`: number and instant in turns. */
export function fromPlan(plan: Float64Array, beganUs: number, starts: Float64Array): Float64Array {
  const latencyMs = new Float64Array(plan.length).fill(Number.NaN)
  for (let at = 0; at < starts.length; at += 2) {
    const n = starts[at]!
    if (n < 0 || !Number.isNaN(latencyMs[n]!)) continue
    latencyMs[n] = (starts[at + 1]! - beganUs) / 1_000 - plan[n]!
  }
  return latencyMs
}

export interface Offered {
  latencyMs: Float64Array
  lateMs: Float64Array
  /** From the first planned arrival to the last start. */
  ms: number
}

/** What every scenario with an offered load says of it. */
export function figuresOfOffered(load: Load, { latencyMs, lateMs, ms }: Offered): Omit<Figures, 'scenario'> {
  const late = lateMs.toSorted()
  return {
    jobs: latencyMs.length,
    offeredPerSecond: load.perSecond,
    seconds: load.seconds,
    jobsPerSecond: perSecond(latencyMs.length, ms),
    ...latencies(latencyMs),
    maxMs: hundredths(latencyMs.reduce((most, one) => Math.max(most, one), 0)),
    producerLateP50Ms: hundredths(percentile(late, 0.5)),
    producerLateP95Ms: hundredths(percentile(late, 0.95)),
    counted: 'from the planned arrival to the start of the handler',
    arrivals: `at independent instants, seed ${load.seed}`,
  }
}
