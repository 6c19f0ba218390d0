/** Workers and clients that are broken in their own way, over a store that is as it should be. */
import { Queue } from '../../src/client/queue.js'
import type { QueueError } from '../../src/core/errors.js'
import { Executor } from '../../src/worker/executor.js'
import { Heartbeat } from '../../src/worker/heartbeat.js'
import { Settler } from '../../src/worker/settler.js'
import { Shutdown } from '../../src/worker/shutdown.js'
import { Upkeep } from '../../src/worker/upkeep.js'
import { type Mutant, replaced } from './mutant.js'

/** Members that a mutant reaches into are no part of any class's face. */
type Inner = Record<string, unknown>

export const MUTANTS_OF_WORKER: readonly Mutant[] = [
  {
    name: 'a worker starts what it may have lost',
    caughtBy: 'nothing starts under a lease that may be over',
    spoil: () => replaced(Heartbeat.prototype, 'surelyHeld', () => () => true),
  },
  {
    name: 'a worker goes by its wall clock',
    caughtBy: 'nothing starts under a lease that may be over',
    spoil: () =>
      replaced(
        Heartbeat.prototype,
        'surelyHeld',
        () =>
          function (this: Heartbeat) {
            const { env, info } = (
              this as unknown as { parts: { env: { now(): number; monotonic(): number }; info: { leaseMs: number } } }
            ).parts
            const inner = this as unknown as Inner & { confirmedAt: number; wallAt?: Map<number, number> }
            inner.wallAt ??= new Map()
            if (!inner.wallAt.has(inner.confirmedAt))
              inner.wallAt.set(inner.confirmedAt, env.now() - (env.monotonic() - inner.confirmedAt))
            return env.now() - inner.wallAt.get(inner.confirmedAt)! < info.leaseMs
          },
      ),
  },
  {
    name: 'beats end when the worker begins to drain',
    caughtBy: 'whoever can beat keeps what it holds',
    spoil: () =>
      replaced(
        Shutdown.prototype,
        'begin',
        (begin) =>
          function (this: Shutdown, graceMs: number, reason: string) {
            void (this as unknown as { session: { heartbeat: Heartbeat } }).session.heartbeat.stop()
            return begin.call(this, graceMs, reason)
          },
      ),
  },
  {
    name: 'a slot is free twice',
    caughtBy: 'no worker runs more than its slots',
    spoil: () => {
      const prototype = Executor.prototype as unknown as { release(held: unknown): void }
      return replaced(
        prototype,
        'release',
        (release) =>
          function (this: Executor, held: unknown) {
            if (this.busy > 1) this.busy -= 1
            release.call(this, held)
          },
      )
    },
  },
  {
    name: 'an end is told before the store has confirmed it',
    caughtBy: 'one end is told',
    spoil: () =>
      replaced(
        Settler.prototype,
        'add',
        (add) =>
          function (this: Settler, outgoing) {
            let told = false
            const answered: typeof outgoing.answered = (...answer) => {
              if (!told) outgoing.answered(...answer)
              told = true
            }
            if (outgoing.settlement.to === 'completed') answered('ok')
            add.call(this, {
              settlement: outgoing.settlement,
              urgent: outgoing.urgent,
              instead: () => outgoing.instead(),
              answered,
            })
          },
      ),
  },
  {
    name: 'nobody looks for the work of the dead',
    caughtBy: 'everything ends',
    spoil: () =>
      replaced(Upkeep.prototype as unknown as { sweep(): Promise<boolean> }, 'sweep', () => async () => false),
  },
  {
    name: 'an enqueue without a key whose outcome is unknown is sent again',
    caughtBy: 'one job for one enqueue',
    spoil: () =>
      replaced(
        Queue.prototype,
        'enqueue',
        (enqueue) =>
          async function (this: Queue, ...args: Parameters<Queue['enqueue']>) {
            try {
              return await enqueue.apply(this, args)
            } catch (error) {
              if ((error as QueueError).code !== 'OUTCOME_UNKNOWN') throw error
              return enqueue.apply(this, args)
            }
          } as Queue['enqueue'],
      ),
  },
]
