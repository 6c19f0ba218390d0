/** The world outside: time, chance, ids, timers. Everything else asks here, so that a test can own all of it. */
import { randomFillSync } from 'node:crypto'
import { V7Generator } from 'uuidv7'

export interface Timer {
  cancel(): void
}

export interface Env {
  /** Wall clock, epoch milliseconds. For people only: no rule depends on it. */
  now(): number
  /** Milliseconds since some fixed moment; never goes back. */
  monotonic(): number
  /** In [0, 1). */
  random(): number
  /** A new UUIDv7. */
  id(): string
  /** Calls `run` once after `ms`; any length, also past 2^31 ms. */
  timer(ms: number, run: () => void): Timer
  /** Resolves after `ms`, or at once when the signal fires (it never rejects). */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Calls `run` after the I/O that is already waiting was handled; used to gather what happens in one turn. */
  soon(run: () => void): void
}

/** setTimeout fires at once above 2^31 - 1 ms, so a longer wait is made of several. */
const TIMER_MS_MAX = 2_000_000_000

export const realEnv: Env = makeRealEnv()

function makeRealEnv(): Env {
  let ids: V7Generator | undefined
  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    random: () => Math.random(),
    id: () => {
      ids ??= new V7Generator(bufferedRandom())
      return flatText(ids.generate().bytes)
    },
    timer: startTimer,
    sleep: (ms, signal) => sleepOn(startTimer, ms, signal),
    soon: (run) => {
      setImmediate(run)
    },
  }
}

const HEX = Buffer.from('0123456789abcdef')
const uuidText = Buffer.alloc(36, '-')

/** A UUID as one flat string: put together piece by piece it would stay a tree of 36 strings, and cost as much as the job. */
function flatText(bytes: Readonly<Uint8Array>): string {
  let at = 0
  for (let i = 0; i < 16; i++) {
    if (i === 4 || i === 6 || i === 8 || i === 10) at += 1
    uuidText[at++] = HEX[bytes[i]! >> 4]!
    uuidText[at++] = HEX[bytes[i]! & 15]!
  }
  return uuidText.toString('latin1')
}

/** Asking the system for each id anew cost a third of making a job. */
function bufferedRandom(): { nextUint32(): number } {
  const numbers = new Uint32Array(1_024)
  let used = numbers.length
  return {
    nextUint32: () => {
      if (used === numbers.length) {
        randomFillSync(numbers)
        used = 0
      }
      return numbers[used++]!
    },
  }
}

function startTimer(ms: number, run: () => void): Timer {
  let left = Math.max(0, ms)
  let handle: NodeJS.Timeout
  const arm = (): void => {
    const step = Math.min(left, TIMER_MS_MAX)
    left -= step
    handle = setTimeout(() => (left > 0 ? arm() : run()), step)
  }
  arm()
  return { cancel: () => clearTimeout(handle) }
}

/** A sleep made of any timer; shared with virtual time. */
export function sleepOn(timer: Env['timer'], ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const done = (): void => {
      handle.cancel()
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const handle = timer(ms, done)
    signal?.addEventListener('abort', done, { once: true })
  })
}
