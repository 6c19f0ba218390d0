/** A queue over a store whose enqueue a test answers by hand, on virtual time. */
import { Queue, type QueueSettings } from '../../src/client/queue.js'
import type { Env } from '../../src/core/env.js'
import { EventBus, type QueueEvent } from '../../src/observe/events.js'
import { type Connection, LocalHints } from '../../src/storage/connection.js'
import { openMemory } from '../../src/storage/memory/index.js'
import type { EnqueueOptions, EnqueueOutcome, NewJob, Storage } from '../../src/storage/storage.js'
import { VirtualTime } from '../../src/testing/virtual-time.js'

/** One call to the store's enqueue, open until the test answers it. */
export interface OpenCall {
  jobs: readonly NewJob[]
  tx: unknown
  /** One outcome for each job, or one for all. */
  answer(outcomes?: EnqueueOutcome | EnqueueOutcome[]): void
  fail(error: unknown): void
}

export class StubStore {
  readonly name = 'stub'
  /** Every call there was. */
  readonly calls: OpenCall[] = []
  inFlight = 0
  inFlightMax = 0
  /** Answers at once; undefined leaves the call to the test. */
  auto: ((jobs: readonly NewJob[], call: number) => EnqueueOutcome[] | undefined) | undefined

  enqueue(jobs: readonly NewJob[], options?: EnqueueOptions): Promise<EnqueueOutcome[]> {
    this.inFlight += 1
    this.inFlightMax = Math.max(this.inFlightMax, this.inFlight)
    const done = (): void => {
      this.inFlight -= 1
    }
    return new Promise<EnqueueOutcome[]>((resolve, reject) => {
      const answer = (outcomes: EnqueueOutcome | EnqueueOutcome[] = { status: 'created' }): void =>
        resolve(Array.isArray(outcomes) ? outcomes : jobs.map(() => outcomes))
      this.calls.push({ jobs, tx: options?.tx, answer, fail: reject })
      const outcomes = this.auto?.(jobs, this.calls.length)
      if (outcomes !== undefined) resolve(outcomes)
    }).finally(done)
  }

  async close(): Promise<void> {}

  get jobs(): NewJob[] {
    return this.calls.flatMap((call) => [...call.jobs])
  }
}

export const created = (jobs: readonly NewJob[]): EnqueueOutcome[] => jobs.map(() => ({ status: 'created' }))

export function connectionTo(storage: Storage, env: Env): Connection {
  return { storage, env, events: new EventBus(), hints: new LocalHints() }
}

/** A queue over a stub. */
export function stubbed(settings?: QueueSettings) {
  const time = new VirtualTime()
  const store = new StubStore()
  const connection = connectionTo(store as unknown as Storage, time)
  return { time, store, connection, queue: new Queue(connection, settings), ...heard(connection) }
}

/** A queue over a memory store. */
export function inMemory(settings?: QueueSettings) {
  const time = new VirtualTime()
  const storage = openMemory({ env: time })
  const connection = connectionTo(storage, time)
  return { time, storage, connection, queue: new Queue(connection, settings), ...heard(connection) }
}

/** What is told on the bus and by hints, from the first call on. */
function heard(connection: Connection) {
  const events: QueueEvent[] = []
  const hints: string[] = []
  connection.hints.on((queue) => hints.push(queue))
  const listen = (): QueueEvent[] => {
    connection.events.on((event) => events.push(event))
    return events
  }
  return { events, hints, listen }
}

/** How a promise stands, without waiting for it. */
export function watch<T>(promise: Promise<T>) {
  const state: { value?: T; error?: unknown; settled: boolean } = { settled: false }
  promise.then(
    (value) => Object.assign(state, { value, settled: true }),
    (error: unknown) => Object.assign(state, { error, settled: true }),
  )
  return state
}
