/** What client and worker share: a store, the world, the bus, and hints inside this process. Made by connect.ts. */
import type { Env } from '../core/env.js'
import type { EventBus } from '../observe/events.js'
import type { Storage } from './storage.js'

/** What a queue and its workers share: store, clock, events, and hints inside this process. Made by `connect`. */
export interface Connection {
  readonly storage: Storage
  readonly env: Env
  readonly events: EventBus
  readonly hints: LocalHints
}

/** Wakes workers of this process when it enqueued something itself: no round trip to learn what is known here. */
export class LocalHints {
  private readonly listeners = new Set<(queue: string) => void>()

  on(listener: (queue: string) => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /** The queue got work that is ready and committed. */
  tell(queue: string): void {
    for (const listener of this.listeners) {
      try {
        listener(queue)
      } catch {
        // The job is stored; whoever does not hear of it polls.
      }
    }
  }
}
