/** What a case of the suite is. Each file of cases exports a list of them. */
import type { Storage } from '../../storage/storage.js'
import type { Kit } from './kit.js'

/** A part of the port that a store may lack. */
export type Facet = 'control' | 'inspect' | 'wake'

/** One promise of the port, and the code that holds a store to it. */
export interface ConformanceCase {
  /** The operation, and what is claimed of it. */
  name: string
  /** What users are promised by it, in a sentence. */
  promise: string
  /** Without these the case says nothing. */
  needs: Facet[]
  run(kit: Kit): Promise<void>
}

/** The first facet that the store lacks and the case needs. */
export function lacking(store: Storage, { needs }: ConformanceCase): Facet | undefined {
  return needs.find((facet) => store[facet] === undefined)
}
