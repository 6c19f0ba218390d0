/** Where the store of a simulation is: in memory, or wherever somebody else opens it. Called by the simulation. */
import { MemoryStorage } from '../../storage/memory/index.js'
import type { MemoryState } from '../../storage/memory/state.js'
import type { Storage } from '../../storage/storage.js'
import type { VirtualTime } from '../virtual-time.js'

/** A store that lives in virtual time. */
export interface World {
  /** As one process opens it. */
  open(): Storage
  /** Done before each operation: a store of real time has to be told what time it is. */
  before?(): Promise<void>
}

/** The memory store of a simulation, with its inside, so that a test can break it. */
export class SimulatedStore extends MemoryStorage {
  get inside(): MemoryState {
    return this.state
  }
}

export class MemoryWorld implements World {
  readonly store: SimulatedStore

  constructor(time: VirtualTime) {
    this.store = new SimulatedStore({ env: time })
  }

  open(): Storage {
    return this.store
  }
}
