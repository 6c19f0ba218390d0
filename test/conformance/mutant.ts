/** A store that is broken in one way. The mutants are in the files beside this one; mutants.test.ts runs them. */
import type { MemoryState } from '../../src/storage/memory/state.js'
import { MemoryStorage } from '../../src/testing/index.js'

/** A memory store whose inside can be reached. */
export class Broken extends MemoryStorage {
  get inside(): MemoryState {
    return this.state
  }
}

export interface Mutant {
  /** What is wrong with it. */
  name: string
  /** Cases that fail on it. */
  caught: string[]
  spoil(store: Broken): void
}
