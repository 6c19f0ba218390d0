/** A store in memory, a connection that records its events, and small builders for the worker's tests. */
import type { Env } from '../../src/core/env.js'
import { realEnv } from '../../src/core/env.js'
import type { BoundHandler } from '../../src/core/handler.js'
import type { JobSpec, Json } from '../../src/core/job.js'
import { SPEC_DEFAULTS } from '../../src/core/job.js'
import { EventBus, type QueueEvent } from '../../src/observe/events.js'
import { type Connection, LocalHints } from '../../src/storage/connection.js'
import { openMemory } from '../../src/storage/memory/index.js'
import type { JobView, NewJob, Storage } from '../../src/storage/storage.js'
import { VirtualTime } from '../../src/testing/virtual-time.js'
import { Worker } from '../../src/worker/index.js'
import type { WorkerOptions } from '../../src/worker/options.js'

export type EventOf<Type extends QueueEvent['type']> = Extract<QueueEvent, { type: Type }>

export class Kit {
  readonly events: QueueEvent[] = []
  readonly connection: Connection
  private readonly awaited: { matches: (event: QueueEvent) => boolean; resolve: (event: QueueEvent) => void }[] = []

  constructor(
    readonly env: Env,
    readonly storage: Storage,
  ) {
    const bus = new EventBus()
    this.connection = { env, storage, events: bus, hints: new LocalHints() }
    bus.on((event) => {
      this.events.push(event)
      for (const one of this.awaited.filter(({ matches }) => matches(event))) {
        this.awaited.splice(this.awaited.indexOf(one), 1)
        one.resolve(event)
      }
    })
  }

  worker(handlers: BoundHandler[], options: WorkerOptions = {}): Worker {
    return new Worker(this.connection, handlers, { signals: false, ...options })
  }

  /** Enqueues `count` jobs like this; their ids. */
  async enqueue(count = 1, more: Omit<Partial<NewJob>, 'spec'> & { spec?: Partial<JobSpec> } = {}): Promise<string[]> {
    const jobs = Array.from(
      { length: count },
      (_, n): NewJob => ({
        kind: 'kind',
        queue: 'queue',
        priority: 4,
        payload: JSON.stringify({ n }),
        due: { delayMs: 0 },
        ...more,
        id: this.env.id(),
        spec: { ...SPEC_DEFAULTS, ...more.spec },
      }),
    )
    for (let i = 0; i < jobs.length; i += 10_000) await this.storage.enqueue(jobs.slice(i, i + 10_000))
    return jobs.map(({ id }) => id)
  }

  all<Type extends QueueEvent['type']>(type: Type): EventOf<Type>[] {
    return this.events.filter((event): event is EventOf<Type> => event.type === type)
  }

  /** Resolves with the `nth` event of the type, counted from the beginning of the test. */
  async next<Type extends QueueEvent['type']>(type: Type, nth = 1): Promise<EventOf<Type>> {
    const there = this.all(type)[nth - 1]
    if (there) return there
    return new Promise((resolve) => {
      this.awaited.push({
        matches: (event) => event.type === type && this.all(type).length >= nth,
        resolve: (event) => resolve(event as EventOf<Type>),
      })
    })
  }

  async view(id: string): Promise<JobView> {
    const [view] = await this.storage.inspect!.get([id])
    if (!view) throw new Error(`no job ${id}`)
    return view
  }

  async views(ids: readonly string[]): Promise<(JobView | null | undefined)[]> {
    return this.storage.inspect!.get(ids)
  }
}

/** On virtual time: nothing happens but what the test lets happen. */
export function virtualKit(wrap: (storage: Storage) => Storage = (storage) => storage): {
  time: VirtualTime
  kit: Kit
} {
  const time = new VirtualTime()
  return { time, kit: new Kit(time, wrap(openMemory({ env: time }))) }
}

export function realKit(wrap: (storage: Storage) => Storage = (storage) => storage): Kit {
  return new Kit(realEnv, wrap(openMemory()))
}

export function handler(run: BoundHandler['run'] = () => {}, more: Partial<BoundHandler> = {}): BoundHandler {
  return {
    kind: 'kind',
    queue: 'queue',
    delivery: 'at-least-once',
    retryDelay: undefined,
    parse: (payload: Json) => payload,
    run,
    ...more,
  }
}

/** A promise and what settles it. */
export class Gate<T = void> {
  open!: (value: T) => void
  fail!: (error: unknown) => void
  readonly passed = new Promise<T>((resolve, reject) => {
    this.open = resolve
    this.fail = reject
  })
}

/** A storage that does as `over` says, and as `storage` does otherwise. */
export function changed(storage: Storage, over: Partial<Storage>): Storage {
  return new Proxy(storage, {
    get(target, key) {
      if (Object.hasOwn(over, key)) return over[key as keyof Storage]
      const value = Reflect.get(target, key, target) as unknown
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
