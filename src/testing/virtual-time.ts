/**
 * A world in which time passes only when a test says so, and chance is a seed: the same program does the same thing
 * each time. Used by tests of everything that takes an Env, and by the simulator.
 */

import { type Env, sleepOn, type Timer } from '../core/env.js'
import { assert } from '../core/errors.js'
import { TimerHeap } from './timer-heap.js'

/** Where virtual time begins, and its seed. */
export interface VirtualTimeOptions {
  /** Decides chance and ids. Log it where a test draws it. */
  seed?: number
  /** Where the wall clock stands at first, epoch milliseconds. */
  startMs?: number
}

/** 2025-01-01, midnight UTC. */
const START_MS = 1_735_689_600_000
/** So many rounds without rest, and the program under test is spinning. */
const SETTLE_ROUNDS_MAX = 1_000_000

/** Microtasks run out after each of the immediates of a round of the event loop, and a round for each one costs much more. */
const TURNS_TOGETHER = 16

/** An `Env` whose time stands still until `advance` moves it; chance and ids come from a seed. */
export class VirtualTime implements Env {
  private readonly startMs: number
  private readonly draw: () => number
  private readonly timers = new TimerHeap()
  private soons: (() => void)[] = []
  private elapsedMs = 0
  private ids = 0
  private moving = false
  /** Real work that time waits for. */
  private held = 0
  private onLetGo: () => void = () => {}
  /** Immediates that are still to come. */
  private turns = 0
  private onTurn: () => void = () => {}

  constructor({ seed = 1, startMs = START_MS }: VirtualTimeOptions = {}) {
    this.startMs = startMs
    this.draw = generator(seed)
  }

  now(): number {
    return this.startMs + this.elapsedMs
  }

  monotonic(): number {
    return this.elapsedMs
  }

  random(): number {
    return this.draw()
  }

  /** Of the form of a UUIDv7: the time, a count and chance; larger than each one before. */
  id(): string {
    const time = hex(Math.floor(this.now()), 12)
    const count = hex(++this.ids, 9)
    const tail = hex(Math.floor(this.draw() * 2 ** 36), 9)
    return `${time.slice(0, 8)}-${time.slice(8)}-7${count.slice(0, 3)}-8${count.slice(3, 6)}-${count.slice(6)}${tail}`
  }

  timer(ms: number, run: () => void): Timer {
    return this.timers.add(this.elapsedMs + Math.max(0, ms), run)
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepOn((after, run) => this.timer(after, run), ms, signal)
  }

  soon(run: () => void): void {
    this.soons.push(run)
  }

  /** Time stands still until the promise is settled: for what takes real time, such as a statement of a real server. */
  hold(work: Promise<unknown>): void {
    this.held += 1
    const letGo = (): void => {
      this.held -= 1
      if (this.held === 0) this.onLetGo()
    }
    work.then(letGo, letGo)
  }

  /** How many timers wait. */
  get pending(): number {
    return this.timers.size
  }

  /** Time passes: timers that come due run in order, and what each one sets off comes to rest before the next. */
  async advance(ms: number): Promise<void> {
    await this.alone(async () => {
      const until = this.elapsedMs + ms
      await this.settle()
      while (this.nextAt() <= until) await this.runNext()
      this.elapsedMs = until
      await this.settle()
    })
  }

  /** Time passes until the promise is settled; rejects when nothing is left that could settle it, or after `maxMs`. */
  async runUntil<T>(promise: Promise<T>, maxMs = 366 * 86_400_000): Promise<T> {
    const watched = { done: false }
    const finish = (): void => {
      watched.done = true
    }
    promise.then(finish, finish)
    await this.alone(async () => {
      const until = this.elapsedMs + maxMs
      await this.settle()
      while (!watched.done) {
        assert(this.timers.size > 0, 'nothing is left that could settle the promise')
        assert(this.nextAt() <= until, `the promise is not settled after ${maxMs} ms`)
        await this.runNext()
      }
    })
    return promise
  }

  private nextAt(): number {
    return this.timers.first()?.at ?? Infinity
  }

  private async runNext(): Promise<void> {
    const next = this.timers.take()!
    this.elapsedMs = next.at
    next.run()
    await this.settle()
  }

  /** Microtasks run out, then one `soon` callback runs, until neither is left. */
  private async settle(): Promise<void> {
    for (let round = 0; round < SETTLE_ROUNDS_MAX; round++) {
      await this.turn()
      while (this.held > 0) await this.letGo()
      const run = this.soons.shift()
      if (run === undefined) return
      run()
    }
    throw new Error('virtual time: the program never comes to rest')
  }

  /** Resolves when microtasks have run out. */
  private turn(): Promise<void> {
    if (this.turns === 0) {
      this.turns = TURNS_TOGETHER
      for (let i = 0; i < TURNS_TOGETHER; i++) setImmediate(this.endTurn)
    }
    return new Promise((resolve) => {
      this.onTurn = resolve
    })
  }

  private readonly endTurn = (): void => {
    this.turns -= 1
    this.onTurn()
  }

  private async letGo(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.onLetGo = resolve
    })
    await new Promise((resolve) => setImmediate(resolve))
  }

  /** Two that move time at once would each see the other's. */
  private async alone(move: () => Promise<void>): Promise<void> {
    assert(!this.moving, 'virtual time is being moved by somebody else; await that first')
    this.moving = true
    try {
      await move()
    } finally {
      this.moving = false
    }
  }
}

/** A small generator of numbers in [0, 1), the same ones for the same seed (mulberry32). */
export function generator(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0')
}
