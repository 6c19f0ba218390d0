/** The memory store as the suite wants it: the pattern for other stores. Called by tests. */
import { MemoryStorage } from '../../storage/memory/index.js'
import { VirtualTime } from '../virtual-time.js'
import type { StoreFactory } from './kit.js'

/** Fresh memory stores on virtual time; `Store` may be a subclass. */
export function memoryFactory(Store: typeof MemoryStorage = MemoryStorage): StoreFactory {
  return async () => {
    const env = new VirtualTime()
    const store = new Store({ env })
    return {
      open: async () => store,
      advance: (ms) => env.advance(ms),
      driftMs: 0,
      discard: async () => {},
    }
  }
}
