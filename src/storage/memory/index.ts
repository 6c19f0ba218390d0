/**
 * The memory store: the executable form of the port, and a store for unit tests. All that share one object share the
 * store; it lives as long as the object. Opened by connect and by tests.
 */
import { type Env, realEnv } from '../../core/env.js'
import type {
  Beat,
  BeatAnswer,
  Claim,
  ClaimRequest,
  Control,
  EnqueueOptions,
  EnqueueOutcome,
  Inspect,
  NewJob,
  SettleAnswer,
  Settlement,
  Storage,
  TakeOver,
  Upkeep,
  Wake,
} from '../storage.js'
import { beat, unregister } from './beat.js'
import { claim } from './claim.js'
import { controlOf } from './control.js'
import { enqueue } from './enqueue.js'
import { inspectOf } from './inspect.js'
import { settle } from './settle.js'
import { MemoryState } from './state.js'
import { takeOver } from './take-over.js'
import { upkeepOf } from './upkeep.js'

/** `env`: the clock, chance and timers of the store; real ones by default. */
export interface MemoryOptions {
  /** Whose clock and timers the store uses; virtual time in tests. */
  env?: Env
}

/** An empty store. */
export function openMemory(options: MemoryOptions = {}): MemoryStorage {
  return new MemoryStorage(options)
}

/** Each operation is done when the call returns, and answers in a later microtask. */
export class MemoryStorage implements Storage {
  readonly name = 'memory'
  readonly upkeep: Upkeep
  readonly control: Control
  readonly inspect: Inspect
  readonly wake: Wake
  protected readonly state: MemoryState

  constructor({ env = realEnv }: MemoryOptions = {}) {
    this.state = new MemoryState(env)
    this.upkeep = upkeepOf(this.state)
    this.control = controlOf(this.state)
    this.inspect = inspectOf(this.state)
    this.wake = this.state.hints
  }

  async enqueue(jobs: readonly NewJob[], options: EnqueueOptions = {}): Promise<EnqueueOutcome[]> {
    return enqueue(this.state, jobs, options)
  }

  async claim(request: ClaimRequest): Promise<Claim> {
    return claim(this.state, request)
  }

  async beat(request: Beat): Promise<BeatAnswer> {
    return beat(this.state, request)
  }

  async settle(settlements: readonly Settlement[]): Promise<SettleAnswer[]> {
    return settle(this.state, settlements)
  }

  async takeOver(request: { worker: string; limit: number }): Promise<TakeOver> {
    return takeOver(this.state, request)
  }

  async unregister(worker: string): Promise<void> {
    unregister(this.state, worker)
  }

  /** Nothing to close: others may go on with the same object. */
  async close(): Promise<void> {}
}
